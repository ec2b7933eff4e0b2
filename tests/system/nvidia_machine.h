/* A machine with GPUs of NVIDIA's, or what looks like it (fake_nvidia.c): /dev and /proc/driver are
 * this process's own. */
#ifndef BHT_NVIDIA_MACHINE_H
#define BHT_NVIDIA_MACHINE_H

#include <stdbool.h>

#define NVIDIA_NODES 3

/* The right to mount, for an ordinary user: while there is one thread, so for all tests. */
bool nvidia_may_mount(void);
/* |nodes|: how many GPUs; |behaviour|: of the driver (fake_nvidia.c). */
void nvidia_machine(unsigned nodes, const char *behaviour);
/* The folder that the machine was made in. */
void nvidia_scrap(void);
void nvidia_write(const char *path, const char *text);

#endif
