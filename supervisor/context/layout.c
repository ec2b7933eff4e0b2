#include "supervisor/context/layout.h"
#include "base/detail.h"

#include <bulkhead/array.h>
#include <bulkhead/bulkhead.h>
#include <bulkhead/device.h>
#include <bulkhead/doctor.h>
#include <bulkhead/file.h>
#include <bulkhead/inspect.h>
#include <bulkhead/judge.h>
#include <bulkhead/quarantine.h>
#include <bulkhead/stats.h>
#include <bulkhead/template.h>
#include <bulkhead/trace.h>
#include <string.h>

/* How much larger than the library's struct a caller's may be. More is a mistake, not a newer
 * version. */
#define MAX_NEWER 4096u

/* Returns sizeof(type) as it was when |field| was the last field. */
#define SIZE_WITH(type, field)                                                                     \
    ((offsetof(type, field) + sizeof(__typeof__(((type *)0)->field)) + _Alignof(type) - 1) /       \
     _Alignof(type) * _Alignof(type))

static const struct {
    const char *name; /* of the struct */
    uint32_t size;    /* its sizeof when the row's field was its last one */
} layouts[] = {
#define BHI_LAYOUT(type, field) {#type, SIZE_WITH(type, field)},
#include "supervisor/context/layout.def" /* in a file of its own: tests have one with more rows */
#undef BHI_LAYOUT
};

#define COUNT (sizeof layouts / sizeof layouts[0])

static bool is_older(const char *name, size_t size) {
    for (size_t i = 0; i < COUNT; i++) {
        if (layouts[i].size == size && !strcmp(layouts[i].name, name)) {
            return true;
        }
    }
    return false;
}

static size_t first_size(const char *name) {
    for (size_t i = 0; i < COUNT; i++) {
        if (!strcmp(layouts[i].name, name)) {
            return layouts[i].size;
        }
    }
    return 0;
}

static bool is_known(const char *name, size_t our_size, size_t their_size) {
    if (their_size > our_size) {
        return their_size - our_size <= MAX_NEWER;
    }
    return their_size == our_size || is_older(name, their_size);
}

/* The size is known before anything else of a struct is read: an older one is shorter. */
static size_t size_of(const void *theirs) {
    size_t size;
    memcpy(&size, theirs, sizeof size);
    return size;
}

bh_status bhi_layout_check(const char *name, size_t our_size, const void *theirs, const char *call,
                           const char *what, bh_detail *detail) {
    if (!theirs) {
        return BHI_FAIL(detail, call, BH_REASON_NULL, what);
    }
    if (is_known(name, our_size, size_of(theirs))) {
        return BH_OK;
    }
    return BHI_FAIL(detail, call, BH_REASON_STRUCT_SIZE, what, .value = size_of(theirs),
                    .limit = our_size,
                    .text = BHI_SAY("%s: its first version has %zu bytes, and that of library %s "
                                    "has %zu; set it to sizeof(%s)",
                                    name, first_size(name), bh_version_string(), our_size, name));
}

bh_status bhi_layout_stride(const char *name, size_t our_size, const void *theirs, size_t capacity,
                            const char *call, const char *what, size_t *out_stride,
                            bh_detail *detail) {
    *out_stride = capacity && theirs ? size_of(theirs) : 0;
    return capacity ? bhi_layout_check(name, our_size, theirs, call, what, detail) : BH_OK;
}

/* The part of a caller's struct that the library does not know must be zero. */
static bh_status check_tail(const char *name, size_t our_size, const void *theirs, const char *call,
                            const char *what, bh_detail *detail) {
    const uint8_t *bytes = theirs;
    const size_t their_size = size_of(theirs);
    for (size_t i = our_size; i < their_size; i++) {
        if (bytes[i]) {
            return BHI_FAIL(detail, call, BH_REASON_NEWER_FIELD, what, .value = i,
                            .limit = our_size,
                            .text = BHI_SAY("%s, %zu bytes; library %s", name, their_size,
                                            bh_version_string()));
        }
    }
    return BH_OK;
}

bh_status bhi_layout_take(const char *name, size_t our_size, void *ours, const void *theirs,
                          const char *call, const char *what, bh_detail *detail) {
    memset(ours, 0, our_size);
    memcpy(ours, &our_size, sizeof our_size);
    bh_status status = BH_OK;
    if (theirs &&
        (status = bhi_layout_check(name, our_size, theirs, call, what, detail)) == BH_OK &&
        (status = check_tail(name, our_size, theirs, call, what, detail)) == BH_OK) {
        const size_t their_size = size_of(theirs), field = sizeof(size_t);
        memcpy((uint8_t *)ours + field, (const uint8_t *)theirs + field,
               (their_size < our_size ? their_size : our_size) - field);
    }
    return status;
}

void bhi_layout_put(void *array, size_t index, size_t stride, const void *ours, size_t our_size) {
    uint8_t *theirs = (uint8_t *)array + index * stride;
    const size_t both = stride < our_size ? stride : our_size;
    memcpy(theirs, ours, both);
    memset(theirs + both, 0, stride - both);
    memcpy(theirs, &stride, sizeof stride);
}

void bhi_layout_give(void *theirs, const void *ours, size_t our_size) {
    bhi_layout_put(theirs, 0, size_of(theirs), ours, our_size);
}
