#include "base/share.h"
#include "harness.h"

/* Takes one after the other. Returns how many. */
static uint64_t take_all(uint64_t *taken, uint64_t all) {
    uint64_t own = 0;
    while (bhi_share_allows(own, 1, *taken, all)) {
        own++;
        ++*taken;
    }
    return own;
}

TEST(test_each_leaves_half_of_what_it_found) {
    static const uint64_t shares[] = {50, 25, 13, 6, 3, 2, 1, 0};
    uint64_t taken = 0;
    for (size_t i = 0; i < BHT_COUNT(shares); i++) {
        BHT_EQ(take_all(&taken, 100), shares[i]);
    }
    BHT_EQ(taken, 100);
}

TEST(test_what_is_more_than_all_is_refused) {
    BHT_TRUE(bhi_share_allows(0, 100, 0, 100));
    BHT_TRUE(!bhi_share_allows(0, 101, 0, 100));
    BHT_TRUE(!bhi_share_allows(30, 41, 30, 100));
    BHT_TRUE(bhi_share_allows(30, 40, 30, 100));
    BHT_TRUE(!bhi_share_allows(0, 1, 101, 100));
    BHT_TRUE(!bhi_share_allows(0, 1, 0, 0));
}
