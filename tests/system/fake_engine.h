/* What the two halves of the driver fake_transfer share: the device, and the queues of its transfer
 * family (fake_engine.c). */
#ifndef BHT_FAKE_ENGINE_H
#define BHT_FAKE_ENGINE_H

#include "fake_engine_page.h"
#include "fake_lavapipe.h"

#include <pthread.h>
#include <stdbool.h>

#ifndef QUEUES
#define QUEUES 1 /* of the transfer family */
#endif

/* fake_transfer.c */
extern PFN_vkGetDeviceProcAddr real_device_proc;
extern VkDevice device;
extern pthread_mutex_t fake_mutex; /* guards what the two know of buffers, memory and work */
/* Where the buffer's bytes are; *out_size: how many there are. Call it with the mutex. */
uint8_t *fake_bytes_of(VkBuffer buffer, VkDeviceSize offset, size_t *out_size);

#define DEVICE(name) ((PFN_##name)real_device_proc(device, #name))

/* fake_engine.c */
extern struct fake_engine *fake_engine_page; /* NULL: there is none */
void fake_engine_start(void);
/* The entry points that it replaces, or NULL. */
PFN_vkVoidFunction fake_engine_proc(const char *name);

#endif
