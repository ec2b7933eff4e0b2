/* Text that may be shown: valid UTF-8 without control characters other than \n and \t. */
#ifndef BHI_TEXT_H
#define BHI_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Copies the character at |bytes| into |out| and returns its length, or 0 where there is none that
 * may be shown; out[0] is the first byte either way (|length| > 0). */
size_t bhi_text_char(const uint8_t *bytes, size_t length, uint8_t out[4]);
/* Copies |text| up to its NUL or |length|; each byte or character that may not be shown becomes
 * '?'. Cut at a character where |out| is too small; NUL-terminated. Use it on whatever comes from a
 * worker before it is shown, and before it is encoded. */
void bhi_text_sanitise(char *out, size_t capacity, const char *text, size_t length);

#endif
