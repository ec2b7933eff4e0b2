/* The opener as the host sees it: a process that opens files for it (worker/opener/opener.h), one
 * for each context, started when the first file is. No call of a file's is made in the host: on a
 * dead mount the host would hang in it, and could not even be killed.
 *
 *   the host                                      the opener
 *     makes a pair of sockets, sends A ─── open ──▶ takes it
 *     waits at B, no longer than it may ◀─ taken ── (A)
 *                                       ◀─ opened ─ (A) what it is, and the file
 *
 * The host looks at `opened` and leaves it where it is: B stands for the file. Loaders are given B,
 * and look there for the file, each for itself. */
#ifndef BHI_SUPERVISOR_FILE_OPENER_H
#define BHI_SUPERVISOR_FILE_OPENER_H

#include "ipc/wire.h"
#include "supervisor/context/context.h"

/* What became of a file. */
struct bhi_opening {
    int error;     /* errno of why it cannot be opened; 0: it is open */
    char what[64]; /* which call failed, or why; empty: open itself */
    struct bhi_msg_opened opened;
    int socket; /* the caller's, to be let go; -1 where it is not open */
};

/* Opens what |source| names. BH_OK: |out| tells. BH_TIMEOUT at |deadline_ns|; BH_UNAVAILABLE: there
 * can be no opener; BH_CLOSED. Any thread. Messages begin with |call| and |name|. */
bh_status bhi_opener_open(bh_context *context, const bh_file_source *source, uint64_t deadline_ns,
                          const char *call, const char *name, struct bhi_opening *out,
                          bh_detail *detail);
/* A pipeline cache: from its file into the area (cache_area.h), or back. */
struct bhi_cache_call {
    const char *folder; /* absolute, shorter than PATH_MAX */
    uint8_t identity[32];
    bool store;
    int area;
    uint64_t room;
};

/* BH_OK: |out| tells what became of it, also an errno. BH_TIMEOUT, BH_UNAVAILABLE, BH_CLOSED. Any
 * thread. */
bh_status bhi_opener_cache(bh_context *context, const struct bhi_cache_call *what,
                           uint64_t deadline_ns, struct bhi_msg_cache_done *out, bh_detail *detail);
/* The file is needed no more: the opener closes it. Never blocks. */
void bhi_opener_let_go(bh_context *context, int socket);
/* Ends the opener, and all that wait for it. Waits for a moment at most: one that is stuck in the
 * kernel ends when its mount does. */
void bhi_opener_stop(bh_context *context);

#endif
