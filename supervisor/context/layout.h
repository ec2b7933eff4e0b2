/* Public structs in the layout of a caller's headers, which may be as old as 0.2.0 or newer than
 * the library (docs/abi.md). The library itself uses only the layout of its own headers. A caller's
 * struct of another size is copied from or into that. */
#ifndef BHI_SUPERVISOR_CONTEXT_LAYOUT_H
#define BHI_SUPERVISOR_CONTEXT_LAYOUT_H

#include <bulkhead/bulkhead.h>

/* |name| and |size| of the library's own struct. */
#define BHI_OURS(type) #type, sizeof(type)

/* Checks |their_size|, the size of a caller's struct |name|. |what| is the argument, such as
 * "options", for the detail. Returns BH_OK or BH_INVALID_ARGUMENT. */
bh_status bhi_layout_check(const char *name, size_t our_size, size_t their_size, const char *call,
                           const char *what, bh_detail *detail);

/* The same of a struct that begins with its size, |what|.struct_size. */
bh_status bhi_layout_check_options(const char *name, size_t our_size, size_t their_size,
                                   const char *call, const char *what, bh_detail *detail);

/* |ours| has the defaults. Copies the fields of |theirs| over them. */
bh_status bhi_layout_take(const char *name, size_t our_size, void *ours, const void *theirs,
                          size_t their_size, const char *call, const char *what, bh_detail *detail);
/* The same of a struct that begins with its size. */
bh_status bhi_layout_take_options(const char *name, size_t our_size, void *ours, const void *theirs,
                                  const char *call, const char *what, bh_detail *detail);
/* The same of an array. *out_array is the caller's array if no copy is needed. Otherwise it is a
 * copy, which is also in *out_copy, for free(). */
bh_status bhi_layout_take_array(const char *name, size_t our_size, const void *theirs,
                                size_t their_size, size_t count, const char *call, const char *what,
                                const void **out_array, void **out_copy, bh_detail *detail);

/* Fills in a caller's struct, whose size has been checked. */
void bhi_layout_give(void *theirs, size_t their_size, const void *ours, size_t our_size);
/* The same of a struct that begins with its size, as bh_…_init does. NULL is fine. */
void bhi_layout_init(void *theirs, size_t their_size, const void *defaults, size_t our_size);

#endif
