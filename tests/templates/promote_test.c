/* K3: the types of results, held against the table that NumPy's numpy.promote_types documents. */
#include "harness.h"
#include "templates/values.h"

#include <string.h>

static bh_dtype by_code(const char *code) {
    for (int i = 0; i < BHI_DTYPE_COUNT; i++) {
        if (!memcmp(bhi_dtype_npy_code(bhi_dtypes[i]), code, 2)) {
            return bhi_dtypes[i];
        }
    }
    BHT_FAIL("no dtype %.2s", code);
    return BH_DTYPE_NONE;
}

TEST(test_pairs) {
    static const char *const rows[] = {
        /*     b1 i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 */
        "b1    b1 i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8", "i1    i1 i1 i2 i2 i4 i4 i8 i8 f8 f2 f4 f8",
        "u1    u1 i2 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8", "i2    i2 i2 i2 i2 i4 i4 i8 i8 f8 f4 f4 f8",
        "u2    u2 i4 u2 i4 u2 i4 u4 i8 u8 f4 f4 f8", "i4    i4 i4 i4 i4 i4 i4 i8 i8 f8 f8 f8 f8",
        "u4    u4 i8 u4 i8 u4 i8 u4 i8 u8 f8 f8 f8", "i8    i8 i8 i8 i8 i8 i8 i8 i8 f8 f8 f8 f8",
        "u8    u8 f8 u8 f8 u8 f8 u8 f8 u8 f8 f8 f8", "f2    f2 f2 f2 f4 f4 f8 f8 f8 f8 f2 f4 f8",
        "f4    f4 f4 f4 f4 f4 f8 f8 f8 f8 f4 f4 f8", "f8    f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8",
    };
    for (int row = 0; row < BHI_DTYPE_COUNT; row++) {
        for (int column = 0; column < BHI_DTYPE_COUNT; column++) {
            const bh_dtype a = by_code(rows[row]), b = by_code(rows[column]);
            const bh_dtype wanted = by_code(rows[row] + 6 + 3 * column);
            if (bhi_promote(a, b) != wanted) {
                BHT_FAIL("%s and %s: %s, not %s", bhi_dtype_name(a), bhi_dtype_name(b),
                         bhi_dtype_name(bhi_promote(a, b)), bhi_dtype_name(wanted));
            }
        }
    }
}

/* NEP 50: a Python number has a kind and no size. */
TEST(test_written_numbers) {
    for (int i = 0; i < BHI_DTYPE_COUNT; i++) {
        const bh_dtype a = bhi_dtypes[i];
        BHT_EQ(bhi_promote_integer(a), a == BH_DTYPE_BOOL ? BH_DTYPE_I64 : a);
        BHT_EQ(bhi_promote_real(a), a <= BH_DTYPE_F64 ? a : BH_DTYPE_F64);
    }
}

/* numpy.sin(x).dtype */
TEST(test_functions) {
    static const char wanted[BH_DTYPE_BOOL + 1][4] = {
        [BH_DTYPE_F16] = "f2", [BH_DTYPE_F32] = "f4", [BH_DTYPE_F64] = "f8",
        [BH_DTYPE_I8] = "f2",  [BH_DTYPE_U8] = "f2",  [BH_DTYPE_I16] = "f4",
        [BH_DTYPE_U16] = "f4", [BH_DTYPE_I32] = "f8", [BH_DTYPE_U32] = "f8",
        [BH_DTYPE_I64] = "f8", [BH_DTYPE_U64] = "f8", [BH_DTYPE_BOOL] = "f2"};
    for (int i = 0; i < BHI_DTYPE_COUNT; i++) {
        BHT_EQ(bhi_promote_function(bhi_dtypes[i]), by_code(wanted[bhi_dtypes[i]]));
    }
}
