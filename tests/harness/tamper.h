/* What a test does behind the library's back: looks up processes, and writes where only a worker
 * should. */
#ifndef BHT_TAMPER_H
#define BHT_TAMPER_H

#include "ipc/progress.h"

#include <stdbool.h>
#include <sys/types.h>

/* From /proc; 0: there is no such process. A worker's parent is its zygote. */
pid_t fx_parent(pid_t pid);
/* Maps the progress memory behind |fd|, a descriptor of this process, as a worker has it: the
 * host's own view is read-only. False: there is none. */
bool fx_map_progress(int fd, struct bhi_progress *out);
/* That of the worker that was started first, as long as none has died: descriptors are given lowest
 * first. Unmap it with bhi_progress_unmap. */
struct bhi_progress fx_progress(void);
/* Records that |seq| completed well, as a worker does, and wakes whoever waits. */
void fx_complete(struct bhi_progress *progress, uint64_t seq, uint64_t tail);

#endif
