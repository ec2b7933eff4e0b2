/* A table of strings, numbered in the order in which they were added: ids of jobs, and paths. */
#ifndef BHI_BATCH_GRAPH_NAMES_H
#define BHI_BATCH_GRAPH_NAMES_H

#include "base/map.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BHI_NO_NAME UINT32_MAX

struct bhi_job_name {
    struct bhi_chain chain; /* names with the same hash */
    uint32_t number;
    char text[];
};

struct bhi_names {
    struct bhi_job_name **names; /* by number; the array and each name are owned */
    uint32_t count;
    size_t capacity;
    struct bhi_map map; /* from hashes to chains */
    uint8_t key[16];    /* of the hash; secret, so that nobody can cause collisions */
};

void bhi_names_init(struct bhi_names *names);
void bhi_names_fini(struct bhi_names *names);
/* The hash of |text| in this table. */
uint64_t bhi_names_hash(const struct bhi_names *names, const char *text);
/* Returns BHI_NO_NAME if |text| is not there. */
uint32_t bhi_names_find(const struct bhi_names *names, const char *text);
/* Adds a copy of |text|, which must be new; its number is the old count. Returns BHI_NO_NAME if out
 * of memory. */
uint32_t bhi_names_add(struct bhi_names *names, const char *text);
/* Adds |text| unless it is there. Returns false if out of memory. */
bool bhi_names_note(struct bhi_names *names, const char *text);
/* Removes all but the first |count|. */
void bhi_names_truncate(struct bhi_names *names, uint32_t count);

#endif
