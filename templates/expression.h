/* An elementwise expression, parsed: statements such as "z = 2*x + y".
 *
 * Operators, from those that bind least: ?:  ||  &&  comparisons  |  ^  &  << >>  + -  * / // %
 * unary - + ! ~. Comparisons do not chain, and one with a bare & | or ^ beside it is refused: C and
 * Python disagree about it. A name that is read before it is assigned is an input.
 *
 * Nodes come after those that they use: who goes through them in order needs no recursion. The
 * parser's own recursion is bounded.
 */
#ifndef BHI_TEMPLATES_EXPRESSION_H
#define BHI_TEMPLATES_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/complaint.h"

/* The whole complaint, where that is why. */
#define BHI_OUT_OF_MEMORY "out of memory"

enum {
    BHI_EXPRESSION_BYTES = 16384,
    BHI_EXPRESSION_NODES = 4096,
    BHI_EXPRESSION_NAMES = 256,
    BHI_EXPRESSION_DEPTH = 64, /* of parentheses, calls, ?: and unary operators in each other */
    BHI_NAME_BYTES = 64,       /* of a name, with its NUL */
};

enum bhi_node_kind {
    BHI_NODE_INTEGER,
    BHI_NODE_REAL,
    BHI_NODE_NAME,
    BHI_NODE_UNARY,
    BHI_NODE_BINARY,
    BHI_NODE_CONDITIONAL,
    BHI_NODE_CALL,
};

struct bhi_node {
    enum bhi_node_kind kind;
    int op;         /* a token's kind; of a call: its place in bhi_functions */
    const char *at; /* in the source */
    bool enclosed;  /* in parentheses */
    uint32_t count;
    uint32_t child[3];
    uint64_t integer;
    double real;
    uint32_t name; /* in |names| */
};

struct bhi_name {
    char text[BHI_NAME_BYTES];
    const char *at; /* where it is first */
    bool read;      /* before it is assigned: an input */
    bool assigned;
};

struct bhi_statement {
    uint32_t name;        /* that is assigned */
    uint32_t first, root; /* its nodes: first to root */
};

struct bhi_expression {
    char *source; /* owned, like the arrays */
    struct bhi_node *nodes;
    uint32_t node_count;
    struct bhi_name *names;
    uint32_t name_count;
    struct bhi_statement *statements;
    uint32_t statement_count;
};

/* On failure nothing is owned; the complaint says where. |text| need not be NUL-terminated. */
bool bhi_expression_parse(const char *text, size_t length, struct bhi_expression *out_expression,
                          struct bhi_complaint *complaint);
void bhi_expression_fini(struct bhi_expression *expression);

#endif
