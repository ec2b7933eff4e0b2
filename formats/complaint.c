#include "formats/complaint.h"
#include "base/format.h"

#include <stdarg.h>
#include <stdio.h>

bool bhi_refuse(struct bhi_complaint *complaint, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bhi_vformat(complaint->text, sizeof complaint->text, format, arguments);
    va_end(arguments);
    complaint->not_json = complaint->memory = false;
    return false;
}

bool bhi_refuse_memory(struct bhi_complaint *complaint) {
    (void)bhi_refuse(complaint, "out of memory");
    complaint->memory = true;
    return false;
}
