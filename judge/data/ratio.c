#include "judge/data/ratio.h"

#include <stdlib.h>

#include "judge/data/philox.h"

enum { RESAMPLES = 2000 };

static int compare_times(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int compare_ratios(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bhi_median_of(uint64_t *times, size_t count) {
    qsort(times, count, sizeof *times, compare_times);
    const size_t middle = count / 2;
    return count % 2 ? (double)times[middle]
                     : ((double)times[middle - 1] + (double)times[middle]) / 2;
}

/* A random number below |count|. */
static size_t pick(uint64_t seed, uint32_t resample, size_t draw, size_t count) {
    const struct bhi_philox counter = {
        {(uint32_t)draw, (uint32_t)((uint64_t)draw >> 32), resample}};
    const struct bhi_philox bits = bhi_philox(seed, counter);
    const uint64_t random = (uint64_t)bits.words[1] << 32 | bits.words[0];
    return (size_t)((unsigned __int128)random * count >> 64);
}

/* The median of the first |count| times over that of the next; 0: the latter is 0. */
static double divided(uint64_t *times, size_t count) {
    const double over = bhi_median_of(times, count), under = bhi_median_of(times + count, count);
    return under > 0 ? over / under : 0;
}

/* The ratio of the pairs that one resample picks. |room| is for 2 |count| times. */
static double resampled(const uint64_t *a, const uint64_t *b, size_t count, uint64_t seed,
                        uint32_t resample, uint64_t *room) {
    for (size_t i = 0; i < count; i++) {
        const size_t which = pick(seed, resample, i, count);
        room[i] = a[which];
        room[count + i] = b[which];
    }
    return divided(room, count);
}

bool bhi_ratio_of(const uint64_t *a, const uint64_t *b, size_t count, uint64_t seed,
                  struct bhi_ratio *out) {
    uint64_t *room = count ? calloc(count, 2 * sizeof *room) : NULL;
    double *ratios = calloc(RESAMPLES, sizeof *ratios);
    bool good = room && ratios;
    for (size_t i = 0; i < count && good; i++) {
        room[i] = a[i];
        room[count + i] = b[i];
    }
    if (good) {
        out->ratio = divided(room, count);
    }
    for (uint32_t i = 0; i < RESAMPLES && good; i++) {
        ratios[i] = resampled(a, b, count, seed, i, room);
        good = ratios[i] > 0;
    }
    if (good) {
        qsort(ratios, RESAMPLES, sizeof *ratios, compare_ratios);
        out->low = ratios[RESAMPLES * 25 / 1000];
        out->high = ratios[RESAMPLES * 975 / 1000 - 1];
    }
    free(room);
    free(ratios);
    return good;
}
