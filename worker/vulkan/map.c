#include "worker/vulkan/map.h"

#include <stdlib.h>
#include <string.h>

static size_t home(const struct bhi_map *map, uint64_t id) {
    return (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (map->capacity - 1);
}

/* Where |id| is, or the free place where it would go. */
static size_t probe(const struct bhi_map *map, uint64_t id) {
    size_t at = home(map, id);
    while (map->entries[at].id != 0 && map->entries[at].id != id) {
        at = (at + 1) & (map->capacity - 1);
    }
    return at;
}

void *bhi_map_get(const struct bhi_map *map, uint64_t id) {
    return map->capacity == 0 ? NULL : map->entries[probe(map, id)].value;
}

static bool grow(struct bhi_map *map) {
    struct bhi_map bigger = {.capacity = map->capacity ? map->capacity * 2 : 64,
                             .count = map->count};
    bigger.entries = calloc(bigger.capacity, sizeof *bigger.entries);
    if (bigger.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->entries[i].id != 0) {
            bigger.entries[probe(&bigger, map->entries[i].id)] = map->entries[i];
        }
    }
    free(map->entries);
    *map = bigger;
    return true;
}

bool bhi_map_put(struct bhi_map *map, uint64_t id, void *value) {
    if ((map->count + 1) * 2 > map->capacity && !grow(map)) {
        return false;
    }
    struct bhi_map_entry *entry = &map->entries[probe(map, id)];
    map->count += entry->id == 0;
    *entry = (struct bhi_map_entry){id, value};
    return true;
}

void *bhi_map_remove(struct bhi_map *map, uint64_t id) {
    if (map->capacity == 0) {
        return NULL;
    }
    size_t hole = probe(map, id);
    void *value = map->entries[hole].value;
    if (map->entries[hole].id == 0) {
        return NULL;
    }
    map->count--;
    /* Close the gap: whoever probed past it moves up. */
    for (size_t at = (hole + 1) & (map->capacity - 1); map->entries[at].id != 0;
         at = (at + 1) & (map->capacity - 1)) {
        size_t distance_hole = (at - hole) & (map->capacity - 1);
        size_t distance_home = (at - home(map, map->entries[at].id)) & (map->capacity - 1);
        if (distance_home >= distance_hole) {
            map->entries[hole] = map->entries[at];
            hole = at;
        }
    }
    map->entries[hole] = (struct bhi_map_entry){0, NULL};
    return value;
}

void bhi_map_fini(struct bhi_map *map) {
    free(map->entries);
    memset(map, 0, sizeof *map);
}
