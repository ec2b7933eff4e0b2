/* Public structs in the layout of a caller's headers, which may be older or newer than the library
 * (docs/install.md): their first field, struct_size, says how large they are. The library itself
 * uses only the layout of its own headers. A caller's struct is copied from or into that. */
#ifndef BHI_SUPERVISOR_CONTEXT_LAYOUT_H
#define BHI_SUPERVISOR_CONTEXT_LAYOUT_H

#include <bulkhead/bulkhead.h>

/* |name| and |our_size| of the library's own struct. */
#define BHI_OURS(type) #type, sizeof(type)

/* Checks that a caller's struct |name| is there, and its struct_size. |what| is the argument, such
 * as "options", for the detail. Returns BH_OK or BH_INVALID_ARGUMENT. */
bh_status bhi_layout_check(const char *name, size_t our_size, const void *theirs, const char *call,
                           const char *what, bh_detail *detail);
/* Copies the fields of |theirs| into |ours|; all others become zero, which is BH_DEFAULT. |theirs|
 * may be NULL. Returns BH_OK or BH_INVALID_ARGUMENT. */
bh_status bhi_layout_take(const char *name, size_t our_size, void *ours, const void *theirs,
                          const char *call, const char *what, bh_detail *detail);
/* *out_stride is the struct_size of the first element of an array that the library fills in, checked
 * likewise; 0 if |capacity| is 0. */
bh_status bhi_layout_stride(const char *name, size_t our_size, const void *theirs, size_t capacity,
                            const char *call, const char *what, size_t *out_stride,
                            bh_detail *detail);
/* Fills in a caller's struct, whose size has been checked. */
void bhi_layout_give(void *theirs, const void *ours, size_t our_size);
/* The same of element |index| of an array. |stride| is the checked struct_size of its first
 * element. */
void bhi_layout_put(void *array, size_t index, size_t stride, const void *ours, size_t our_size);

/* Returns what the library uses of an optional field: |otherwise| for BH_DEFAULT, 0 for BH_OFF. */
static inline uint64_t bhi_given(uint64_t field, uint64_t otherwise) {
    return field == BH_DEFAULT ? otherwise : field == BH_OFF ? 0 : field;
}

#endif
