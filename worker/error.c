#include "worker/error.h"
#include "base/format.h"

#include <bulkhead/bulkhead.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void begin(struct bhi_error *error, bh_status status) {
    memset(error, 0, sizeof *error);
    error->status = status;
    error->command_index = BHI_NO_COMMAND;
    error->executed = BH_EXECUTED_NO;
}

void bhi_error_set(struct bhi_error *error, bh_status status, const char *format, ...) {
    begin(error, status);
    va_list arguments;
    va_start(arguments, format);
    bhi_vformat(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
}

int bhi_error_set_errno(struct bhi_error *error, bh_status status, int sys_errno,
                        const char *format, ...) {
    begin(error, status);
    error->sys_errno = sys_errno;
    va_list args;
    va_start(args, format);
    int length = bhi_vformat(error->text, sizeof error->text, format, args);
    va_end(args);
    if (sys_errno != 0 && length >= 0 && (size_t)length < sizeof error->text) {
        bhi_format(error->text + length, sizeof error->text - (size_t)length, ": %s",
                   strerror(sys_errno));
    }
    return sys_errno != 0 ? -sys_errno : -EPROTO;
}

void bhi_error_result(const struct bhi_error *error, struct bhi_result *result) {
    result->status = (uint32_t)error->status;
    result->reason = (uint32_t)error->reason;
    result->vk_result = error->vk_result;
    result->command_index = error->command_index;
    result->executed = error->executed;
    result->bad_memory = error->bad_memory;
}

int bhi_error_refuse(struct bhi_error *error, enum bhi_refused refused, int sys_errno,
                     const char *what) {
    struct bhi_refusal why;
    const bool no_proc = refused == BHI_REFUSED_IDS && sys_errno == ENOENT;
    if (refused != BHI_REFUSED_NAMESPACES && sys_errno != EPERM && sys_errno != EACCES &&
        sys_errno != ENOSYS && !no_proc) {
        return bhi_error_set_errno(error, BH_UNSUPPORTED, sys_errno, "%s", what);
    }
    bhi_refusal_find(refused, sys_errno, "", &why);
    bhi_error_set_errno(error, BH_UNSUPPORTED, 0, "%s (%s): %s" BHI_REMEDY "%s", what,
                        strerror(sys_errno), why.cause, why.setting);
    error->sys_errno = sys_errno;
    return -sys_errno;
}
