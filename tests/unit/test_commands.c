#include "ipc/commands.h"
#include "support.h"
#include <errno.h>
#include <stdlib.h>

/* A record under construction, in memory of exactly its size (a reader past its end is caught). */
static _Alignas(8) uint8_t built[1 << 15];
static struct bhi_lane_record *const record = (void *)built;

static void begin(void) {
    memset(built, 0, sizeof built);
    *record = (struct bhi_lane_record){.seq = 1, .size = sizeof *record};
}

static void *add(uint16_t type, size_t size) {
    struct bhi_cmd_header *header = (void *)(built + record->size);
    *header = (struct bhi_cmd_header){.type = type, .size = (uint32_t)size};
    record->size += size;
    record->command_count++;
    return header;
}

static struct bhi_cmd_dispatch *add_dispatch(uint32_t bindings, uint32_t push) {
    struct bhi_cmd_dispatch *d = add(BHI_CMD_DISPATCH, bhi_cmd_dispatch_size(bindings, push));
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

/* A command of one type, with these fields. */
#define ADD(name, NAME, ...)                                                                       \
    static void *add_##name(void) {                                                                \
        struct bhi_cmd_##name *c = add(BHI_CMD_##NAME, sizeof *c);                                 \
        const struct bhi_cmd_header header = c->header;                                            \
        *c = (struct bhi_cmd_##name){__VA_ARGS__};                                                 \
        c->header = header;                                                                        \
        return c;                                                                                  \
    }
ADD(copy, COPY, .src = 1, .dst = 2, .bytes = 100)
ADD(fill, FILL, .dst = 2, .bytes = 100)
ADD(prepare, PREPARE, .kernel = 3)
ADD(inspect, INSPECT, .file = 4, .answer = 5, .room = 6)
ADD(load, LOAD, .file = 4, .buffer = 5, .bytes = 100)
ADD(compile, COMPILE, .source = 4, .answer = 5)
ADD(reflect, REFLECT, .source = 4, .answer = 5)

static void *add_a_dispatch(void) {
    return add_dispatch(2, 8);
}

static void *(*const builders[])(void) = {
    [BHI_CMD_DISPATCH] = add_a_dispatch, [BHI_CMD_COPY] = add_copy,       [BHI_CMD_FILL] = add_fill,
    [BHI_CMD_PREPARE] = add_prepare,     [BHI_CMD_INSPECT] = add_inspect, [BHI_CMD_LOAD] = add_load,
    [BHI_CMD_COMPILE] = add_compile,     [BHI_CMD_REFLECT] = add_reflect};

static int check_bytes(size_t bytes, char *why, size_t why_size) {
    struct bhi_lane_record *copy = malloc(bytes);
    memcpy(copy, built, bytes);
    int rc = bhi_record_check(copy, bytes, why, why_size);
    free(copy);
    return rc;
}

/* Expects the record to be refused with |word| in the reason, and the same without a reason. */
static void refused(const char *word) {
    char why[160];
    BHT_EQ(check_bytes(record->size, why, sizeof why), -EPROTO);
    if (!strstr(why, word)) {
        BHT_FAIL("\"%s\" does not name %s", why, word);
    }
    BHT_EQ(strchr(why, '\n'), NULL);
    BHT_EQ(check_bytes(record->size, NULL, 0), -EPROTO);
}

static void accepted(void) {
    char why[160];
    if (check_bytes(record->size, why, sizeof why)) {
        BHT_FAIL("refused: %s", why);
    }
}

TEST(test_walk) {
    begin();
    add_dispatch(3, 12);
    add_copy();
    add_fill();
    add_prepare();
    add_dispatch(256, 4096);
    add_dispatch(0, 0);
    accepted();
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
static void edge(size_t offset, size_t width, uint64_t value, bool good, const char *field) {
    uint8_t saved[8];
    memcpy(saved, built + offset, width);
    memcpy(built + offset, &value, width); /* little endian */
    char why[160];
    int rc = check_bytes(record->size, why, sizeof why);
    /* An edge that the table permits may break a relation between fields; then the reason is
     * another one than the range. */
    bool range = rc != 0 && strstr(why, "is not in") && strstr(why, field);
    if (good ? range : !range) {
        BHT_FAIL("%s = %llu: %s", field, (unsigned long long)value, rc ? why : "accepted");
    }
    memcpy(built + offset, saved, width);
}

static void edges(size_t offset, size_t width, uint64_t min, uint64_t max, const char *field) {
    uint64_t top = width == 8 ? UINT64_MAX : UINT32_MAX;
    if (min > 0) {
        edge(offset, width, min - 1, false, field);
    }
    edge(offset, width, min, true, field);
    edge(offset, width, max, true, field);
    if (max < top) {
        edge(offset, width, max + 1, false, field);
        edge(offset, width, top, false, field);
    }
}

static void build_one(uint32_t type) {
    begin();
    if (type >= BHT_COUNT(builders) || !builders[type]) {
        BHT_FAIL("command %u has no builder here", type);
    }
    builders[type]();
}

TEST(test_every_field_at_its_edges) {
    const size_t base = sizeof(struct bhi_lane_record);
#define EDGE_U64(field, min, max, doc)                                                             \
    edges(base + offsetof(COMMAND, field), 8, min, max, "." #field);
#define EDGE_U32(field, min, max, doc)                                                             \
    edges(base + offsetof(COMMAND, field), 4, min, max, "." #field);
#define BHI_COMMAND(name, NAME, type, doc)                                                         \
    {                                                                                              \
        typedef struct bhi_cmd_##name COMMAND;                                                     \
        build_one(type);                                                                           \
        accepted();                                                                                \
        BHI_COMMAND_FIELDS_##NAME(EDGE_U64, EDGE_U32)                                              \
    }
#include "ipc/commands.def"
    build_one(BHI_CMD_DISPATCH);
    size_t binding = base + sizeof(struct bhi_cmd_dispatch) + sizeof(struct bhi_cmd_binding);
#define BINDING_EDGES(field, width, min, max)                                                      \
    edges(binding + offsetof(struct bhi_cmd_binding, field), width, min, max, "binding." #field)
    BINDING_EDGES(buffer, 8, 1, UINT64_MAX);
    BINDING_EDGES(set, 4, 0, 31);
    BINDING_EDGES(binding, 4, 0, 65535);
    BINDING_EDGES(access, 4, 1, 3);
    BINDING_EDGES(element, 4, 0, 255);
}

/* Cut or extended at every multiple of 8: each length but the right one is refused, and no byte
 * past the end is looked at. */
TEST(test_every_truncation) {
    begin();
    add_fill();
    add_dispatch(2, 8);
    add_copy();
    accepted();
    size_t whole = record->size;
    for (size_t bytes = sizeof *record; bytes <= whole + 64; bytes++) {
        int expected = bytes == whole ? 0 : -EPROTO;
        record->size = bytes; /* the record claims what there is */
        BHT_EQ(check_bytes(bytes, NULL, 0), expected);
        record->size = whole; /* or what there should be */
        BHT_EQ(check_bytes(bytes, NULL, 0), expected);
    }
    for (uint32_t count = 0; count < 6; count++) {
        record->command_count = count;
        BHT_EQ(check_bytes(whole, NULL, 0), count == 3 ? 0 : -EPROTO);
    }
    record->command_count = UINT32_MAX;
    BHT_EQ(check_bytes(whole, NULL, 0), -EPROTO);
}

TEST(test_headers) {
    static const uint16_t types[] = {0, 99, 100, 255, 65535};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        begin();
        add_copy();
        struct bhi_cmd_header *header = add(types[i], 16);
        refused("command 1, unknown.type");
        header->type = BHI_CMD_PREPARE;
        ((struct bhi_cmd_prepare *)(void *)header)->kernel = 1;
        accepted();
        header->reserved = 1;
        refused("reserved");
    }
    begin();
    ((struct bhi_cmd_load *)add_load())->offset = INT64_MAX - 99;
    refused("overflow");
    begin();
    ((struct bhi_cmd_load *)add_load())->offset = INT64_MAX - 100;
    accepted();
    static const uint32_t sizes[] = {0, 4, 8, 15, 17, 24, 32, 0xfffffff8, UINT32_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        begin();
        ((struct bhi_cmd_header *)add_prepare())->size = sizes[i];
        refused("prepare.size");
    }
    begin();
    record->flags = BHI_RECORD_TIMED;
    accepted();
    record->flags = BHI_RECORD_FLAGS + 1;
    refused("record.flags");
    record->flags = 0;
    record->seq = 0;
    add_prepare();
    refused("seq");
    BHT_STR_EQ(bhi_command_name(BHI_CMD_FILL), "fill");
    BHT_STR_EQ(bhi_command_name(77), "unknown");
}

TEST(test_dispatch_tails) {
    begin();
    add_dispatch(2, 8)->header.size += 8;
    record->size += 8;
    refused("dispatch.size");
    begin();
    add_dispatch(2, 8)->binding_count = 1;
    refused("dispatch.size");
    begin();
    add_dispatch(2, 8)->push_size = 16;
    refused("dispatch.size");
    begin();
    add_dispatch(2, 8)->push_size = 6;
    refused("push_size");
    static const uint32_t blocks[][5] = {/* x, y, z, shared bytes, is it good? */
                                         {1, 2, 3, 0, 1}, {1, 1, 1, 9, 1}, {0, 0, 0, 9, 0},
                                         {0, 1, 1, 0, 0}, {1, 0, 1, 0, 0}, {1, 1, 0, 0, 0}};
    for (size_t i = 0; i < BHT_COUNT(blocks); i++) {
        begin();
        struct bhi_cmd_dispatch *d = add_dispatch(1, 4);
        d->block_x = blocks[i][0];
        d->block_y = blocks[i][1];
        d->block_z = blocks[i][2];
        d->shared_bytes = blocks[i][3];
        blocks[i][4] ? accepted() : refused("dispatch.block");
    }
    for (uint32_t dirty = 0; dirty < 4; dirty++) {
        begin();
        struct bhi_cmd_dispatch *d = add_dispatch(1, 4);
        ((uint8_t *)(uintptr_t)bhi_cmd_push(d))[4 + dirty] = 1;
        refused("push");
    }
    begin();
    struct bhi_cmd_binding *binding = (void *)(add_dispatch(1, 0) + 1);
    binding->offset = UINT64_MAX;
    binding->size = 1;
    refused("binding.offset");
    binding->size = 0; /* an empty buffer has an empty range */
    accepted();
}

TEST(test_copy_ranges) {
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
        begin();
        struct bhi_cmd_copy *c = add_copy();
        c->src = cases[i].src;
        c->dst = cases[i].dst;
        c->src_offset = cases[i].src_offset;
        c->dst_offset = cases[i].dst_offset;
        c->bytes = cases[i].bytes;
        if (cases[i].word) {
            refused(cases[i].word);
        } else {
            accepted();
        }
    }
}

TEST(test_fill_alignment) {
    begin();
    struct bhi_cmd_fill *c = add_fill();
    for (uint64_t i = 0; i < 8; i++) {
        c->dst_offset = i;
        c->bytes = 8;
        i % 4 ? refused("dst_offset") : accepted();
        c->dst_offset = 0;
        c->bytes = 8 + i;
        i % 4 ? refused("bytes") : accepted();
    }
    c->bytes = 8;
    c->dst_offset = UINT64_MAX - 3;
    refused("dst_offset");
}
