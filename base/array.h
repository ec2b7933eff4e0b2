/* A growing array is a pointer and a capacity. Its user counts the entries and frees the pointer.
 */
#ifndef BHI_BASE_ARRAY_H
#define BHI_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Grows |items| to at least |needed| entries of |size| bytes, at least doubling it, and updates
 * *capacity. Returns NULL if memory ran out; nothing has changed then. */
void *bhi_array_grow(void *items, size_t size, size_t needed, size_t *capacity);

/* Makes room for |needed| entries in |items|. |items| and |capacity| are variables. False: out of
 * memory, nothing has changed. */
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
