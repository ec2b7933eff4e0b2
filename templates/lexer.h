/* The words of an expression. */
#ifndef BHI_TEMPLATES_LEXER_H
#define BHI_TEMPLATES_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/complaint.h"

/* One character stands for itself; these are longer. */
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
    BHI_TOKEN_BREAK,         /* end of a statement: ; or a line's end outside of parentheses */
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
    uint32_t parentheses; /* how many are open: lines may end in them */
};

/* |source| is NUL-terminated; numbers are read as the current locale has them, so it has to be C.
 */
bool bhi_lexer_next(struct bhi_lexer *lexer, struct bhi_token *out_token,
                    struct bhi_complaint *complaint);
/* "column 5: …", or "line 2, column 5: …" where there are several lines. Returns false. */
bool bhi_refuse_at(const char *source, const char *at, struct bhi_complaint *complaint,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
