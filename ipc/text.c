#include "text.h"

#include <string.h>

/* Length of the well-formed character at |bytes| that may be shown, or 0: ill-formed UTF-8
 * (overlong, surrogate, beyond U+10FFFF, cut off), NUL, or a control character (C0, DEL, C1)
 * other than \n and \t. Each byte is read once: they may change under us. */
size_t bhi_text_char(const uint8_t *bytes, size_t length, uint8_t out[4]) {
    if (length == 0)
        return 0;
    uint8_t b0 = out[0] = bytes[0];
    if (b0 < 0x80)
        return (b0 >= 0x20 && b0 != 0x7f) || b0 == '\n' || b0 == '\t' ? 1 : 0;
    size_t n = b0 >= 0xf0 ? 4 : b0 >= 0xe0 ? 3 : 2;
    if (b0 < 0xc2 || b0 > 0xf4 || length < n)
        return 0;
    /* The second byte's range excludes overlong forms, surrogates and what is past U+10FFFF. */
    uint8_t low = 0x80, high = 0xbf;
    if (b0 == 0xe0)
        low = 0xa0;
    else if (b0 == 0xed)
        high = 0x9f;
    else if (b0 == 0xf0)
        low = 0x90;
    else if (b0 == 0xf4)
        high = 0x8f;
    else if (b0 == 0xc2)
        low = 0xa0; /* U+0080 to U+009F are the C1 controls */
    for (size_t i = 1; i < n; i++) {
        out[i] = bytes[i];
        if (out[i] < low || out[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return n;
}

void bhi_text_sanitise(char *out, size_t capacity, const char *text, size_t length) {
    if (capacity == 0)
        return;
    size_t used = 0;
    const uint8_t *bytes = (const uint8_t *)text;
    while (length > 0) {
        uint8_t c[4] = {0};
        size_t n = bhi_text_char(bytes, length, c);
        size_t step = n;
        if (n == 0) {
            if (c[0] == 0)
                break;
            c[0] = '?';
            n = step = 1;
        }
        if (n > capacity - 1 - used)
            break;
        memcpy(out + used, c, n);
        used += n;
        bytes += step;
        length -= step;
    }
    out[used] = '\0';
}
