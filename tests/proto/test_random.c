/* Random messages there and back, and random damage to them: what still decodes is a message that
 * encodes to the same bytes. */
#include "../unit/support.h"
#include "sample.h"
#include <errno.h>
#include <stdlib.h>

#define ROUNDS 30000

TEST(test_there_and_back) {
    uint64_t random = 0xb0a7;
    for (int round = 0; round < ROUNDS; round++) {
        struct bhi_message in, out;
        uint8_t bytes[BHI_WIRE_MAX];
        char why[200];
        uint32_t type = sample_types[random_below(&random, sample_type_count)];
        sample_message(&in, type, SAMPLE_RANDOM, &random);
        int length = bhi_wire_encode(&in, bytes, sizeof bytes);
        if (length < 0) {
            BHT_FAIL("round %d: type %u: %d", round, type, length);
        }
        if (bhi_wire_decode(bytes, (size_t)length, bhi_message_info(type)->direction, BHI_WS_ANY,
                            &out, why, sizeof why)) {
            BHT_FAIL("round %d: %s", round, why);
        }
        BHT_TRUE(same_message(&in, &out));
    }
}

static size_t damage(uint8_t *bytes, size_t length, uint64_t *random) {
    switch (random_below(random, 4)) {
    case 0:
        bytes[random_below(random, length)] ^= (uint8_t)(1 << random_below(random, 8));
        return length;
    case 1:
        bytes[random_below(random, length)] = (uint8_t)next_random(random);
        return length;
    case 2:
        return random_below(random, length);
    default:
        memset(bytes + random_below(random, length), (int)random_below(random, 2) * 255, 1);
        return length;
    }
}

TEST(test_damaged) {
    uint64_t random = 0xdead;
    unsigned decoded = 0, refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct bhi_message in, out;
        uint8_t bytes[BHI_WIRE_MAX], again[BHI_WIRE_MAX];
        uint32_t type = sample_types[random_below(&random, sample_type_count)];
        sample_message(&in, type, SAMPLE_RANDOM, &random);
        int length = bhi_wire_encode(&in, bytes, sizeof bytes);
        BHT_GT(length, 0);
        size_t size = (size_t)length;
        for (uint64_t n = 1 + random_below(&random, 3); n > 0 && size > 0; n--) {
            size = damage(bytes, size, &random);
        }
        uint8_t *exact = malloc(size ? size : 1);
        memcpy(exact, bytes, size);
        if (bhi_wire_decode(exact, size, bhi_message_info(type)->direction, BHI_WS_ANY, &out, NULL,
                            0)) {
            refused++;
        } else {
            decoded++;
            BHT_EQ(bhi_wire_encode(&out, again, sizeof again), size);
            BHT_MEM_EQ(again, exact, size);
        }
        free(exact);
    }
    BHT_TRUE(decoded > 1000 && refused > 1000);
}
