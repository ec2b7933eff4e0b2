#include "base/map.h"
#include "base/check.h"

#include <stdlib.h>

/* Open addressing, at most half full: a probe always meets a free entry. */

static size_t home(const struct bhi_map *map, uint64_t key) {
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (map->capacity - 1);
}

/* The entry of |key|, or the free one where it would go. */
static struct bhi_map_entry *probe(const struct bhi_map *map, uint64_t key) {
    size_t at = home(map, key);
    while (map->entries[at].value && map->entries[at].key != key) {
        at = (at + 1) & (map->capacity - 1);
    }
    return &map->entries[at];
}

void *bhi_map_get(const struct bhi_map *map, uint64_t key) {
    return map->capacity == 0 ? NULL : probe(map, key)->value;
}

bool bhi_map_reserve(struct bhi_map *map, size_t more) {
    struct bhi_map bigger = {.capacity = map->capacity != 0 ? map->capacity : 16,
                             .count = map->count};
    while (bigger.capacity < (map->count + more) * 2) {
        bigger.capacity *= 2;
    }
    if (bigger.capacity == map->capacity) {
        return true;
    }
    bigger.entries = calloc(bigger.capacity, sizeof *bigger.entries);
    if (!bigger.entries) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->entries[i].value) {
            *probe(&bigger, map->entries[i].key) = map->entries[i];
        }
    }
    free(map->entries);
    *map = bigger;
    return true;
}

void bhi_map_add(struct bhi_map *map, uint64_t key, void *value) {
    BHI_CHECK(map->count * 2 < map->capacity && value);
    struct bhi_map_entry *entry = probe(map, key);
    map->count += !entry->value;
    *entry = (struct bhi_map_entry){key, value};
}

bool bhi_map_put(struct bhi_map *map, uint64_t key, void *value) {
    if (!bhi_map_reserve(map, 1)) {
        return false;
    }
    bhi_map_add(map, key, value);
    return true;
}

void *bhi_map_remove(struct bhi_map *map, uint64_t key) {
    if (map->capacity == 0) {
        return NULL;
    }
    size_t hole = (size_t)(probe(map, key) - map->entries);
    void *value = map->entries[hole].value;
    if (!value) {
        return NULL;
    }
    map->count--;
    /* Closes the gap: later entries of the same probe sequence move up. */
    for (size_t at = (hole + 1) & (map->capacity - 1); map->entries[at].value;
         at = (at + 1) & (map->capacity - 1)) {
        const size_t distance_hole = (at - hole) & (map->capacity - 1);
        const size_t distance_home = (at - home(map, map->entries[at].key)) & (map->capacity - 1);
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
    *map = (struct bhi_map){0};
}

void bhi_map_link(struct bhi_map *map, uint64_t key, struct bhi_chain *node) {
    *node = (struct bhi_chain){.next = bhi_map_get(map, key), .key = key};
    bhi_map_add(map, key, node);
}

void bhi_map_unlink(struct bhi_map *map, struct bhi_chain *node) {
    struct bhi_map_entry *entry = probe(map, node->key);
    struct bhi_chain *first = entry->value;
    if (first != node) {
        while (first->next != node) {
            first = first->next;
        }
        first->next = node->next;
    } else if (node->next) {
        entry->value = node->next;
    } else {
        (void)bhi_map_remove(map, node->key);
    }
}
