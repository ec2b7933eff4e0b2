#include "base/idset.h"
#include "base/check.h"

#include <stdlib.h>

#define REMOVED UINT64_MAX

static size_t slot_of(const struct bhi_idset *set, uint64_t id) {
    return (size_t)((id * 0x9e3779b97f4a7c15ull) >> 32) & (set->capacity - 1);
}

bool bhi_idset_has(const struct bhi_idset *set, uint64_t id) {
    if (!set->capacity)
        return false;
    for (size_t i = slot_of(set, id); set->slots[i]; i = (i + 1) & (set->capacity - 1))
        if (set->slots[i] == id)
            return true;
    return false;
}

bool bhi_idset_reserve(struct bhi_idset *set, size_t more) {
    /* At most three quarters full, so that a probe always meets a free slot. */
    if ((set->used + more) * 4 <= set->capacity * 3)
        return true;
    size_t capacity = 16;
    while (capacity * 3 < (set->count + more) * 4 * 2)
        capacity *= 2;
    uint64_t *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    struct bhi_idset bigger = {.slots = slots, .capacity = capacity};
    for (size_t i = 0; i < set->capacity; i++)
        if (set->slots[i] && set->slots[i] != REMOVED)
            bhi_idset_add(&bigger, set->slots[i]);
    free(set->slots);
    *set = bigger;
    return true;
}

void bhi_idset_add(struct bhi_idset *set, uint64_t id) {
    BHI_CHECK(id && id != REMOVED && set->used < set->capacity);
    size_t i = slot_of(set, id);
    while (set->slots[i] && set->slots[i] != id)
        i = (i + 1) & (set->capacity - 1);
    if (set->slots[i] == id)
        return;
    set->slots[i] = id;
    set->used++;
    set->count++;
}

bool bhi_idset_remove(struct bhi_idset *set, uint64_t id) {
    if (!set->capacity)
        return false;
    for (size_t i = slot_of(set, id); set->slots[i]; i = (i + 1) & (set->capacity - 1)) {
        if (set->slots[i] == id) {
            set->slots[i] = REMOVED;
            set->count--;
            return true;
        }
    }
    return false;
}

void bhi_idset_fini(struct bhi_idset *set) {
    free(set->slots);
    *set = (struct bhi_idset){0};
}
