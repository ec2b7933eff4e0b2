#include "supervisor/worker/selector.h"

#include <string.h>

#define MAX_INDEX 63

static bool parse_index(const char *text, uint32_t *out_index) {
    uint32_t value = 0;
    if (!*text) {
        return false;
    }
    for (; *text; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        value = 10 * value + (uint32_t)(*text - '0');
        if (value > MAX_INDEX) {
            return false;
        }
    }
    *out_index = value;
    return true;
}

bool bhi_selector_parse(const char *selector, char driver[BHI_DRIVER_NAME], uint32_t *out_index) {
    *out_index = 0;
    driver[0] = 0;
    if (!*selector || parse_index(selector, out_index)) {
        return true;
    }
    const char *colon = strchr(selector, ':');
    size_t length = colon ? (size_t)(colon - selector) : strlen(selector);
    if (!length || length >= BHI_DRIVER_NAME || selector[0] < 'a' || selector[0] > 'z') {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        char c = selector[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')) {
            return false;
        }
    }
    memcpy(driver, selector, length);
    driver[length] = 0;
    return !colon || parse_index(colon + 1, out_index);
}
