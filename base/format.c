#include "base/format.h"
#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* What is written so far. Once it is full nothing more is added. */
struct pen {
    char *out;
    size_t used, capacity; /* without the NUL */
    bool full;
};

/* One conversion: %, flags, width, precision and letter, without the size of a number. */
struct conversion {
    char text[64];
    bool left;     /* the - flag */
    int width;     /* 0: none */
    int precision; /* -1: none */
    int longs;     /* -2: hh, -1: h, 0, 1: l, z, t, 2: ll, j */
    char letter;
};

/* Returns the length of |text|, at most |length|, without the part of a character at its end. */
static size_t whole(const char *text, size_t length) {
    for (size_t back = 1; back <= 3 && back <= length; back++) {
        const uint8_t byte = (uint8_t)text[length - back];
        if ((byte & 0xc0) != 0x80) {
            const size_t need = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
            return need > back ? length - back : length;
        }
    }
    return length;
}

static void put(struct pen *pen, const char *text, size_t length) {
    const size_t room = pen->full ? 0 : pen->capacity - pen->used;
    if (length > room) {
        length = whole(text, room);
        pen->full = true;
    }
    memcpy(pen->out + pen->used, text, length);
    pen->used += length;
}

static void pad(struct pen *pen, int count) {
    for (int i = 0; i < count && !pen->full; i++) {
        put(pen, " ", 1);
    }
}

/* Reads a number, or an argument for a '*'. */
static int take_number(const char **at, va_list *arguments) {
    int value = 0;
    if (**at == '*') {
        (*at)++;
        return va_arg(*arguments, int);
    }
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        value = value * 10 + (**at - '0');
    }
    return value;
}

/* Reads the conversion behind the '%' at |at|. Returns its end. */
static const char *take(struct conversion *out, const char *at, va_list *arguments) {
    const size_t flags = strspn(++at, "-+ #0");
    *out = (struct conversion){.precision = -1, .left = !!memchr(at, '-', flags)};
    const char *first = at;
    at += flags;
    out->width = take_number(&at, arguments);
    if (out->width < 0) {
        out->left = true;
        out->width = -out->width;
    }
    if (*at == '.') {
        at++;
        out->precision = take_number(&at, arguments);
    }
    for (; *at && strchr("hlzjt", *at); at++) {
        out->longs += *at == 'h' ? -1 : *at == 'j' ? 2 : 1;
    }
    out->letter = *at;
    const bool integer = !!strchr("diuxXo", out->letter);
    int used = snprintf(out->text, sizeof out->text, "%%%.*s%s", (int)(flags > 8 ? 8 : flags),
                        first, out->left && !memchr(first, '-', flags) ? "-" : "");
    if (out->width > 0) {
        used += sprintf(out->text + used, "%d", out->width);
    }
    if (out->precision >= 0) {
        used += sprintf(out->text + used, ".%d", out->precision);
    }
    sprintf(out->text + used, "%s%c", integer ? "ll" : "", out->letter);
    return at + 1;
}

static void put_text(struct pen *pen, const struct conversion *how, const char *text) {
    size_t length;
    if (!text) {
        text = "(null)";
    }
    if (how->precision < 0) {
        length = strlen(text);
    } else {
        length = strnlen(text, (size_t)how->precision);
        length = length < (size_t)how->precision ? length : whole(text, length);
    }
    const int padding = length < (size_t)how->width ? how->width - (int)length : 0;
    pad(pen, how->left ? 0 : padding);
    put(pen, text, length);
    pad(pen, how->left ? padding : 0);
}

static unsigned long long take_unsigned(const struct conversion *how, va_list *arguments) {
    switch (how->longs) {
    case 2:
        return va_arg(*arguments, unsigned long long);
    case 1:
        return va_arg(*arguments, unsigned long);
    case 0:
        return va_arg(*arguments, unsigned);
    case -1:
        return (unsigned short)va_arg(*arguments, unsigned);
    default:
        return (unsigned char)va_arg(*arguments, unsigned);
    }
}

static long long take_signed(const struct conversion *how, va_list *arguments) {
    switch (how->longs) {
    case 2:
        return va_arg(*arguments, long long);
    case 1:
        return va_arg(*arguments, long);
    case 0:
        return va_arg(*arguments, int);
    case -1:
        return (short)va_arg(*arguments, int);
    default:
        return (signed char)va_arg(*arguments, int);
    }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void put_number(struct pen *pen, const struct conversion *how, va_list *arguments) {
    char number[512]; /* of a double without an exponent, too */
    switch (how->letter) {
    case 'd':
    case 'i':
        snprintf(number, sizeof number, how->text, take_signed(how, arguments));
        break;
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        snprintf(number, sizeof number, how->text, take_unsigned(how, arguments));
        break;
    case 'c':
        snprintf(number, sizeof number, how->text, va_arg(*arguments, int));
        break;
    case 'p':
        snprintf(number, sizeof number, how->text, va_arg(*arguments, void *));
        break;
    default:
        BHI_CHECK(how->letter && strchr("aAeEfFgG", how->letter));
        snprintf(number, sizeof number, how->text, va_arg(*arguments, double));
        break;
    }
    put(pen, number, strlen(number));
}
#pragma GCC diagnostic pop

int bhi_vformat(char *out, size_t capacity, const char *format, va_list arguments) {
    struct pen pen = {out, 0, capacity ? capacity - 1 : 0, capacity == 0};
    struct conversion how;
    va_list rest;
    va_copy(rest, arguments);
    while (*format && !pen.full) {
        const size_t plain = strcspn(format, "%");
        put(&pen, format, plain);
        format += plain;
        if (!*format) {
            break;
        }
        format = take(&how, format, &rest);
        if (how.letter == '%') {
            put(&pen, "%", 1);
        } else if (how.letter == 's') {
            put_text(&pen, &how, va_arg(rest, const char *));
        } else {
            put_number(&pen, &how, &rest);
        }
    }
    va_end(rest);
    if (capacity > 0) {
        out[pen.used] = '\0';
    }
    return (int)pen.used;
}

int bhi_format(char *out, size_t capacity, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = bhi_vformat(out, capacity, format, arguments);
    va_end(arguments);
    return length;
}
