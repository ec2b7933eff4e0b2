#include "judge/time/overhead.h"

#include <math.h>
#include <stdlib.h>

#include "judge/data/group.h"
#include "judge/data/ratio.h"

enum { MANY_RUNS = 20 };

static const double least_part = 0.05, least_ns = 100000, least_spreads = 2;

bool bhi_overhead_of(const uint64_t *hosts, const uint64_t *claims, size_t count,
                     struct bhi_overhead *out) {
    uint64_t *room = calloc(count, sizeof *room);
    if (!room) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        room[i] = hosts[i];
    }
    out->count = count;
    out->host_ns = bhi_median_of(room, count);
    for (size_t i = 0; i < count; i++) {
        room[i] = hosts[i] > claims[i] ? hosts[i] - claims[i] : 0;
    }
    out->median_ns = bhi_median_of(room, count); /* which sorts them */
    const size_t quarter = count / 4;
    out->low_ns = (double)room[quarter];
    const size_t tenth = count / 10;
    out->spread_ns = (double)(room[count - 1 - tenth] - room[tenth]);
    free(room);
    return true;
}

double bhi_overhead_allowed(const struct bhi_overhead *overhead, const struct bhi_overhead *usual) {
    const size_t runs = overhead->count < usual->count ? overhead->count : usual->count;
    const double few = runs < MANY_RUNS ? (double)MANY_RUNS / (double)runs : 1;
    return fmax(fmax(least_part * overhead->host_ns, least_ns),
                few * least_spreads * usual->spread_ns);
}

bool bhi_overhead_exceeds(const struct bhi_overhead *overhead, const struct bhi_overhead *usual) {
    return overhead->median_ns > usual->median_ns + bhi_overhead_allowed(overhead, usual);
}

enum bhi_honesty bhi_overhead_honesty(const struct bhi_overhead *overhead,
                                      const struct bhi_overhead *usual) {
    if (overhead->low_ns > usual->median_ns + bhi_overhead_allowed(overhead, usual)) {
        return BHI_FORGED;
    }
    return bhi_overhead_exceeds(overhead, usual) ? BHI_UNSURE : BHI_HONEST;
}

/* By how much those of a group are longer, at most. */
static bool find_longest(const struct bhi_overhead_runs *runs,
                         const struct bhi_overhead_runs *usual, size_t count, size_t groups,
                         double *out_ns) {
    *out_ns = -INFINITY;
    for (size_t i = 0; i < groups; i++) {
        const size_t begin = bhi_group_begin(count, groups, i);
        const size_t length = bhi_group_begin(count, groups, i + 1) - begin;
        struct bhi_overhead one, other;
        if (!bhi_overhead_of(runs->hosts + begin, runs->claims + begin, length, &one) ||
            !bhi_overhead_of(usual->hosts + begin, usual->claims + begin, length, &other)) {
            return false;
        }
        *out_ns = fmax(*out_ns, one.median_ns - other.median_ns);
    }
    return true;
}

bool bhi_overhead_judge(const struct bhi_overhead_runs *runs, const struct bhi_overhead_runs *usual,
                        size_t count, size_t groups, const struct bhi_overhead *alone,
                        struct bhi_overhead_verdict *out) {
    struct bhi_overhead one, other;
    double longest_ns;
    if (!bhi_overhead_of(runs->hosts, runs->claims, count, &one) ||
        !bhi_overhead_of(usual->hosts, usual->claims, count, &other)) {
        return false;
    }
    struct bhi_overhead steady = other;
    steady.spread_ns = fmin(other.spread_ns, alone->spread_ns);
    if (!find_longest(runs, usual, count, groups, &longest_ns)) {
        return false;
    }
    *out = (struct bhi_overhead_verdict){.honesty = bhi_overhead_honesty(&one, &other),
                                         .run_ns = one.host_ns - other.median_ns};
    if (out->honesty == BHI_HONEST && longest_ns > bhi_overhead_allowed(&one, &other)) {
        out->honesty = BHI_UNSURE;
    }
    if (out->honesty == BHI_HONEST &&
        (longest_ns > bhi_overhead_allowed(&one, &steady) || bhi_overhead_exceeds(&one, &steady))) {
        out->honesty = BHI_UNSURE;
        out->only_alone = true;
    }
    return true;
}
