#include "base/array.h"

#include <stdlib.h>

#define FIRST 4u

void *bhi_array_grow(void *items, size_t size, size_t needed, size_t *capacity) {
    size_t bigger = *capacity > FIRST / 2 ? *capacity : FIRST / 2;
    size_t bytes = 0;
    do {
        if (__builtin_mul_overflow(bigger, 2, &bigger)) {
            return NULL;
        }
    } while (bigger < needed);
    if (__builtin_mul_overflow(bigger, size, &bytes)) {
        return NULL;
    }
    void *grown = realloc(items, bytes);
    if (grown) {
        *capacity = bigger;
    }
    return grown;
}
