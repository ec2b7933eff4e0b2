/* The rules of the checker, each in a file of its own. docs/chaos.md says what they are. */
#ifndef BHI_CHAOS_CHECK_RULES_H
#define BHI_CHAOS_CHECK_RULES_H

#include "chaos/check/ledger.h"
#include "chaos/check/result.h"

#define BHI_MS     1000000ull
#define BHI_SECOND (1000 * BHI_MS)

/* A fault's time is taken before it is injected, and an end's time when it is seen. An error of
 * this size in their order is due to the clock. */
#define BHI_CLOCK_SLACK_NS (10 * BHI_MS)
/* An operation that got no descriptor may fail this much later. */
#define BHI_AFTERMATH_NS (2 * BHI_SECOND)
/* An operation that hangs on an accelerator and whose worker has died holds the device until the
 * driver's own timeout (docs/bench.md: 5 s), and some time longer, until waiting operations have
 * caught up. */
#define BHI_HELD_NS (8 * BHI_SECOND)
/* The budget that a tenant has for kernels that keep the device (docs/trust.md): more than four
 * of them spend it, for its window of 60 s. Some time is for who noticed it late. */
#define BHI_CHARGES    5
#define BHI_CHARGED_NS (70 * BHI_SECOND)

/* Adds without overflow: times come from a file and may have any value. */
static inline uint64_t bhi_later(uint64_t ns, uint64_t by_ns) {
    return ns + by_ns < ns ? UINT64_MAX : ns + by_ns;
}

struct bhi_check {
    const struct bhi_history *history;
    struct bhi_ledger ledger;
    struct bhi_chaos_result *result;
};

/* |record| is one of the history's, or NULL. */
void bhi_find(struct bhi_check *check, enum bhi_anomaly anomaly, uint64_t op,
              const struct bhi_record *record, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Those that return bool return false if out of memory. */
void bhi_check_ends(struct bhi_check *check);     /* lost, changed */
bool bhi_check_success(struct bhi_check *check);  /* false success, changed */
void bhi_check_poison(struct bhi_check *check);   /* collateral */
bool bhi_check_recovery(struct bhi_check *check); /* recovery */
bool bhi_check_leaks(struct bhi_check *check);    /* leak */
void bhi_check_device(struct bhi_check *check);   /* leak, of device memory */

/* The history of a host is judged by rules of its own. */
bool bhi_check_is_host(const struct bhi_history *history);
bool bhi_check_host(struct bhi_check *check);

/* Returns why the times in the verdict of |op| are impossible; NULL if they are possible. */
const char *bhi_impossible_times(const struct bhi_ledger_op *op);

/* Why |op| could be poisoned though nothing that it needs was the cause. */
enum bhi_blame {
    BHI_BLAME_NONE,
    BHI_BLAME_FAULT,
    BHI_BLAME_MACHINE, /* the machine stood still: nothing can be said */
};
enum bhi_blame bhi_blame_of(const struct bhi_check *check, const struct bhi_ledger_op *op);
/* The same, where a copy of the library's own can be the cause: |op| was lost with the worker of that
 * copy, or needed what could not be copied. */
enum bhi_blame bhi_blame_of_copy(const struct bhi_check *check, const struct bhi_ledger_op *op);
/* Was the descriptor table full, or did its consequences last, at some time between these? */
bool bhi_was_full(const struct bhi_check *check, uint64_t from_ns, uint64_t to_ns);
/* Is |status| one that a full table can cause? */
bool bhi_is_shortage(bh_status status);

#endif
