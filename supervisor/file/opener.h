/* The opener: a process that opens files for the host (worker/opener/opener.h). Each context has
 * one, which starts with the first file. The host itself makes no system call on such a file: on a
 * dead mount it would hang, and could not even be killed.
 *
 *   the host                                      the opener
 *     makes a pair of sockets, sends A ─── open ──▶ takes it
 *     waits at B, no longer than it may ◀─ taken ── (A)
 *                                       ◀─ opened ─ (A) what it is, and the file
 *
 * The host peeks at `opened` and leaves it in B, so B stands for the file. Each loader gets B, and
 * takes a descriptor of the file from there in the same way. */
#ifndef BHI_SUPERVISOR_FILE_OPENER_H
#define BHI_SUPERVISOR_FILE_OPENER_H

#include "ipc/wire.h"
#include "supervisor/context/context.h"
#include <bulkhead/file.h>

/* What became of a file. */
struct bhi_opening {
    int error;     /* errno of why it cannot be opened; 0: it is open */
    char what[64]; /* which call failed, or why; empty: open itself */
    struct bhi_msg_opened opened;
    int socket; /* the caller's, for bhi_opener_let_go; -1: not open */
};

/* Opens what |source| names. Returns BH_OK if |out| has the answer, which may be an error;
 * BH_TIMEOUT at |deadline_ns|; BH_UNAVAILABLE if no opener can run; BH_CLOSED. Any thread. Messages
 * begin with |call| and |name|. */
bh_status bhi_opener_open(bh_context *context, const bh_file_source *source, uint64_t deadline_ns,
                          const char *call, const char *name, struct bhi_opening *out,
                          bh_detail *detail);
/* A copy of a pipeline cache from its file into the area (cache_area.h), or back (|store|). */
struct bhi_cache_call {
    const char *folder; /* absolute, shorter than PATH_MAX */
    uint8_t identity[32];
    bool store;
    int area;
    uint64_t room;
};

/* Returns BH_OK if |out| has the answer, which may be an error; BH_TIMEOUT, BH_UNAVAILABLE or
 * BH_CLOSED. Any thread. */
bh_status bhi_opener_cache(bh_context *context, const struct bhi_cache_call *what,
                           uint64_t deadline_ns, struct bhi_msg_cache_done *out, bh_detail *detail);
/* The file is needed no more: the opener closes it. Never blocks. */
void bhi_opener_let_go(bh_context *context, int socket);
/* Ends the opener, and all calls that wait for it. Waits only for a moment: an opener that is stuck
 * in the kernel ends when its mount does. */
void bhi_opener_stop(bh_context *context);

#endif
