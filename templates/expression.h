/* Parses an expression: statements such as "z = 2*x + y", with reductions such as "sum(x, axis=0)".
 *
 * Operators, from the lowest precedence: ?:  ||  &&  comparisons  |  ^  &  << >>  + -  * / // %
 * unary - + ! ~. Comparisons cannot be chained. A comparison next to an unparenthesised & | or ^ is
 * refused, because C and Python disagree about it. A name that is read before it is assigned is an
 * input.
 *
 * A node comes after the nodes that it uses, so a loop over the nodes needs no recursion. The
 * parser's own recursion is bounded.
 */
#ifndef BHI_TEMPLATES_EXPRESSION_H
#define BHI_TEMPLATES_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/complaint.h"

#include <bulkhead/array.h>

enum {
    BHI_EXPRESSION_BYTES = 16384,
    BHI_EXPRESSION_NODES = 4096,
    BHI_EXPRESSION_NAMES = 256,
    BHI_EXPRESSION_DEPTH = 64, /* of nested parentheses, calls, ?: and unary operators */
    BHI_EXPRESSION_REDUCTIONS = 64,
    BHI_NAME_BYTES = 64, /* of a name with its NUL */
};

enum bhi_node_kind {
    BHI_NODE_INTEGER,
    BHI_NODE_REAL,
    BHI_NODE_NAME,
    BHI_NODE_UNARY,
    BHI_NODE_BINARY,
    BHI_NODE_CONDITIONAL,
    BHI_NODE_CALL,
    BHI_NODE_REDUCTION,
};

struct bhi_node {
    enum bhi_node_kind kind;
    int op;         /* a token's kind; for a call, its index in bhi_functions; of a reduction, its
                       index in |reductions| */
    const char *at; /* in the source */
    bool enclosed;  /* in parentheses */
    uint32_t count;
    uint32_t child[3];
    uint64_t integer;
    double real;
    uint32_t name; /* index in |names| */
};

struct bhi_name {
    char text[BHI_NAME_BYTES];
    const char *at; /* where the name first occurs */
    bool read;      /* before it is assigned, so it is an input */
    bool assigned;
};

struct bhi_statement {
    uint32_t name;        /* the assigned name */
    uint32_t first, root; /* its nodes are first to root */
    const char *begin;    /* in the source: its name */
    const char *value;    /* what follows '=' */
    const char *end;      /* behind it */
};

/* A call such as "sum(x, axis=(0, 2), keepdims=true)". */
struct bhi_reduction {
    int function;         /* in bhi_functions */
    uint32_t first, node; /* its operand's nodes are first to node - 1; its own is node */
    const char *operand;  /* in the source: what follows '(' */
    const char *behind;   /* the ',' or ')' behind the operand */
    const char *end;      /* behind its ')' */
    bool all;             /* over all axes; otherwise over these */
    uint32_t axis_count;
    int32_t axes[BH_MAX_RANK];
    bool keepdims;
    /* Each result is left as |parts| results of a part each, which are one more axis: behind the others
     * or, if |in_front|, before them. 0: it is not. Plans (templates/split.h) write that. */
    uint32_t parts;
    bool in_front;
};

struct bhi_expression {
    char *source; /* owned, as the arrays are */
    struct bhi_node *nodes;
    uint32_t node_count;
    struct bhi_name *names;
    uint32_t name_count;
    struct bhi_statement *statements;
    uint32_t statement_count;
    struct bhi_reduction *reductions; /* in the order of their nodes */
    uint32_t reduction_count;
};

/* Parses |length| bytes of |text|, which needs no NUL. On failure the caller owns nothing, and the
 * complaint says where the error is. */
bool bhi_expression_parse(const char *text, size_t length, struct bhi_expression *out_expression,
                          struct bhi_complaint *complaint);
void bhi_expression_fini(struct bhi_expression *expression);

#endif
