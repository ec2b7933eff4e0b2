/* A machine with GPUs of NVIDIA's, or what looks like it (fake_nvidia.c): /dev and /proc/driver are
 * this process's own. */
#ifndef BHT_NVIDIA_MACHINE_H
#define BHT_NVIDIA_MACHINE_H

#define NVIDIA_NODES 3

/* For this test. |nodes|: how many GPUs; |behaviour|: of the driver (fake_nvidia.c). */
void nvidia_machine(unsigned nodes, const char *behaviour);
void nvidia_write(const char *path, const char *text);

#endif
