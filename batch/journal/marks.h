/* What the outputs of a sealed job are recognised by after a kill (bhi_outfile_mark), as a text for
 * the journal: SIZE@MTIME for each, in the order of the bindings, with a blank between them. */
#ifndef BHI_BATCH_JOURNAL_MARKS_H
#define BHI_BATCH_JOURNAL_MARKS_H

#include "request/run.h"

enum { BHI_MARK_TEXT = 42, BHI_MARKS_TEXT = BHI_MAX_BINDINGS * BHI_MARK_TEXT };

/* Appends one to |out|, which has room for BHI_MARKS_TEXT and begins as "". */
void bhi_marks_append(char *out, const struct bhi_outfile_mark *mark);
/* Reads one and moves |*at| behind it. False: there is none, or it is damaged. */
bool bhi_marks_next(const char **at, struct bhi_outfile_mark *out_mark);
/* Whether these are |count| of them, and nothing else. */
bool bhi_marks_check(const char *text, size_t count);

#endif
