/* Reads a feed that grows, or did, on another machine: what is new since the last time. */
#ifndef BHI_BATCH_SHARDS_READER_H
#define BHI_BATCH_SHARDS_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "batch/journal/feed.h"

enum { BHI_READER_HEAD = 256 };

struct bhi_reader {
    char head[BHI_READER_HEAD]; /* the first bytes: a feed that was written anew has others */
    size_t head_length;
    uint64_t offset;   /* of the next line */
    uint64_t lines;    /* before |offset| */
    uint64_t size;     /* of the file, when it was read last */
    uint64_t mtime_ns; /* likewise */
    bool skips;        /* |offset| is in a line that is too long */
    uint32_t holes;    /* how often in a row there were NUL bytes instead of a line */
};

enum bhi_reader_result {
    BHI_READER_NOTHING, /* nothing new, or the last line is not complete */
    BHI_READER_MORE,    /* lines were taken; there may be more */
    BHI_READER_NONE,    /* there is no feed (yet), or it cannot be read now */
    BHI_READER_FAILED,  /* |take| returned false */
};

struct bhi_reader_sink {
    /* The feed begins: forget what was taken. */
    bool (*anew)(void *user);
    /* A line without its end, NUL-terminated; NULL: one that is damaged (too long, or NUL bytes
     * that stay). |number| is from 1. Both return false to end everything. */
    bool (*take)(void *user, const char *line, size_t length, uint64_t number);
    void *user;
};

/* Reads a part of the feed |name| in |folder|. A line that is not complete is left for the next
 * time. So are NUL bytes, which are what a reader sees of a network file system until another
 * machine's bytes have come; after a while they are damage. */
enum bhi_reader_result bhi_reader_read(struct bhi_reader *reader, int folder, const char *name,
                                       const struct bhi_reader_sink *sink);
/* Reads all that is there, for tests and the fuzzer: |bytes| instead of a file. */
enum bhi_reader_result bhi_reader_feed(struct bhi_reader *reader, const char *bytes, size_t size,
                                       const struct bhi_reader_sink *sink);

#endif
