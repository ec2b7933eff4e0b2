#include "core/restart.h"

#define FIRST_BACKOFF_NS (10ull * 1000000)
#define LAST_BACKOFF_NS  (1000ull * 1000000)
#define LATE_IN_A_WINDOW 4u /* late ends, or the slowest failed starts */

void bhi_restart_init(struct bhi_restart *restart, uint32_t budget, uint64_t window_ns,
                      uint64_t now_ns) {
    *restart = (struct bhi_restart){.budget = budget, .window_ns = window_ns};
    bhi_restart_refill(restart, now_ns);
}

void bhi_restart_refill(struct bhi_restart *restart, uint64_t now_ns) {
    restart->credit_ns = restart->window_ns;
    restart->credit_at_ns = now_ns;
    restart->losses = 0;
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

bool bhi_restart_lost(struct bhi_restart *restart, bool blamed, uint64_t now_ns) {
    bool productive = restart->productive;
    const bool started = restart->served_at_ns;
    bool lived = restart->served_at_ns && now_ns - restart->served_at_ns >= cost_ns(restart);
    restart->served_at_ns = 0;
    restart->productive = false;
    restart->not_before_ns = 0;
    if (productive || lived) {
        restart->losses = 0;
    }
    if (blamed || productive) {
        return false;
    }
    const bool again = !started && restart->starting_fails;
    const bool spent =
        again ? charge_again(restart, now_ns) : charge(restart, cost_ns(restart), now_ns);
    restart->starting_fails = !started;
    if (spent) {
        return true;
    }
    if (restart->losses) {
        uint64_t backoff_ns = FIRST_BACKOFF_NS;
        for (uint32_t i = 1; i < restart->losses && backoff_ns < LAST_BACKOFF_NS; i++) {
            backoff_ns *= 2;
        }
        restart->not_before_ns =
            now_ns + (backoff_ns < LAST_BACKOFF_NS ? backoff_ns : LAST_BACKOFF_NS);
    }
    restart->losses++;
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
