#include "formats/complaint.h"
#include "base/format.h"

#include <stdarg.h>
#include <stdio.h>

bool bhi_refuse(struct bhi_complaint *complaint, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bhi_vformat(complaint->text, sizeof complaint->text, format, arguments);
    va_end(arguments);
    complaint->not_json = false;
    return false;
}
