/* JSON on standard output, with jansson. */
#ifndef BHI_TOOL_JSON_H
#define BHI_TOOL_JSON_H

#include <bulkhead/bulkhead.h>
#include <jansson.h>
#include <stdint.h>

/* A string that others wrote, cleaned: always valid UTF-8. */
json_t *bhi_json_text(const char *text);
/* null for 0: not known. */
json_t *bhi_json_known(int64_t value);
/* As text: a number in JSON has 53 bits that can be relied on. */
json_t *bhi_json_digits(uint64_t number);
/* Milliseconds, to the microsecond. */
json_t *bhi_json_ms(uint64_t ns);
/* "none", "suspected", "certain". */
json_t *bhi_json_blame(bh_blame blame);
/* Prints |value| (stolen) and a line end. */
void bhi_json_print(json_t *value);

#endif
