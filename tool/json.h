/* JSON on standard output, with jansson. */
#ifndef BHI_TOOL_JSON_H
#define BHI_TOOL_JSON_H

#include <bulkhead/bulkhead.h>
#include <jansson.h>
#include <stdint.h>

struct bhi_json_field {
    const char *key; /* NULL after the last */
    json_t *value;   /* is taken; NULL, out of memory, leaves the key out */
};
/* Sets |fields|, and returns |object|. */
json_t *bhi_json_add(json_t *object, const struct bhi_json_field *fields);
/* An object: BHI_JSON({"id", bhi_json_text(id)}, {"line", bhi_json_number(line)}). */
#define BHI_JSON(...) BHI_JSON_ADD(json_object(), __VA_ARGS__)
#define BHI_JSON_ADD(object, ...)                                                                  \
    bhi_json_add(object, (const struct bhi_json_field[]){__VA_ARGS__, {NULL, NULL}})

json_t *bhi_json_number(uint64_t value);
/* A string from outside, cleaned: always valid UTF-8. */
json_t *bhi_json_text(const char *text);
/* The same; null for NULL and for an empty one. */
json_t *bhi_json_text_or_null(const char *text);
/* |value|, or null for 0, which means unknown. */
json_t *bhi_json_known(int64_t value);
/* |number| as a string: JSON numbers are exact only up to 53 bits. */
json_t *bhi_json_digits(uint64_t number);
/* Milliseconds with three decimals. */
json_t *bhi_json_ms(uint64_t ns);
/* "none", "suspected" or "certain". */
json_t *bhi_json_blame(bh_blame blame);
/* Sets the keys reason, a name or null, and subject, {kind, name} or null. */
void bhi_json_why(json_t *object, bh_reason reason, bh_subject subject, const char *name);
/* Takes what that has set; a name that is not known is none. */
void bhi_json_take_why(const json_t *object, bh_reason *out_reason, bh_subject *out_subject,
                       char *out_name, size_t capacity);
/* Prints |value| and a line end. Frees |value|. */
void bhi_json_print(json_t *value);

#endif
