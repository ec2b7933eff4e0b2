/* Which faults of $BULKHEAD_TEST_FAULTS have happened: a file that a test has made and that the
 * zygote maps before its root is emptied (notes=PATH); its workers inherit the mapping. Compiled
 * into bulkhead-worker-faulty only. */
#ifndef BHI_WORKER_FAULTS_NOTES_H
#define BHI_WORKER_FAULTS_NOTES_H

#include <stdatomic.h>
#include <stdint.h>

#define BHI_FAULT_RULES 16

struct bhi_fault_notes {
    _Atomic uint32_t fired[BHI_FAULT_RULES]; /* in the order of the list */
    char refused[96];                        /* an item that this build does not know */
};

#endif
