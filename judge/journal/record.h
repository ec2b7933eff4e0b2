/* A candidate's verdict as a JSON object, and back. What a candidate says of itself is text in it,
 * which nobody interprets. */
#ifndef BHI_JUDGE_JOURNAL_RECORD_H
#define BHI_JUDGE_JOURNAL_RECORD_H

#include <jansson.h>

#include "judge/check/candidate.h"

/* Returns NULL if memory ran out. */
json_t *bhi_judge_record_make(const struct bhi_court *court, const struct bhi_candidate *candidate);
/* The path that is recorded, borrowed, and the hash of the content. Returns false if |record| is
 * not one: it is damaged. */
bool bhi_judge_record_file(const json_t *record, const char **out_path,
                           uint8_t out_content[BHI_CONTENT_HASH]);
/* Fills in the candidate, but for out->path. Returns false if the record is damaged or memory ran
 * out; then nothing is owned. */
bool bhi_judge_record_read(const struct bhi_court *court, const json_t *record,
                           struct bhi_candidate *out);

#endif
