#include "base/array.h"
#include "base/list.h"
#include "base/map.h"
#include "harness.h"
#include <stdint.h>
#include <stdlib.h>

TEST(test_random_ids) {
    struct bhi_map map = {0};
    static uint8_t values[4096];
    static bool present[4096];
    unsigned seed = 99;
    BHT_EQ(bhi_map_get(&map, 5), NULL);
    BHT_EQ(bhi_map_remove(&map, 5), NULL);
    for (int turn = 0; turn < 100000; turn++) {
        const unsigned which = (unsigned)rand_r(&seed) % 4096;
        const uint64_t id = which * UINT64_C(0x100000000); /* they share their low bits */
        if (rand_r(&seed) % 2) {
            BHT_TRUE(bhi_map_put(&map, id, &values[which]));
            present[which] = true;
        } else {
            void *was = bhi_map_remove(&map, id);
            BHT_EQ(was, present[which] ? &values[which] : NULL);
            present[which] = false;
        }
    }
    size_t count = 0;
    for (unsigned which = 0; which < 4096; which++) {
        const uint64_t id = which * UINT64_C(0x100000000);
        count += present[which];
        BHT_EQ(bhi_map_get(&map, id), present[which] ? &values[which] : NULL);
    }
    BHT_EQ(map.count, count);
    bhi_map_fini(&map);
}

/* Values that have one key; each map below has two such keys, which share their low bits. */
TEST(test_chains) {
    struct node {
        struct bhi_chain chain;
        bool in;
    } nodes[64] = {0};
    struct bhi_map map = {0};
    unsigned seed = 7;
    for (int turn = 0; turn < 10000; turn++) {
        const size_t which = (unsigned)rand_r(&seed) % 64;
        const uint64_t key = (which % 2) << 40;
        struct node *node = &nodes[which];
        if (node->in) {
            bhi_map_unlink(&map, &node->chain);
        } else {
            BHT_TRUE(bhi_map_reserve(&map, 1));
            bhi_map_link(&map, key, &node->chain);
        }
        node->in = !node->in;
        size_t found = 0, wanted = 0;
        for (size_t i = which % 2; i < 64; i += 2) {
            wanted += nodes[i].in;
        }
        for (const struct bhi_chain *at = bhi_map_get(&map, key); at; at = at->next) {
            BHT_TRUE(BHI_CONTAINER(at, struct node, chain)->in);
            found++;
        }
        BHT_EQ(found, wanted);
    }
    bhi_map_fini(&map);
}

TEST(test_array) {
    uint16_t *items = NULL;
    uint8_t capacity = 0;
    for (uint8_t count = 0; count < 100; count++) {
        BHT_TRUE(BHI_ARRAY_RESERVE(items, capacity, count + 1));
        BHT_GT(capacity, count);
        items[count] = count;
    }
    for (uint8_t i = 0; i < 100; i++) {
        BHT_EQ(items[i], i);
    }
    free(items);
    size_t most = 0;
    BHT_EQ(bhi_array_grow(NULL, 16, SIZE_MAX / 8, &most), NULL);
    BHT_EQ(bhi_array_grow(NULL, 1, SIZE_MAX, &most), NULL);
    BHT_EQ(most, 0);
}
