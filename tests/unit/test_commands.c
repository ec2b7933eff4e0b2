#include "ipc/commands.h"
#include "support.h"
#include <errno.h>
#include <stdlib.h>

/* A record under construction, in memory of exactly its size (a reader past its end is caught). */
struct builder {
    _Alignas(8) uint8_t bytes[1 << 15];
    size_t size;
};

static void begin(struct builder *b) {
    memset(b->bytes, 0, sizeof b->bytes);
    *(struct bhi_lane_record *)b->bytes = (struct bhi_lane_record){.seq = 1};
    b->size = sizeof(struct bhi_lane_record);
}

static void *add(struct builder *b, uint16_t type, size_t size) {
    struct bhi_cmd_header *header = (void *)(b->bytes + b->size);
    *header = (struct bhi_cmd_header){.type = type, .size = (uint32_t)size};
    b->size += size;
    ((struct bhi_lane_record *)b->bytes)->command_count++;
    return header;
}

static struct bhi_cmd_dispatch *add_dispatch(struct builder *b, uint32_t bindings, uint32_t push) {
    struct bhi_cmd_dispatch *d = add(b, BHI_CMD_DISPATCH, bhi_cmd_dispatch_size(bindings, push));
    d->kernel = 1;
    d->groups_x = d->groups_y = d->groups_z = 1;
    d->binding_count = bindings;
    d->push_size = push;
    struct bhi_cmd_binding *list = (void *)(d + 1);
    for (uint32_t i = 0; i < bindings; i++) {
        list[i] =
            (struct bhi_cmd_binding){.buffer = i + 1, .size = 4, .binding = i, .access = 1 + i % 3};
    }
    memset(list + bindings, 0xab, push);
    return d;
}

static struct bhi_cmd_copy *add_copy(struct builder *b) {
    struct bhi_cmd_copy *c = add(b, BHI_CMD_COPY, sizeof *c);
    c->src = 1;
    c->dst = 2;
    c->bytes = 100;
    return c;
}

static struct bhi_cmd_fill *add_fill(struct builder *b) {
    struct bhi_cmd_fill *c = add(b, BHI_CMD_FILL, sizeof *c);
    c->dst = 2;
    c->bytes = 100;
    return c;
}

static struct bhi_cmd_prepare *add_prepare(struct builder *b) {
    struct bhi_cmd_prepare *c = add(b, BHI_CMD_PREPARE, sizeof *c);
    c->kernel = 3;
    return c;
}

static struct bhi_cmd_inspect *add_inspect(struct builder *b) {
    struct bhi_cmd_inspect *c = add(b, BHI_CMD_INSPECT, sizeof *c);
    c->file = 4;
    c->answer = 5;
    c->room = 6;
    return c;
}

static struct bhi_cmd_load *add_load(struct builder *b) {
    struct bhi_cmd_load *c = add(b, BHI_CMD_LOAD, sizeof *c);
    c->file = 4;
    c->buffer = 5;
    c->bytes = 100;
    return c;
}

static struct bhi_cmd_compile *add_compile(struct builder *b) {
    struct bhi_cmd_compile *c = add(b, BHI_CMD_COMPILE, sizeof *c);
    c->source = 4;
    c->answer = 5;
    return c;
}

static struct bhi_cmd_reflect *add_reflect(struct builder *b) {
    struct bhi_cmd_reflect *c = add(b, BHI_CMD_REFLECT, sizeof *c);
    c->source = 4;
    c->answer = 5;
    return c;
}

static int check_bytes(struct builder *b, size_t bytes, char *why, size_t why_size) {
    struct bhi_lane_record *copy = malloc(bytes);
    memcpy(copy, b->bytes, bytes);
    int rc = bhi_record_check(copy, bytes, why, why_size);
    free(copy);
    return rc;
}

/* Expects the record to be refused with |word| in the reason, and the same without a reason. */
static void refused(struct builder *b, const char *word) {
    char why[160];
    ((struct bhi_lane_record *)b->bytes)->size = b->size;
    BHT_EQ(check_bytes(b, b->size, why, sizeof why), -EPROTO);
    if (!strstr(why, word)) {
        BHT_FAIL("\"%s\" does not name %s", why, word);
    }
    BHT_EQ(strchr(why, '\n'), NULL);
    BHT_EQ(check_bytes(b, b->size, NULL, 0), -EPROTO);
}

static void accepted(struct builder *b) {
    char why[160];
    ((struct bhi_lane_record *)b->bytes)->size = b->size;
    if (check_bytes(b, b->size, why, sizeof why)) {
        BHT_FAIL("refused: %s", why);
    }
}

TEST(test_walk) {
    static struct builder b;
    begin(&b);
    add_dispatch(&b, 3, 12);
    add_copy(&b);
    add_fill(&b);
    add_prepare(&b);
    add_dispatch(&b, 256, 4096);
    add_dispatch(&b, 0, 0);
    accepted(&b);
    struct bhi_lane_record *record = (void *)b.bytes;
    static const uint32_t types[] = {BHI_CMD_DISPATCH, BHI_CMD_COPY,     BHI_CMD_FILL,
                                     BHI_CMD_PREPARE,  BHI_CMD_DISPATCH, BHI_CMD_DISPATCH};
    size_t i = 0;
    for (const struct bhi_cmd_header *c = bhi_record_first(record); c;
         c = bhi_record_next(record, c)) {
        BHT_EQ(c->type, types[i++]);
    }
    BHT_EQ(i, 6);
    const struct bhi_cmd_dispatch *d = (const void *)bhi_record_first(record);
    BHT_EQ(bhi_cmd_bindings(d)[2].buffer, 3);
    BHT_EQ(bhi_cmd_push(d)[0], 0xab);
    BHT_EQ(bhi_cmd_push(d)[11], 0xab);
    BHT_EQ(bhi_cmd_dispatch_size(3, 12), sizeof *d + 3 * 40 + 16);
}

/* Every field of every command at min - 1, min, max, max + 1, from the table. */
static void edge(struct builder *b, size_t offset, size_t width, uint64_t value, bool good,
                 const char *field) {
    uint8_t saved[8];
    memcpy(saved, b->bytes + offset, width);
    memcpy(b->bytes + offset, &value, width); /* little endian */
    char why[160];
    ((struct bhi_lane_record *)b->bytes)->size = b->size;
    int rc = check_bytes(b, b->size, why, sizeof why);
    /* An edge that the table permits may break a relation between fields; then the reason is
     * another one than the range. */
    bool range = rc != 0 && strstr(why, "is not in") && strstr(why, field);
    if (good ? range : !range) {
        BHT_FAIL("%s = %llu: %s", field, (unsigned long long)value, rc ? why : "accepted");
    }
    memcpy(b->bytes + offset, saved, width);
}

static void edges(struct builder *b, size_t offset, size_t width, uint64_t min, uint64_t max,
                  const char *field) {
    uint64_t top = width == 8 ? UINT64_MAX : UINT32_MAX;
    if (min > 0) {
        edge(b, offset, width, min - 1, false, field);
    }
    edge(b, offset, width, min, true, field);
    edge(b, offset, width, max, true, field);
    if (max < top) {
        edge(b, offset, width, max + 1, false, field);
        edge(b, offset, width, top, false, field);
    }
}

static void build_one(struct builder *b, uint32_t type) {
    begin(b);
    switch (type) {
    case BHI_CMD_DISPATCH:
        add_dispatch(b, 2, 8);
        break;
    case BHI_CMD_COPY:
        add_copy(b);
        break;
    case BHI_CMD_FILL:
        add_fill(b);
        break;
    case BHI_CMD_PREPARE:
        add_prepare(b);
        break;
    case BHI_CMD_INSPECT:
        add_inspect(b);
        break;
    case BHI_CMD_LOAD:
        add_load(b);
        break;
    case BHI_CMD_COMPILE:
        add_compile(b);
        break;
    case BHI_CMD_REFLECT:
        add_reflect(b);
        break;
    default:
        BHT_FAIL("command %u has no builder here", type);
    }
}

TEST(test_every_field_at_its_edges) {
    static struct builder b;
    const size_t base = sizeof(struct bhi_lane_record);
#define EDGE_U64(field, min, max, doc)                                                             \
    edges(&b, base + offsetof(COMMAND, field), 8, min, max, "." #field);
#define EDGE_U32(field, min, max, doc)                                                             \
    edges(&b, base + offsetof(COMMAND, field), 4, min, max, "." #field);
#define BHI_COMMAND(name, NAME, type, doc)                                                         \
    {                                                                                              \
        typedef struct bhi_cmd_##name COMMAND;                                                     \
        build_one(&b, type);                                                                       \
        accepted(&b);                                                                              \
        BHI_COMMAND_FIELDS_##NAME(EDGE_U64, EDGE_U32)                                              \
    }
#include "ipc/commands.def"
    build_one(&b, BHI_CMD_DISPATCH);
    size_t binding = base + sizeof(struct bhi_cmd_dispatch) + sizeof(struct bhi_cmd_binding);
#define BINDING_EDGES(field, width, min, max)                                                      \
    edges(&b, binding + offsetof(struct bhi_cmd_binding, field), width, min, max, "binding." #field)
    BINDING_EDGES(buffer, 8, 1, UINT64_MAX);
    BINDING_EDGES(set, 4, 0, 31);
    BINDING_EDGES(binding, 4, 0, 65535);
    BINDING_EDGES(access, 4, 1, 3);
    BINDING_EDGES(element, 4, 0, 255);
}

/* Cut or extended at every multiple of 8: each length but the right one is refused, and no byte
 * past the end is looked at. */
TEST(test_every_truncation) {
    static struct builder b;
    begin(&b);
    add_fill(&b);
    add_dispatch(&b, 2, 8);
    add_copy(&b);
    accepted(&b);
    size_t whole = b.size;
    struct bhi_lane_record *record = (void *)b.bytes;
    for (size_t bytes = sizeof *record; bytes <= whole + 64; bytes++) {
        int expected = bytes == whole ? 0 : -EPROTO;
        record->size = bytes; /* the record claims what there is */
        BHT_EQ(check_bytes(&b, bytes, NULL, 0), expected);
        record->size = whole; /* or what there should be */
        BHT_EQ(check_bytes(&b, bytes, NULL, 0), expected);
    }
    for (uint32_t count = 0; count < 6; count++) {
        record->command_count = count;
        BHT_EQ(check_bytes(&b, whole, NULL, 0), count == 3 ? 0 : -EPROTO);
    }
    record->command_count = UINT32_MAX;
    BHT_EQ(check_bytes(&b, whole, NULL, 0), -EPROTO);
}

TEST(test_headers) {
    static struct builder b;
    static const uint16_t types[] = {0, 99, 100, 255, 65535};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        begin(&b);
        add_copy(&b);
        struct bhi_cmd_header *header = add(&b, types[i], 16);
        refused(&b, "command 1, unknown.type");
        header->type = BHI_CMD_PREPARE;
        ((struct bhi_cmd_prepare *)(void *)header)->kernel = 1;
        accepted(&b);
        header->reserved = 1;
        refused(&b, "reserved");
    }
    begin(&b);
    add_load(&b)->offset = INT64_MAX - 99;
    refused(&b, "overflow");
    begin(&b);
    add_load(&b)->offset = INT64_MAX - 100;
    accepted(&b);
    static const uint32_t sizes[] = {0, 4, 8, 15, 17, 24, 32, 0xfffffff8, UINT32_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        begin(&b);
        add_prepare(&b)->header.size = sizes[i];
        refused(&b, "prepare.size");
    }
    begin(&b);
    ((struct bhi_lane_record *)b.bytes)->flags = BHI_RECORD_TIMED;
    accepted(&b);
    ((struct bhi_lane_record *)b.bytes)->flags = BHI_RECORD_FLAGS + 1;
    refused(&b, "record.flags");
    ((struct bhi_lane_record *)b.bytes)->flags = 0;
    ((struct bhi_lane_record *)b.bytes)->seq = 0;
    add_prepare(&b);
    refused(&b, "seq");
    BHT_STR_EQ(bhi_command_name(BHI_CMD_FILL), "fill");
    BHT_STR_EQ(bhi_command_name(77), "unknown");
}

TEST(test_dispatch_tails) {
    static struct builder b;
    begin(&b);
    add_dispatch(&b, 2, 8)->header.size += 8;
    b.size += 8;
    refused(&b, "dispatch.size");
    begin(&b);
    add_dispatch(&b, 2, 8)->binding_count = 1;
    refused(&b, "dispatch.size");
    begin(&b);
    add_dispatch(&b, 2, 8)->push_size = 16;
    refused(&b, "dispatch.size");
    begin(&b);
    add_dispatch(&b, 2, 8)->push_size = 6;
    refused(&b, "push_size");
    for (uint32_t dirty = 0; dirty < 4; dirty++) {
        begin(&b);
        struct bhi_cmd_dispatch *d = add_dispatch(&b, 1, 4);
        ((uint8_t *)(uintptr_t)bhi_cmd_push(d))[4 + dirty] = 1;
        refused(&b, "push");
    }
    begin(&b);
    struct bhi_cmd_binding *binding = (void *)(add_dispatch(&b, 1, 0) + 1);
    binding->offset = UINT64_MAX;
    binding->size = 1;
    refused(&b, "binding.offset");
    binding->size = 0; /* an empty buffer has an empty range */
    accepted(&b);
}

TEST(test_copy_ranges) {
    static struct builder b;
    static const struct {
        uint64_t src, dst, src_offset, dst_offset, bytes;
        const char *word; /* NULL: accepted */
    } cases[] = {
        {1, 2, 0, 0, 100, NULL},
        {1, 1, 0, 100, 100, NULL},
        {1, 1, 100, 0, 100, NULL},
        {1, 1, 0, 99, 100, "overlap"},
        {1, 1, 99, 0, 100, "overlap"},
        {1, 1, 7, 7, 1, "overlap"},
        {1, 2, UINT64_MAX, 0, 1, "src_offset"},
        {1, 2, 0, UINT64_MAX, 1, "dst_offset"},
        {1, 2, 1, 0, UINT64_MAX, "src_offset"},
        {1, 2, 0, 1, UINT64_MAX, "dst_offset"},
        {1, 2, 0, 0, UINT64_MAX, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(&b);
        struct bhi_cmd_copy *c = add_copy(&b);
        c->src = cases[i].src;
        c->dst = cases[i].dst;
        c->src_offset = cases[i].src_offset;
        c->dst_offset = cases[i].dst_offset;
        c->bytes = cases[i].bytes;
        if (cases[i].word) {
            refused(&b, cases[i].word);
        } else {
            accepted(&b);
        }
    }
}

TEST(test_fill_alignment) {
    static struct builder b;
    begin(&b);
    struct bhi_cmd_fill *c = add_fill(&b);
    for (uint64_t i = 0; i < 8; i++) {
        c->dst_offset = i;
        c->bytes = 8;
        i % 4 ? refused(&b, "dst_offset") : accepted(&b);
        c->dst_offset = 0;
        c->bytes = 8 + i;
        i % 4 ? refused(&b, "bytes") : accepted(&b);
    }
    c->bytes = 8;
    c->dst_offset = UINT64_MAX - 3;
    refused(&b, "dst_offset");
}
