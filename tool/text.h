/* Text for people, and the cleaning of text from outside.
 *
 * File names, kernel names, driver names and verdicts may contain any bytes, even terminal escapes.
 * Clean them with bhi_text_clean before they are printed or put into JSON.
 */
#ifndef BHI_TOOL_TEXT_H
#define BHI_TOOL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "formats/complaint.h"

/* Copies |source| to |out| as valid UTF-8 without control characters. Line ends and tabs become
 * spaces; other control characters and broken sequences become '?'. |capacity| is at least 8 bytes;
 * a longer text is cut at a character. Returns |out|. */
const char *bhi_text_clean(char *out, size_t capacity, const char *source);

/* A detail's message without the function name at its start ("bh_kernel_create: "), which does not
 * help a user. */
const char *bhi_text_without_call(const char *message);

/* |message| without the "NAME: " at its start, for output that has shown NAME already. */
const char *bhi_text_without_name(const char *message, const char *name);

/* Appends to a message what the library cannot know, such as the name of an option. */
void bhi_text_append(char *message, size_t capacity, const char *more);

/* Returns true if |stream| is a terminal, NO_COLOR is not set, and TERM is not dumb. */
bool bhi_text_coloured(FILE *stream);

/* The width of |stream|: $COLUMNS, that of its terminal, or 80. The only place that asks for it. */
int bhi_text_width(FILE *stream);

/* Writes |text|, wrapped at |width| columns, but at least 40, each line indented by |indent|. Words are not broken.
 * '\n' in |text| ends a line. */
void bhi_text_wrap(FILE *stream, const char *text, int indent, int width);
/* The same behind |head|, which is shorter than |indent|. */
void bhi_text_hang(FILE *stream, const char *head, const char *text, int indent, int width);

#endif
