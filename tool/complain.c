#include "tool/complain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tool/ending.h"
#include "tool/text.h"

void bhi_complain(const char *command, const char *format, ...) {
    char raw[2048], line[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    bhi_text_clean(line, sizeof line, raw);
    bhi_ending_note(BH_OK, line);
    if (command) {
        fprintf(stderr, "bulkhead %s: %s\n", command, line);
    } else {
        fprintf(stderr, "bulkhead: %s\n", line);
    }
}

bool bhi_text_flush(const char *command) {
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return true;
    }
    bhi_complain(command, "cannot write to standard output: %s", strerror(errno));
    return false;
}
