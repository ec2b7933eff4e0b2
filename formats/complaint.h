/* A complaint: one line that says why an input was refused. */
#ifndef BHI_FORMATS_COMPLAINT_H
#define BHI_FORMATS_COMPLAINT_H

#include <stdbool.h>

/* One line without the program's name. It may quote a file's bytes, so it must be cleaned
 * (base/text.h) before it is printed. */
struct bhi_complaint {
    char text[1024];
    bool not_json; /* the input is no JSON at all */
    bool memory;   /* it may be right: memory has run out */
};

/* Fills in |complaint| and always returns false, so that a check can end with `return
 * bhi_refuse(…)`. */
bool bhi_refuse(struct bhi_complaint *complaint, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool bhi_refuse_memory(struct bhi_complaint *complaint);

#endif
