#include "judge/data/ratio.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/data/block.h"
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

/* A time, and when it was taken. An array of them is sorted once; a resample only says how often
 * each counts. */
struct placed {
    uint64_t time; /* the first member: compare_times */
    size_t index;
};

/* One bootstrap. */
struct bootstrap {
    size_t count, length;  /* pairs; pairs in a block */
    struct placed *over;   /* |count|, by time; owned */
    struct placed *under;  /* the same */
    uint32_t *times_drawn; /* of each pair; owned */
    uint64_t seed;
};

static void place(const uint64_t *times, size_t count, struct placed *out) {
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct placed){times[i], i};
    }
    qsort(out, count, sizeof *out, compare_times);
}

static bool begin(const uint64_t *a, const uint64_t *b, size_t count, uint64_t seed,
                  struct bootstrap *out) {
    *out = (struct bootstrap){.count = count, .seed = seed};
    if (!count || !(out->over = calloc(count, sizeof *out->over)) ||
        !(out->under = calloc(count, sizeof *out->under)) ||
        !(out->times_drawn = calloc(count, sizeof *out->times_drawn))) {
        return false;
    }
    place(a, count, out->over);
    place(b, count, out->under);
    out->length = bhi_block_length(a, b, count);
    return out->length > 0;
}

static void end(struct bootstrap *bootstrap) {
    free(bootstrap->over);
    free(bootstrap->under);
    free(bootstrap->times_drawn);
}

/* The median of a resample. */
static double median_drawn(const struct bootstrap *bootstrap, const struct placed *placed) {
    const size_t middle = bootstrap->count / 2;
    const size_t lower = bootstrap->count % 2 ? middle : middle - 1;
    size_t next = 0, seen = bootstrap->times_drawn[placed[0].index];
    while (seen <= lower) {
        seen += bootstrap->times_drawn[placed[++next].index];
    }
    const uint64_t low = placed[next].time;
    while (seen <= middle) {
        seen += bootstrap->times_drawn[placed[++next].index];
    }
    return ((double)low + (double)placed[next].time) / 2;
}

/* 0: the median of the second is 0. */
static double ratio_drawn(const struct bootstrap *bootstrap) {
    const double under = median_drawn(bootstrap, bootstrap->under);
    return under > 0 ? median_drawn(bootstrap, bootstrap->over) / under : 0;
}

/* A random number below |count|. */
static size_t pick(uint64_t seed, uint32_t resample, size_t draw, size_t count) {
    const struct bhi_philox counter = {
        {(uint32_t)draw, (uint32_t)((uint64_t)draw >> 32), resample}};
    const struct bhi_philox bits = bhi_philox(seed, counter);
    const uint64_t random = (uint64_t)bits.words[1] << 32 | bits.words[0];
    return (size_t)((unsigned __int128)random * count >> 64);
}

/* Draws blocks until there are as many pairs as were measured. The last is followed by the first,
 * so that each pair is drawn as often as any other. */
static void draw(struct bootstrap *bootstrap, uint32_t resample) {
    const size_t count = bootstrap->count;
    memset(bootstrap->times_drawn, 0, count * sizeof *bootstrap->times_drawn);
    for (size_t drawn = 0, block = 0; drawn < count; block++) {
        const size_t first = pick(bootstrap->seed, resample, block, count);
        for (size_t i = 0; i < bootstrap->length && drawn < count; i++, drawn++) {
            bootstrap->times_drawn[(first + i) % count]++;
        }
    }
}

static bool find(struct bootstrap *bootstrap, double *ratios, struct bhi_ratio *out) {
    for (size_t i = 0; i < bootstrap->count; i++) {
        bootstrap->times_drawn[i] = 1;
    }
    out->ratio = ratio_drawn(bootstrap);
    bool good = out->ratio > 0;
    for (uint32_t i = 0; i < RESAMPLES && good; i++) {
        draw(bootstrap, i);
        ratios[i] = ratio_drawn(bootstrap);
        good = ratios[i] > 0;
    }
    if (good) {
        const double wider = bhi_block_widening(bootstrap->count, bootstrap->length);
        qsort(ratios, RESAMPLES, sizeof *ratios, compare_ratios);
        out->low = out->ratio * pow(ratios[RESAMPLES * 25 / 1000] / out->ratio, wider);
        out->high = out->ratio * pow(ratios[RESAMPLES * 975 / 1000 - 1] / out->ratio, wider);
    }
    return good;
}

bool bhi_ratio_of(const uint64_t *a, const uint64_t *b, size_t count, uint64_t seed,
                  struct bhi_ratio *out) {
    struct bootstrap bootstrap;
    double *ratios = calloc(RESAMPLES, sizeof *ratios);
    const bool good =
        ratios && begin(a, b, count, seed, &bootstrap) && find(&bootstrap, ratios, out);
    if (ratios) {
        end(&bootstrap);
    }
    free(ratios);
    return good;
}
