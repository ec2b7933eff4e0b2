#include "batch/graph/names.h"

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
        free(names->names[i].text);
    }
    free(names->names);
    free(names->buckets);
    *names = (struct bhi_names){0};
}

static uint64_t hash_of(const struct bhi_names *names, const char *text) {
    unsigned char bytes[crypto_shorthash_BYTES];
    uint64_t hash;
    crypto_shorthash(bytes, (const unsigned char *)text, strlen(text), names->key);
    memcpy(&hash, bytes, sizeof hash);
    return hash;
}

uint32_t bhi_names_find(const struct bhi_names *names, const char *text) {
    if (names->count == 0) {
        return BHI_NO_NAME;
    }
    const uint64_t hash = hash_of(names, text);
    uint32_t i = names->buckets[hash & (names->bucket_count - 1)];
    while (i != BHI_NO_NAME &&
           (names->names[i].hash != hash || strcmp(names->names[i].text, text) != 0)) {
        i = names->names[i].next;
    }
    return i;
}

static void enter(struct bhi_names *names, uint32_t i) {
    uint32_t *bucket = &names->buckets[names->names[i].hash & (names->bucket_count - 1)];
    names->names[i].next = *bucket;
    *bucket = i;
}

/* As many buckets as names, a power of two. Entered again in their order, so that the newest is
 * the first of its bucket, as _truncate wants it. */
static bool grow(struct bhi_names *names) {
    if (names->capacity > UINT32_MAX / 4) {
        return false;
    }
    const uint32_t capacity = names->capacity ? names->capacity * 2 : 64;
    struct bhi_job_name *grown = realloc(names->names, capacity * sizeof *grown);
    if (!grown) {
        return false;
    }
    names->names = grown;
    uint32_t *buckets = malloc(capacity * sizeof *buckets);
    if (!buckets) {
        return false;
    }
    memset(buckets, 0xff, capacity * sizeof *buckets);
    free(names->buckets);
    names->buckets = buckets;
    names->bucket_count = names->capacity = capacity;
    for (uint32_t i = 0; i < names->count; i++) {
        enter(names, i);
    }
    return true;
}

uint32_t bhi_names_add(struct bhi_names *names, const char *text) {
    if (names->count == names->capacity && !grow(names)) {
        return BHI_NO_NAME;
    }
    char *copy = strdup(text);
    if (!copy) {
        return BHI_NO_NAME;
    }
    names->names[names->count] = (struct bhi_job_name){.text = copy, .hash = hash_of(names, text)};
    enter(names, names->count);
    return names->count++;
}

void bhi_names_truncate(struct bhi_names *names, uint32_t count) {
    while (names->count > count) {
        struct bhi_job_name *last = &names->names[--names->count];
        names->buckets[last->hash & (names->bucket_count - 1)] = last->next;
        free(last->text);
    }
}
