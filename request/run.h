/* What a run was asked to do, by a command line or by a job of a batch: checked as far as it can be
 * without touching a file. */
#ifndef BHI_REQUEST_RUN_H
#define BHI_REQUEST_RUN_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>

#include "request/binding.h"
#include "request/language.h"
#include "request/source.h"

enum {
    BHI_MAX_BINDINGS = 256,
    BHI_MAX_SPECS = 256,
    BHI_MAX_PUSH_TEXTS = 64,
    BHI_MAX_REPEAT = 1000000,
};

struct bhi_run_request {
    /* Owned: an expression, in place of a kernel (eval.h). NULL: a kernel. */
    struct bhi_eval_request *eval;
    const char *command; /* "run": whose complaints they are */
    const char *kernel_path;
    char kernel_name[64];
    const char *entry; /* NULL: the default */
    struct bhi_source source;
    enum bhi_language language; /* UNKNOWN: by the file */
    uint32_t groups[3];
    struct bhi_run_binding *bindings; /* owned */
    uint32_t binding_count;
    struct bhi_push push;
    const char *push_order; /* borrowed: what |push| was parsed from; NULL: none, or names */
    const char *push_texts[BHI_MAX_PUSH_TEXTS]; /* borrowed: by name, not in |push| yet */
    uint32_t push_text_count;
    bh_specialization specs[BHI_MAX_SPECS];
    uint32_t spec_count;
    uint64_t deadline_ns;         /* 0: the default */
    uint64_t compile_deadline_ns; /* 0: the default */
    bool limits_grace;
    uint64_t grace_ns;
    const char *tenant; /* NULL: none */
    uint64_t repeat;
    const char *device; /* NULL: the default */
    bool limits_memory;
    uint64_t memory_limit;
    bh_memory memory;      /* where the arrays are */
    const char *cache_dir; /* NULL: none */
    bool reinterpret;      /* types need not match */
    bool time;             /* device time, too */
    bool trusted, json, verbose;
    int error; /* errno of the last refusal; 0: none, or nothing to do with the system */
    struct bhi_load_opening
        *opening; /* cli/run/loads.c: a file that a signal has interrupted; NULL: none */
};

/* A request of |kernel_path| (borrowed) and no more; at most |items| bindings are going to be
 * added. On failure nothing is owned. fill.h has what fills it in. */
bool bhi_run_request_init(struct bhi_run_request *request, const char *kernel_path, size_t items,
                          struct bhi_complaint *complaint);
/* Releases buffers, closes files, abandons outputs that were not committed. */
void bhi_run_request_free(struct bhi_run_request *request);
/* The binding given for a slot; NULL: none. */
struct bhi_run_binding *bhi_run_request_find(const struct bhi_run_request *request,
                                             struct bhi_slot slot);

#endif
