#include "judge/data/block.h"

#include <math.h>
#include <stdlib.h>

enum {
    LEAST_BLOCKS = 4,
    MOST_LAGS = 1000, /* of the autocorrelation: one that reaches further is cut off here */
};

/* Independent numbers have an autocorrelation of less than so many of its standard deviations, five
 * times in six. The sum ends at the first one that is less. */
static const double significant = 1.4;
/* 97.5 % of normal numbers are below so many standard deviations. */
static const double normal_quantile = 1.959964;

struct ranked {
    double value;
    size_t index;
};

static int compare_values(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/* Replaces |values| by their ranks, less the mean of those: a single time that is far out counts no
 * more than the next. Equal values share the mean of their ranks. */
static void rank(struct ranked *room, double *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        room[i] = (struct ranked){values[i], i};
    }
    qsort(room, count, sizeof *room, compare_values);
    for (size_t first = 0, next; first < count; first = next) {
        for (next = first + 1; next < count && room[next].value <= room[first].value;) {
            next++;
        }
        for (size_t i = first; i < next; i++) {
            values[room[i].index] = ((double)(first + next) - (double)count) / 2;
        }
    }
}

static double covariance(const double *values, size_t count, size_t lag) {
    double sum = 0;
    for (size_t i = 0; i + lag < count; i++) {
        sum += values[i] * values[i + lag];
    }
    return sum;
}

/* How many values one independent value is worth. */
static double find_worth(const double *values, size_t count) {
    const double variance = covariance(values, count, 0);
    double worth = 1;
    for (size_t lag = 1; variance > 0 && lag < count / 2 && lag <= MOST_LAGS; lag++) {
        const double correlation = covariance(values, count, lag) / variance;
        if (correlation * sqrt((double)count) < significant) {
            break;
        }
        worth += 2 * correlation;
    }
    return worth;
}

size_t bhi_block_length(const uint64_t *a, const uint64_t *b, size_t count) {
    struct ranked *room = calloc(count, sizeof *room);
    double *values = calloc(count, sizeof *values);
    double length = 0;
    if (room && values) {
        for (size_t i = 0; i < count; i++) {
            values[i] = ((double)a[i] + 1) / ((double)b[i] + 1); /* a time may be 0 */
        }
        rank(room, values, count);
        length = fmax(2 * find_worth(values, count), cbrt((double)count));
        const size_t most = count / LEAST_BLOCKS;
        length = fmax(fmin(ceil(length), (double)most), 1);
    }
    free(room);
    free(values);
    return (size_t)length;
}

/* The 97.5 % quantile of Student's t over that of normal numbers (Cornish and Fisher). */
static double student(double freedom) {
    const double z = normal_quantile, z2 = z * z;
    return 1 + (z2 + 1) / (4 * freedom) + (5 * z2 * z2 + 16 * z2 + 3) / (96 * freedom * freedom) +
           (3 * z2 * z2 * z2 + 19 * z2 * z2 + 17 * z2 - 15) / (384 * freedom * freedom * freedom);
}

double bhi_block_widening(size_t count, size_t length) {
    if (count < 2 * length) {
        return 1;
    }
    const double blocks = (double)count / (double)length;
    return sqrt(blocks / (blocks - 1)) * student(blocks - 1);
}
