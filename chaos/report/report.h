/* Reports of a chaos run: a text, one JSON object on one line, or a self-contained HTML page. */
#ifndef BHI_CHAOS_REPORT_REPORT_H
#define BHI_CHAOS_REPORT_REPORT_H

#include <stdio.h>

#include "chaos/check/check.h"

/* |history_path| is where the history was saved; NULL: nowhere. */
void bhi_chaos_report_text(FILE *stream, const struct bhi_history *history,
                           const struct bhi_chaos_result *result, const char *history_path);
/* Writes one object, on one line, with "verdict"; docs/reports.md lists its keys. Returns false if
 * there is no memory or |stream| fails. */
bool bhi_chaos_report_json(FILE *stream, const struct bhi_history *history,
                           const struct bhi_chaos_result *result, const char *history_path);
/* Writes a page: streams as rows, operations as bars, faults as marks; the recovery histogram; the
 * findings. */
bool bhi_chaos_report_html(const char *path, const struct bhi_history *history,
                           const struct bhi_chaos_result *result, struct bhi_complaint *complaint);

#endif
