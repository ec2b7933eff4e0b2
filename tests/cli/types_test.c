/* Which arrays a kernel's declaration takes, and what is kept of an inspection. */
#include "request/types.h"

#include <stdlib.h>

#include "harness.h"

static const char *const names[] = {
    [BH_DTYPE_NONE] = "none",       [BH_DTYPE_F16] = "f16",        [BH_DTYPE_F32] = "f32",
    [BH_DTYPE_F64] = "f64",         [BH_DTYPE_I8] = "i8",          [BH_DTYPE_U8] = "u8",
    [BH_DTYPE_I16] = "i16",         [BH_DTYPE_U16] = "u16",        [BH_DTYPE_I32] = "i32",
    [BH_DTYPE_U32] = "u32",         [BH_DTYPE_I64] = "i64",        [BH_DTYPE_U64] = "u64",
    [BH_DTYPE_BF16] = "bf16",       [BH_DTYPE_BOOL] = "bool",      [BH_DTYPE_F8_E4M3] = "f8_e4m3",
    [BH_DTYPE_F8_E5M2] = "f8_e5m2", [BH_DTYPE_F8_E8M0] = "f8_e8m0"};
enum { DTYPES = sizeof names / sizeof names[0] };

/* |taken|: "all", or the dtypes, each between spaces; none is taken everywhere. */
static void expect(const char *type, const char *taken) {
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        char name[16];
        snprintf(name, sizeof name, " %s ", names[dtype]);
        const bool wanted = dtype == BH_DTYPE_NONE || !strcmp(taken, "all") || strstr(taken, name);
        if (bhi_type_takes(type, (bh_dtype)dtype) != wanted) {
            BHT_FAIL("%s %s %s", type, wanted ? "does not take" : "takes", names[dtype]);
        }
    }
}

TEST(one_scalar) {
    expect("f32[]", " f32 ");
    expect("f32", " f32 ");
    expect("f64[]", " f64 ");
    expect("f16[]", " f16 ");
    expect("u32[]", " u32 "); /* the sign counts */
    expect("i32[]", " i32 ");
    expect("u64x2[]", " u64 ");
    expect("f32x4[]", " f32 ");
    expect("f32x4x4[16]", " f32 ");
    expect("f32x3[4][8][]", " f32 ");
    expect("i32[?]", " i32 ");
    expect("{f32, f32x2, f32[]}", " f32 ");
    expect("{f32x3, {f32, f32[4]}}[]", " f32 ");
}

/* Those that SPIR-V has no type for. */
TEST(by_their_bytes) {
    expect("u8[]", " u8 bool f8_e4m3 f8_e5m2 f8_e8m0 ");
    expect("i8x4[]", " i8 bool f8_e4m3 f8_e5m2 f8_e8m0 ");
    expect("u16[]", " u16 bf16 ");
    expect("i16[]", " i16 bf16 ");
}

TEST(no_one_scalar) {
    expect("{u32, f32[]}", "all");
    expect("{f16, u8[32]}[]", "all"); /* blocks of quantised weights */
    expect("{f32, {f32, u32}}", "all");
    expect("?", "all");
    expect("{f32, ?}", "all");
    expect("", "all");
    expect("{}[]", "all");
    expect("{f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32...", "all");
}

TEST(several_declarations) {
    expect("u8[] | u32[]", " u8 bool f8_e4m3 f8_e5m2 f8_e8m0 u32 ");
    expect("f32[] | f32x4[]", " f32 ");
    expect("f32[] | f16x8[] | i32[4]", " f32 f16 i32 ");
    expect("f32[] | {u32, f32[]}", "all");
    expect("f32[] | u32[] | f32...", "all");
}

TEST(bytes_of_an_element) {
    static const struct {
        const char *type;
        uint32_t bytes;
    } rows[] = {{"f32[]", 4},
                {"f32x4[]", 16},
                {"u32[8]", 4},
                {"f32x3[]", 4},
                {"f64x2", 16},
                {"f32x4x4[]", 64},
                {"f32x4x2[]", 32},
                {"u8[]", 1},
                {"f16x2[4]", 4},
                {"i32[?]", 4},
                {"f64[] | f32x4[]", 8},
                {"f32x4[] | u8[]", 1},
                {"{f32}[]", 0},
                {"f32[] | {f32}", 0},
                {"?", 0},
                {"", 0},
                {"f32...", 0},
                {"[4]", 0},
                {"q7[]", 0}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        if (bhi_type_element(rows[i].type) != rows[i].bytes) {
            BHT_FAIL("%s has %u bytes", rows[i].type, bhi_type_element(rows[i].type));
        }
    }
}

TEST(an_inspection_is_kept) {
    static bh_inspection seen = {
        .local_size = {2, 3, 4},
        .binding_count = 2,
        .bindings = {{.set = 1, .binding = 2, .count = 1, .type = "f32[]", .name = "a"},
                     {.set = 3,
                      .binding = 4,
                      .count = 5,
                      .kind = BH_BINDING_UNIFORM_BUFFER,
                      .access = BH_ACCESS_READ_WRITE,
                      .measured = true,
                      .type = "u32[]",
                      .name = "b"}},
        .push_size = 12,
        .member_count = 2,
        .members = {{.offset = 0, .stride = 0, .step = 4, .type = "f32", .name = "x"},
                    {.offset = 4, .stride = 8, .step = 2, .type = "u32[2]", .name = "y"}}};
    struct bhi_kernel_types *types = bhi_kernel_types_take(&seen);
    char list[BHI_NAMED_LIST];
    BHT_TRUE(types);
    BHT_EQ(types->count, 2u);
    for (uint32_t i = 0; i < 2; i++) {
        const bh_inspected_binding *from = &seen.bindings[i];
        const struct bhi_kernel_type *to = &types->types[i];
        BHT_TRUE(bhi_slot_is(to->slot, (struct bhi_slot){from->set, from->binding, 0}));
        BHT_EQ(to->count, from->count);
        BHT_EQ(to->kind, from->kind);
        BHT_EQ(to->access, from->access);
        BHT_EQ(to->measured, from->measured);
        BHT_STR_EQ(to->type, from->type);
        BHT_STR_EQ(to->name, from->name);
        BHT_EQ(types->members[i].offset, seen.members[i].offset);
        BHT_EQ(types->members[i].stride, seen.members[i].stride);
        BHT_EQ(types->members[i].step, seen.members[i].step);
        BHT_STR_EQ(types->members[i].type, seen.members[i].type);
    }
    BHT_MEM_EQ(types->local_size, seen.local_size, sizeof seen.local_size);
    BHT_EQ(types->push_size, 12u);
    bhi_kernel_types_list_members(types, list);
    BHT_STR_EQ(list, "'x' (f32), 'y' (u32[2])");
    free(types);
}

/* What is cut is said to be, once, and nothing comes behind it. */
TEST(a_list_of_names_is_cut) {
    char list[BHI_NAMED_LIST + 1] = "";
    list[BHI_NAMED_LIST] = '!';
    for (int i = 0; i < 60; i++) {
        bhi_list_named(list, i % 2 ? "a_name" : "", "f32");
    }
    BHT_EQ(list[BHI_NAMED_LIST], '!');
    const char *cut = strstr(list, ", ...");
    BHT_TRUE(!strncmp(list, "f32, 'a_name' (f32), f32", 24) && cut);
    BHT_EQ(strspn(cut + 5, " "), strlen(cut + 5));
    BHT_GT(cut - list, BHI_NAMED_LIST - 40);
}
