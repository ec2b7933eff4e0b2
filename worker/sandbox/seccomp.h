/* The rules that are the same for every driver. Filter A = both + start + the driver's start rules;
 * filter B = both + steady + the driver's steady rules + reads and writes of open descriptors.
 * Filters add up: under B a call has to pass A as well. */
#ifndef BHI_WORKER_SANDBOX_SECCOMP_H
#define BHI_WORKER_SANDBOX_SECCOMP_H

#include "worker/sandbox/rules.h"

extern const struct bhi_seccomp_rule bhi_rules_both[];
extern const struct bhi_seccomp_rule bhi_rules_start[];
extern const struct bhi_seccomp_rule bhi_rules_steady[];
extern const struct bhi_seccomp_rule bhi_rules_compile[]; /* with both, if the driver compiles */

#endif
