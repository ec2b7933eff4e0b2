/* Kernels: what tells one from another (K1), what is none, and what is left of them. */
#include "puppet.h"
#include "supervisor/kernel/body.h"
#include "supervisor/kernel/kernel.h"

#include <unistd.h>

/* Of a module, which nobody parses here. */
static const uint32_t code[6] = {0x07230203, 0x00010000, 0, 8, 0, 0};

static bh_kernel *make(const void *bytes, size_t size, bh_kernel_options options) {
    bh_kernel *kernel = NULL;
    bh_detail detail;
    options.struct_size = sizeof options;
    if (bh_kernel_create_spirv(puppet.context, bytes, size, &options, &kernel, &detail) != BH_OK) {
        BHT_FAIL("%s", detail.message);
    }
    return kernel;
}

#define SPECS(...)                                                                                 \
    .specializations = (const bh_specialization[]){__VA_ARGS__},                                   \
    .specialization_count =                                                                        \
        sizeof((const bh_specialization[]){__VA_ARGS__}) / sizeof(bh_specialization)
#define SPEC(id, bytes, value) {.constant_id = (id), .size = (bytes), .bits = (value)}

/* K1: each part, and where it ends. */
TEST(k1_what_tells_a_kernel_from_others) {
    /* With what is hashed behind the code of the row before it, up to a length that is 0. */
    struct {
        uint32_t words[6];
        uint64_t length;
        char entry[4];
        uint64_t id, size;
    } __attribute__((packed)) longer = {.length = 4, .entry = "main", .id = 5, .size = 8};
    memcpy(longer.words, code, sizeof longer.words);
    const struct {
        const void *bytes;
        size_t size;
        bh_kernel_options options;
    } rows[] = {
        {code, 24, {0}},
        {code, 20, {0}},
        {code, 24, {.trusted = 1}},
        {code, 24, {.entry = "other"}},
        {code, 24, {SPECS(SPEC(5, 8, 0))}},
        {code, 24, {SPECS(SPEC(6, 8, 0))}},
        {code, 24, {SPECS(SPEC(5, 4, 0))}},
        {code, 24, {SPECS(SPEC(5, 8, 1))}},
        {code, 24, {SPECS(SPEC(5, 8, 0), SPEC(6, 8, 9))}},
        {&longer, sizeof longer, {.entry = "", SPECS(SPEC(6, 8, 9))}},
    };
    bh_kernel *kernels[BHT_COUNT(rows)], *again;
    const struct bhi_kernel_table *table = puppet.context->kernels;
    uint8_t hash[32], other[32];
    uint64_t bytes = 0;
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        kernels[i] = make(rows[i].bytes, rows[i].size, rows[i].options);
        again = make(rows[i].bytes, rows[i].size, rows[i].options);
        bytes += rows[i].size;
        BHT_EQ(kernels[i]->body, again->body);
        BHT_EQ(table->count, i + 1);
        BHT_EQ(table->shared, i + 1);
        BHT_EQ(table->bytes, bytes);
        bh_kernel_hash(kernels[i], hash);
        for (size_t k = 0; k < i; k++) {
            bh_kernel_hash(kernels[k], other);
            if (!memcmp(hash, other, sizeof hash) || kernels[k]->body == kernels[i]->body) {
                BHT_FAIL("rows %zu and %zu are one", k, i);
            }
        }
        bh_kernel_release(again);
    }
    /* Neither the order of constants nor what is above their sizes. */
    again =
        make(code, 24, (bh_kernel_options){SPECS(SPEC(6, 8, 9), SPEC(5, 8, 0)), .name = "named"});
    BHT_EQ(again->body, kernels[8]->body);
    BHT_STR_EQ(bh_kernel_name(again), "named");
    bh_kernel_release(again);
    again = make(code, 24, (bh_kernel_options){SPECS(SPEC(5, 4, UINT64_C(7) << 32))});
    BHT_EQ(again->body, kernels[6]->body);
    bh_kernel_release(again);
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        BHT_EQ(table->count, BHT_COUNT(rows) - i);
        bytes -= rows[i].size;
        bh_kernel_release(kernels[i]);
        BHT_EQ(table->bytes, bytes);
    }
    BHT_EQ(table->count, 0);
}

/* Code is kept in memory or in a file that nobody can change; workers get a descriptor of either. */
TEST(code_is_kept_as_it_was_given) {
    static const size_t sizes[] = {20, 128 << 10, (128 << 10) + 4};
    static uint8_t bytes[(128 << 10) + 4], found[sizeof bytes + 4];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    memcpy(bytes, code, 4);
    for (size_t i = 0; i < BHT_COUNT(sizes); i++) {
        size_t size = 0;
        bh_kernel *kernel = make(bytes, sizes[i], (bh_kernel_options){0});
        BHT_EQ(kernel->body->fd >= 0, sizes[i] > 128 << 10);
        const int fd = bhi_kernel_body_descriptor(kernel->body);
        BHT_NE(fd, kernel->body->fd);
        BHT_EQ(pread(fd, found, sizes[i], 0), sizes[i]);
        BHT_MEM_EQ(found, bytes, sizes[i]);
        BHT_EQ(pwrite(fd, found, 1, 0), -1);
        close(fd);
        memset(found, 0xAA, sizeof found);
        BHT_EQ(bh_kernel_code(kernel, found, 8, &size, NULL), BH_OK);
        BHT_EQ(size, sizes[i]);
        BHT_MEM_EQ(found, bytes, 8);
        BHT_EQ(found[8], 0xAA);
        BHT_EQ(bh_kernel_code(kernel, found, sizeof found, &size, NULL), BH_OK);
        BHT_MEM_EQ(found, bytes, sizes[i]);
        BHT_EQ(found[sizes[i]], 0xAA);
        bh_kernel_release(kernel);
    }
}

TEST(what_is_no_kernel) {
    static char entry[257];
    static bh_specialization many[257];
    static const uint32_t text[6] = {0x64696f76, 0x69616d20, 0x2029286e, 0x7d7b, 0, 0};
    memset(entry, 'e', 256);
    for (uint32_t i = 0; i < 257; i++) {
        many[i] = (bh_specialization)SPEC(i, 4, 0);
    }
    const struct {
        const uint32_t *words;
        size_t size;
        bh_kernel_options options;
        bh_reason reason; /* NONE: it is one */
    } rows[] = {
        {code, 20, {.entry = entry + 1}, BH_REASON_NONE},
        {code, 20, {.entry = entry}, BH_REASON_TOO_LONG},
        {code, 20, {.entry = "a\nb"}, BH_REASON_NOT_TEXT},
        {code, 20, {.specialization_count = 1}, BH_REASON_NULL},
        {code, 20, {.specializations = many, .specialization_count = 256}, BH_REASON_NONE},
        {code, 20, {.specializations = many, .specialization_count = 257}, BH_REASON_OVER},
        {code, 20, {SPECS(SPEC(1, 3, 0))}, BH_REASON_ARGUMENT},
        {code, 20, {SPECS(SPEC(1, 4, 0), SPEC(2, 4, 0), SPEC(1, 4, 0))}, BH_REASON_ARGUMENT},
        {code, 16, {0}, BH_REASON_CUT_SHORT},
        {code, 22, {0}, BH_REASON_CUT_SHORT},
        {code, (64 << 20) + 4, {0}, BH_REASON_OVER}, /* which is not looked at */
        {code, 3, {0}, BH_REASON_NOT_SPIRV},
        {text, 24, {0}, BH_REASON_NOT_SPIRV},
        {NULL, 24, {0}, BH_REASON_NULL},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bh_kernel_options options = rows[i].options;
        bh_kernel *kernel = NULL;
        bh_detail detail = {0};
        options.struct_size = sizeof options;
        const bh_status status = bh_kernel_create_spirv(puppet.context, rows[i].words, rows[i].size,
                                                        &options, &kernel, &detail);
        if ((status == BH_OK) != (rows[i].reason == BH_REASON_NONE) ||
            !kernel != (status != BH_OK) || detail.reason != rows[i].reason) {
            BHT_FAIL("row %zu: %s", i, detail.message);
        }
        BHT_EQ(puppet.context->kernels->count, status == BH_OK);
        bh_kernel_release(kernel);
    }
}
