/* The hash table: from 64-bit keys (ids, or hashes of something longer) to pointers. */
#ifndef BHI_BASE_MAP_H
#define BHI_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bhi_map {
    struct bhi_map_entry {
        uint64_t key;
        void *value; /* NULL: free */
    } *entries;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

void *bhi_map_get(const struct bhi_map *map, uint64_t key); /* NULL: none */
/* Makes room for |more| further keys, so that adding them cannot fail. False: out of memory. */
bool bhi_map_reserve(struct bhi_map *map, size_t more);
/* Replaces what was there. There is room, and |value| is not NULL. */
void bhi_map_add(struct bhi_map *map, uint64_t key, void *value);
/* Both. False: out of memory, nothing changed. */
bool bhi_map_put(struct bhi_map *map, uint64_t key, void *value);
void *bhi_map_remove(struct bhi_map *map, uint64_t key); /* what was there, or NULL */
void bhi_map_fini(struct bhi_map *map);

/* Where several values may have one key (hashes), each has one of these, and the map has the newest
 * of them: bhi_map_get() begins the chain. */
struct bhi_chain {
    struct bhi_chain *next;
    uint64_t key;
};

/* Adds |node| under |key|. There must be room. */
void bhi_map_link(struct bhi_map *map, uint64_t key, struct bhi_chain *node);
void bhi_map_unlink(struct bhi_map *map, struct bhi_chain *node);

#endif
