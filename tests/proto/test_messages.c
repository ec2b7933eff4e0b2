/* Every field of every message: its edges, every truncation, what does not belong there. All of it
 * comes from messages.def; a message that is added there is tested from then on. */
#include "harness.h"
#include "sample.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- the table, flattened: a row for each field -------------------------------------------- */

enum kind { U32, U64, I32, BLOB, TEXT };

struct field {
    const char *name;
    enum kind kind;
    uint64_t min, max; /* I32: sign-extended; BLOB: length; TEXT: capacity in max */
};

struct table {
    const char *name;
    uint32_t type;
    enum bhi_direction direction;
    uint32_t states;
    uint32_t fds;
    const struct field *fields;
    size_t count;
};

#define ROW_U32(name, min, max, doc) {#name, U32, min, max},
#define ROW_U64(name, min, max, doc) {#name, U64, min, max},
#define ROW_I32(name, min, max, doc)                                                               \
    {#name, I32, (uint64_t)(int64_t)(min), (uint64_t)(int64_t)(max)},
#define ROW_BLOB(name, length, doc)   {#name, BLOB, 0, length},
#define ROW_TEXT(name, capacity, doc) {#name, TEXT, 0, capacity},
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc)                                 \
    static const struct field fields_##name[] = {                                                  \
        BHI_FIELDS_##NAME(ROW_U32, ROW_U64, ROW_I32, ROW_BLOB, ROW_TEXT){"", U32, 0, 0}};
#include "ipc/messages.def"

static const struct table tables[] = {
#define W2S BHI_W2S
#define S2W BHI_S2W
#define S2Z BHI_S2Z
#define Z2S BHI_Z2S
#define S2O BHI_S2O
#define O2S BHI_O2S
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc)                                 \
    {#name,                                                                                        \
     type,                                                                                         \
     direction,                                                                                    \
     states,                                                                                       \
     fds,                                                                                          \
     fields_##name,                                                                                \
     sizeof fields_##name / sizeof(struct field) - 1},
#include "ipc/messages.def"
};
#define TABLES (sizeof tables / sizeof tables[0])

/* -- bytes by hand: an encoder that owes nothing to the one under test --------------------- */

struct bytes {
    uint8_t at[BHI_WIRE_MAX + 4096];
    size_t size;
};

static void put(struct bytes *b, uint64_t value, size_t width) {
    for (size_t i = 0; i < width; i++) {
        b->at[b->size++] = (uint8_t)(value >> (8 * i));
    }
}

static void put_field(struct bytes *b, const struct field *f) {
    switch (f->kind) {
    case U32:
    case I32:
        put(b, f->min, 4);
        break;
    case U64:
        put(b, f->min, 8);
        break;
    case BLOB:
        for (uint64_t i = 0; i < f->max; i++) {
            put(b, i, 1);
        }
        break;
    case TEXT:
        put(b, 3, 4);
        put(b, 0x796568, 3); /* "hey" */
        break;
    }
}

static void begin(struct bytes *b, uint32_t type) {
    b->size = 0;
    put(b, BHI_WIRE_MAGIC, 4);
    put(b, type, 2);
    put(b, BHI_WIRE_VERSION, 2);
    put(b, 0, 4);
}

static void end(struct bytes *b) {
    uint32_t body = (uint32_t)(b->size - BHI_WIRE_HEADER);
    for (size_t i = 0; i < 4; i++) {
        b->at[8 + i] = (uint8_t)(body >> (8 * i));
    }
}

/* A whole message, smallest values; offsets of its fields go into |at|. */
static void compose(struct bytes *b, const struct table *t, size_t *at) {
    begin(b, t->type);
    for (size_t i = 0; i < t->count; i++) {
        if (at) {
            at[i] = b->size;
        }
        put_field(b, &t->fields[i]);
    }
    end(b);
}

/* Decodes from memory of exactly that size: a byte too far is caught by the sanitizers. */
static int decode_as(const uint8_t *bytes, size_t size, enum bhi_direction direction,
                     uint32_t states, struct bhi_message *out, char *why, size_t why_size) {
    uint8_t *copy = malloc(size ? size : 1);
    if (size) {
        memcpy(copy, bytes, size);
    }
    memset(out, 0xee, sizeof *out);
    int rc = bhi_wire_decode(copy, size, direction, states, out, why, why_size);
    free(copy);
    if (rc) { /* nothing of a refused message gets out */
        static const struct bhi_message zero;
        BHT_MEM_EQ(out, &zero, sizeof zero);
    }
    return rc;
}

static int decode(const struct bytes *b, const struct table *t, char *why, size_t why_size) {
    struct bhi_message out;
    return decode_as(b->at, b->size, t->direction, BHI_WS_ANY, &out, why, why_size);
}

static void expect(const struct bytes *b, const struct table *t, const char *field, int expected,
                   const char *what) {
    char why[200] = "unset";
    int rc = decode(b, t, why, sizeof why);
    if (rc != expected) {
        BHT_FAIL("%s.%s, %s: %d (%s)", t->name, field, what, rc, why);
    }
    if (rc == 0) {
        BHT_STR_EQ(why, "");
        return;
    }
    /* One line that names message and field, and no control characters of the peer's. */
    char named[96];
    snprintf(named, sizeof named, "%s%s%s", t->name, field[0] ? "." : "", field);
    if (!strstr(why, named)) {
        BHT_FAIL("%s, %s: \"%s\" does not name it", named, what, why);
    }
    for (const char *c = why; *c; c++) {
        BHT_TRUE(*c >= 0x20 && *c < 0x7f);
    }
    BHT_EQ(decode(b, t, NULL, 0), expected);
    char tiny[4];
    BHT_EQ(decode(b, t, tiny, sizeof tiny), expected);
    BHT_EQ(strlen(tiny), 3);
}

/* -- tests --------------------------------------------------------------------------------- */

TEST(test_smallest_and_largest) {
    for (size_t i = 0; i < TABLES; i++) {
        for (int how = SAMPLE_MIN; how <= SAMPLE_MAX; how++) {
            struct bhi_message in, out;
            uint8_t bytes[BHI_WIRE_MAX];
            char why[200];
            sample_message(&in, tables[i].type, (enum sample)how, NULL);
            int length = bhi_wire_encode(&in, bytes, sizeof bytes);
            if (length < (int)BHI_WIRE_HEADER) {
                BHT_FAIL("%s: %d", tables[i].name, length);
            }
            if (decode_as(bytes, (size_t)length, tables[i].direction, tables[i].states, &out, why,
                          sizeof why)) {
                BHT_FAIL("%s: %s", tables[i].name, why);
            }
            BHT_TRUE(same_message(&in, &out));
            /* Every capacity that is too small is noticed, and nothing past it is written. */
            for (size_t room = 0; room < (size_t)length; room += how == SAMPLE_MIN ? 1 : 97) {
                uint8_t *exact = malloc(room ? room : 1);
                BHT_EQ(bhi_wire_encode(&in, exact, room), -EMSGSIZE);
                free(exact);
            }
        }
    }
}

/* The layout is what messages.def says, not only what encoder and decoder agree on. */
TEST(test_layout) {
    for (size_t i = 0; i < TABLES; i++) {
        struct bytes b;
        struct bhi_message out;
        uint8_t again[BHI_WIRE_MAX];
        compose(&b, &tables[i], NULL);
        expect(&b, &tables[i], "", 0, "composed by hand");
        BHT_EQ(decode_as(b.at, b.size, tables[i].direction, BHI_WS_ANY, &out, NULL, 0), 0);
        BHT_EQ(bhi_wire_encode(&out, again, sizeof again), b.size);
        BHT_MEM_EQ(again, b.at, b.size);
    }
}

static void set_number(struct bytes *b, size_t at, uint64_t value, size_t width) {
    size_t size = b->size;
    b->size = at;
    put(b, value, width);
    b->size = size;
}

static void number_edges(const struct table *t, const struct field *f, struct bytes *b, size_t at) {
    const uint64_t least = f->kind == I32 ? (uint64_t)INT32_MIN : 0;
    const uint64_t top = f->kind == U64   ? UINT64_MAX
                         : f->kind == I32 ? (uint64_t)INT32_MAX
                                          : UINT32_MAX;
    const struct {
        const char *what;
        uint64_t value;
        int expected;
        bool is_there;
    } edges[] = {
        {"min", f->min, 0, true},
        {"max", f->max, 0, true},
        {"min - 1", f->min - 1, -EBADMSG, f->min != least},
        {"the least", least, -EBADMSG, f->min != least},
        {"max + 1", f->max + 1, -EBADMSG, f->max != top},
        {"the greatest", top, -EBADMSG, f->max != top},
    };
    for (size_t i = 0; i < BHT_COUNT(edges); i++) {
        if (edges[i].is_there) {
            set_number(b, at, edges[i].value, f->kind == U64 ? 8 : 4);
            expect(b, t, f->name, edges[i].expected, edges[i].what);
        }
    }
}

/* The message with |text| as field |index|, and |claimed| as its length. */
static void compose_text(struct bytes *b, const struct table *t, size_t index, const char *text,
                         size_t length, uint32_t claimed) {
    begin(b, t->type);
    for (size_t i = 0; i < t->count; i++) {
        if (i != index) {
            put_field(b, &t->fields[i]);
            continue;
        }
        put(b, claimed, 4);
        memcpy(b->at + b->size, text, length);
        b->size += length;
    }
    end(b);
}

static void text_edges(const struct table *t, size_t index) {
    static const struct {
        const char *text;
        size_t length;
        int expected;
    } cases[] = {
        {"", 0, 0},
        {"a\nb\tc", 5, 0},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, 0},
        {"a\0b", 3, -EBADMSG},
        {"\0", 1, -EBADMSG},
        {"\x01", 1, -EBADMSG},
        {"a\x1b[2J", 5, -EBADMSG},
        {"\r", 1, -EBADMSG},
        {"\x7f", 1, -EBADMSG},
        {"\xe2\x80\xae", 3, -EBADMSG}, /* U+202E: what follows is shown backwards */
        {"\xc2\x85", 2, -EBADMSG},
        {"\xff", 1, -EBADMSG},
        {"\xc3", 1, -EBADMSG},
        {"ab\xe2\x82", 4, -EBADMSG},
        {"\xed\xa0\x80", 3, -EBADMSG},
        {"\xc0\x80", 2, -EBADMSG},
        {"\xf4\x90\x80\x80", 4, -EBADMSG},
    };
    const struct field *f = &t->fields[index];
    struct bytes b;
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        compose_text(&b, t, index, cases[i].text, cases[i].length, (uint32_t)cases[i].length);
        expect(&b, t, f->name, cases[i].expected, "text");
    }
    static char full[4096];
    memset(full, 'x', sizeof full);
    uint32_t capacity = (uint32_t)f->max;
    compose_text(&b, t, index, full, capacity - 1, capacity - 1);
    expect(&b, t, f->name, 0, "full");
    compose_text(&b, t, index, full, capacity, capacity);
    expect(&b, t, f->name, -EBADMSG, "over capacity");
    /* The claim is more than there is. */
    static const uint32_t claims[] = {0x7fffffff, 0x80000000, UINT32_MAX};
    for (size_t i = 0; i < BHT_COUNT(claims); i++) {
        compose_text(&b, t, index, full, 1, claims[i]);
        expect(&b, t, f->name, -EBADMSG, "length lies");
    }
}

TEST(test_every_field_at_its_edges) {
    size_t seen = 0;
    for (size_t i = 0; i < TABLES; i++) {
        const struct table *t = &tables[i];
        for (size_t j = 0; j < t->count; j++, seen++) {
            struct bytes b;
            size_t at[64];
            compose(&b, t, at);
            switch (t->fields[j].kind) {
            case U32:
            case U64:
            case I32:
                number_edges(t, &t->fields[j], &b, at[j]);
                break;
            case BLOB:
                memset(b.at + at[j], 0, t->fields[j].max);
                expect(&b, t, t->fields[j].name, 0, "zeros");
                memset(b.at + at[j], 0xff, t->fields[j].max);
                expect(&b, t, t->fields[j].name, 0, "ones");
                break;
            case TEXT:
                text_edges(t, j);
                break;
            }
        }
    }
    BHT_GT(seen, 80);
}

/* The encoder refuses what the decoder would. */
TEST(test_encoder_checks) {
    uint8_t bytes[BHI_WIRE_MAX];
    struct bhi_message m;
    size_t refused = 0;
#define TRY(field, value)                                                                          \
    do {                                                                                           \
        sample_message(&m, TYPE, SAMPLE_MIN, NULL);                                                \
        PART.field = (value);                                                                      \
        BHT_EQ(bhi_wire_encode(&m, bytes, sizeof bytes), -EINVAL);                                 \
        refused++;                                                                                 \
    } while (0);
#define TRY_U32(field, min, max, doc)                                                              \
    if ((uint32_t)(min) > 0)                                                                       \
        TRY(field, (uint32_t)(min) - 1)                                                            \
    if ((uint32_t)(max) < UINT32_MAX)                                                              \
    TRY(field, (uint32_t)(max) + 1)
#define TRY_U64(field, min, max, doc)                                                              \
    if ((uint64_t)(min) > 0)                                                                       \
        TRY(field, (uint64_t)(min) - 1)                                                            \
    if ((uint64_t)(max) < UINT64_MAX)                                                              \
    TRY(field, (uint64_t)(max) + 1)
#define TRY_I32(field, min, max, doc)                                                              \
    if ((min) > INT32_MIN)                                                                         \
        TRY(field, (min) - 1)                                                                      \
    if ((max) < INT32_MAX)                                                                         \
    TRY(field, (max) + 1)
#define TRY_BLOB(field, length, doc)
#define TRY_TEXT(field, capacity, doc)                                                             \
    sample_message(&m, TYPE, SAMPLE_MIN, NULL);                                                    \
    memset(PART.field, 'x', capacity);                                                             \
    BHT_EQ(bhi_wire_encode(&m, bytes, sizeof bytes), -EINVAL);                                     \
    TRY(field[0], '\x1b')                                                                          \
    TRY(field[0], '\xff')
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc)                                 \
    {                                                                                              \
        enum { TYPE = type };                                                                      \
        struct bhi_msg_##name *part = &m.name;                                                     \
        (void)part;                                                                                \
        BHI_FIELDS_##NAME(TRY_U32, TRY_U64, TRY_I32, TRY_BLOB, TRY_TEXT)                           \
    }
#define PART (*part)
#include "ipc/messages.def"
    BHT_GT(refused, 80);
    memset(&m, 0, sizeof m);
    m.type = (enum bhi_message_type)0;
    BHT_EQ(bhi_wire_encode(&m, bytes, sizeof bytes), -EINVAL);
    m.type = (enum bhi_message_type)0x10001; /* hello in the lower half */
    BHT_EQ(bhi_wire_encode(&m, bytes, sizeof bytes), -EINVAL);
}

TEST(test_every_truncation) {
    for (size_t i = 0; i < TABLES; i++) {
        const struct table *t = &tables[i];
        struct bytes whole, cut;
        struct bhi_message out;
        compose(&whole, t, NULL);
        for (size_t size = 0; size < whole.size; size++) {
            /* The header tells the truth about what was sent, but it has not all come … */
            char why[200];
            BHT_EQ(decode_as(whole.at, size, t->direction, BHI_WS_ANY, &out, why, sizeof why),
                   -EBADMSG);
            BHT_GT(strlen(why), 0);
            if (size < BHI_WIRE_HEADER) {
                continue;
            }
            /* … or it fits what came, and the fields are not all there. */
            cut = whole;
            cut.size = size;
            end(&cut);
            expect(&cut, t, "", -EBADMSG, "truncated");
        }
    }
}

TEST(test_trailing_bytes) {
    for (size_t i = 0; i < TABLES; i++) {
        for (size_t extra = 1; extra <= 16; extra++) {
            struct bytes b;
            struct bhi_message out;
            compose(&b, &tables[i], NULL);
            memset(b.at + b.size, 0, extra);
            b.size += extra;
            BHT_EQ(decode_as(b.at, b.size, tables[i].direction, BHI_WS_ANY, &out, NULL, 0),
                   -EBADMSG);
            end(&b);
            expect(&b, &tables[i], "", -EBADMSG, "trailing bytes");
        }
    }
}

TEST(test_header) {
    for (size_t i = 0; i < TABLES; i++) {
        struct bytes b;
        struct bhi_message out;
        char why[200];
        compose(&b, &tables[i], NULL);
        /* No bit of the header can be another one, but for bits that make another known type: such
         * a message is not this one, and is refused unless it has the very same fields. */
        for (size_t bit = 0; bit < 8 * BHI_WIRE_HEADER; bit++) {
            b.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
            int rc =
                decode_as(b.at, b.size, tables[i].direction, BHI_WS_ANY, &out, why, sizeof why);
            bool type_bit = bit >= 32 && bit < 48;
            if (rc == 0 && !(type_bit && out.type != (enum bhi_message_type)tables[i].type)) {
                BHT_FAIL("%s: bit %zu of the header does not matter", tables[i].name, bit);
            }
            b.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (uint32_t type = 0; type < 200; type++) {
            if (bhi_message_info(type)) {
                continue;
            }
            set_number(&b, 4, type, 2);
            BHT_EQ(decode_as(b.at, b.size, tables[i].direction, BHI_WS_ANY, &out, why, sizeof why),
                   -EBADMSG);
            BHT_STR_HAS(why, "type");
        }
    }
}

TEST(test_direction_and_state) {
    static const enum bhi_direction directions[] = {BHI_W2S, BHI_S2W, BHI_S2Z,
                                                    BHI_Z2S, BHI_S2O, BHI_O2S};
    for (size_t i = 0; i < TABLES; i++) {
        const struct table *t = &tables[i];
        struct bytes b;
        struct bhi_message out;
        char why[200];
        compose(&b, t, NULL);
        for (size_t d = 0; d < BHT_COUNT(directions); d++) {
            int rc = decode_as(b.at, b.size, directions[d], BHI_WS_ANY, &out, why, sizeof why);
            BHT_EQ(rc, directions[d] == t->direction ? 0 : -EPROTO);
            if (rc) {
                BHT_STR_HAS(why, t->name);
            }
        }
        for (uint32_t bits = 0; bits < 256; bits++) {
            int rc = decode_as(b.at, b.size, t->direction, bits, &out, why, sizeof why);
            BHT_EQ(rc, bits & t->states ? 0 : -EPROTO);
        }
        /* Malformed comes before forbidden. */
        b.at[b.size++] = 0;
        end(&b);
        BHT_EQ(decode_as(b.at, b.size, t->direction, 0, &out, why, sizeof why), -EBADMSG);
    }
}

/* What a worker may say, and when, is short: a line that is added here is a decision. */
TEST(test_worker_permissions) {
    for (size_t i = 0; i < TABLES; i++) {
        const struct table *t = &tables[i];
        if (t->direction != BHI_W2S) {
            continue;
        }
        if (t->states & BHI_WS_SPAWNING) {
            BHT_EQ(t->type, BHI_MSG_HELLO);
        }
        if (t->fds) {
            BHT_EQ(t->type, BHI_MSG_WORDS);
            BHT_EQ(t->states, BHI_WS_HELD); /* it has run nothing yet that is not trusted */
        }
        BHT_EQ(t->states & ~7u, 0);
    }
}

TEST(test_info) {
    for (size_t i = 0; i < TABLES; i++) {
        const struct bhi_message_info *info = bhi_message_info(tables[i].type);
        BHT_NE(info, NULL);
        BHT_EQ(info->type, tables[i].type);
        BHT_EQ(info->direction, tables[i].direction);
        BHT_EQ(info->states, tables[i].states);
        BHT_EQ(info->fds, tables[i].fds);
        BHT_STR_EQ(info->name, tables[i].name);
        BHT_GT(strlen(info->doc), 0);
        for (size_t j = 0; j < i; j++) {
            BHT_NE(tables[i].type, tables[j].type);
        }
    }
    BHT_EQ(bhi_message_info(0), NULL);
    BHT_EQ(bhi_message_info(0x10001), NULL);
    BHT_EQ(bhi_message_info(UINT32_MAX), NULL);
}
