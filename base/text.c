#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* Length of the well-formed UTF-8 sequence at |bytes|, or 0: overlong, a surrogate, beyond
 * U+10FFFF, cut off. Each byte is read once: they may change under us. */
static size_t decode(const uint8_t *bytes, size_t length, uint8_t out[4], uint32_t *out_point) {
    if (length == 0) {
        return 0;
    }
    uint8_t b0 = out[0] = bytes[0];
    *out_point = b0;
    if (b0 < 0x80) {
        return 1;
    }
    size_t n = b0 >= 0xf0 ? 4 : b0 >= 0xe0 ? 3 : 2;
    if (b0 < 0xc2 || b0 > 0xf4 || length < n) {
        return 0;
    }
    /* The second byte's range excludes overlong forms, surrogates and what is past U+10FFFF. */
    uint8_t low = 0x80, high = 0xbf;
    if (b0 == 0xe0) {
        low = 0xa0;
    } else if (b0 == 0xed) {
        high = 0x9f;
    } else if (b0 == 0xf0) {
        low = 0x90;
    } else if (b0 == 0xf4) {
        high = 0x8f;
    }
    *out_point = b0 & (0x3fu >> (n - 1));
    for (size_t i = 1; i < n; i++) {
        out[i] = bytes[i];
        if (out[i] < low || out[i] > high) {
            return 0;
        }
        *out_point = *out_point << 6 | (out[i] & 0x3fu);
        low = 0x80;
        high = 0xbf;
    }
    return n;
}

/* Neither C0, DEL and C1, nor characters that make text look like other text: marks that reorder
 * it, separators that some terminals treat as a line end, and invisible characters, by which two
 * names can differ and look the same. */
static bool may_be_shown(uint32_t point) {
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x00, 0x08},     {0x0b, 0x1f},     {0x7f, 0x9f},       {0xad, 0xad},
        {0x034f, 0x034f}, {0x061c, 0x061c}, {0x115f, 0x1160},   {0x17b4, 0x17b5},
        {0x180b, 0x180f}, {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
        {0x2800, 0x2800}, {0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
        {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        if (point >= hidden[i].first && point <= hidden[i].last) {
            return false;
        }
    }
    return true;
}

size_t bhi_text_char(const uint8_t *bytes, size_t length, uint8_t out[4]) {
    uint32_t point;
    size_t n = decode(bytes, length, out, &point);
    return n && may_be_shown(point) ? n : 0;
}

/* |one_line|: line ends and tabulators become blanks. */
static void clean(char *out, size_t capacity, const char *text, size_t length, bool one_line) {
    if (capacity == 0) {
        return;
    }
    size_t used = 0;
    const uint8_t *bytes = (const uint8_t *)text;
    while (length > 0) {
        uint8_t c[4] = {0};
        uint32_t point;
        size_t n = decode(bytes, length, c, &point);
        size_t step = n ? n : 1;
        if (n && point == 0) {
            break;
        }
        if (one_line && n && (point == '\n' || point == '\t' || point == '\r')) {
            c[0] = ' ';
        } else if (!n || !may_be_shown(point)) {
            c[0] = '?';
            n = 1;
        }
        if (n > capacity - 1 - used) {
            break;
        }
        memcpy(out + used, c, n);
        used += n;
        bytes += step;
        length -= step;
    }
    out[used] = '\0';
}

void bhi_text_sanitise(char *out, size_t capacity, const char *text, size_t length) {
    clean(out, capacity, text, length, false);
}

void bhi_text_line(char *out, size_t capacity, const char *text, size_t length) {
    clean(out, capacity, text, length, true);
}

bool bhi_text_is_line(const char *text) {
    size_t length = strlen(text);
    while (length > 0) {
        uint8_t c[4];
        const size_t n = bhi_text_char((const uint8_t *)text, length, c);
        if (!n || c[0] == '\n' || c[0] == '\t') {
            return false;
        }
        text += n;
        length -= n;
    }
    return true;
}

const char *bhi_text_time(uint64_t ns, char out[BHI_TEXT_TIME]) {
    const bool whole_ms = ns % 1000000 == 0;
    snprintf(out, BHI_TEXT_TIME, "%llu %s", (unsigned long long)(ns / (whole_ms ? 1000000 : 1)),
             whole_ms ? "ms" : "ns");
    return out;
}

const char *bhi_text_first_error(const char *log, size_t bytes, size_t *out_length) {
    const char *end = log + bytes, *error = memmem(log, bytes, "error:", 6);
    const char *before = error ? memrchr(log, '\n', (size_t)(error - log)) : NULL;
    const char *line = before ? before + 1 : log;
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    *out_length = (size_t)((stop ? stop : end) - line);
    return line;
}
