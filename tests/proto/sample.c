#include "sample.h"

#include <string.h>

const uint32_t sample_types[] = {
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc) BHI_MSG_##NAME,
#include "ipc/messages.def"
};
const size_t sample_type_count = sizeof sample_types / sizeof sample_types[0];

static uint64_t next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

static uint64_t number(enum sample how, uint64_t *random, uint64_t min, uint64_t max) {
    if (how == SAMPLE_MIN) {
        return min;
    }
    if (how == SAMPLE_MAX) {
        return max;
    }
    uint64_t value = next(random) >> (next(random) % 64);
    return max - min == UINT64_MAX ? value : min + value % (max - min + 1);
}

static int32_t signed_number(enum sample how, uint64_t *random, int32_t min, int32_t max) {
    return (int32_t)(min + (int64_t)number(how, random, 0, (uint64_t)((int64_t)max - min)));
}

static void blob(enum sample how, uint64_t *random, uint8_t *out, size_t length) {
    for (size_t i = 0; i < length; i++) {
        out[i] = (uint8_t)number(how, random, 0, 255);
    }
}

/* One, two, three and four bytes a character, and the two control characters that are allowed. */
static void text(enum sample how, uint64_t *random, char *out, size_t capacity) {
    static const char *const characters[] = {"a",        " ", "\n",           "\t",
                                             "\xc3\xa9", "~", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    size_t want = number(how, random, 0, capacity - 1), used = 0;
    while (used < want) {
        const char *c = characters[how == SAMPLE_RANDOM ? next(random) % 8 : 0];
        if (strlen(c) > want - used) {
            c = "b";
        }
        memcpy(out + used, c, strlen(c));
        used += strlen(c);
    }
    out[used] = '\0';
}

#define FILL_U32(name, min, max, doc)  m->name = (uint32_t)number(how, random, min, max);
#define FILL_U64(name, min, max, doc)  m->name = number(how, random, min, max);
#define FILL_I32(name, min, max, doc)  m->name = signed_number(how, random, min, max);
#define FILL_BLOB(name, length, doc)   blob(how, random, m->name, length);
#define FILL_TEXT(name, capacity, doc) text(how, random, m->name, capacity);
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc)                                 \
    static void fill_##name(struct bhi_msg_##name *m, enum sample how, uint64_t *random) {         \
        (void)m, (void)how, (void)random;                                                          \
        BHI_FIELDS_##NAME(FILL_U32, FILL_U64, FILL_I32, FILL_BLOB, FILL_TEXT)                      \
    }
#include "ipc/messages.def"

void sample_message(struct bhi_message *out, uint32_t type, enum sample how, uint64_t *random) {
    memset(out, 0, sizeof *out);
    out->type = (enum bhi_message_type)type;
    switch (out->type) {
#define BHI_MESSAGE(name, NAME, number, direction, states, fds, doc)                               \
    case BHI_MSG_##NAME:                                                                           \
        fill_##name(&out->name, how, random);                                                      \
        break;
#include "ipc/messages.def"
    }
}

#define SAME_NUMBER(name, min, max, doc) &&a->name == b->name
#define SAME_BLOB(name, length, doc)     &&memcmp(a->name, b->name, length) == 0
#define SAME_TEXT(name, capacity, doc)   &&strncmp(a->name, b->name, capacity) == 0
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc)                                 \
    static bool same_##name(const struct bhi_msg_##name *a, const struct bhi_msg_##name *b) {      \
        (void)a, (void)b;                                                                          \
        return true BHI_FIELDS_##NAME(SAME_NUMBER, SAME_NUMBER, SAME_NUMBER, SAME_BLOB,            \
                                      SAME_TEXT);                                                  \
    }
#include "ipc/messages.def"

bool same_message(const struct bhi_message *a, const struct bhi_message *b) {
    if (a->type != b->type) {
        return false;
    }
    switch (a->type) {
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc)                                 \
    case BHI_MSG_##NAME:                                                                           \
        return same_##name(&a->name, &b->name);
#include "ipc/messages.def"
    }
    return false;
}
