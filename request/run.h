/* What a command line or a job of a batch asked to run: checked as far as possible without opening
 * a file. */
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
    /* Owned: an expression, which takes the place of a kernel (eval.h). NULL: a kernel. */
    struct bhi_eval_request *eval;
    const char *command; /* the command that complaints name, for example "run" */
    const char *kernel_path;
    char kernel_name[64];
    const char *entry; /* NULL: the default */
    struct bhi_source source;
    enum bhi_language language; /* UNKNOWN: the file decides */
    uint32_t groups[3];
    uint32_t block[3]; /* of an image for CUDA; 0: not given */
    bool has_shared;
    uint32_t shared_bytes;            /* likewise */
    bool image;                       /* the kernel is for CUDA; known when its file was read */
    bool compiled;                    /* and its file is CUDA C++; likewise */
    struct bhi_run_binding *bindings; /* owned */
    uint32_t binding_count;
    struct bhi_push push;
    const char *push_order; /* borrowed: the text of |push|; NULL: none, or by name */
    const char *push_texts[BHI_MAX_PUSH_TEXTS]; /* borrowed: given by name, and not in |push| yet */
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
    bh_memory memory;      /* where the arrays' memory is */
    const char *cache_dir; /* NULL: none */
    bool reinterpret;      /* types need not match the kernel's */
    bool time;             /* also measure device time */
    bool trusted, json, verbose;
    const char
        *sources; /* where complaints say that bindings can be given; NULL: the options or keys of
                          * a launch */
    int error;    /* errno of the last refusal; 0: none, or no system call was the reason */
    struct bhi_load_opening
        *opening; /* for cli/run/loads.c: the file whose opening a signal has interrupted; NULL:
                   * none */
};

/* Makes a request of |kernel_path| (borrowed) alone, to which at most |items| bindings will be
 * added. On failure nothing is owned. The functions of fill.h fill it in. */
bool bhi_run_request_init(struct bhi_run_request *request, const char *kernel_path, size_t items,
                          struct bhi_complaint *complaint);
/* Releases buffers, closes files, and abandons outputs that were not committed. */
void bhi_run_request_free(struct bhi_run_request *request);
/* Returns the binding that was given for |slot|, or NULL. */
struct bhi_run_binding *bhi_run_request_find(const struct bhi_run_request *request,
                                             struct bhi_slot slot);

/* Fills in what a launch binds; the buffers must exist. |out_bindings| has room for
 * BHI_MAX_BINDINGS. */
void bhi_run_request_bindings(const struct bhi_run_request *request, bh_binding *out_bindings);
/* Makes the launch of |kernel|, and fills in |bindings| for it, likewise. The command borrows both. */
bh_command bhi_run_request_command(const struct bhi_run_request *request, bh_kernel *kernel,
                                   bh_binding *bindings);
/* Fills in the options of the kernel, which other launches may share: each says its block. */
void bhi_run_request_kernel_options(const struct bhi_run_request *request,
                                    bh_kernel_options *out_options);

#endif
