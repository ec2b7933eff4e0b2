/* The report over all shards of a batch, as of what has been read. */
#ifndef BHI_BATCH_SHARDS_REPORT_H
#define BHI_BATCH_SHARDS_REPORT_H

#include "batch/shards/shards.h"

struct bhi_shards_report {
    const char *jobs_path;            /* of the whole batch; NULL: not known */
    const char *html;                 /* NULL: no page */
    bool json;                        /* otherwise a table, on standard output */
    int exit_status;                  /* for the object */
    const struct bhi_report_bad *bad; /* lines of the file that are in no shard */
    size_t bad_count;
};

/* How many jobs the notes name that are in several shards. */
enum { BHI_SHARDS_TWICE = 20 };

/* Writes the page, then prints the table or the object. Returns false with a complaint. */
bool bhi_shards_report(struct bhi_shards *shards, const struct bhi_shards_report *what,
                       struct bhi_complaint *complaint);

#endif
