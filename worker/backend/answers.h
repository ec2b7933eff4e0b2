/* Results of records, and what is checked of a record alike in every backend. */
#ifndef BHI_WORKER_BACKEND_ANSWERS_H
#define BHI_WORKER_BACKEND_ANSWERS_H

#include "worker/backend.h"

/* Where bhi_backend_run puts its results. */
struct bhi_answers {
    const struct bhi_lane_record *const *records;
    struct bhi_result *results;
    struct bhi_error *errors;
};

/* Records that run together, as indices into the arrays of the answers. */
struct bhi_batch {
    size_t places[64];
    uint32_t count;
};

/* Fills in the result of a record without an error, and of one with the error at its place. */
void bhi_answer_good(const struct bhi_answers *answers, size_t place, uint64_t now_ns);
void bhi_answer_bad(const struct bhi_answers *answers, size_t place);
/* Fills in the results of a lost batch. The markers tell which records had ended, which one ran, and
 * which had not begun. */
void bhi_answer_lost(const struct bhi_answers *answers, const struct bhi_batch *batch,
                     const struct bhi_markers *markers, const struct bhi_error *loss);
/* Does the record have work for the device? A record that only prepares kernels has none. */
bool bhi_record_has_work(const struct bhi_lane_record *record);
/* May a command use the buffer |id|, and write it? |of_it| is the buffer's error, NULL if there is no such
 * buffer. Otherwise fills *error. */
bool bhi_buffer_check(const struct bhi_backend *backend, uint64_t id, const struct bhi_error *of_it,
                      bool writes, bool writable, struct bhi_error *error);
/* Is the range inside a buffer of |size| bytes? Otherwise fills *error. |what| uses it. */
bool bhi_range_check(uint64_t size, const char *what, uint64_t offset, uint64_t bytes,
                     struct bhi_error *error);

#endif
