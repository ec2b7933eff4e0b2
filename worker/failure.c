#include "worker/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int bhi_failure_set(struct bhi_failure *failure, bh_status status, int error, const char *format,
                    ...) {
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

int bhi_failure_refuse(struct bhi_failure *failure, enum bhi_refused refused, int error,
                       const char *what) {
    struct bhi_refusal why;
    if (refused != BHI_REFUSED_NAMESPACES && error != EPERM && error != EACCES && error != ENOSYS) {
        return bhi_failure_set(failure, BH_UNSUPPORTED, error, "%s", what);
    }
    bhi_refusal_find(refused, error, "", &why);
    bhi_failure_set(failure, BH_UNSUPPORTED, 0, "%s (%s): %s" BHI_REMEDY "%s", what,
                    strerror(error), why.cause, why.setting);
    failure->error = error;
    return -error;
}
