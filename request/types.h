/* Compares the element type of an array with the type that the kernel declares at its binding. */
#ifndef BHI_REQUEST_TYPES_H
#define BHI_REQUEST_TYPES_H

#include "request/run.h"
#include <bulkhead/inspect.h>

/* What a kernel declares at one binding, in the form of bh_kernel_inspect: "f32[]", "{u32,
 * f32x4[]}", "u8[] | u32[]". */
struct bhi_kernel_type {
    struct bhi_slot slot; /* slot of its first buffer */
    uint32_t count;       /* number of its buffers */
    bh_binding_kind kind;
    bh_access access;
    bool measured; /* the kernel asks for its length */
    char type[64];
    char name[64];
};

/* A push constant of the kernel. */
struct bhi_kernel_member {
    uint32_t offset, stride, step; /* as in bh_inspected_member */
    char type[64];
    char name[64];
};

enum { BHI_MAX_MEMBERS = 64 };

/* What a kernel declares at all bindings. */
struct bhi_kernel_types {
    uint32_t local_size[3]; /* of its workgroup */
    uint32_t push_size;
    uint32_t member_count; /* only the first BHI_MAX_MEMBERS are listed */
    struct bhi_kernel_member members[BHI_MAX_MEMBERS];
    uint32_t count;
    struct bhi_kernel_type types[]; /* |count| of them */
};

/* Returns NULL if out of memory. The caller frees the result. */
struct bhi_kernel_types *bhi_kernel_types_take(const bh_inspection *inspection);

enum { BHI_NAMED_LIST = 400 }; /* bytes of a list of names */

/* Appends "'name' (more)" to the list, or only |more| if there is no name. Cuts the list if there
 * is no room. */
void bhi_list_named(char out[BHI_NAMED_LIST], const char *name, const char *more);
/* Lists all push constants: "'a' (f32), 'n' (u32)". */
void bhi_kernel_types_list_members(const struct bhi_kernel_types *types, char out[BHI_NAMED_LIST]);

/* May an array of |dtype| be bound where a kernel declares |type|?
 *   A scalar, its vectors, matrices and arrays, and structs of nothing else, take that scalar.
 *   Structs of several scalars, unknown types, and types that are cut ("...") take anything.
 *   Of several declarations at one binding (" | " between them) one must take it.
 * Types that SPIR-V lacks are bound by their bytes: bool and the 8-bit floats as 8-bit integers,
 * bf16 as a 16-bit one. BH_DTYPE_NONE, raw bytes, may be bound anywhere. */
bool bhi_type_takes(const char *type, bh_dtype dtype);
/* The bytes of an element of what the kernel declares as |type|: 16 of "f32x4[]", 4 of "u32[8]", the
 * fewest of several declarations. 0: it is a struct, or unknown. */
uint32_t bhi_type_element(const char *type);

/* Compares the arrays of the request, all of which must be known, with |types|. Returns NULL if
 * they match; a binding that only one side has does not count. Else returns the first mismatch; the
 * complaint says what the file holds, what the kernel declares, and that |option| binds the bytes
 * as they are. */
const struct bhi_run_binding *bhi_run_find_mismatch(const struct bhi_run_request *request,
                                                    const struct bhi_kernel_types *types,
                                                    const char *option,
                                                    struct bhi_complaint *complaint);

#endif
