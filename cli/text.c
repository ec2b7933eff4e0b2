#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Length of the well-formed UTF-8 sequence at |s| (Unicode 15, table 3-7); 0: broken. The string
 * is NUL-terminated, so no byte past the end is read. */
static size_t sequence_length(const unsigned char *s, uint32_t *out_point) {
    static const struct {
        unsigned char mask, lead;
        size_t length;
        uint32_t least;
    } shapes[] = {{0xE0, 0xC0, 2, 0x80}, {0xF0, 0xE0, 3, 0x800}, {0xF8, 0xF0, 4, 0x10000}};

    if (s[0] < 0x80) {
        *out_point = s[0];
        return 1;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if ((s[0] & shapes[i].mask) != shapes[i].lead)
            continue;
        uint32_t point = s[0] & (unsigned char)~shapes[i].mask;
        for (size_t k = 1; k < shapes[i].length; k++) {
            if ((s[k] & 0xC0) != 0x80)
                return 0;
            point = point << 6 | (s[k] & 0x3F);
        }
        if (point < shapes[i].least || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
            return 0;
        *out_point = point;
        return shapes[i].length;
    }
    return 0;
}

static bool is_control(uint32_t point) {
    /* C0, DEL, C1, and the marks that reorder or break lines on a terminal. */
    return point < 0x20 || (point >= 0x7F && point <= 0x9F) || point == 0x2028 || point == 0x2029 ||
           (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
}

const char *bhi_text_clean(char *out, size_t capacity, const char *source) {
    const unsigned char *s = (const unsigned char *)source;
    size_t used = 0;
    while (*s) {
        uint32_t point = 0;
        size_t length = sequence_length(s, &point);
        size_t step = length ? length : 1;
        bool plain = length && !is_control(point);
        if (used + (plain ? length : 1) >= capacity)
            break;
        if (plain) {
            memcpy(out + used, s, length);
            used += length;
        } else {
            out[used++] = length && (point == '\n' || point == '\t' || point == '\r') ? ' ' : '?';
        }
        s += step;
    }
    while (used > 0 && out[used - 1] == ' ') /* a trailing line end is not worth a blank */
        used--;
    out[used] = 0;
    return out;
}

const char *bhi_text_without_call(const char *message) {
    static const char prefix[] = "bh_";
    if (strncmp(message, prefix, strlen(prefix)) != 0)
        return message;
    size_t length = strspn(message, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return strncmp(message + length, ": ", 2) ? message : message + length + 2;
}

void bhi_complain(const char *command, const char *format, ...) {
    char raw[2048], line[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    bhi_text_clean(line, sizeof line, raw);
    if (command)
        fprintf(stderr, "bulkhead %s: %s\n", command, line);
    else
        fprintf(stderr, "bulkhead: %s\n", line);
}

bool bhi_text_coloured(FILE *stream) {
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (no_color && *no_color)
        return false;
    if (!term || !strcmp(term, "dumb"))
        return false;
    return isatty(fileno(stream)) == 1;
}

void bhi_text_wrap(FILE *stream, const char *text, int indent, int width) {
    int column = 0;
    while (*text) {
        if (*text == '\n') {
            fputc('\n', stream);
            column = 0;
            text++;
            continue;
        }
        size_t blanks = strspn(text, " ");
        size_t length = strcspn(text + blanks, " \n");
        int needed = (int)(blanks + length);
        if (column > 0 && column + needed > width - indent) {
            fputc('\n', stream);
            column = 0;
        }
        if (column == 0) {
            fprintf(stream, "%*s", indent, "");
            needed -= (int)blanks;
            text += blanks;
            blanks = 0;
        }
        fwrite(text, 1, blanks + length, stream);
        column += needed;
        text += blanks + length;
    }
    if (column > 0)
        fputc('\n', stream);
}

bool bhi_text_flush(const char *command) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    bhi_complain(command, "cannot write to standard output: %s", strerror(errno));
    return false;
}
