/* The .npy fuzz target over a corpus made here: valid files, and every one-byte change and every
 * truncation of them. Runs in an ordinary build. */
#include "harness.h"

#include "formats/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

TEST(test_mutations) {
    struct bhi_array array = {
        .dtype = BH_DTYPE_F32, .dimensions = 2, .shape = {12, 345}, .bytes = 12 * 345 * 4};
    uint8_t whole[BHI_NPY_WRITE_CAPACITY], changed[BHI_NPY_WRITE_CAPACITY];
    size_t size = bhi_npy_write_header(&array, whole, sizeof whole);
    BHT_GT(size, 0);
    for (int version = 1; version <= 3; version++) {
        whole[6] = (uint8_t)version;
        for (size_t length = 0; length <= size; length++) {
            BHT_EQ(LLVMFuzzerTestOneInput(whole, length), 0);
        }
        for (size_t at = 0; at < size; at++) {
            for (unsigned value = 0; value < 256; value++) {
                memcpy(changed, whole, size);
                changed[at] = (uint8_t)value;
                BHT_EQ(LLVMFuzzerTestOneInput(changed, size), 0);
            }
        }
    }
}
