#include "judge/check/rack.h"

#include <stdlib.h>
#include <string.h>

static void release(struct bhi_racked racked) {
    bh_buffer_release(racked.buffer);
    free(racked.margins);
}

static void empty(struct bhi_rack *rack) {
    while (rack->count) {
        release(rack->list[--rack->count]);
    }
}

void bhi_rack_turn(struct bhi_rack *rack, size_t of) {
    if (rack->of != of) {
        empty(rack);
        rack->of = of;
    }
}

bool bhi_rack_take(struct bhi_rack *rack, uint64_t size, bool margins, struct bhi_racked *out) {
    for (size_t i = 0; i < rack->count; i++) {
        struct bhi_racked *const at = &rack->list[i];
        if (bh_buffer_size(at->buffer) == size && !!at->margins == margins) {
            *out = *at;
            rack->count--;
            memmove(at, at + 1, (rack->count - i) * sizeof *at);
            return true;
        }
    }
    return false;
}

void bhi_rack_give(struct bhi_rack *rack, struct bhi_racked racked) {
    if (rack && racked.buffer && rack->count == rack->room) {
        const size_t room = 2 * rack->room + 8;
        struct bhi_racked *const list = realloc(rack->list, room * sizeof *list);
        if (list) {
            rack->list = list;
            rack->room = room;
        }
    }
    if (rack && racked.buffer && rack->count < rack->room) {
        rack->list[rack->count++] = racked;
    } else {
        release(racked);
    }
}

void bhi_rack_close(struct bhi_rack *rack) {
    empty(rack);
    free(rack->list);
    *rack = (struct bhi_rack){0};
}
