/* The device holder: a process that keeps a worker's device open for a while after its death.
 *
 * When a process that has a device ends, NVIDIA's driver releases it under a lock that every other
 * process needs, too, for 40 ms and more. A stream whose worker has died idle has its next worker
 * at once, and that one would wait for the lock as soon as it imports a buffer. The driver begins
 * with the release when the last descriptor of the device is closed. So another process has copies
 * of them, and the supervisor says when it may end (decision 4).
 *
 * The zygote forks it before the worker. It has one descriptor, a socket, through which the worker
 * sends its device's descriptors when it has made its device, before it is given anything
 * untrusted. Then the worker closes its end, and the holder sleeps until it is killed. It never
 * uses what it has got. Nodes that the driver opens later it does not have; what the driver takes
 * long to release belongs to the ones that the device was made with.
 *
 * A death is reported when both have ended: what runs on a device runs until it is released. If
 * there is no holder, or the worker could not send, the worker's own end is the release. */
#ifndef BHI_WORKER_PROCESS_DEVICE_HOLDER_H
#define BHI_WORKER_PROCESS_DEVICE_HOLDER_H

#include "worker/sandbox/nodes.h"
#include <sys/types.h>

/* The files that a driver's nodes are. */
struct bhi_device_files {
    unsigned count;
    struct {
        dev_t device;
        ino_t inode;
    } of[BHI_NODES_MOST + 4];
};

/* In the zygote: forks a holder that receives from |socket|. Returns its pid, or -errno. */
pid_t bhi_device_holder_start(int socket);

/* In the worker. Lists the files of the driver's nodes: |node|, or if it is NULL all |nodes|, and
 * the paths that all of its devices share. */
void bhi_device_files_list(struct bhi_device_files *files, const struct bhi_driver_info *driver,
                           const char *node, const struct bhi_nodes *nodes);
/* Sends each descriptor below |end| that one of |files| is open under, and closes |socket|. Stops
 * at the first that cannot be sent. */
void bhi_device_files_send(const struct bhi_device_files *files, int socket, int end);

#endif
