/* How often each fault of $BULKHEAD_TEST_FAULTS has happened. A test makes the file; the zygote
 * maps it (notes=PATH) before its root is emptied, and its workers inherit the mapping. */
#ifndef BHT_HOSTILE_NOTES_H
#define BHT_HOSTILE_NOTES_H

#include <stdatomic.h>
#include <stdint.h>

#define BHI_FAULT_RULES 16

struct bhi_fault_notes {
    _Atomic uint32_t fired[BHI_FAULT_RULES]; /* in the order of the list */
    char refused[96];                        /* an item that this build does not know */
};

#endif
