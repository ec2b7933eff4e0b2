/* One fault at a time, chosen by a test while the processes run. The test maps a file; the zygote
 * maps it too, before its root is emptied ($BULKHEAD_TEST_FAULTS: plan=PATH), and its workers
 * inherit the mapping. The fault fires once, in the process that passes the point for the nth time;
 * the passages of all processes count together. A tracer, which starts by itself after a SIGSYS,
 * does not count. */
#ifndef BHT_HOSTILE_PLAN_H
#define BHT_HOSTILE_PLAN_H

#include <stdatomic.h>
#include <stdint.h>

struct bhi_fault_plan {
    _Atomic uint32_t armed;   /* by the test: 1 when the fields below are complete */
    uint32_t nth;             /* written by the test before it arms */
    char point[24], what[16]; /* by the test, before it arms: point and action (faults.h) */
    _Atomic uint32_t passed;  /* by the processes: passages since the test armed */
    _Atomic uint32_t fired;
    _Atomic int32_t pid; /* pid, in its namespace, of the process that the fault hit */
};

#endif
