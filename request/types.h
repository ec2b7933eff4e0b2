/* Compares the element type of an array with the type that the kernel declares at its binding. */
#ifndef BHI_REQUEST_TYPES_H
#define BHI_REQUEST_TYPES_H

#include "request/run.h"

/* What a kernel declares at one binding, as bh_kernel_inspect writes it: "f32[]", "{u32, f32x4[]}",
 * "u8[] | u32[]". */
struct bhi_kernel_type {
    struct bhi_slot slot; /* of the first */
    uint32_t count;       /* buffers in it */
    char type[64];
    char name[64];
};

/* One of its push constants. */
struct bhi_kernel_member {
    uint32_t offset, stride, step; /* as in bh_inspected_member */
    char type[64];
    char name[64];
};

enum { BHI_MAX_MEMBERS = 64 };

/* What a kernel declares at all of them. */
struct bhi_kernel_types {
    uint32_t push_size;
    uint32_t member_count; /* the first of them */
    struct bhi_kernel_member members[BHI_MAX_MEMBERS];
    uint32_t count;
    struct bhi_kernel_type types[]; /* |count| of them */
};

/* NULL: out of memory. The caller's to free. */
struct bhi_kernel_types *bhi_kernel_types_take(const bh_inspection *inspection);

enum { BHI_NAMED_LIST = 400 }; /* bytes of a list of names */

/* Appends "'name' (more)" to the list, cut where there is no room; of what has no name |more|. */
void bhi_list_named(char out[BHI_NAMED_LIST], const char *name, const char *more);
/* "'a' (f32), 'n' (u32)": all push constants. */
void bhi_kernel_types_list_members(const struct bhi_kernel_types *types, char out[BHI_NAMED_LIST]);

/* Whether an array of |dtype| may be bound where a kernel declares |type|.
 *   A scalar, vectors, matrices and arrays of it, and structs of nothing else, take that scalar.
 *   Structs of several scalars, what is not known, and types that are cut ("...") take anything.
 *   Of several declarations at one binding (" | " between them) one has to take it.
 * What SPIR-V has no type for goes where its bytes go: bool and the 8-bit floats as 8-bit integers,
 * bf16 as 16-bit ones. BH_DTYPE_NONE, raw bytes, goes everywhere. */
bool bhi_type_takes(const char *type, bh_dtype dtype);

/* Holds the arrays of the request, all of which are known by now, against |types|. NULL: they
 * match; bindings that one side does not have do not count. Else the first that does not; the
 * complaint says what the file holds, what the kernel declares, and that |option| binds the bytes
 * as they are. */
const struct bhi_run_binding *bhi_run_find_mismatch(const struct bhi_run_request *request,
                                                    const struct bhi_kernel_types *types,
                                                    const char *option,
                                                    struct bhi_complaint *complaint);

#endif
