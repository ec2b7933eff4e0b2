/* Orders for qsort and bsearch. */
#ifndef BHI_BASE_SORT_H
#define BHI_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BHI_COMPARE(x, y) (((x) > (y)) - ((x) < (y)))

/* Defines the function |name|: it compares two |type| by |key|, a number, then by |next|. */
#define BHI_ORDER_2(name, type, key, next)                                                         \
    static int name(const void *a, const void *b) {                                                \
        const type *x = a, *y = b;                                                                 \
        return x->key != y->key ? BHI_COMPARE(x->key, y->key) : BHI_COMPARE(x->next, y->next);     \
    }
#define BHI_ORDER(name, type, key) BHI_ORDER_2(name, type, key, key)
/* The same for arrays of pointers to |type|. */
#define BHI_ORDER_AT(name, type, key)                                                              \
    static int name(const void *a, const void *b) {                                                \
        const type *x = *(const type *const *)a, *y = *(const type *const *)b;                     \
        return BHI_COMPARE(x->key, y->key);                                                        \
    }

static inline int bhi_compare_u64(const void *a, const void *b) {
    return BHI_COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

static inline int bhi_compare_double(const void *a, const void *b) {
    return BHI_COMPARE(*(const double *)a, *(const double *)b);
}

static inline int bhi_compare_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline void bhi_sort_u64(uint64_t *values, size_t count) {
    qsort(values, count, sizeof *values, bhi_compare_u64);
}

static inline void bhi_sort_doubles(double *values, size_t count) {
    qsort(values, count, sizeof *values, bhi_compare_double);
}

static inline void bhi_sort_texts(const char **texts, size_t count) {
    qsort(texts, count, sizeof *texts, bhi_compare_text);
}

#endif
