/* How the outputs of a sealed job are recognised after a kill (bhi_outfile_mark), as a text for the
 * journal: SIZE@MTIME#HASH for each output, in the order of the bindings, separated by blanks.
 * Format 3 of the journal has no #HASH. */
#ifndef BHI_BATCH_JOURNAL_MARKS_H
#define BHI_BATCH_JOURNAL_MARKS_H

#include "request/run.h"

enum {
    BHI_MARK_TEXT = 43 + 2 * BHI_CONTENT_HASH,
    BHI_MARKS_TEXT = BHI_MAX_BINDINGS * BHI_MARK_TEXT
};

/* How a file that a job has read is recognised later: SIZE@MTIME@CTIME#HASH. Where the times are the
 * same, so is the content; otherwise the hash decides. Without #HASH other times are another file.
 */
struct bhi_used_mark {
    uint64_t size, modified_ns, changed_ns; /* mtime, ctime; all 0: it changed while it was read */
    bool hashed;
    uint8_t hash[BHI_CONTENT_HASH];
};
enum { BHI_USED_MARK_TEXT = 64 + 1 + 2 * BHI_CONTENT_HASH + 1 };
void bhi_used_mark_write(const struct bhi_used_mark *mark, char out[BHI_USED_MARK_TEXT]);
/* Returns false if it is damaged. */
bool bhi_used_mark_read(const char *text, struct bhi_used_mark *out_mark);

/* Appends a mark to |out|, which has room for BHI_MARKS_TEXT and begins as "". */
void bhi_marks_append(char *out, const struct bhi_outfile_mark *mark);
/* Reads a mark and moves |*at| behind it. Returns false if there is none, or it is damaged. */
bool bhi_marks_next(const char **at, struct bhi_outfile_mark *out_mark);
/* Does |text| consist of exactly |count| marks? */
bool bhi_marks_check(const char *text, size_t count);

#endif
