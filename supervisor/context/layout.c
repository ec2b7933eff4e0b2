#include "supervisor/context/layout.h"
#include "base/detail.h"

#include <bulkhead/judge.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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

bh_status bhi_layout_check(const char *name, size_t our_size, size_t their_size, const char *call,
                           const char *what, bh_detail *detail) {
    if (is_known(name, our_size, their_size)) {
        return BH_OK;
    }
    return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                    "%s: %s: the program says that a %s has %zu bytes; its first version has %zu, "
                    "and that of library %s has %zu: build the program with the library's headers",
                    call, what, name, their_size, first_size(name), bh_version_string(), our_size);
}

bh_status bhi_layout_check_options(const char *name, size_t our_size, size_t their_size,
                                   const char *call, const char *what, bh_detail *detail) {
    if (is_known(name, our_size, their_size)) {
        return BH_OK;
    }
    return bhi_fail(
        detail, BH_INVALID_ARGUMENT, 0,
        "%s: %s.struct_size is %zu, which is not the size of a %s: its first version has "
        "%zu bytes, and that of library %s has %zu; call %s_init",
        call, what, their_size, name, first_size(name), bh_version_string(), our_size, name);
}

/* The part of a caller's struct that the library does not know must be zero. */
static bh_status check_tail(const char *name, size_t our_size, const void *theirs,
                            size_t their_size, const char *call, const char *what,
                            bh_detail *detail) {
    const uint8_t *bytes = theirs;
    for (size_t i = our_size; i < their_size; i++) {
        if (bytes[i]) {
            return bhi_fail(
                detail, BH_INVALID_ARGUMENT, 0,
                "%s: %s: the program sets a field that this library does not know (byte %zu of %s, "
                "%zu bytes; library %s knows %zu): install a newer library",
                call, what, i, name, their_size, bh_version_string(), our_size);
        }
    }
    return BH_OK;
}

bh_status bhi_layout_take(const char *name, size_t our_size, void *ours, const void *theirs,
                          size_t their_size, const char *call, const char *what,
                          bh_detail *detail) {
    bh_status status = bhi_layout_check(name, our_size, their_size, call, what, detail);
    if (status == BH_OK) {
        status = check_tail(name, our_size, theirs, their_size, call, what, detail);
    }
    if (status == BH_OK) {
        memcpy(ours, theirs, their_size < our_size ? their_size : our_size);
    }
    return status;
}

bh_status bhi_layout_take_options(const char *name, size_t our_size, void *ours, const void *theirs,
                                  const char *call, const char *what, bh_detail *detail) {
    size_t
        their_size; /* an older struct is shorter: its size is known before anything else is read */
    memcpy(&their_size, theirs, sizeof their_size);
    bh_status status = bhi_layout_check_options(name, our_size, their_size, call, what, detail);
    if (status == BH_OK) {
        status = bhi_layout_take(name, our_size, ours, theirs, their_size, call, what, detail);
    }
    if (status == BH_OK) {
        memcpy(ours, &our_size, sizeof our_size);
    }
    return status;
}

bh_status bhi_layout_take_array(const char *name, size_t our_size, const void *theirs,
                                size_t their_size, size_t count, const char *call, const char *what,
                                const void **out_array, void **out_copy, bh_detail *detail) {
    *out_array = theirs;
    *out_copy = NULL;
    bh_status status = bhi_layout_check(name, our_size, their_size, call, what, detail);
    if (status != BH_OK || their_size == our_size || !count || !theirs) {
        return status;
    }
    uint8_t *copy = calloc(count, our_size);
    if (!copy) {
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", call);
    }
    for (size_t i = 0; i < count && status == BH_OK; i++) {
        char place[64];
        snprintf(place, sizeof place, "%s[%zu]", what, i);
        status = bhi_layout_take(name, our_size, copy + i * our_size,
                                 (const uint8_t *)theirs + i * their_size, their_size, call, place,
                                 detail);
    }
    if (status != BH_OK) {
        free(copy);
        return status;
    }
    *out_array = *out_copy = copy;
    return BH_OK;
}

void bhi_layout_give(void *theirs, size_t their_size, const void *ours, size_t our_size) {
    size_t both = their_size < our_size ? their_size : our_size;
    memcpy(theirs, ours, both);
    memset((uint8_t *)theirs + both, 0, their_size - both);
}

void bhi_layout_init(void *theirs, size_t their_size, const void *defaults, size_t our_size) {
    if (!theirs || their_size < sizeof their_size) {
        return;
    }
    bhi_layout_give(theirs, their_size, defaults, our_size);
    memcpy(theirs, &their_size, sizeof their_size);
}
