/* Splits an expression into tokens. */
#ifndef BHI_TEMPLATES_LEXER_H
#define BHI_TEMPLATES_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/complaint.h"

/* A token of one character is that character; the longer tokens are these. */
enum bhi_token_kind {
    BHI_TOKEN_END = 0,
    BHI_TOKEN_NAME = 256,
    BHI_TOKEN_INTEGER,
    BHI_TOKEN_REAL,
    BHI_TOKEN_EQUAL,         /* == */
    BHI_TOKEN_UNEQUAL,       /* != */
    BHI_TOKEN_LESS_EQUAL,    /* <= */
    BHI_TOKEN_GREATER_EQUAL, /* >= */
    BHI_TOKEN_AND,           /* && */
    BHI_TOKEN_OR,            /* || */
    BHI_TOKEN_FLOOR_DIVIDE,  /* // */
    BHI_TOKEN_LEFT,          /* << */
    BHI_TOKEN_RIGHT,         /* >> */
    BHI_TOKEN_BREAK,         /* end of a statement: ; or a line end outside parentheses */
};

struct bhi_token {
    int kind;
    const char *text; /* in the source */
    size_t length;
    uint64_t integer;
    double real;
};

struct bhi_lexer {
    const char *source, *at;
    uint32_t parentheses; /* open parentheses; a line end inside them is ignored */
};

/* Reads the next token. |source| is NUL-terminated. The current locale must be C, because it
 * decides how numbers are read. */
bool bhi_lexer_next(struct bhi_lexer *lexer, struct bhi_token *out_token,
                    struct bhi_complaint *complaint);
/* Refuses with "column 5: …", or with "line 2, column 5: …" if there are several lines. Always
 * returns false. */
bool bhi_refuse_at(const char *source, const char *at, struct bhi_complaint *complaint,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
