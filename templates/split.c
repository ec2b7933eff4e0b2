#include "templates/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "templates/functions.h"
#include "templates/lexer.h"

struct planner {
    const struct bhi_expression *e;
    bool used[BHI_EXPRESSION_REDUCTIONS]; /* by what is planned already */
    bool live[BHI_EXPRESSION_NAMES];      /* names that are read behind the present place */
    char prefix;                          /* of the results' names */
};

/* -- what a stage needs --------------------------------------------------------------------- */

/* Marks what the nodes from |first| to |last| read: names, and reductions but not what is in them. */
static void mark(struct planner *p, uint32_t first, uint32_t last) {
    for (uint32_t k = last + 1; k-- > first;) {
        const struct bhi_node *node = &p->e->nodes[k];
        if (node->kind == BHI_NODE_NAME) {
            p->live[node->name] = true;
        } else if (node->kind == BHI_NODE_REDUCTION) {
            p->used[node->op] = true;
            k = p->e->reductions[node->op].first;
        }
    }
}

static uint32_t statement_of(const struct bhi_expression *e, uint32_t node) {
    uint32_t i = 0;
    while (e->statements[i].root < node) {
        i++;
    }
    return i;
}

/* -- texts -------------------------------------------------------------------------------------- */

static void blank(char *from, const char *to) {
    for (; from < to; from++) {
        *from = *from == '\n' ? '\n' : ' ';
    }
}

/* The text of a copy that is at |at| in the source. */
static char *in_copy(const struct bhi_expression *e, char *text, const char *at) {
    return text + (at - e->source);
}

/* Makes "max(x, axis=1)" "(_0          )"; line ends stay in the parentheses. */
static void replace(const struct planner *p, char *text, uint32_t index) {
    const struct bhi_reduction *r = &p->e->reductions[index];
    char *at = in_copy(p->e, text, p->e->nodes[r->node].at), *end = in_copy(p->e, text, r->end);
    char name[BHI_NAME_BYTES];
    const int length = snprintf(name, sizeof name, "(%c%u", p->prefix, index);
    blank(at, end);
    memcpy(at, name, (size_t)length);
    end[-1] = ')';
}

/* Copies the source: without the statements before |statement| that nothing marked needs, without those
 * behind it, and with results in place of the reductions before node |last|. */
static char *rewrite(struct planner *p, uint32_t statement, uint32_t last) {
    const struct bhi_expression *e = p->e;
    char *text = strdup(e->source);
    if (!text) {
        return NULL;
    }
    /* The outer ones last: they are longer. */
    for (uint32_t i = 0; i < e->reduction_count && e->reductions[i].node < last; i++) {
        replace(p, text, i);
    }
    for (uint32_t i = statement; i-- > 0;) {
        const struct bhi_statement *s = &e->statements[i];
        if (p->live[s->name]) {
            p->live[s->name] = false;
            mark(p, s->first, s->root);
        } else {
            blank(in_copy(e, text, s->begin), in_copy(e, text, s->end));
        }
    }
    char *end = in_copy(e, text, e->statements[statement].end);
    blank(end, end + strlen(end));
    return text;
}

/* -- stages ------------------------------------------------------------------------------------- */

static bool plan_reduction(struct planner *p, uint32_t index, struct bhi_kernel_stage *out) {
    const struct bhi_expression *e = p->e;
    const struct bhi_reduction *r = &e->reductions[index];
    const uint32_t statement = statement_of(e, r->node);
    const struct bhi_statement *s = &e->statements[statement];
    memset(p->live, 0, sizeof p->live);
    mark(p, r->first, r->node - 1);
    out->reduction = r;
    out->text = rewrite(p, statement, r->node);
    if (!out->text) {
        return false;
    }
    char *value = in_copy(e, out->text, s->value),
         *at = in_copy(e, out->text, e->nodes[r->node].at);
    char *line = memchr(value, '\n', (size_t)(at - value));
    blank(value, at);
    if (line) { /* there is a '(' before the line's end; no other character is a statement's */
        *value = '(';
        out->open = true;
    }
    strcpy(out->target, e->names[s->name].text);
    snprintf(out->result, sizeof out->result, "%c%u", p->prefix, index);
    return true;
}

/* Returns the last statement that assigns |output|; the form has been checked. */
static uint32_t last_of(const struct bhi_expression *e, const char *output) {
    uint32_t i = e->statement_count;
    while (--i && strcmp(e->names[e->statements[i].name].text, output) != 0) {
    }
    return i;
}

static bool plan_output(struct planner *p, const char *output, struct bhi_kernel_stage *out) {
    const uint32_t statement = last_of(p->e, output);
    const struct bhi_statement *s = &p->e->statements[statement];
    memset(p->live, 0, sizeof p->live);
    mark(p, s->first, s->root);
    out->text = rewrite(p, statement, s->root + 1);
    strcpy(out->target, output);
    strcpy(out->output, output);
    return out->text;
}

/* Chooses a letter so that no name is the letter and a number. */
static bool choose_prefix(struct planner *p, struct bhi_complaint *complaint) {
    for (const char *c = "_rstuvwpqabcdefghijklmnoxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"; *c; c++) {
        bool free_ = true;
        for (uint32_t i = 0; i < p->e->name_count; i++) {
            const char *name = p->e->names[i].text;
            free_ &= name[0] != *c || name[1] < '0' || name[1] > '9';
        }
        if (free_) {
            p->prefix = *c;
            return true;
        }
    }
    return bhi_refuse(complaint, "no letter is left that begins no name such as a1: rename some");
}

static bool plan_all(struct planner *p, const char *const *outputs, uint32_t count,
                     struct bhi_split *plan) {
    const struct bhi_expression *e = p->e;
    uint32_t next = e->reduction_count + count; /* filled from the end, in reverse */
    bool good = true;
    for (uint32_t i = count; good && i-- > 0;) {
        const uint32_t root = e->statements[last_of(e, outputs[i])].root;
        if (e->nodes[root].kind == BHI_NODE_REDUCTION) { /* computes the output itself */
            p->used[e->nodes[root].op] = true;
        } else {
            good = plan_output(p, outputs[i], &plan->stages[--next]);
        }
    }
    for (uint32_t i = e->reduction_count; good && i-- > 0;) {
        if (!p->used[i]) {
            continue;
        }
        struct bhi_kernel_stage *stage = &plan->stages[--next];
        good = plan_reduction(p, i, stage);
        for (uint32_t k = 0; k < count; k++) {
            if (e->statements[last_of(e, outputs[k])].root == e->reductions[i].node) {
                snprintf(stage->output, sizeof stage->output, "%s", outputs[k]);
            }
        }
    }
    plan->count = e->reduction_count + count - next;
    memmove(plan->stages, plan->stages + next, plan->count * sizeof *plan->stages);
    return good;
}

bool bhi_split_make(struct bhi_expression *expression, const char *const *outputs, uint32_t count,
                    struct bhi_split *out_plan, struct bhi_complaint *complaint) {
    *out_plan = (struct bhi_split){.expression = *expression};
    *expression = (struct bhi_expression){0};
    struct planner planner = {.e = &out_plan->expression};
    out_plan->stages =
        calloc(out_plan->expression.reduction_count + count + 1, sizeof *out_plan->stages);
    if (!out_plan->stages) {
        bhi_split_fini(out_plan);
        return bhi_refuse_memory(complaint);
    }
    /* The text of a kernel is longer: axes and parts are written out. */
    bool good =
        strlen(out_plan->expression.source) <= BHI_EXPRESSION_BYTES - BHI_KERNEL_STAGE_MORE ||
        bhi_refuse(complaint, "longer than %d bytes", BHI_EXPRESSION_BYTES - BHI_KERNEL_STAGE_MORE);
    for (uint32_t i = 0; good && i < out_plan->expression.reduction_count; i++) {
        const struct bhi_reduction *r = &out_plan->expression.reductions[i];
        const struct bhi_node *node = &out_plan->expression.nodes[r->node];
        if (node->count != 1 || r->parts) {
            good = bhi_refuse_at(out_plan->expression.source, node->at, complaint,
                                 "%s takes an array, axis=... and keepdims=...",
                                 bhi_functions[r->function].name);
        }
    }
    good = good && choose_prefix(&planner, complaint) &&
           (plan_all(&planner, outputs, count, out_plan) || bhi_refuse_memory(complaint));
    if (!good) {
        bhi_split_fini(out_plan);
    }
    return good;
}

void bhi_split_fini(struct bhi_split *plan) {
    for (uint32_t i = 0; i < plan->count; i++) {
        free(plan->stages[i].text);
    }
    free(plan->stages);
    bhi_expression_fini(&plan->expression);
    *plan = (struct bhi_split){0};
}

void bhi_kernel_stage_write(const struct bhi_split *plan, const struct bhi_kernel_stage *stage,
                            const struct bhi_kernel_form *form, struct bhi_pen *pen) {
    const struct bhi_expression *e = &plan->expression;
    const struct bhi_reduction *r = stage->reduction;
    if (!r) {
        bhi_pen_put(pen, "%s", stage->text);
        return;
    }
    const char *name = bhi_functions[r->function].name, *at = e->nodes[r->node].at;
    const int width = (int)strlen(name);
    const char *operand = in_copy(e, stage->text, at) + width;
    bhi_pen_put(pen, "%.*s%-*s%.*s%s", (int)(at - e->source), stage->text, width,
                form->function ? form->function : name, (int)(r->behind - at) - width, operand,
                form->arguments);
    if (!r->all) {
        bhi_pen_put(pen, ", axis=(");
        for (uint32_t i = 0; i < r->axis_count; i++) {
            bhi_pen_put(pen, "%s%d", i ? "," : "", r->axes[i]);
        }
        bhi_pen_put(pen, ")");
    }
    if (form->keepdims) {
        bhi_pen_put(pen, ", keepdims=1");
    }
    if (form->parts) {
        bhi_pen_put(pen, ", parts=%lld", (long long)form->parts);
    }
    bhi_pen_put(pen, "%s%s", stage->open ? "))" : ")", strchr(e->source, '\n') ? "\n" : "");
}
