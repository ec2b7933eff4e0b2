#include "judge/data/steady.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/data/group.h"
#include "judge/data/ratio.h"

/* The median of the deviations, times this, is the standard deviation of normal times; the standard
 * error of a median of |n| of them is that, times sqrt(pi / 2) / sqrt(n). */
static const double normal_deviation = 1.4826, median_error = 1.2533;

/* Medians of the same differ by more than so many of their standard errors once in 10,000 times. */
static const double chance = 4;

/* Few times may be close to one another by chance, so that their noise looks small: then it has to
 * be more errors, about as many as Student's t says. */
static const double few = 9;

static double median_copy(const uint64_t *times, size_t count, uint64_t *room) {
    memcpy(room, times, count * sizeof *times);
    return bhi_median_of(room, count);
}

/* Of all times together, from their deviations. */
static double noise_of_times(const uint64_t *times, size_t count, double median, uint64_t *room) {
    for (size_t i = 0; i < count; i++) {
        room[i] = (uint64_t)llround(fabs((double)times[i] - median));
    }
    return median_error * normal_deviation * bhi_median_of(room, count) /
           (sqrt((double)count) * median);
}

static double group_median(const uint64_t *times, size_t count, size_t groups, size_t group,
                           uint64_t *room) {
    const size_t begin = bhi_group_begin(count, groups, group);
    return median_copy(times + begin, bhi_group_begin(count, groups, group + 1) - begin, room);
}

/* From how the groups' medians differ from the mean of their half, which a drift does not
 * change. */
static double noise_of_groups(const uint64_t *times, size_t count, size_t groups, double median,
                              uint64_t *room) {
    const size_t ends[] = {0, groups / 2, groups};
    double squares = 0;
    for (int half = 0; half < 2; half++) {
        double mean = 0;
        for (size_t i = ends[half]; i < ends[half + 1]; i++) {
            mean +=
                group_median(times, count, groups, i, room) / (double)(ends[half + 1] - ends[half]);
        }
        for (size_t i = ends[half]; i < ends[half + 1]; i++) {
            const double away = group_median(times, count, groups, i, room) - mean;
            squares += away * away;
        }
    }
    return median_error * sqrt(squares / (double)(groups - 2)) / (sqrt((double)groups) * median);
}

bool bhi_steadiness_of(const uint64_t *times, size_t count, size_t groups,
                       struct bhi_steadiness *out) {
    uint64_t *room = calloc(count, sizeof *room);
    const size_t half = groups > 1 ? bhi_group_begin(count, groups, groups / 2) : count / 2;
    *out = (struct bhi_steadiness){.count = groups > 1 ? groups : count};
    if (!room) {
        return false;
    }
    out->median = median_copy(times, count, room);
    if (half >= 2 && out->median > 0) {
        const double first = median_copy(times, half, room);
        const double second = median_copy(times + count - half, half, room);
        out->drift = fabs(second - first) / out->median;
    }
    if (out->median > 0) {
        out->noise = noise_of_times(times, count, out->median, room);
        if (groups > 2) {
            out->noise = fmax(out->noise, noise_of_groups(times, count, groups, out->median, room));
        }
    }
    free(room);
    return true;
}

/* The error of a half's median is sqrt(2) of that of the whole; of the difference, 2. */
bool bhi_steadiness_drifts(const struct bhi_steadiness *steadiness, double limit) {
    return steadiness->drift > limit && steadiness->drift > chance * 2 * steadiness->noise;
}

bool bhi_steadiness_is_slower(const struct bhi_steadiness *now, const struct bhi_steadiness *before,
                              double limit) {
    const double slower = now->median - before->median;
    const double error = hypot(now->noise * now->median, before->noise * before->median);
    const size_t fewer = now->count < before->count ? now->count : before->count;
    return fewer > 1 && slower > limit * before->median &&
           slower > chance * (1 + few / (double)(fewer - 1)) * error;
}
