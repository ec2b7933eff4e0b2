/* A complaint: one line that says why an input was refused. */
#ifndef BHI_FORMATS_COMPLAINT_H
#define BHI_FORMATS_COMPLAINT_H

#include <stdbool.h>

/* One line, without the program's name, not yet cleaned: it may quote anything. */
struct bhi_complaint {
    char text[1024];
};

/* Fills in |complaint| and returns false, so that a check reads `return bhi_refuse(…)`. */
bool bhi_refuse(struct bhi_complaint *complaint, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
