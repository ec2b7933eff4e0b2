/* A task while it is read: the parser's parts. Each field is checked where it is read, so that a complaint
 * names its line. */
#ifndef BHI_JUDGE_TASK_PARSER_H
#define BHI_JUDGE_TASK_PARSER_H

#include "judge/task/reading.h"
#include "judge/task/task.h"

struct parser {
    struct bhi_reading reading;
    const char *folder;
    struct bhi_task *task;
};

static inline void enter(struct parser *parser, const char *key) {
    bhi_reading_enter(&parser->reading, key);
}

static inline void enter_element(struct parser *parser, size_t index) {
    bhi_reading_enter_element(&parser->reading, index);
}

/* Returns true. */
static inline bool leave(struct parser *parser) {
    bhi_reading_leave(&parser->reading);
    return true;
}

#define refuse(parser, ...) bhi_reading_refuse(&(parser)->reading, __VA_ARGS__)

/* Takes a file of the task's folder. */
bool bhi_parser_take_file(struct parser *parser, const json_t *value, struct bhi_task_file *out);
/* Takes a whole number from 1, or an expression. Whether that can be computed is checked when the
 * sizes are known. */
bool bhi_parser_take_number(struct parser *parser, const json_t *value,
                            struct bhi_task_number *out);
/* Takes "groups" of |object|. Dimensions that it leaves out are 1. */
bool bhi_parser_take_groups(struct parser *parser, const json_t *object,
                            struct bhi_task_groups *out);

/* Refuses what expressions cannot name. */
bool bhi_parser_check_name(struct parser *parser, const char *name);

/* -- cuda.c ---------------------------------------------------------------------------------- */

/* Takes "parameters", "block" and "shared" of |object|. */
bool bhi_parser_take_cuda(struct parser *parser, const json_t *object, struct bhi_task_cuda *out);
/* Those of the task, when its arrays and push constants are known. */
bool bhi_parser_take_order(struct parser *parser);

/* -- push.c ---------------------------------------------------------------------------------- */

bool bhi_parser_take_pushes(struct parser *parser);

/* -- arrays.c -------------------------------------------------------------------------------- */

/* "uniform": [LOW, HIGH], "normal": [MEAN, DEVIATION], "integers": [FIRST, LAST], whose numbers may be
 * expressions. */
bool bhi_parser_take_pair(struct parser *parser, const json_t *value, enum bhi_filler_kind kind,
                          struct bhi_filler *out, struct bhi_task_ends *out_ends);
/* "dtype" and "shape" of an array. */
bool bhi_parser_take_dtype(struct parser *parser, const json_t *value, bh_dtype *out);
bool bhi_parser_take_shape(struct parser *parser, const json_t *shape, struct bhi_task_array *out);
/* Takes all arrays of a role. */
bool bhi_parser_take_arrays(struct parser *parser, enum bhi_task_role role);
/* When all arrays are known: the fills of those that vary and have none of their own. They are those of the
 * task, or the usual ones where it has none at all. */
bool bhi_parser_take_common_fills(struct parser *parser);

#endif
