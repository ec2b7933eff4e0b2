#include "templates/expression.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "templates/functions.h"
#include "templates/lexer.h"

struct parser {
    struct bhi_expression *out;
    struct bhi_lexer lexer;
    struct bhi_token token; /* the next token */
    uint32_t depth;
    struct bhi_complaint *complaint;
};

#define REFUSE(parser, at, ...)                                                                    \
    bhi_refuse_at((parser)->out->source, at, (parser)->complaint, __VA_ARGS__)

static bool advance(struct parser *p) {
    return bhi_lexer_next(&p->lexer, &p->token, p->complaint);
}

static bool unexpected(struct parser *p, const char *wanted) {
    if (p->token.kind == BHI_TOKEN_END || p->token.kind == BHI_TOKEN_BREAK) {
        return REFUSE(p, p->token.text, "the expression ends where %s was expected", wanted);
    }
    return REFUSE(p, p->token.text, "'%.*s' where %s was expected",
                  p->token.length > 40 ? 40 : (int)p->token.length, p->token.text, wanted);
}

static bool expect(struct parser *p, int kind, const char *what) {
    return p->token.kind == kind ? advance(p) : unexpected(p, what);
}

static bool add(struct parser *p, const struct bhi_node *node, uint32_t *out_index) {
    if (p->out->node_count == BHI_EXPRESSION_NODES) {
        return REFUSE(p, node->at, "more than %d operands and operators", BHI_EXPRESSION_NODES);
    }
    *out_index = p->out->node_count++;
    p->out->nodes[*out_index] = *node;
    return true;
}

static bool find_name(struct parser *p, const struct bhi_token *token, uint32_t *out_name) {
    struct bhi_expression *e = p->out;
    const char *text = token->text;
    const size_t length = token->length;
    if (length >= BHI_NAME_BYTES) {
        return REFUSE(p, text, "a name of over %d bytes", BHI_NAME_BYTES - 1);
    }
    for (uint32_t i = 0; i < e->name_count; i++) {
        *out_name = i;
        if (!strncmp(e->names[i].text, text, length) && !e->names[i].text[length]) {
            return true;
        }
    }
    if (e->name_count == BHI_EXPRESSION_NAMES) {
        return REFUSE(p, text, "more than %d names", BHI_EXPRESSION_NAMES);
    }
    *out_name = e->name_count++;
    struct bhi_name *name = &e->names[*out_name];
    memcpy(name->text, text, length);
    name->at = text;
    return true;
}

static bool parse_conditional(struct parser *p, uint32_t *out);

static bool enter(struct parser *p) {
    if (p->depth == BHI_EXPRESSION_DEPTH) {
        return REFUSE(p, p->token.text, "nested deeper than %d", BHI_EXPRESSION_DEPTH);
    }
    p->depth++;
    return true;
}

/* -- reductions ------------------------------------------------------------------------------- */

static bool is_word(const struct bhi_token *token, const char *word) {
    return token->kind == BHI_TOKEN_NAME && token->length == strlen(word) &&
           !memcmp(token->text, word, token->length);
}

/* Whether a NAME and '=' follow, as in "axis=1". */
static bool at_option(const struct parser *p) {
    struct bhi_lexer ahead = p->lexer;
    struct bhi_complaint ignored;
    struct bhi_token next;
    return p->token.kind == BHI_TOKEN_NAME && bhi_lexer_next(&ahead, &next, &ignored) &&
           next.kind == '=';
}

static bool parse_whole(struct parser *p, const char *what, int32_t *out) {
    const bool minus = p->token.kind == '-';
    if (minus && !advance(p)) {
        return false;
    }
    if (p->token.kind != BHI_TOKEN_INTEGER) {
        return unexpected(p, what);
    }
    if (p->token.integer > INT32_MAX) {
        return REFUSE(p, p->token.text, "the number is too large");
    }
    *out = minus ? -(int32_t)p->token.integer : (int32_t)p->token.integer;
    return advance(p);
}

/* 1, (0, 2), () or None */
static bool parse_axes(struct parser *p, struct bhi_reduction *r) {
    if (is_word(&p->token, "None")) {
        return advance(p);
    }
    r->all = false;
    if (p->token.kind != '(') {
        r->axis_count = 1;
        return parse_whole(p, "an axis, such as 1, -1 or (0, 2),", &r->axes[0]);
    }
    if (!advance(p)) {
        return false;
    }
    while (p->token.kind != ')') {
        if (r->axis_count == BH_MAX_RANK) {
            return REFUSE(p, p->token.text, "more than %d axes", BH_MAX_RANK);
        }
        if (!parse_whole(p, "an axis", &r->axes[r->axis_count++]) ||
            (p->token.kind != ')' && !expect(p, ',', "',' or ')'"))) {
            return false;
        }
    }
    return advance(p);
}

static bool parse_truth(struct parser *p, bool *out) {
    const bool yes = is_word(&p->token, "true") || is_word(&p->token, "True") ||
                     (p->token.kind == BHI_TOKEN_INTEGER && p->token.integer == 1);
    const bool no = is_word(&p->token, "false") || is_word(&p->token, "False") ||
                    (p->token.kind == BHI_TOKEN_INTEGER && p->token.integer == 0);
    *out = yes;
    return yes || no ? advance(p) : unexpected(p, "true or false");
}

static bool parse_parts(struct parser *p, struct bhi_reduction *r) {
    int32_t parts = 0;
    const char *at = p->token.text;
    if (!parse_whole(p, "a number", &parts)) {
        return false;
    }
    r->in_front = parts < 0;
    r->parts = (uint32_t)(parts < 0 ? -parts : parts);
    return parts != 0 || REFUSE(p, at, "there are no 0 parts");
}

/* axis=..., keepdims=..., each once */
static bool parse_option(struct parser *p, struct bhi_reduction *r, uint32_t *seen) {
    static const char *const options[] = {"axis", "keepdims", "parts"};
    const struct bhi_token name = p->token;
    uint32_t which = 0;
    while (which < 3 && !is_word(&name, options[which])) {
        which++;
    }
    if (which == 3) {
        return REFUSE(p, name.text, "'%.*s=' where axis=... or keepdims=... was expected",
                      name.length > 40 ? 40 : (int)name.length, name.text);
    }
    if (*seen >> which & 1) {
        return REFUSE(p, name.text, "%s is given twice", options[which]);
    }
    *seen |= 1u << which;
    if (!advance(p) || !expect(p, '=', "'='")) {
        return false;
    }
    return which == 0   ? parse_axes(p, r)
           : which == 1 ? parse_truth(p, &r->keepdims)
                        : parse_parts(p, r);
}

/* Behind the arguments: at ')'. */
static bool add_reduction(struct parser *p, struct bhi_reduction *r, struct bhi_node *node,
                          uint32_t *out) {
    struct bhi_expression *e = p->out;
    if (e->reduction_count == BHI_EXPRESSION_REDUCTIONS) {
        return REFUSE(p, node->at, "more than %d reductions", BHI_EXPRESSION_REDUCTIONS);
    }
    node->kind = BHI_NODE_REDUCTION;
    node->op = (int)e->reduction_count;
    r->node = e->node_count;
    r->end = p->token.text + 1;
    if (!add(p, node, out)) {
        return false;
    }
    e->reductions[e->reduction_count++] = *r;
    return true;
}

/* -- calls -------------------------------------------------------------------------------------- */

static bool check_count(struct parser *p, const struct bhi_token *name,
                        const struct bhi_function *known, uint32_t count, bool reduces) {
    const uint32_t most = reduces && known->kind != BHI_FUNCTION_REDUCE ? 1 : known->most;
    const uint32_t least = reduces ? 1 : known->least, wanted = count < least ? least : most;
    if (count >= least && count <= most) {
        return true;
    }
    return REFUSE(p, name->text, "%s takes %u argument%s, not %u%s", known->name, wanted,
                  wanted == 1 ? "" : "s", count,
                  reduces && count == 2 ? "; an axis is written axis=0" : "");
}

static bool parse_call(struct parser *p, const struct bhi_token *name, uint32_t *out) {
    uint32_t arguments[3] = {0}, count = 0, seen = 0;
    const int function = bhi_function_find(name->text, name->length);
    if (function < 0) {
        const char *hint = bhi_function_hint(name->text, name->length);
        return REFUSE(p, name->text, "there is no function '%.*s'; %s%s",
                      name->length > 40 ? 40 : (int)name->length, name->text,
                      hint ? "" : "the functions are ", hint ? hint : bhi_function_names());
    }
    if (!advance(p)) {
        return false;
    }
    const enum bhi_reducer reducer = bhi_function_reducer(function);
    struct bhi_reduction reduction = {
        .function = function, .first = p->out->node_count, .operand = p->token.text, .all = true};
    while (p->token.kind != ')') {
        uint32_t argument = 0;
        if ((count || seen) && !expect(p, ',', "',' or ')'")) {
            return false;
        }
        if (reducer && (seen || (count && at_option(p)))) {
            if (!parse_option(p, &reduction, &seen)) {
                return false;
            }
            continue;
        }
        if (!parse_conditional(p, &argument)) {
            return false;
        }
        if (count < 3) {
            arguments[count] = argument;
        }
        if (!count) {
            reduction.behind = p->token.text;
        }
        count++;
    }
    const struct bhi_function *known = &bhi_functions[function];
    const bool reduces = reducer && (known->kind == BHI_FUNCTION_REDUCE || seen || count == 1);
    if (!check_count(p, name, known, count, reduces)) {
        return false;
    }
    struct bhi_node node = {.kind = BHI_NODE_CALL,
                            .at = name->text,
                            .op = function,
                            .count = count,
                            .child = {arguments[0], arguments[1], arguments[2]}};
    return (reduces ? add_reduction(p, &reduction, &node, out) : add(p, &node, out)) && advance(p);
}

static bool parse_name(struct parser *p, uint32_t *out) {
    const struct bhi_token name = p->token;
    uint32_t index = 0;
    if (!advance(p)) {
        return false;
    }
    if (p->token.kind == '(') {
        return parse_call(p, &name, out);
    }
    if (!find_name(p, &name, &index)) {
        return false;
    }
    p->out->names[index].read |= !p->out->names[index].assigned;
    const struct bhi_node node = {.kind = BHI_NODE_NAME, .at = name.text, .name = index};
    return add(p, &node, out);
}

static bool parse_primary(struct parser *p, uint32_t *out) {
    const struct bhi_token token = p->token;
    if (token.kind == BHI_TOKEN_NAME) {
        return parse_name(p, out);
    }
    if (token.kind == BHI_TOKEN_INTEGER || token.kind == BHI_TOKEN_REAL) {
        const struct bhi_node node = {.kind = token.kind == BHI_TOKEN_REAL ? BHI_NODE_REAL
                                                                           : BHI_NODE_INTEGER,
                                      .at = token.text,
                                      .integer = token.integer,
                                      .real = token.real};
        return add(p, &node, out) && advance(p);
    }
    if (token.kind != '(') {
        return unexpected(p, "a number, a name or '('");
    }
    if (!advance(p) || !parse_conditional(p, out)) {
        return false;
    }
    p->out->nodes[*out].enclosed = true;
    return expect(p, ')', "')'");
}

static bool parse_unary(struct parser *p, uint32_t *out) {
    const struct bhi_token token = p->token;
    if (!enter(p)) {
        return false;
    }
    if (token.kind == '-' || token.kind == '+' || token.kind == '!' || token.kind == '~') {
        struct bhi_node node = {
            .kind = BHI_NODE_UNARY, .at = token.text, .op = token.kind, .count = 1};
        if (!advance(p) || !parse_unary(p, &node.child[0]) || !add(p, &node, out)) {
            return false;
        }
    } else if (!parse_primary(p, out)) {
        return false;
    }
    p->depth--;
    return true;
}

static bool is_comparison(int kind) {
    return kind == '<' || kind == '>' || kind == BHI_TOKEN_EQUAL || kind == BHI_TOKEN_UNEQUAL ||
           kind == BHI_TOKEN_LESS_EQUAL || kind == BHI_TOKEN_GREATER_EQUAL;
}

enum { COMPARISON = 3, UNARY = 9 };

/* The precedence of a binary operator, from 1 on; 0: not a binary operator. */
static int strength(int kind) {
    switch (kind) {
    case BHI_TOKEN_OR:
        return 1;
    case BHI_TOKEN_AND:
        return 2;
    case '|':
        return 4;
    case '^':
        return 5;
    case '&':
        return 6;
    case BHI_TOKEN_LEFT:
    case BHI_TOKEN_RIGHT:
        return 7;
    case '+':
    case '-':
        return 8;
    case '*':
    case '/':
    case '%':
    case BHI_TOKEN_FLOOR_DIVIDE:
        return UNARY;
    default:
        return is_comparison(kind) ? COMPARISON : 0;
    }
}

static bool is_bare_bitwise(const struct bhi_node *node) {
    return node->kind == BHI_NODE_BINARY && !node->enclosed &&
           (node->op == '&' || node->op == '|' || node->op == '^');
}

static bool check_comparison(struct parser *p, const struct bhi_token *op, uint32_t left,
                             uint32_t right) {
    const struct bhi_node *nodes = p->out->nodes;
    if (is_bare_bitwise(&nodes[left]) || is_bare_bitwise(&nodes[right])) {
        return REFUSE(p, op->text, "put & | ^ beside a comparison into parentheses");
    }
    if (is_comparison(p->token.kind)) {
        return REFUSE(p, p->token.text, "comparisons do not chain: write a < b && b < c");
    }
    return true;
}

/* Parses operators with a precedence of at least |least|. It recurses at most once for each
 * precedence. */
static bool parse_binary(struct parser *p, int least, uint32_t *out) {
    if (least > UNARY) {
        return parse_unary(p, out);
    }
    if (!parse_binary(p, least + 1, out)) {
        return false;
    }
    while (strength(p->token.kind) == least) {
        const struct bhi_token op = p->token;
        struct bhi_node node = {
            .kind = BHI_NODE_BINARY, .at = op.text, .op = op.kind, .count = 2, .child = {*out}};
        if (!advance(p) || !parse_binary(p, least + 1, &node.child[1]) ||
            (least == COMPARISON && !check_comparison(p, &op, *out, node.child[1])) ||
            !add(p, &node, out)) {
            return false;
        }
    }
    return true;
}

static bool parse_conditional(struct parser *p, uint32_t *out) {
    if (!enter(p) || !parse_binary(p, 1, out)) {
        return false;
    }
    if (p->token.kind == '?') {
        struct bhi_node node = {
            .kind = BHI_NODE_CONDITIONAL, .at = p->token.text, .count = 3, .child = {*out}};
        if (!advance(p) || !parse_conditional(p, &node.child[1]) || !expect(p, ':', "':'") ||
            !parse_conditional(p, &node.child[2]) || !add(p, &node, out)) {
            return false;
        }
    }
    p->depth--;
    return true;
}

static bool parse_statement(struct parser *p) {
    struct bhi_expression *e = p->out;
    struct bhi_statement *statement = &e->statements[e->statement_count];
    if (p->token.kind != BHI_TOKEN_NAME) {
        return unexpected(p, "NAME = ...");
    }
    if (e->statement_count == BHI_EXPRESSION_NAMES) {
        return REFUSE(p, p->token.text, "more than %d statements", BHI_EXPRESSION_NAMES);
    }
    statement->begin = p->token.text;
    if (!find_name(p, &p->token, &statement->name) || !advance(p)) {
        return false;
    }
    if (p->token.kind != '=') {
        return unexpected(p, "'=' (write NAME = ...)");
    }
    statement->first = e->node_count;
    statement->value = p->token.text + 1;
    if (!advance(p) || !parse_conditional(p, &statement->root)) {
        return false;
    }
    if (p->token.kind == '=') {
        return REFUSE(p, p->token.text, "'=' where none was expected; equality is ==");
    }
    if (p->token.kind != BHI_TOKEN_END && p->token.kind != BHI_TOKEN_BREAK) {
        return unexpected(p, "an operator or the end");
    }
    statement->end = p->token.text;
    e->names[statement->name].assigned = true;
    e->statement_count++;
    return true;
}

/* What "sum = x; z = sum(x)" means depends on the language. */
static bool check_names(struct parser *p) {
    const struct bhi_expression *e = p->out;
    for (uint32_t i = 0; i < e->reduction_count; i++) {
        const char *function = bhi_functions[e->reductions[i].function].name;
        for (uint32_t k = 0; k < e->name_count; k++) {
            if (!strcmp(e->names[k].text, function)) {
                return REFUSE(p, e->names[k].at,
                              "'%s' is a function here, so nothing else can have "
                              "that name",
                              function);
            }
        }
    }
    return true;
}

static bool parse(struct parser *p) {
    if (!advance(p)) {
        return false;
    }
    while (p->token.kind != BHI_TOKEN_END) {
        if (p->token.kind == BHI_TOKEN_BREAK ? !advance(p) : !parse_statement(p)) {
            return false;
        }
    }
    if (!check_names(p)) {
        return false;
    }
    return p->out->statement_count ? true
                                   : bhi_refuse(p->complaint, "it is empty: write z = 2*x + y");
}

bool bhi_expression_parse(const char *text, size_t length, struct bhi_expression *out_expression,
                          struct bhi_complaint *complaint) {
    struct bhi_expression *e = out_expression;
    *e = (struct bhi_expression){0};
    if (length > BHI_EXPRESSION_BYTES) {
        return bhi_refuse(complaint, "longer than %d bytes", BHI_EXPRESSION_BYTES);
    }
    if (memchr(text, 0, length)) {
        return bhi_refuse(complaint, "it contains a NUL byte");
    }
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    e->source = malloc(length + 1);
    e->nodes = calloc(BHI_EXPRESSION_NODES, sizeof *e->nodes);
    e->names = calloc(BHI_EXPRESSION_NAMES, sizeof *e->names);
    e->statements = calloc(BHI_EXPRESSION_NAMES + 1, sizeof *e->statements);
    e->reductions = calloc(BHI_EXPRESSION_REDUCTIONS, sizeof *e->reductions);
    bool good = c && e->source && e->nodes && e->names && e->statements && e->reductions;
    if (good) {
        memcpy(e->source, text, length);
        e->source[length] = 0;
        struct parser parser = {.out = e, .complaint = complaint};
        parser.lexer = (struct bhi_lexer){.source = e->source, .at = e->source};
        locale_t old = uselocale(c);
        good = parse(&parser);
        uselocale(old);
    } else {
        bhi_refuse_memory(complaint);
    }
    if (c) {
        freelocale(c);
    }
    if (!good) {
        bhi_expression_fini(e);
    }
    return good;
}

void bhi_expression_fini(struct bhi_expression *expression) {
    free(expression->source);
    free(expression->nodes);
    free(expression->names);
    free(expression->statements);
    free(expression->reductions);
    *expression = (struct bhi_expression){0};
}
