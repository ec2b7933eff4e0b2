/* The feed of a batch: what its journal records, as lines of JSON that are only appended
 * (docs/reports.md). Other machines read it while the batch runs, over a network file system on
 * which SQLite's log cannot be read from a second machine
 * (docs/decisions/0019-batches.md).
 *
 *   FOLDER/feed.jsonl    the feed: written anew when a process goes on with the batch, and then
 *                        appended to
 *   FOLDER/feed.new      the new one, until it is whole
 *
 * A record is appended only once the database has it. So the feed never says more than the
 * database; where it says less, after a kill, the next process makes up for it. A feed that cannot
 * be written ends no batch. */
#ifndef BHI_BATCH_JOURNAL_FEED_H
#define BHI_BATCH_JOURNAL_FEED_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "batch/journal/host.h"

#define BHI_FEED_FILE "feed.jsonl"

enum {
    BHI_FEED_FORMAT = 1,
    BHI_FEED_LINE = 8192,   /* the most bytes of a line, with its end */
    BHI_FEED_KERNEL = 400,  /* bytes of a job's kernel or expression, after which it is cut */
    BHI_FEED_BUFFER = 65536 /* holds several lines */
};

struct bhi_feed {
    int fd;            /* -1: there is none, or it is stale */
    bool begun;        /* jobs were added: there is to be one */
    bool stale;        /* something could not be appended: it must be written anew */
    uint64_t retry_ns; /* when that is tried again; CLOCK_MONOTONIC */
    char host[BHI_HOST_NAME];
    char text[BHI_FEED_BUFFER];
    size_t used;
    bool failed; /* of what is being written */
};

/* Calls for one feed come one at a time. |folder|: the state folder. */
void bhi_feed_init(struct bhi_feed *feed);
/* Writes the feed anew from the database, which has just got jobs. */
void bhi_feed_rewrite(struct bhi_feed *feed, sqlite3 *db, int folder);
/* Appends the notes of |group| (bhi_note.node), which are durable. */
void bhi_feed_append(struct bhi_feed *feed, sqlite3 *db, int folder, const struct bhi_list *group);
/* Appends that the process ends, and closes the feed. */
void bhi_feed_close(struct bhi_feed *feed, sqlite3 *db, int folder);

#endif
