#include "batch/graph/names.h"

#include "base/array.h"
#include "base/list.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof((struct bhi_names *)0)->key == crypto_shorthash_KEYBYTES, "size of a key");
_Static_assert(sizeof(uint64_t) == crypto_shorthash_BYTES, "size of a hash");

void bhi_names_init(struct bhi_names *names) {
    *names = (struct bhi_names){0};
    crypto_shorthash_keygen(names->key);
}

void bhi_names_fini(struct bhi_names *names) {
    for (uint32_t i = 0; i < names->count; i++) {
        free(names->names[i]);
    }
    free(names->names);
    bhi_map_fini(&names->map);
    *names = (struct bhi_names){0};
}

uint64_t bhi_names_hash(const struct bhi_names *names, const char *text) {
    unsigned char bytes[crypto_shorthash_BYTES];
    uint64_t hash;
    crypto_shorthash(bytes, (const unsigned char *)text, strlen(text), names->key);
    memcpy(&hash, bytes, sizeof hash);
    return hash;
}

static struct bhi_job_name *name_of(struct bhi_chain *node) {
    return BHI_CONTAINER(node, struct bhi_job_name, chain);
}

uint32_t bhi_names_find(const struct bhi_names *names, const char *text) {
    struct bhi_chain *node = bhi_map_get(&names->map, bhi_names_hash(names, text));
    while (node && strcmp(name_of(node)->text, text) != 0) {
        node = node->next;
    }
    return node ? name_of(node)->number : BHI_NO_NAME;
}

uint32_t bhi_names_add(struct bhi_names *names, const char *text) {
    const size_t size = strlen(text) + 1;
    if (names->count == BHI_NO_NAME - 1 ||
        !BHI_ARRAY_RESERVE(names->names, names->capacity, (size_t)names->count + 1) ||
        !bhi_map_reserve(&names->map, 1)) {
        return BHI_NO_NAME;
    }
    struct bhi_job_name *name = malloc(sizeof *name + size);
    if (!name) {
        return BHI_NO_NAME;
    }
    name->number = names->count;
    memcpy(name->text, text, size);
    bhi_map_link(&names->map, bhi_names_hash(names, text), &name->chain);
    names->names[names->count] = name;
    return names->count++;
}

bool bhi_names_note(struct bhi_names *names, const char *text) {
    return bhi_names_find(names, text) != BHI_NO_NAME || bhi_names_add(names, text) != BHI_NO_NAME;
}

void bhi_names_truncate(struct bhi_names *names, uint32_t count) {
    while (names->count > count) {
        struct bhi_job_name *last = names->names[--names->count];
        bhi_map_unlink(&names->map, &last->chain);
        free(last);
    }
}
