/* Kernels: what tells one from another (K1), and what is left of them. */
#include "puppet.h"
#include "supervisor/kernel/body.h"
#include "supervisor/kernel/kernel.h"

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
