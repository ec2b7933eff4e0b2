/* One binding of a run: the place that it is bound to, and its files. */
#ifndef BHI_REQUEST_BINDING_H
#define BHI_REQUEST_BINDING_H

#include <bulkhead/bulkhead.h>
#include <bulkhead/file.h>
#include <stdbool.h>

#include "formats/npy.h"
#include "tool/npy_file.h"
#include "tool/outfile.h"
#include "tool/values.h"

/* One --in, --out or --inout, and its state during the run. */
struct bhi_run_binding {
    const char *option;   /* as given: "in" */
    char *text;           /* as given: "0=x.npy"; owned, for complaints */
    struct bhi_slot slot; /* if it has a name: filled in after the kernel was inspected (names.h) */
    char name[64];        /* empty: the binding was given by number */
    bh_access access;
    char *in_path, *out_path; /* owned; NULL: none */
    const char *tensor;       /* borrowed: which array of a .safetensors or .npz; NULL: a .npy */
    char *out_tensor;         /* owned: the output is a .safetensors of this array; NULL: a .npy */
    /* Of --out known from the start, of others when the file is open. The dtype of a tensor that no
     * .npy can hold is BH_DTYPE_NONE. */
    struct bhi_array array;
    const char *like;       /* borrowed: the input with the same array; NULL: none */
    uint32_t like_index;    /* index of that input's binding */
    bh_dtype tensor_dtype;  /* of a tensor, instead of array.dtype */
    bh_dtype wanted_dtype;  /* of eval's output, if it was given; otherwise NONE */
    struct bhi_npy_file in; /* for standard input only; the loader reads files */
    struct bhi_outfile out;
    uint8_t header[BHI_NPY_WRITE_CAPACITY];
    size_t header_size;
    bh_buffer *buffer;
    void *copy; /* owned: content without a pointer, kept for a stream (content.h); NULL: none */
    int error;  /* errno of the last refusal; 0: none, or no system call was the reason */
};

/* Parses |length| bytes of |text|: a number, or a name "X" or "X[2]". Fills in slot and name; for a
 * name only the element of the slot. */
bool bhi_binding_parse_place(struct bhi_run_binding *binding, const char *text, size_t length,
                             struct bhi_complaint *complaint);
/* Each parses the files of one kind of binding, which are borrowed, and fills in paths, access and
 * other fields. */
/* FILE, FILE.safetensors:TENSOR or FILE.npz:ARRAY. */
bool bhi_binding_parse_input(struct bhi_run_binding *binding, const char *files,
                             struct bhi_complaint *complaint);
/* FILE:DTYPE[SHAPE] in its forms, or FILE:like:B. A FILE that is written is a .npy, or
 * NAME.safetensors:ARRAY with that array alone. */
bool bhi_binding_parse_output(struct bhi_run_binding *binding, const char *files,
                              struct bhi_complaint *complaint);
/* What kind of file an input is. */
bh_file_format bhi_binding_format(const char *path, const char *tensor);
/* FILE, or FILE:OUT. */
bool bhi_binding_parse_inout(struct bhi_run_binding *binding, const char *files,
                             struct bhi_complaint *complaint);
/* FILE alone, or FILE.safetensors:ARRAY[:DTYPE], to which the output is written. */
bool bhi_binding_parse_file(struct bhi_run_binding *binding, const char *file,
                            struct bhi_complaint *complaint);
/* Splits "FILE:like:B" or "FILE:like B" into FILE and B. Returns false if |files| is neither.
 * *out_path_length is the length of FILE. */
bool bhi_binding_split_like(const char *files, size_t *out_path_length, const char **out_like);

/* Writes the header of the output's file, whose array is known. */
bool bhi_binding_make_header(struct bhi_run_binding *binding, struct bhi_complaint *complaint);

/* Is the binding's input standard input? */
bool bhi_run_is_stdin(const struct bhi_run_binding *binding);
/* Releases the buffer, closes files, and abandons an output that was not committed. */
void bhi_binding_fini(struct bhi_run_binding *binding);

#endif
