#include "templates/lexer.h"
#include "base/format.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bhi_refuse_at(const char *source, const char *at, struct bhi_complaint *complaint,
                   const char *format, ...) {
    char why[400];
    va_list list;
    va_start(list, format);
    bhi_vformat(why, sizeof why, format, list);
    va_end(list);
    unsigned line = 1;
    const char *begin = source;
    for (const char *c = source; c < at; c++) {
        if (*c == '\n') {
            line++, begin = c + 1;
        }
    }
    if (strchr(source, '\n')) {
        return bhi_refuse(complaint, "line %u, column %u: %s", line, (unsigned)(at - begin) + 1,
                          why);
    }
    return bhi_refuse(complaint, "column %u: %s", (unsigned)(at - begin) + 1, why);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static const char *skip_blanks(const struct bhi_lexer *lexer) {
    const char *at = lexer->at;
    for (;; at++) {
        if (*at == '#') {
            at += strcspn(at, "\n");
        }
        if (!(*at == ' ' || *at == '\t' || *at == '\r' || (*at == '\n' && lexer->parentheses))) {
            return at;
        }
    }
}

static bool take_number(const struct bhi_lexer *lexer, const char *at, struct bhi_token *token,
                        struct bhi_complaint *complaint) {
    const bool hex = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    const char *end = at + (hex ? 2 : 0);
    bool real = false;
    if (hex) {
        end += strspn(end, "0123456789abcdefABCDEF");
    } else {
        end += strspn(end, "0123456789");
        if (*end == '.') {
            real = true, end += 1 + strspn(end + 1, "0123456789");
        }
        const char *exponent = end + 1;
        if (*end == 'e' || *end == 'E') {
            exponent += *exponent == '+' || *exponent == '-';
            if (is_digit(*exponent)) {
                real = true, end = exponent + strspn(exponent, "0123456789");
            }
        }
    }
    token->length = (size_t)(end - at);
    token->kind = real ? BHI_TOKEN_REAL : BHI_TOKEN_INTEGER;
    char digits[64];
    if (token->length >= sizeof digits) {
        return bhi_refuse_at(lexer->source, at, complaint, "a number is longer than %d characters",
                             (int)sizeof digits - 1);
    }
    if (is_letter(*end) || *end == '.' || (hex && token->length == 2)) {
        return bhi_refuse_at(lexer->source, at, complaint,
                             "'%.*s' is not a number (a type is given as f32(1.5))",
                             (int)(token->length + 1), at);
    }
    memcpy(digits, at, token->length);
    digits[token->length] = 0;
    errno = 0;
    if (real) {
        token->real = strtod(digits, NULL);
    } else {
        token->integer = strtoull(digits, NULL, hex ? 16 : 10); /* not octal after a zero */
    }
    if (errno == ERANGE && !(real && token->real < 1)) {
        return bhi_refuse_at(lexer->source, at, complaint, "the number %s is too large", digits);
    }
    return true;
}

static const struct {
    char text[3];
    int kind;
} pairs[] = {
    {"==", BHI_TOKEN_EQUAL},        {"!=", BHI_TOKEN_UNEQUAL},       {"<=", BHI_TOKEN_LESS_EQUAL},
    {"&&", BHI_TOKEN_AND},          {">=", BHI_TOKEN_GREATER_EQUAL}, {"||", BHI_TOKEN_OR},
    {"//", BHI_TOKEN_FLOOR_DIVIDE}, {"<<", BHI_TOKEN_LEFT},          {">>", BHI_TOKEN_RIGHT},
};

bool bhi_lexer_next(struct bhi_lexer *lexer, struct bhi_token *out_token,
                    struct bhi_complaint *complaint) {
    const char *at = skip_blanks(lexer);
    *out_token = (struct bhi_token){.text = at, .length = 1, .kind = *at};
    if (!*at) {
        out_token->length = 0;
    } else if (*at == ';' || *at == '\n') {
        out_token->kind = BHI_TOKEN_BREAK;
    } else if (is_letter(*at)) {
        out_token->kind = BHI_TOKEN_NAME;
        while (is_letter(at[out_token->length]) || is_digit(at[out_token->length])) {
            out_token->length++;
        }
    } else if (is_digit(*at) || (*at == '.' && is_digit(at[1]))) {
        if (!take_number(lexer, at, out_token, complaint)) {
            return false;
        }
    } else if (at[0] == '*' && at[1] == '*') {
        return bhi_refuse_at(lexer->source, at, complaint, "a power is written pow(x, y)");
    } else if (*at == '@') {
        return bhi_refuse_at(lexer->source, at, complaint,
                             "a matrix product is a kernel of its own: write it in GLSL (bulkhead "
                             "run)");
    } else {
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
            if (at[0] == pairs[i].text[0] && at[1] == pairs[i].text[1]) {
                out_token->kind = pairs[i].kind, out_token->length = 2;
            }
        }
        if (out_token->length == 1 && !strchr("+-*/%()<>=!&|^~?:,", *at)) {
            if (*at > ' ' && *at < 0x7f) {
                return bhi_refuse_at(lexer->source, at, complaint, "'%c' has no meaning here", *at);
            }
            return bhi_refuse_at(lexer->source, at, complaint, "byte 0x%02x has no meaning here",
                                 (unsigned char)*at);
        }
    }
    lexer->parentheses += out_token->kind == '(';
    lexer->parentheses -= out_token->kind == ')' && lexer->parentheses;
    lexer->at = at + out_token->length;
    return true;
}
