#include "batch/slurm/fields.h"

#include <string.h>

bool bhi_slurm_take_number(const json_t *object, const char *key, uint64_t most, uint64_t *out) {
    const json_t *value = json_object_get(object, key);
    *out = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0 && *out <= most;
}

bool bhi_slurm_take_digits(const json_t *object, const char *key, char *out, size_t digits) {
    const char *text = json_string_value(json_object_get(object, key));
    if (!text || strlen(text) != digits || strspn(text, "0123456789abcdef") != digits) {
        return false;
    }
    memcpy(out, text, digits + 1);
    return true;
}
