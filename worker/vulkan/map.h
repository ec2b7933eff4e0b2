/* A hash map from 64-bit ids to pointers. Id 0 is reserved for "none". */
#ifndef BHI_WORKER_VULKAN_MAP_H
#define BHI_WORKER_VULKAN_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bhi_map {
    struct bhi_map_entry {
        uint64_t id;
        void *value;
    } * entries;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

void *bhi_map_get(const struct bhi_map *map, uint64_t id); /* NULL: none */
/* Replaces what was there. False: out of memory, nothing changed. */
bool bhi_map_put(struct bhi_map *map, uint64_t id, void *value);
void *bhi_map_remove(struct bhi_map *map, uint64_t id);
void bhi_map_fini(struct bhi_map *map);

#endif
