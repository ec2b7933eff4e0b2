#include "judge/data/ratio.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"

enum { WALSH_MOST = BHI_RATIO_GROUPS_MOST * (BHI_RATIO_GROUPS_MOST + 1) / 2 };

/* What is outside the interval, on each side. */
static const double tail = 0.025;
/* The least and the greatest of five values that are distributed normally have their mean between
 * them with 93.75 %; if they are by so much farther from the middle, with 95 %. */
static const double widening_of_five = 1.1;

double bhi_median_of(uint64_t *times, size_t count) {
    bhi_sort_u64(times, count);
    const size_t middle = count / 2;
    return count % 2 ? (double)times[middle]
                     : ((double)times[middle - 1] + (double)times[middle]) / 2;
}

static double median_copy(const uint64_t *times, size_t count, uint64_t *room) {
    memcpy(room, times, count * sizeof *times);
    return bhi_median_of(room, count);
}

/* The logarithm of each group's ratio. */
static bool find_groups(const uint64_t *a, const uint64_t *b, size_t count, size_t groups,
                        uint64_t *room, double *out) {
    for (size_t i = 0; i < groups; i++) {
        const size_t begin = bhi_group_begin(count, groups, i);
        const size_t runs = bhi_group_begin(count, groups, i + 1) - begin;
        const double over = median_copy(a + begin, runs, room);
        const double under = median_copy(b + begin, runs, room);
        if (over <= 0 || under <= 0) {
            return false;
        }
        out[i] = log(over / under);
    }
    return true;
}

/* How many of the means of two must be left out on each side. Each of |groups| ranks is that of
 * a value above the middle with a chance of one half; the sum of those ranks is as small as the
 * number of means that are above it. */
static size_t outside(size_t groups) {
    double chances[WALSH_MOST + 1] = {1}; /* of each sum, of the ranks so far */
    size_t most = 0;
    for (size_t rank = 1; rank <= groups; rank++) {
        most += rank;
        for (size_t sum = most + 1; sum-- > 0;) {
            chances[sum] = (chances[sum] + (sum >= rank ? chances[sum - rank] : 0)) / 2;
        }
    }
    double chance = chances[0];
    size_t count = 0;
    while (chance <= tail) {
        chance += chances[++count];
    }
    return count ? count - 1 : 0;
}

static void conclude(const double *logarithms, size_t groups, struct bhi_ratio *out) {
    double means[WALSH_MOST];
    size_t count = 0;
    for (size_t i = 0; i < groups; i++) {
        for (size_t k = 0; k <= i; k++) {
            means[count++] = (logarithms[i] + logarithms[k]) / 2;
        }
    }
    bhi_sort_doubles(means, count);
    const double middle = (means[(count - 1) / 2] + means[count / 2]) / 2;
    const double wider = groups == BHI_RATIO_GROUPS_LEAST ? widening_of_five : 1;
    const size_t out_of_it = outside(groups);
    out->ratio = exp(middle);
    out->low = exp(middle + wider * (means[out_of_it] - middle));
    out->high = exp(middle + wider * (means[count - 1 - out_of_it] - middle));
}

bool bhi_ratio_of(const uint64_t *a, const uint64_t *b, size_t count, size_t groups,
                  struct bhi_ratio *out) {
    double logarithms[BHI_RATIO_GROUPS_MOST];
    if (groups < BHI_RATIO_GROUPS_LEAST || groups > BHI_RATIO_GROUPS_MOST || count < groups) {
        return false;
    }
    uint64_t *room = calloc(count, sizeof *room);
    const bool good = room && find_groups(a, b, count, groups, room, logarithms);
    free(room);
    if (good) {
        conclude(logarithms, groups, out);
    }
    return good;
}

/* -- whether times are steady ---------------------------------------------------------------- */

/* The median of the deviations, times this, is the standard deviation of normal times; the standard
 * error of a median of |n| of them is that, times sqrt(pi / 2) / sqrt(n). */
static const double normal_deviation = 1.4826, median_error = 1.2533;

/* Medians of the same differ by more than so many of their standard errors once in 10,000 times. */
static const double chance = 4;

/* Few times may be close to one another by chance, so that their noise looks small: then it has to
 * be more errors, about as many as Student's t says. */
static const double few = 9;

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
