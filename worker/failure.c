#include "failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int bhi_fail(struct bhi_failure *failure, bh_status status, int error, const char *format, ...) {
    failure->status = status;
    failure->error = error;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(failure->text, sizeof failure->text, format, args);
    va_end(args);
    if (error != 0 && length >= 0 && (size_t)length < sizeof failure->text) {
        snprintf(failure->text + length, sizeof failure->text - (size_t)length, ": %s",
                 strerror(error));
    }
    return error != 0 ? -error : -EPROTO;
}
