/* What `bulkhead run` was asked to do: its arguments, parsed and checked as far as they can be
 * without touching a file. */
#ifndef BHI_REQUEST_RUN_H
#define BHI_REQUEST_RUN_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>

#include "formats/npy.h"
#include "request/language.h"
#include "request/source.h"
#include "tool/args.h"
#include "tool/npy_file.h"
#include "tool/outfile.h"
#include "tool/values.h"

enum {
    BHI_MAX_BINDINGS = 256,
    BHI_MAX_SPECS = 256,
    BHI_MAX_PUSH_TEXTS = 64,
    BHI_MAX_REPEAT = 1000000,
};

/* One --in, --out or --inout, and what becomes of it. */
struct bhi_run_binding {
    const char *option, *text; /* as given: "in", "0=x.npy" */
    struct bhi_slot slot;      /* of one with a name: once the kernel was inspected (names.h) */
    char name[64];             /* empty: it was given by number */
    bh_access access;
    char *in_path, *out_path; /* owned; NULL: none */
    const char *tensor;       /* in |text|: which one of the .safetensors; NULL: it is a .npy */
    struct bhi_array array;   /* of --out from the start, of the others once the file is open; of
                                 a tensor that no .npy can hold the dtype is BHI_DTYPE_COUNT */
    const char *like;         /* in |text|: the array is that of an input; NULL: it is not */
    uint32_t like_index;      /* which binding that is */
    bh_dtype tensor_dtype;    /* of a tensor, in place of array.dtype */
    struct bhi_npy_file in;   /* standard input only: files are the loader's */
    struct bhi_outfile out;
    uint8_t header[BHI_NPY_WRITE_CAPACITY];
    size_t header_size;
    bh_buffer *buffer;
};

struct bhi_run_request {
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
    const char *cache_dir; /* NULL: none */
    bool reinterpret;      /* types need not match */
    bool trusted, json, verbose;
    struct bhi_load_opening
        *opening; /* cli/run/loads.c: a file that a signal has interrupted; NULL: none */
};

/* On failure nothing is owned; the complaint names the argument. */
bool bhi_run_request_parse(const struct bhi_args *args, struct bhi_run_request *out_request,
                           struct bhi_complaint *complaint);
/* The same in steps, for what does not come from a command line. A request of |kernel_path|
 * (borrowed) and no more; at most |items| are going to be parsed. On failure nothing is owned. */
bool bhi_run_request_init(struct bhi_run_request *request, const char *kernel_path, size_t items,
                          struct bhi_complaint *complaint);
/* Takes one in; the value is borrowed. The complaint does not name the option (bhi_run_blame). On
 * failure the request is still to be freed. */
bool bhi_run_parse_item(struct bhi_run_request *request, const struct bhi_arg *item,
                        struct bhi_complaint *complaint);
/* B of B=FILE: a number or a name, |length| bytes of |text|. Fills in slot and name. */
bool bhi_run_parse_place(struct bhi_run_binding *binding, const char *text, size_t length,
                         struct bhi_complaint *complaint);
/* What `run` and `eval` parse alike. Each returns false with a complaint.
 * FILE, or FILE.safetensors:TENSOR: fills in path, tensor and access. */
bool bhi_run_parse_input(struct bhi_run_binding *binding, const char *files,
                         struct bhi_complaint *complaint);
/* Refuses a name that says another format than .npy, which is what is written. */
bool bhi_run_check_format(const char *path, struct bhi_complaint *complaint);
/* --cache-dir, --deadline, --compile-deadline, --grace, --tenant, --repeat, --device,
 * --memory-limit, --json, --verbose. */
bool bhi_run_parse_common(struct bhi_run_request *request, const struct bhi_arg *item,
                          struct bhi_complaint *complaint);
/* Standard input and standard output serve one purpose each. */
bool bhi_run_check_streams(const struct bhi_run_request *request, struct bhi_complaint *complaint);
/* Puts the option before a complaint about its value. Always false. */
bool bhi_run_blame(const struct bhi_arg *item, struct bhi_complaint *complaint);

/* Releases buffers, closes files, abandons outputs that were not committed. */
void bhi_run_request_free(struct bhi_run_request *request);

/* Its input is standard input. */
bool bhi_run_is_stdin(const struct bhi_run_binding *binding);
/* The binding given for a slot; NULL: none. */
struct bhi_run_binding *bhi_run_request_find(const struct bhi_run_request *request,
                                             struct bhi_slot slot);

#endif
