/* Leaks: at rest the process must have at the end what it had at the beginning. Only idle samples
 * are compared, and those of the first quarter are dropped, because caches fill in that time. For
 * counts, the median of the last third may exceed that of the first third only by a few. For
 * memory, the median of the slopes between all pairs of samples counts, and the thirds must show
 * the growth, too: between two samples in a row a small fluctuation is a steep slope. So one odd
 * sample is no leak and hides none. */
#include "base/sort.h"
#include "chaos/check/rules.h"

#include <stdlib.h>

typedef unsigned long long ull;

/* Allowed growth: one worker more, for example a spare that is starting. */
enum { DESCRIPTORS_MORE = 16, PROCESSES_MORE = 2, FILES_MORE = 8 };

/* A sanitizer keeps freed memory for a while. */
#ifdef BHI_SANITIZED
#define MEMORY_MORE (1024ull << 20)
#else
#define MEMORY_MORE (16ull << 20)
#endif

enum { SLOPE_SAMPLES = 256 }; /* the most that are used; of more, every nth */

struct samples {
    const struct bhi_record **idle;
    size_t count;
};

enum what { DESCRIPTORS, PROCESSES, FILES, MEMORY };

static double value_of(const struct bhi_record *record, enum what what) {
    return what == DESCRIPTORS ? record->sample.descriptors
           : what == PROCESSES ? record->sample.processes
           : what == MEMORY    ? (double)record->sample.rss_bytes
                               : record->sample.files;
}

/* Computes the median of the |count| samples from |first| on. Returns false if out of memory. */
static bool middle_of(const struct samples *samples, size_t first, size_t count, enum what what,
                      double *out_middle) {
    double *values = calloc(count, sizeof *values);
    if (!values) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        values[i] = value_of(samples->idle[first + i], what);
    }
    bhi_sort_doubles(values, count);
    *out_middle = values[count / 2];
    free(values);
    return true;
}

/* Computes the medians of the first and of the last third. */
static bool thirds_of(const struct samples *samples, enum what what, double *out_early,
                      double *out_late) {
    size_t third = samples->count / 3 ? samples->count / 3 : 1;
    return middle_of(samples, 0, third, what, out_early) &&
           middle_of(samples, samples->count - third, third, what, out_late);
}

static bool check_count(struct bhi_check *check, const struct samples *samples, enum what what) {
    static const char *const names[] = {"descriptors", "processes", "files"};
    static const int more[] = {DESCRIPTORS_MORE, PROCESSES_MORE, FILES_MORE};
    double early, late;
    if (!thirds_of(samples, what, &early, &late)) {
        return false;
    }
    if (late > early + more[what]) {
        bhi_find(check, BHI_ANOMALY_LEAK, 0, samples->idle[samples->count - 1],
                 "at rest there were %.0f %s at first, and %.0f at last", early, names[what], late);
    }
    return true;
}

/* Computes the slope in bytes per nanosecond (Theil and Sen). Returns false if out of memory. */
static bool slope_of(const struct samples *samples, double *out_slope) {
    size_t step = (samples->count + SLOPE_SAMPLES - 1) / SLOPE_SAMPLES, count = 0;
    size_t kept = (samples->count + step - 1) / step;
    double *slopes = calloc(kept * kept / 2 + 1, sizeof *slopes);
    if (!slopes) {
        return false;
    }
    for (size_t i = 0; i < samples->count; i += step) {
        for (size_t k = i + step; k < samples->count; k += step) {
            const struct bhi_record *a = samples->idle[i], *b = samples->idle[k];
            if (b->at_ns > a->at_ns) {
                slopes[count++] = ((double)b->sample.rss_bytes - (double)a->sample.rss_bytes) /
                                  (double)(b->at_ns - a->at_ns);
            }
        }
    }
    bhi_sort_doubles(slopes, count);
    *out_slope = count ? slopes[count / 2] : 0;
    free(slopes);
    return true;
}

static bool check_memory(struct bhi_check *check, const struct samples *samples) {
    double slope, early, late;
    if (!slope_of(samples, &slope) || !thirds_of(samples, MEMORY, &early, &late)) {
        return false;
    }
    const struct bhi_record *first = samples->idle[0], *last = samples->idle[samples->count - 1];
    double grown = slope * (double)(last->at_ns > first->at_ns ? last->at_ns - first->at_ns : 0);
    if (grown > (double)MEMORY_MORE && late - early > (double)MEMORY_MORE / 2) {
        bhi_find(check, BHI_ANOMALY_LEAK, 0, last,
                 "at rest memory grew by %.0f MiB, steadily, from %llu MiB to %llu MiB",
                 grown / (1 << 20), (ull)(first->sample.rss_bytes >> 20),
                 (ull)(last->sample.rss_bytes >> 20));
    }
    return true;
}

static int by_time(const void *a, const void *b) {
    const struct bhi_record *const *x = a, *const *y = b;
    if ((*x)->at_ns != (*y)->at_ns) {
        return (*x)->at_ns < (*y)->at_ns ? -1 : 1;
    }
    return *x < *y ? -1 : *x > *y;
}

static bool judge(struct bhi_check *check, struct samples *samples) {
    qsort(samples->idle, samples->count, sizeof *samples->idle, by_time);
    if (samples->count < 2) {
        bhi_find(check, BHI_ANOMALY_UNKNOWN, 0, NULL,
                 "leaks cannot be judged: the process was sampled at rest less than twice");
        return true;
    }
    size_t warm = samples->count / 4;
    const struct samples rest = {.idle = samples->idle + warm, .count = samples->count - warm};
    struct bhi_chaos_result *result = check->result;
    result->rss_first = rest.idle[0]->sample.rss_bytes;
    result->rss_last = rest.idle[rest.count - 1]->sample.rss_bytes;
    result->descriptors_first = rest.idle[0]->sample.descriptors;
    result->descriptors_last = rest.idle[rest.count - 1]->sample.descriptors;
    return check_count(check, &rest, DESCRIPTORS) && check_count(check, &rest, PROCESSES) &&
           check_count(check, &rest, FILES) && check_memory(check, &rest);
}

bool bhi_check_leaks(struct bhi_check *check) {
    const struct bhi_history *history = check->history;
    struct samples samples = {.idle = calloc(history->count + 1, sizeof *samples.idle)};
    if (!samples.idle) {
        return false;
    }
    BHI_RECORDS_OF(record, history, BHI_RECORD_SAMPLE) {
        if (record->sample.idle) {
            samples.idle[samples.count++] = record;
        }
    }
    bool good = judge(check, &samples);
    free(samples.idle);
    return good;
}
