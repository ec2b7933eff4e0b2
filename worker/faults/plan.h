/* One error at a time, told by a test while processes run: a file that the test has mapped and that
 * the zygote maps before its root is emptied ($BULKHEAD_TEST_FAULTS: plan=PATH); its workers
 * inherit the mapping. It fires once, in whichever of them passes the point for the nth time, all
 * of them counted together. Compiled into bulkhead-worker-faulty only. */
#ifndef BHI_WORKER_FAULTS_PLAN_H
#define BHI_WORKER_FAULTS_PLAN_H

#include <stdatomic.h>
#include <stdint.h>

struct bhi_fault_plan {
    _Atomic uint32_t armed;   /* test: what is below is complete, until it is 0 again */
    uint32_t nth;             /* test, before it arms */
    char point[24], what[16]; /* test, likewise: point and action as in faults.h */
    _Atomic uint32_t passed;  /* processes: how often the point was passed since */
    _Atomic uint32_t fired;
    _Atomic int32_t pid; /* in its namespace: who met it */
};

#endif
