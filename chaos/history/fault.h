/* The kinds of faults. */
#ifndef BHI_CHAOS_HISTORY_FAULT_H
#define BHI_CHAOS_HISTORY_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/complaint.h"

enum bhi_fault_kind {
    BHI_FAULT_KILL, /* SIGKILL to a worker */
    BHI_FAULT_SEGV, /* SIGSEGV to a worker */
    BHI_FAULT_STOP, /* SIGSTOP to a worker, for good */
    BHI_FAULT_HANG, /* an endless kernel */
    BHI_FAULT_OOM, /* a kernel that needs more memory, to compile or run, than its worker may use */
    BHI_FAULT_GARBAGE,   /* random bytes on a worker's control socket, as if from the worker */
    BHI_FAULT_CLOSE,     /* a worker's control socket is shut down */
    BHI_FAULT_ZYGOTE,    /* SIGKILL to a zygote, and so to all its workers */
    BHI_FAULT_SLOW,      /* SIGSTOP to a worker, SIGCONT a little later */
    BHI_FAULT_FULL,      /* the host's descriptor table is full for a while */
    BHI_FAULT_DEVICE,    /* SIGKILL to a worker while device memory is made, shared or copied */
    BHI_FAULT_UNGUARDED, /* an endless kernel that reached the driver without the guard */
    BHI_FAULT_ILLEGAL,   /* a CUDA kernel that writes where no memory is */
    BHI_FAULT_KINDS
};
/* What a run injects if nobody says what. A seed means the same faults for ever, so later kinds are
 * not in it; DEVICE changes the workload, UNGUARDED needs seconds of a GPU, ILLEGAL needs CUDA. */
#define BHI_FAULTS_DEFAULT ((1u << BHI_FAULT_DEVICE) - 1)
/* The same on a CUDA device. */
#define BHI_FAULTS_CUDA ((BHI_FAULTS_DEFAULT & ~(1u << BHI_FAULT_OOM)) | 1u << BHI_FAULT_ILLEGAL)

/* Is the fault a submission? */
static inline bool bhi_fault_is_bait(enum bhi_fault_kind kind) {
    return kind == BHI_FAULT_HANG || kind == BHI_FAULT_OOM || kind == BHI_FAULT_UNGUARDED ||
           kind == BHI_FAULT_ILLEGAL;
}
const char *bhi_fault_name(enum bhi_fault_kind kind); /* for example "kill" */
/* Finds one of |names|, which end with NULL, by its |length| bytes. -1: there is none such. */
int bhi_name_find(const char *const *names, const char *name, size_t length);
/* Parses a list of |names|, of which there are at most 32, into a set of bits, 1 << index. The complaint
 * says that an unknown one is |what|, and which there are. */
bool bhi_names_parse(const char *list, const char *const *names, const char *what,
                     uint32_t *out_set, struct bhi_complaint *complaint);
/* Parses a list such as "kill,segv" into a set of bits, 1 << kind. The complaint names an unknown
 * one. */
bool bhi_fault_parse(const char *list, uint32_t *out_set, struct bhi_complaint *complaint);
/* In the order of enum bhi_fault_kind; ends with NULL. */
extern const char *const bhi_fault_names[BHI_FAULT_KINDS + 1];

#endif
