#include "judge/task/size.h"
#include "base/format.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 32 }; /* parentheses in each other */

static const char *const functions[] = {"ceildiv", "min", "max"};
enum { CEILDIV, MIN, MAX, FUNCTIONS };

struct reader {
    const char *text, *at;
    const struct bhi_size_value *values;
    size_t count;
    int depth;
    struct bhi_complaint *complaint;
};

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static size_t name_length(const char *at) {
    size_t length = 0;
    while (is_letter(at[length]) || (length && is_digit(at[length]))) {
        length++;
    }
    return length;
}

bool bhi_size_is_name(const char *name) {
    const size_t length = name_length(name);
    for (size_t i = 0; i < FUNCTIONS; i++) {
        if (!strcmp(name, functions[i])) {
            return false;
        }
    }
    return length > 0 && length <= BHI_SIZE_NAME && !name[length];
}

/* Refuses what is at |at|. */
static bool refuse(const struct reader *reader, const char *at, const char *why) {
    return bhi_refuse(reader->complaint, "'%.200s': column %zu: %s", reader->text,
                      (size_t)(at - reader->text) + 1, why);
}

static char peek(struct reader *reader) {
    reader->at += strspn(reader->at, " ");
    return *reader->at;
}

static bool expect(struct reader *reader, char wanted) {
    char why[32];
    if (peek(reader) != wanted) {
        snprintf(why, sizeof why, "'%c' was expected", wanted);
        return refuse(reader, reader->at, why);
    }
    reader->at++;
    return true;
}

static bool combine(struct reader *reader, const char *at, char symbol, uint64_t a, uint64_t b,
                    uint64_t *out) {
    if ((symbol == '/' || symbol == '%') && b == 0) {
        return refuse(reader, at, "division by 0");
    }
    switch (symbol) {
    case '+':
        return !__builtin_add_overflow(a, b, out) || refuse(reader, at, "more than 64 bits");
    case '-':
        return !__builtin_sub_overflow(a, b, out) || refuse(reader, at, "less than 0");
    case '*':
        return !__builtin_mul_overflow(a, b, out) || refuse(reader, at, "more than 64 bits");
    case '/':
        *out = a / b;
        return true;
    default:
        *out = a % b;
        return true;
    }
}

static bool read_sum(struct reader *reader, uint64_t *out);

static bool read_number(struct reader *reader, uint64_t *out) {
    const char *begin = reader->at;
    *out = 0;
    for (; is_digit(*reader->at); reader->at++) {
        if (__builtin_mul_overflow(*out, 10u, out) ||
            __builtin_add_overflow(*out, (uint64_t)(*reader->at - '0'), out)) {
            return refuse(reader, begin, "more than 64 bits");
        }
    }
    return true;
}

static bool read_call(struct reader *reader, const char *at, size_t function, uint64_t *out) {
    uint64_t a, b;
    if (!expect(reader, '(') || !read_sum(reader, &a) || !expect(reader, ',') ||
        !read_sum(reader, &b) || !expect(reader, ')')) {
        return false;
    }
    if (function == CEILDIV) {
        if (!b) {
            return refuse(reader, at, "division by 0");
        }
        *out = a / b + (a % b != 0);
    } else {
        *out = (function == MIN) == (a < b) ? a : b;
    }
    return true;
}

static bool read_name(struct reader *reader, uint64_t *out) {
    const char *begin = reader->at;
    const size_t length = name_length(begin);
    char why[160];
    reader->at += length;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        if (strlen(functions[i]) == length && !strncmp(begin, functions[i], length)) {
            return read_call(reader, begin, i, out);
        }
    }
    for (size_t i = 0; i < reader->count; i++) {
        if (strlen(reader->values[i].name) == length &&
            !strncmp(begin, reader->values[i].name, length)) {
            *out = reader->values[i].value;
            return true;
        }
    }
    bhi_format(why, sizeof why, "there is no size '%.*s'", length > 60 ? 60 : (int)length, begin);
    return refuse(reader, begin, why);
}

static bool read_factor(struct reader *reader, uint64_t *out) {
    const char first = peek(reader);
    if (is_digit(first)) {
        return read_number(reader, out);
    }
    if (is_letter(first)) {
        return read_name(reader, out);
    }
    if (first != '(') {
        return refuse(reader, reader->at, "a number, a size or '(' was expected");
    }
    reader->at++;
    return read_sum(reader, out) && expect(reader, ')');
}

static bool read_product(struct reader *reader, uint64_t *out) {
    if (!read_factor(reader, out)) {
        return false;
    }
    for (char next = peek(reader); next == '*' || next == '/' || next == '%'; next = peek(reader)) {
        const char *at = reader->at++;
        uint64_t right;
        if (!read_factor(reader, &right) || !combine(reader, at, next, *out, right, out)) {
            return false;
        }
    }
    return true;
}

/* Everything in parentheses comes through here. */
static bool read_sum(struct reader *reader, uint64_t *out) {
    if (++reader->depth > DEEPEST) {
        return refuse(reader, reader->at, "too many parentheses");
    }
    if (!read_product(reader, out)) {
        return false;
    }
    for (char next = peek(reader); next == '+' || next == '-'; next = peek(reader)) {
        const char *at = reader->at++;
        uint64_t right;
        if (!read_product(reader, &right) || !combine(reader, at, next, *out, right, out)) {
            return false;
        }
    }
    reader->depth--;
    return true;
}

bool bhi_size_compute(const char *text, const struct bhi_size_value *values, size_t count,
                      uint64_t *out, struct bhi_complaint *complaint) {
    struct reader reader = {
        .text = text, .at = text, .values = values, .count = count, .complaint = complaint};
    if (!read_sum(&reader, out)) {
        return false;
    }
    return !peek(&reader) || refuse(&reader, reader.at, "an operator or the end was expected");
}
