/* The keys of --json are in docs/reports.md. */
#ifndef TEST_REPORT_DOCUMENTED_H
#define TEST_REPORT_DOCUMENTED_H

#include <jansson.h>

/* Each key of |object|, and of what is in it, stands as `key` in the section that begins with
 * |heading|, and each key of that section's tables is in |object|, or in something in it. Objects
 * named in |open| (separated by commas) have keys that are values: those are left alone. */
void documented(const char *heading, json_t *object, const char *open);

/* All that |expected| has, which is JSON with ` for ", is in |object|. Arrays have as many elements. */
void assert_json(json_t *object, const char *expected);
/* Of a text that is JSON; released after the test. */
json_t *own_json(const char *text);

#endif
