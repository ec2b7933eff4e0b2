/* Futexes on shared and private words, with absolute CLOCK_MONOTONIC deadlines. */
#ifndef BHI_BASE_FUTEX_H
#define BHI_BASE_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BHI_FOREVER   UINT64_MAX
#define BHI_FUTEX_MAX 128u /* words in one futex_waitv (FUTEX_WAITV_MAX) */

struct bhi_futex_wait {
    const _Atomic uint32_t *word;
    uint32_t expected;
    bool shared; /* false: FUTEX_PRIVATE */
};

uint64_t bhi_now_ns(void); /* CLOCK_MONOTONIC */
static inline uint64_t bhi_earlier_ns(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}
/* now + |timeout_ns|, saturating at BHI_FOREVER. */
uint64_t bhi_deadline_ns(uint64_t timeout_ns);
/* Sleeps while *word == expected, until |deadline_ns|. Returns 0 (woken, changed, or interrupted:
 * look again) or -ETIMEDOUT. Works on a read-only mapping. */
int bhi_futex_wait(const _Atomic uint32_t *word, uint32_t expected, bool shared,
                   uint64_t deadline_ns);
/* The same for any of |count| words (futex_waitv). -ENOSYS on kernels before 5.16. */
int bhi_futex_wait_any(const struct bhi_futex_wait *waits, size_t count, uint64_t deadline_ns);
void bhi_futex_wake(const _Atomic uint32_t *word, bool shared, int how_many);

#define BHI_SPIN_MAX_NS 50000u /* no budget is larger */

/* Adaptive spinning: how long it paid lately to spin before sleeping. One per waiting place. */
struct bhi_spin {
    _Atomic uint32_t budget_ns;
    _Atomic uint32_t sleeps; /* waits that do not spin, because others need the processor */
};
#define BHI_SPIN_INIT(ns) {ns, 0}
/* Spins until *word != expected or the budget is spent, and yields the processor in between.
 * Returns true if it changed. It raises the budget after a success, halves it after a miss, never
 * above 50 µs. If others have kept the processor after a yield, the next waits do not spin. */
bool bhi_spin_wait(struct bhi_spin *spin, const _Atomic uint32_t *word, uint32_t expected);
/* Looks how many processors this process may use: with few, spinning yields sooner. Returns how
 * many pauses lie between two yields. Children of a fork inherit it. */
int bhi_spin_prepare(void);

#endif
