/* A pen writes text that grows. After a failed allocation it remembers the failure and drops what
 * follows. */
#ifndef BHI_TEMPLATES_PEN_H
#define BHI_TEMPLATES_PEN_H

#include <stdbool.h>
#include <stddef.h>

struct bhi_pen {
    char *text; /* NUL-terminated; owned; NULL: empty */
    size_t length, capacity;
    bool failed;
};

void bhi_pen_put(struct bhi_pen *pen, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void bhi_pen_fini(struct bhi_pen *pen);

#endif
