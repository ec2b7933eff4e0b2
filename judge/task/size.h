/* Expressions in the size parameters of a task: "n * m", "ceildiv(n, 64)". */
#ifndef BHI_JUDGE_TASK_SIZE_H
#define BHI_JUDGE_TASK_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/complaint.h"

enum { BHI_SIZE_NAME = 31 };

struct bhi_size_value {
    const char *name; /* borrowed */
    uint64_t value;
};

/* Is |name| one that an expression can have: a letter or _, then letters, digits and _, at most
 * BHI_SIZE_NAME bytes, and no function? */
bool bhi_size_is_name(const char *name);

/* Computes |text|: whole numbers, names, + - * / % (division rounds down), parentheses,
 * ceildiv(a, b), min(a, b), max(a, b). Refuses an unknown name, a division by 0, a result below 0
 * and one of more than 64 bits, also in between. */
bool bhi_size_compute(const char *text, const struct bhi_size_value *values, size_t count,
                      uint64_t *out, struct bhi_complaint *complaint);

#endif
