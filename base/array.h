/* A growing array is a pointer and a capacity. Its user counts the entries and frees the pointer.
 */
#ifndef BHI_BASE_ARRAY_H
#define BHI_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* |items| with room for |needed| entries of |size| bytes at least, twice as many as before, and
 * *capacity says so. NULL: out of memory, nothing has changed. */
void *bhi_array_grow(void *items, size_t size, size_t needed, size_t *capacity);

/* Room for |needed| entries in |items|, which has |capacity|: two variables of any type that fits.
 * False: out of memory, nothing has changed. */
#define BHI_ARRAY_RESERVE(items, capacity, needed)                                                 \
    ((size_t)(needed) <= (size_t)(capacity) || __extension__({                                     \
         size_t bhi_array_room = (capacity);                                                       \
         void *bhi_array_items =                                                                   \
             bhi_array_grow((items), sizeof *(items), (needed), &bhi_array_room);                  \
         if (bhi_array_items) {                                                                    \
             (items) = bhi_array_items;                                                            \
             (capacity) = (__typeof__(capacity))bhi_array_room;                                    \
         }                                                                                         \
         !!bhi_array_items;                                                                        \
     }))

#endif
