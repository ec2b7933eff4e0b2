#include "core/restart.h"

#define FIRST_BACKOFF_NS (10ull * 1000000)
#define LAST_BACKOFF_NS  (1000ull * 1000000)
#define LATE_IN_A_WINDOW 4u /* late ends, or the slowest failed starts */
#define TAKEN_IN_A_ROW   8u /* deaths by others, times the budget */

void bhi_restart_init(struct bhi_restart *restart, uint32_t budget, uint64_t window_ns,
                      uint64_t now_ns) {
    *restart = (struct bhi_restart){.budget = budget, .window_ns = window_ns};
    bhi_restart_refill(restart, now_ns);
}

void bhi_restart_refill(struct bhi_restart *restart, uint64_t now_ns) {
    restart->credit_ns = restart->window_ns;
    restart->credit_at_ns = now_ns;
    restart->losses = 0;
    restart->taken = 0;
    restart->starting_fails = false;
    restart->not_before_ns = 0;
}

void bhi_restart_served(struct bhi_restart *restart, uint64_t now_ns) {
    restart->served_at_ns = now_ns;
    restart->starting_fails = false;
    restart->productive = false;
}

static uint64_t cost_ns(const struct bhi_restart *restart) {
    return restart->window_ns / restart->budget;
}

/* Takes |cost_ns| from the budget. Returns true if not enough is left. */
static bool charge(struct bhi_restart *restart, uint64_t cost_ns, uint64_t now_ns) {
    uint64_t credit_ns = restart->credit_ns + (now_ns - restart->credit_at_ns);
    if (credit_ns > restart->window_ns || credit_ns < restart->credit_ns) {
        credit_ns = restart->window_ns;
    }
    bool spent = credit_ns < cost_ns;
    restart->credit_ns = spent ? credit_ns : credit_ns - cost_ns;
    restart->credit_at_ns = now_ns;
    return spent;
}

/* No worker was ready since the last charge, which was for a failed start. */
static bool charge_again(struct bhi_restart *restart, uint64_t now_ns) {
    const uint64_t least_ns = cost_ns(restart), most_ns = restart->window_ns / LATE_IN_A_WINDOW;
    uint64_t took_ns = now_ns - restart->credit_at_ns;
    took_ns = took_ns < most_ns ? took_ns : most_ns;
    restart->credit_at_ns = now_ns; /* nothing was refilled meanwhile */
    return charge(restart, took_ns > least_ns ? took_ns : least_ns, now_ns);
}

/* Its worker is gone. Returns true if it had completed something. */
static bool let_go(struct bhi_restart *restart, uint64_t now_ns) {
    const bool productive = restart->productive;
    const bool lived = restart->served_at_ns && now_ns - restart->served_at_ns >= cost_ns(restart);
    restart->served_at_ns = 0;
    restart->productive = false;
    restart->not_before_ns = 0;
    if (productive || lived) {
        restart->losses = 0;
    }
    return productive;
}

static void back_off(struct bhi_restart *restart, uint64_t now_ns) {
    if (restart->losses) {
        uint64_t backoff_ns = FIRST_BACKOFF_NS;
        for (uint32_t i = 1; i < restart->losses && backoff_ns < LAST_BACKOFF_NS; i++) {
            backoff_ns *= 2;
        }
        restart->not_before_ns =
            now_ns + (backoff_ns < LAST_BACKOFF_NS ? backoff_ns : LAST_BACKOFF_NS);
    }
    restart->losses++;
}

bool bhi_restart_lost(struct bhi_restart *restart, bool blamed, uint64_t now_ns) {
    const bool started = restart->served_at_ns, productive = let_go(restart, now_ns);
    if (blamed || productive) {
        restart->taken = 0;
        return false;
    }
    const bool again = !started && restart->starting_fails;
    const bool spent =
        again ? charge_again(restart, now_ns) : charge(restart, cost_ns(restart), now_ns);
    restart->starting_fails = !started;
    if (!spent) {
        back_off(restart, now_ns);
    }
    return spent;
}

bool bhi_restart_taken(struct bhi_restart *restart, bool waits, uint64_t now_ns) {
    const bool started = restart->served_at_ns, productive = let_go(restart, now_ns);
    if (productive || (started && !waits)) {
        restart->taken = 0;
    } else if (++restart->taken > (uint64_t)TAKEN_IN_A_ROW * restart->budget) {
        return true;
    }
    if (!productive) {
        back_off(restart, now_ns);
    }
    return false;
}

bool bhi_restart_late(struct bhi_restart *restart, uint64_t took_ns, uint64_t now_ns) {
    if (charge(restart, restart->window_ns / LATE_IN_A_WINDOW, now_ns)) {
        return true;
    }
    if (now_ns + took_ns > restart->not_before_ns) {
        restart->not_before_ns = now_ns + took_ns;
    }
    return false;
}
