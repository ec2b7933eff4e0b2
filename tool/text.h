/* Text for people, and the cleaning of text that others wrote.
 *
 * File names, kernel names, driver names and verdicts may hold anything, terminal escapes
 * included. What is printed or put into JSON goes through bhi_text_clean first.
 */
#ifndef BHI_TOOL_TEXT_H
#define BHI_TOOL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "formats/complaint.h"

/* Copies |source| to |out| (|capacity| >= 8 bytes, NUL-terminated, cut at a character) as valid
 * UTF-8 without control characters: line ends and tabs become a space, others and broken
 * sequences a '?'. Returns |out|. */
const char *bhi_text_clean(char *out, size_t capacity, const char *source);

/* A detail's message without the name of the call that it begins with ("bh_kernel_create: "), which
 * says nothing to a person. */
const char *bhi_text_without_call(const char *message);

/* The same without the NAME of what it is about ("NAME: "), which has been said already. */
const char *bhi_text_without_name(const char *message, const char *name);

/* Whether to colour what goes to |stream|: a terminal, no NO_COLOR, TERM not dumb. */
bool bhi_text_coloured(FILE *stream);

/* The width at which to wrap what goes to |stream|: 100 columns on a terminal. A file or a pipe
 * gets whole lines. */
int bhi_text_width(FILE *stream);

/* Writes |text| wrapped at |width| columns; each line is indented by |indent|. Words are kept
 * whole. '\n' in the text ends a line. */
void bhi_text_wrap(FILE *stream, const char *text, int indent, int width);

#endif
