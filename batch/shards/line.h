/* A line of a feed (batch/journal/feed.h), read as what it is: bytes that another machine wrote. */
#ifndef BHI_BATCH_SHARDS_LINE_H
#define BHI_BATCH_SHARDS_LINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BHI_FEED_ABSENT INT64_MIN /* the line does not have that number */

enum bhi_feed_kind {
    BHI_FEED_HEAD, /* feed, batch, host, pid, began */
    BHI_FEED_JOB,  /* job, and what is new about it */
    BHI_FEED_END,  /* end: the process has ended in order */
    BHI_FEED_OTHER /* of a later version; to be ignored */
};

/* Numbers are in their ranges or BHI_FEED_ABSENT; texts are bounded, or NULL. */
struct bhi_feed_line {
    enum bhi_feed_kind kind;
    json_t *object; /* owned; has the texts */
    int64_t feed, pid, began_ns, end_ns;
    int64_t job, line, state, attempts, guilty, verdict, origin, at_ns;
    int64_t attempt, given, stream, started_ns, ended_ns, blamed, status, executed, signal,
        exit_code, worker, limit, blame;
    const char *batch, *host, *id, *kernel_name, *message, *on;
};

/* Parses |length| bytes, without the line's end. Returns false if they are no line of a feed, or
 * memory ran out; then nothing is owned. */
bool bhi_feed_line_parse(const char *bytes, size_t length, struct bhi_feed_line *out_line);
void bhi_feed_line_free(struct bhi_feed_line *line);
/* The latest of the times in it; 0: none. */
uint64_t bhi_feed_line_time(const struct bhi_feed_line *line);

#endif
