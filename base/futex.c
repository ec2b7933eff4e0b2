#include "base/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u

#define SPIN_MIN_NS 500u
#define LOST_NS     200000u /* after a yield: others have this processor for a time slice or more */
#define SLEEPS      100u    /* waits until that is tried again */

/* Between two yields. With few processors whom a thread waits for often needs its processor: then a
 * pause is time lost. */
#define PAUSES     64
#define PAUSES_FEW 8
#define FEW        4 /* processors: fewer are few */
static _Atomic int pauses = PAUSES;

uint64_t bhi_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t bhi_deadline_ns(uint64_t timeout_ns) {
    uint64_t now = bhi_now_ns();
    return timeout_ns > BHI_FOREVER - now ? BHI_FOREVER : now + timeout_ns;
}

/* NULL where there is no limit. */
static struct timespec *to_timespec(uint64_t deadline_ns, struct timespec *out) {
    if (deadline_ns == BHI_FOREVER) {
        return NULL;
    }
    out->tv_sec = (time_t)(deadline_ns / NS_PER_S);
    out->tv_nsec = (long)(deadline_ns % NS_PER_S);
    return out;
}

/* The thread was woken, the word had changed before it slept (EAGAIN), or a signal interrupted it.
 * The caller handles all three alike. */
static int wait_result(long rc) {
    if (rc >= 0 || errno == EAGAIN || errno == EINTR) {
        return 0;
    }
    return -errno;
}

int bhi_futex_wait(const _Atomic uint32_t *word, uint32_t expected, bool shared,
                   uint64_t deadline_ns) {
    struct timespec at;
    int op = FUTEX_WAIT_BITSET | (shared ? 0 : FUTEX_PRIVATE_FLAG);
    return wait_result(syscall(SYS_futex, word, op, expected, to_timespec(deadline_ns, &at), NULL,
                               FUTEX_BITSET_MATCH_ANY));
}

int bhi_futex_wait_any(const struct bhi_futex_wait *waits, size_t count, uint64_t deadline_ns) {
    struct futex_waitv list[BHI_FUTEX_MAX];
    struct timespec at;
    if (count == 0 || count > BHI_FUTEX_MAX) {
        return -EINVAL;
    }
    for (size_t i = 0; i < count; i++) {
        list[i] = (struct futex_waitv){
            .val = waits[i].expected,
            .uaddr = (uintptr_t)waits[i].word,
            .flags = FUTEX_32 | (waits[i].shared ? 0 : FUTEX_PRIVATE_FLAG),
        };
    }
    return wait_result(syscall(SYS_futex_waitv, list, (unsigned)count, 0,
                               to_timespec(deadline_ns, &at), CLOCK_MONOTONIC));
}

void bhi_futex_wake(const _Atomic uint32_t *word, bool shared, int how_many) {
    int op = FUTEX_WAKE | (shared ? 0 : FUTEX_PRIVATE_FLAG);
    syscall(SYS_futex, word, op, how_many, NULL, NULL, 0);
}

static inline void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

int bhi_spin_prepare(void) {
    cpu_set_t processors;
    const bool few =
        sched_getaffinity(0, sizeof processors, &processors) == 0 && CPU_COUNT(&processors) < FEW;
    atomic_store_explicit(&pauses, few ? PAUSES_FEW : PAUSES, memory_order_relaxed);
    return few ? PAUSES_FEW : PAUSES;
}

/* A budget of 0 stays 0: this place never spins. Any other budget keeps a minimum, so that the
 * place notices when spinning pays again. Threads that share a place may race on its budget; it is
 * an estimate, so no harm is done. */
bool bhi_spin_wait(struct bhi_spin *spin, const _Atomic uint32_t *word, uint32_t expected) {
    if (atomic_load_explicit(word, memory_order_acquire) != expected) {
        return true;
    }
    uint32_t budget = atomic_load_explicit(&spin->budget_ns, memory_order_relaxed);
    if (budget == 0) {
        return false;
    }
    const uint32_t sleeps = atomic_load_explicit(&spin->sleeps, memory_order_relaxed);
    if (sleeps > 0) {
        atomic_store_explicit(&spin->sleeps, sleeps - 1, memory_order_relaxed);
        return false;
    }
    if (budget > BHI_SPIN_MAX_NS) {
        budget = BHI_SPIN_MAX_NS;
    }
    const int most = atomic_load_explicit(&pauses, memory_order_relaxed);
    uint64_t now = bhi_now_ns();
    const uint64_t end = now + budget;
    do {
        for (int i = 0; i < most; i++) {
            pause_cpu();
            if (atomic_load_explicit(word, memory_order_acquire) != expected) {
                uint32_t raised = budget + budget / 2;
                atomic_store_explicit(&spin->budget_ns,
                                      raised > BHI_SPIN_MAX_NS ? BHI_SPIN_MAX_NS : raised,
                                      memory_order_relaxed);
                return true;
            }
        }
        /* With few processors, the process that we wait for may need this one. */
        sched_yield();
        const uint64_t before = now;
        now = bhi_now_ns();
        if (now - before > LOST_NS) {
            atomic_store_explicit(&spin->sleeps, SLEEPS, memory_order_relaxed);
            return atomic_load_explicit(word, memory_order_acquire) != expected;
        }
    } while (now < end);
    uint32_t lowered = budget / 2;
    atomic_store_explicit(&spin->budget_ns, lowered < SPIN_MIN_NS ? SPIN_MIN_NS : lowered,
                          memory_order_relaxed);
    return false;
}
