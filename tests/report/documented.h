/* The keys of --json are in docs/reports.md. */
#ifndef TEST_REPORT_DOCUMENTED_H
#define TEST_REPORT_DOCUMENTED_H

#include <jansson.h>

/* Each key of |object|, and of what is in it, stands as `key` in the section that begins with
 * |heading|, and each key of that section's tables is in |object|, or in something in it. Objects
 * named in |open| (separated by commas) have keys that are values: those are left alone. */
void documented(const char *heading, json_t *object, const char *open);

/* Each fails where |object| has no such key, or one of another type. */
json_int_t integer(json_t *object, const char *key);
void assert_text(json_t *object, const char *key, const char *expected);

#endif
