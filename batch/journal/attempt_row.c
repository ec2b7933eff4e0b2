#include "batch/journal/attempt_row.h"

#include <stdio.h>
#include <string.h>

const char *bhi_row_text(sqlite3_stmt *row, int column) {
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

void bhi_row_attempt(sqlite3_stmt *row, struct bhi_attempt_record *out) {
    *out = (struct bhi_attempt_record){
        .job = (uint64_t)sqlite3_column_int64(row, 0),
        .id = bhi_row_text(row, 1),
        .attempt = (uint32_t)sqlite3_column_int64(row, 2),
        .started = sqlite3_column_int(row, 3) != 0,
        .stream = (uint32_t)sqlite3_column_int64(row, 4),
        .started_ns = (uint64_t)sqlite3_column_int64(row, 5),
        .ended_ns = (uint64_t)sqlite3_column_int64(row, 6),
        .guilty = sqlite3_column_int(row, 7) != 0,
        .verdict = {.status = (bh_status)sqlite3_column_int(row, 8),
                    .executed = (bh_executed)sqlite3_column_int(row, 9),
                    .signal = sqlite3_column_int(row, 10),
                    .exit_code = sqlite3_column_int(row, 11),
                    .worker_pid = sqlite3_column_int(row, 12),
                    .limit = (uint64_t)sqlite3_column_int64(row, 13)},
        .host = bhi_row_text(row, 19),
    };
    bh_verdict *verdict = &out->verdict;
    snprintf(verdict->kernel_name, sizeof verdict->kernel_name, "%s", bhi_row_text(row, 14));
    snprintf(verdict->message, sizeof verdict->message, "%s", bhi_row_text(row, 16));
    snprintf(verdict->device, sizeof verdict->device, "%s", bhi_row_text(row, 18));
    verdict->blame = (bh_blame)sqlite3_column_int(row, 17);
    const void *hash = sqlite3_column_blob(row, 15);
    if (hash && sqlite3_column_bytes(row, 15) == (int)sizeof verdict->kernel_hash) {
        memcpy(verdict->kernel_hash, hash, sizeof verdict->kernel_hash);
    }
}
