/* The memory holder: a process that shares a worker's memory and does nothing.
 *
 * When a worker is killed, the kernel frees its memory before it reports the death; with a JIT and
 * a driver in it this takes 2 to 10 ms. If another process shares the memory, the death is reported
 * at once (0.1 ms), and the memory is freed when the memory holder ends. That is shortly after: the
 * zygote reports and reaps the worker, then kills the memory holder.
 *
 * It gives no way out of the sandbox. It is made after the worker has dropped its rights and keeps
 * one descriptor, the read end of its pipe. It is in seccomp's strict mode, which allows read,
 * write, _exit and sigreturn; if a filter is already installed, a filter that allows the same.
 *
 * And it gives no way to outlive the worker. A compromised worker can make the memory holder run
 * any code as soon as its read returns. It shares the mappings of buffers, and these buffers go to
 * others after the worker's death is confirmed. So the kernel stops the memory holder when the
 * worker dies (PDEATHSIG is SIGSTOP), before that death is reported. It sleeps in its read and
 * never returns from it, because the filters let no process send it SIGCONT. With SIGKILL it would
 * free the memory while the death is being reported, and on a machine with few processors this
 * would delay the report. The zygote, which inherits the memory holder, sees that it is stopped,
 * and kills it. The pipe is for a worker that dies before the death signal is set.
 *
 * It exists only for drivers whose device is the worker's own threads. A GPU runs on after its
 * process has died: there the death must not be reported before the kernel has removed the device's
 * mappings. */
#ifndef BHI_WORKER_PROCESS_MEMORY_HOLDER_H
#define BHI_WORKER_PROCESS_MEMORY_HOLDER_H

#include "worker/error.h"

/* Makes a memory holder, which lives until the write end of the pipe of |pipe_end| is closed. Call
 * it before the first thread starts. Returns 0 or -errno. */
int bhi_memory_holder_start(int pipe_end, struct bhi_error *failure);

#endif
