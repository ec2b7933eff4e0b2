/* The memory holder: a process that shares a worker's memory and does nothing.
 *
 * When a worker is killed the kernel frees its memory before it tells anybody that it is dead; with
 * a JIT and a driver in it that takes 2 to 10 ms. While another process holds the same memory the
 * death is reported at once (0.1 ms), and the memory goes when the memory holder does: a moment
 * later, when the zygote has reaped the worker, said so, and killed the memory holder.
 *
 * It is no way out of the sandbox: it is made when the worker has dropped its rights, keeps one
 * descriptor (the read end of that pipe), and is in seccomp's strict mode, which knows read, write,
 * _exit and sigreturn, or behind a filter that does, where there is one already.
 *
 * And it is no way to outlive the worker. Whoever takes a worker over can make the memory holder
 * run what he likes as soon as its read returns, and it shares the mappings of buffers, which a
 * confirmed death gives to others. So the kernel stops it when the worker dies (PDEATHSIG is
 * SIGSTOP), which is before anybody is told of that death; asleep in its read it never comes back
 * to a program then, for nobody who could send SIGCONT has a filter that lets him. SIGKILL would do
 * as well, but then it frees the memory while the news of the death is on its way, and on a machine
 * with few processors in its way. The zygote, which inherits it, sees it stopped and kills it. The
 * pipe is for a worker that dies before the death signal is set.
 *
 * Only for drivers whose device is the worker's own threads. A GPU runs on after its process, and
 * there the death must not be reported before the kernel has taken the device's mappings away. */
#ifndef BHI_WORKER_PROCESS_MEMORY_HOLDER_H
#define BHI_WORKER_PROCESS_MEMORY_HOLDER_H

#include "worker/error.h"

/* Makes one that lives until the write end of the pipe of |pipe_end| is closed. Before the first
 * thread. Returns 0 or -errno. */
int bhi_memory_holder_start(int pipe_end, struct bhi_error *failure);

#endif
