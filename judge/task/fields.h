/* Single fields of a task that is read. Each function refuses a wrong value with line and field. */
#ifndef BHI_JUDGE_TASK_FIELDS_H
#define BHI_JUDGE_TASK_FIELDS_H

#include "judge/task/reading.h"
#include "judge/task/task.h"

struct bhi_task_parser {
    struct bhi_reading reading;
    const char *folder;
    struct bhi_task *task;
};

/* Takes a file of the task's folder. */
bool bhi_task_take_file(struct bhi_task_parser *parser, const json_t *value,
                        struct bhi_task_file *out);
/* Takes a whole number from 1, or an expression. Whether that can be computed is checked when the
 * sizes are known. */
bool bhi_task_take_number(struct bhi_task_parser *parser, const json_t *value,
                          struct bhi_task_number *out);
bool bhi_task_take_real(struct bhi_task_parser *parser, const json_t *value, double *out);
/* Refuses what expressions cannot name. */
bool bhi_task_check_name(struct bhi_task_parser *parser, const char *name);

#endif
