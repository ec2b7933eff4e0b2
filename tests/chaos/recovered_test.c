/* When the engine takes a stream for recovered: never sooner than the checker does. */
#include "harness.h"

#include "chaos/engine/recovered.h"

enum { STREAMS = 2 };

TEST(each_stream_since_the_newest_fault) {
    struct bhi_recovered r = {0};
    BHT_TRUE(!bhi_recovered_all(&r, STREAMS)); /* nothing has worked yet */
    bhi_recovered_ready(&r, 0, 1, 1000);
    BHT_TRUE(!bhi_recovered_all(&r, STREAMS));
    bhi_recovered_ready(&r, 1, 2, 1001);
    BHT_TRUE(bhi_recovered_all(&r, STREAMS));
    const int32_t pid = 1000;
    bhi_recovered_struck(&r, BHI_FAULT_KILL, &pid, 1, 5);
    bhi_recovered_ready(&r, 0, 5, 1002); /* it was there before */
    bhi_recovered_ready(&r, 1, 7, 1001);
    BHT_TRUE(!bhi_recovered_all(&r, STREAMS));
    bhi_recovered_ready(&r, 0, 6, 1002);
    BHT_TRUE(bhi_recovered_all(&r, STREAMS));
}

/* What closes its socket serves for a while what is in its lane. */
TEST(not_by_the_dead) {
    static const enum bhi_fault_kind ends[] = {BHI_FAULT_KILL,  BHI_FAULT_SEGV,   BHI_FAULT_GARBAGE,
                                               BHI_FAULT_CLOSE, BHI_FAULT_ZYGOTE, BHI_FAULT_DEVICE};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct bhi_recovered r = {0};
        const int32_t pids[] = {1000, 1001}, other = 999;
        bhi_recovered_struck(&r, ends[i], pids, 2, 3);
        bhi_recovered_ready(&r, 0, 4, 1000);
        bhi_recovered_ready(&r, 1, 5, 1002);
        BHT_TRUE(!bhi_recovered_all(&r, STREAMS));
        bhi_recovered_struck(&r, BHI_FAULT_KILL, &other, 1, 3); /* nor after another fault */
        bhi_recovered_ready(&r, 0, 6, 1001);
        BHT_TRUE(!bhi_recovered_all(&r, STREAMS));
        bhi_recovered_ready(&r, 0, 7, 1003);
        BHT_TRUE(bhi_recovered_all(&r, STREAMS));
    }
    struct bhi_recovered r = {0};
    const int32_t pid = 1000;
    bhi_recovered_struck(&r, BHI_FAULT_SLOW, &pid, 1, 3); /* it goes on */
    bhi_recovered_ready(&r, 0, 4, 1000);
    BHT_TRUE(bhi_recovered_all(&r, 1));
}

TEST(the_oldest_are_forgotten) {
    struct bhi_recovered r = {0};
    for (int32_t pid = 1; pid <= 3 * BHI_RECOVERED_HURT; pid++) {
        bhi_recovered_struck(&r, BHI_FAULT_KILL, &pid, 1, 3);
    }
    bhi_recovered_ready(&r, 0, 4, 3 * BHI_RECOVERED_HURT);
    BHT_TRUE(!bhi_recovered_all(&r, 1));
    bhi_recovered_ready(&r, 0, 4, 1);
    BHT_TRUE(bhi_recovered_all(&r, 1));
}
