/* The table of ranges behind the barriers. */
#include "rig.h"
#include "worker/vulkan/hazards.h"

#include <stdlib.h>

TEST(overlaps) {
    static const struct {
        uint64_t begin, end;
        bool write;
        bool read_conflicts, write_conflicts; /* with [100, 200) */
    } cases[] = {
        {0, 100, true, false, false},   {200, 300, true, false, false},
        {199, 200, true, true, true},   {0, 101, true, true, true},
        {199, 300, false, false, true}, {150, 160, false, false, true},
        {0, 1000, true, true, true},    {100, 100, true, false, false},
    };
    struct bhi_hazards hazards = {0};
    struct bhi_vk_buffer one = {.id = 1}, other = {.id = 2};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bhi_hazards_clear(&hazards);
        BHT_TRUE(bhi_hazards_add(&hazards, &one, cases[i].begin, cases[i].end, cases[i].write));
        BHT_EQ(bhi_hazards_conflict(&hazards, &one, 100, 200, false), cases[i].read_conflicts);
        BHT_EQ(bhi_hazards_conflict(&hazards, &one, 100, 200, true), cases[i].write_conflicts);
        BHT_TRUE(!bhi_hazards_conflict(&hazards, &other, 100, 200, true));
        bhi_hazards_clear(&hazards);
        BHT_TRUE(!bhi_hazards_conflict(&hazards, &one, 100, 200, true));
    }
    bhi_hazards_fini(&hazards);
}

/* Against a plain list, with ranges that join, and buffers that take turns. */
TEST(random_ranges) {
    struct bhi_hazards hazards = {0};
    struct bhi_vk_buffer buffers[3] = {{.id = 1}, {.id = 2}, {.id = 3}};
    struct {
        unsigned buffer;
        uint64_t begin, end;
        bool write;
    } list[200];
    size_t count = 0;
    unsigned seed = 4711;
    bhi_hazards_clear(&hazards);
    for (int turn = 0; turn < 20000; turn++) {
        unsigned buffer = (unsigned)rand_r(&seed) % 3;
        uint64_t begin = (uint64_t)rand_r(&seed) % 64;
        uint64_t end = begin + (uint64_t)rand_r(&seed) % 8;
        bool write = rand_r(&seed) % 2;
        bool expected = false;
        for (size_t i = 0; i < count; i++) {
            expected |= begin < end && list[i].buffer == buffer && (write || list[i].write) &&
                        begin < list[i].end && list[i].begin < end;
        }
        BHT_EQ(bhi_hazards_conflict(&hazards, &buffers[buffer], begin, end, write), expected);
        if (count == 200 || rand_r(&seed) % 50 == 0) {
            bhi_hazards_clear(&hazards);
            count = 0;
        } else if (begin < end) {
            BHT_TRUE(bhi_hazards_add(&hazards, &buffers[buffer], begin, end, write));
            list[count].buffer = buffer;
            list[count].begin = begin;
            list[count].end = end;
            list[count++].write = write;
        }
    }
    bhi_hazards_fini(&hazards);
}

TEST(neighbours_become_one_range) {
    struct bhi_hazards hazards = {0};
    struct bhi_vk_buffer buffer = {.id = 1};
    bhi_hazards_clear(&hazards);
    for (uint64_t i = 0; i < 1000; i++) {
        BHT_TRUE(bhi_hazards_add(&hazards, &buffer, i * 64, i * 64 + 64, true));
    }
    BHT_EQ(hazards.count, 1);
    BHT_TRUE(bhi_hazards_conflict(&hazards, &buffer, 63999, 64000, false));
    BHT_TRUE(!bhi_hazards_conflict(&hazards, &buffer, 64000, 64001, true));
    bhi_hazards_fini(&hazards);
}
