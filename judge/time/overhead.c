#include "judge/time/overhead.h"

#include <math.h>
#include <stdlib.h>

#include "judge/data/ratio.h"

enum { LEAST_RUNS = 20 };

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
    const size_t tenth = count / 10;
    out->spread_ns = (double)(room[count - 1 - tenth] - room[tenth]);
    free(room);
    return true;
}

bool bhi_overhead_exceeds(const struct bhi_overhead *overhead, const struct bhi_overhead *usual) {
    const double allowed =
        fmax(fmax(least_part * overhead->host_ns, least_ns), least_spreads * usual->spread_ns);
    return overhead->count >= LEAST_RUNS && usual->count >= LEAST_RUNS &&
           overhead->median_ns > usual->median_ns + allowed;
}
