/* Where /proc shows a process. A worker's zygote mounts a proc of its own pid namespace, because
 * the host's may be that of another pid namespace. */
#ifndef BHI_BASE_PROC_PLACE_H
#define BHI_BASE_PROC_PLACE_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

struct bhi_proc_place {
    int proc;    /* a folder: a mounted proc */
    bool inside; /* of the innermost pid namespace of the process; otherwise of ours */
    pid_t pid;   /* in the namespace of |proc| */
};

/* Opens the folder of its threads. NULL: errno says why; ENOENT also if |proc| hides it. */
DIR *bhi_proc_place_threads(const struct bhi_proc_place *place);

#endif
