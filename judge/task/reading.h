/* A JSON text while it is read, and which field of it: complaints name line and field. */
#ifndef BHI_JUDGE_TASK_READING_H
#define BHI_JUDGE_TASK_READING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "formats/complaint.h"

enum { BHI_READING_DEPTH = 8 };

/* A field in an object, or, if |key| is NULL, element |index| of an array. */
struct bhi_reading_step {
    const char *key;
    size_t index;
};

struct bhi_reading {
    const char *name; /* of the file */
    const char *text; /* NUL-terminated; it must have been parsed as JSON without an error */
    struct bhi_reading_step steps[BHI_READING_DEPTH]; /* from the whole to the field */
    size_t depth;
    size_t lines_before; /* of the file, in front of |text| */
    struct bhi_complaint *complaint;
};

/* The line, from 1, on which the reading's field begins; of a field that is not there, that of the
 * innermost value around it. */
size_t bhi_reading_line(const struct bhi_reading *reading);
/* Complains about the field: NAME:LINE: "key" "key": …. Returns false. */
bool bhi_reading_refuse(const struct bhi_reading *reading, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Names the field: NAME:LINE: "key" "key". The caller frees it; NULL: out of memory. */
char *bhi_reading_field(const struct bhi_reading *reading);
/* Puts line and field in front of the complaint that there is. Returns false. */
bool bhi_reading_blame(const struct bhi_reading *reading);

/* Go to a field and back. */
void bhi_reading_enter(struct bhi_reading *reading, const char *key);
void bhi_reading_enter_element(struct bhi_reading *reading, size_t index);
void bhi_reading_leave(struct bhi_reading *reading);

/* Refuses |object| if it is no object or has a key that is not in |keys|, which ends with NULL. */
bool bhi_reading_check_keys(struct bhi_reading *reading, const json_t *object,
                            const char *const *keys);

#endif
