#include "templates/pen.h"

#include "base/array.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST = 4096 };

void bhi_pen_put(struct bhi_pen *pen, const char *format, ...) {
    for (int tries = 0; tries < 2 && !pen->failed; tries++) {
        const size_t room = pen->capacity - pen->length;
        va_list list;
        va_start(list, format);
        const int length = vsnprintf(room ? pen->text + pen->length : NULL, room, format, list);
        va_end(list);
        if (length < 0) {
            pen->failed = true;
        } else if ((size_t)length < room) {
            pen->length += (size_t)length;
            return;
        } else {
            const size_t needed = pen->length + (size_t)length + 1;
            pen->failed =
                !BHI_ARRAY_RESERVE(pen->text, pen->capacity, needed < FIRST ? FIRST : needed);
        }
    }
}

void bhi_pen_fini(struct bhi_pen *pen) {
    free(pen->text);
    *pen = (struct bhi_pen){0};
}
