/* The abort words of workers whose device has a sentinel (supervisor/reactor/sentinel.h), and the
 * sentinels: at most one for each device of a zygote.
 *
 *   NONE ──words──▶ KEPT ──import sent──▶ ASKED ──imported──▶ HELD      of each worker
 *                    ▲                      │ │                │
 *                    └───── the sentinel died ┼────────────────┘
 *                                             └▶ REFUSED   the driver does not take them, or the
 *                                                          sentinel died of them
 */
#ifndef BHI_SUPERVISOR_WORKER_WORDS_H
#define BHI_SUPERVISOR_WORKER_WORDS_H

#include "base/list.h"
#include "core/restart.h"
#include <stdint.h>

struct bhi_worker;

enum bhi_words_state {
    BHI_WORDS_NONE,
    BHI_WORDS_KEPT,
    BHI_WORDS_ASKED,
    BHI_WORDS_HELD,
    BHI_WORDS_REFUSED
};

/* Context's lock, all of it. */
struct bhi_words {
    enum bhi_words_state state;
    int fd; /* the memory; kept until the worker is confirmed dead; -1: none */
    uint64_t bytes;
    bool set_requested;  /* work was in flight when it was killed, or died: set them */
    uint64_t wanted_ns;  /* when that was requested */
    uint64_t import_seq; /* ASKED: the request's number */
    uint64_t set_seq;    /* number of the request to set them; 0: it was not sent */
    uint64_t set_ns;     /* when they were set; 0: not yet */
};

/* Context's lock, all of it. */
struct bhi_sentinel {
    struct bhi_list link; /* zygote->sentinels */
    uint32_t device_index;
    struct bhi_worker *process; /* not referenced; NULL: there is none */
    bool was_ready;             /* it has been ready */
    bool budget_spent;          /* its restart budget: no other is started */
    uint64_t requests;          /* sent so far, to all of them */
    struct bhi_restart restart;
};

#endif
