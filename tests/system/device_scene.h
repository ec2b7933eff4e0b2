/* What the tests of device memory have in common: streams, contents, copies. */
#ifndef BHT_DEVICE_SCENE_H
#define BHT_DEVICE_SCENE_H

#include "fixture.h"

/* |tenant| may be NULL; |device_memory| is its limit, 0: none. */
bh_stream *device_stream(bh_context *context, const char *name, const char *tenant,
                         uint64_t device_memory);
/* The same on |device|; NULL: the default. */
bh_stream *device_stream_on(bh_context *context, const char *name, const char *device,
                            const char *tenant, uint64_t device_memory);
/* |memory| is asked for, and BH_MEMORY_DEVICE must come of it. */
bh_buffer *device_buffer(bh_context *context, bh_stream *stream, uint64_t size, uint64_t memory);
/* Words of which no two are the same; free() them. */
uint32_t *device_pattern(uint64_t size, uint32_t seed);
void device_expect(bh_buffer *buffer, const void *bytes, uint64_t size);
void device_put(bh_buffer *buffer, const void *bytes, uint64_t size);
bh_event *device_copy(bh_stream *stream, bh_buffer *src, bh_buffer *dst);
/* It ends READY; drops it. */
void device_expect_ready(bh_event *event);

#endif
