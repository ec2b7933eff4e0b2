/* Which arrays a kernel's declaration takes. */
#include "request/types.h"

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
