/* snprintf for messages: the one place that cuts text, always between two characters. */
#ifndef BHI_BASE_FORMAT_H
#define BHI_BASE_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* As snprintf and vsnprintf, but a text that a precision (%.200s) or |capacity| cuts ends with a
 * whole character of UTF-8. |out| ends with a NUL, and none of the arguments may be in it. Returns
 * the length of what was written. Has no %n, no wide characters and no long double. */
int bhi_format(char *out, size_t capacity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int bhi_vformat(char *out, size_t capacity, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

#endif
