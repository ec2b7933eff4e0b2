/* Text that may be shown: valid UTF-8 without control characters other than \n and \t, without
 * marks that reorder what is seen (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069),
 * without other line ends (U+2028, U+2029) and without what cannot be seen at all (U+200B, U+FEFF,
 * soft hyphens, joiners, fillers, variation selectors, tags). All text that comes from a worker, a
 * file or a file's name goes through here before anybody sees it. */
#ifndef BHI_BASE_TEXT_H
#define BHI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies the character at |bytes| into |out| and returns its length, or 0 where there is none that
 * may be shown; out[0] is the first byte either way (|length| > 0). */
size_t bhi_text_char(const uint8_t *bytes, size_t length, uint8_t out[4]);
/* Copies |text| up to its NUL or |length|; each byte or character that may not be shown becomes
 * '?'. Cut at a character where |out| is too small; NUL-terminated. Use it on whatever comes from a
 * worker before it is shown, and before it is encoded. |out| may be |text|. */
void bhi_text_sanitise(char *out, size_t capacity, const char *text, size_t length);
/* As bhi_text_sanitise, for one line, such as a name or a line of a log: \n, \r and \t become
 * blanks. */
void bhi_text_line(char *out, size_t capacity, const char *text, size_t length);
/* Whether |text| is one line of text that may be shown: bhi_text_line changes nothing of it. Only
 * such text can be sent in a message (ipc/wire.c). */
bool bhi_text_is_line(const char *text);

enum { BHI_TEXT_TIME = 32 };
/* Writes "100 ms", or "100000001 ns" if the time is not a whole number of milliseconds. Returns
 * |out|. */
const char *bhi_text_time(uint64_t ns, char out[BHI_TEXT_TIME]);

/* Returns the first line of a compiler's log with an error; the first line if there is none.
 * *out_length is its length without \n. */
const char *bhi_text_first_error(const char *log, size_t bytes, size_t *out_length);

#endif
