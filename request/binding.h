/* One binding of a run: the place that it is bound to, and its files. */
#ifndef BHI_REQUEST_BINDING_H
#define BHI_REQUEST_BINDING_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>

#include "formats/npy.h"
#include "tool/npy_file.h"
#include "tool/outfile.h"
#include "tool/values.h"

/* One --in, --out or --inout, and what becomes of it. */
struct bhi_run_binding {
    const char *option;   /* as given: "in" */
    char *text;           /* as given: "0=x.npy"; owned, for complaints */
    struct bhi_slot slot; /* of one with a name: once the kernel was inspected (names.h) */
    char name[64];        /* empty: it was given by number */
    bh_access access;
    char *in_path, *out_path; /* owned; NULL: none */
    const char *tensor;       /* borrowed: which one of the .safetensors; NULL: it is a .npy */
    struct bhi_array array;   /* of --out from the start, of the others once the file is open; of
                                 a tensor that no .npy can hold the dtype is BH_DTYPE_NONE */
    const char *like;         /* borrowed: the array is that of an input; NULL: it is not */
    uint32_t like_index;      /* which binding that is */
    bh_dtype tensor_dtype;    /* of a tensor, in place of array.dtype */
    struct bhi_npy_file in;   /* standard input only: files are the loader's */
    struct bhi_outfile out;
    uint8_t header[BHI_NPY_WRITE_CAPACITY];
    size_t header_size;
    bh_buffer *buffer;
    void *copy; /* owned: of content that has no pointer, for a stream (content.h); NULL: none */
    int error;  /* errno of the last refusal; 0: none, or nothing to do with the system */
};

/* A number, or a name "X" or "X[2]", |length| bytes of |text|: fills in slot and name; of a name's
 * slot only the element. */
bool bhi_binding_parse_place(struct bhi_run_binding *binding, const char *text, size_t length,
                             struct bhi_complaint *complaint);
/* Each takes the files of one kind of binding, which are borrowed: fills in paths and access, and
 * what else there is. */
/* FILE, or FILE.safetensors:TENSOR. */
bool bhi_binding_parse_input(struct bhi_run_binding *binding, const char *files,
                             struct bhi_complaint *complaint);
/* FILE:DTYPE[SHAPE] in its forms, or FILE:like:B. */
bool bhi_binding_parse_output(struct bhi_run_binding *binding, const char *files,
                              struct bhi_complaint *complaint);
/* FILE, or FILE:OUT. */
bool bhi_binding_parse_inout(struct bhi_run_binding *binding, const char *files,
                             struct bhi_complaint *complaint);
/* FILE alone, which is written. */
bool bhi_binding_parse_file(struct bhi_run_binding *binding, const char *file,
                            struct bhi_complaint *complaint);
/* FILE and B of "FILE:like:B" or "FILE:like B"; false where |files| is neither. *out_path_length is
 * how long FILE is. */
bool bhi_binding_split_like(const char *files, size_t *out_path_length, const char **out_like);

/* Its input is standard input. */
bool bhi_run_is_stdin(const struct bhi_run_binding *binding);
/* Releases the buffer, closes files, abandons an output that was not committed. */
void bhi_binding_fini(struct bhi_run_binding *binding);

#endif
