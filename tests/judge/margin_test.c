/* Margins around an output: each byte of them counts, and none of the output. */
#include "judge/check/setup.h"

#include "harness.h"

enum { SIZE = 37 };
static const struct bhi_filler_place place = {.seed = 1};

static struct bhi_margins margins;
static uint8_t buffer[SIZE + 2 * BHI_MARGIN];

TEST(each_byte_of_them_counts) {
    int64_t offset = 0;
    bhi_margins_fill(&margins, place, buffer, SIZE);
    BHT_TRUE(!bhi_margins_find(&margins, buffer, SIZE, &offset));
    for (int i = 0; i < SIZE + 2 * BHI_MARGIN; i++) {
        const bool outside = i < BHI_MARGIN || i >= BHI_MARGIN + SIZE;
        buffer[i] ^= 1;
        BHT_TRUE(bhi_margins_find(&margins, buffer, SIZE, &offset) == outside);
        BHT_TRUE(!outside || offset == i - BHI_MARGIN);
        buffer[i] ^= 1;
    }
}

TEST(the_first_is_named) {
    int64_t offset = 0;
    bhi_margins_fill(&margins, place, buffer, SIZE);
    buffer[BHI_MARGIN + SIZE + 3] ^= 0x80;
    buffer[BHI_MARGIN - 1] ^= 0x80;
    BHT_TRUE(bhi_margins_find(&margins, buffer, SIZE, &offset));
    BHT_EQ(offset, -1);
}

/* The output holds noise before a run, other than in the run before. */
TEST(the_output_is_noise) {
    uint8_t first[SIZE];
    int zeros = 0;
    bhi_margins_fill(&margins, place, buffer, SIZE);
    memcpy(first, buffer + BHI_MARGIN, SIZE);
    for (int i = 0; i < SIZE; i++) {
        zeros += first[i] == 0;
    }
    BHT_LT(zeros, 5);
    bhi_margins_fill(&margins, (struct bhi_filler_place){.seed = 2}, buffer, SIZE);
    BHT_NE(memcmp(first, buffer + BHI_MARGIN, SIZE), 0);
}
