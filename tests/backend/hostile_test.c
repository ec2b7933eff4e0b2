/* Modules that are not what they say: truncated, random, changed word by word. None may do more
 * than be refused. The driver is not asked to run what passes (it may well crash: that is what the
 * sandbox is for); validation and reflection are ours. */
#include "rig.h"
#include "worker/vulkan/backend.h"

#include <stdlib.h>

static const struct {
    const uint32_t *code;
    size_t words;
} seeds[] = {{kernel_places, sizeof kernel_places / 4},
             {kernel_spec, sizeof kernel_spec / 4},
             {kernel_undecorated, sizeof kernel_undecorated / 4}};
#define SEEDS (sizeof seeds / sizeof *seeds)

static unsigned accepted, refused;

static void examine(const uint32_t *code, size_t words) {
    /* An allocation of the exact size, so that a sanitizer sees a read beyond it. */
    uint32_t *copy = malloc(words > 0 ? words * 4 : 1);
    BHT_NE(copy, NULL);
    memcpy(copy, code, words * 4);
    static struct bhi_module_bindings reflection;
    struct bhi_error error = {.status = BH_OK};
    const struct bhi_spec_constant constants[] = {{0, 4, 7}, {2, 4, 1}};
    bool good = bhi_validate(&bhi_vk(rig.backend)->device.target, copy, words, "main", &error) &&
                bhi_reflect(copy, words, "main", constants, 2, &reflection, &error);
    if (good) {
        accepted++;
        BHT_LE(reflection.binding_count, BHI_MAX_BINDINGS);
        BHT_LE(reflection.set_count, BHI_MAX_SETS);
        for (int axis = 0; axis < 3; axis++) {
            BHT_GT(reflection.local_size[axis], 0);
        }
    } else {
        refused++;
        BHT_NE(error.status, BH_OK);
        BHT_NE(bhi_error_line(&error)[0], '\0');
        BHT_LT(strlen(bhi_error_line(&error)), sizeof error.told.text);
        BHT_EQ(strchr(bhi_error_line(&error), '\n'), NULL);
    }
    free(copy);
}

static void open_rig(void) {
    const struct rig_options options = {.no_layer = true}; /* no Vulkan call gets these modules */
    rig_open(&options);
}

BHT_AT_START(bht_around(open_rig, NULL))

TEST(truncated) {
    for (size_t seed = 0; seed < SEEDS; seed++) {
        for (size_t words = 0; words < seeds[seed].words; words++) {
            accepted = 0;
            examine(seeds[seed].code, words);
            BHT_EQ(accepted, 0);
        }
        examine(seeds[seed].code, seeds[seed].words);
        BHT_EQ(accepted, 1);
    }
}

TEST(random_words) {
    unsigned seed = 20240607;
    uint32_t code[256];
    accepted = 0;
    for (int turn = 0; turn < 3000; turn++) {
        size_t words = (size_t)rand_r(&seed) % 256;
        for (size_t i = 0; i < words; i++) {
            code[i] = (uint32_t)rand_r(&seed) ^ (uint32_t)rand_r(&seed) << 16;
        }
        code[0] = turn % 2 ? SpvMagicNumber : code[0];
        if (words > 5 && turn % 4 == 1) { /* a plausible header */
            code[1] = 0x00010500;
            code[3] = 1 + code[3] % 100;
            code[4] = 0;
        }
        examine(code, words);
    }
    BHT_EQ(accepted, 0);
}

TEST(changed_words) {
    unsigned seed = 31337;
    accepted = refused = 0;
    for (int turn = 0; turn < 4000; turn++) {
        const size_t which = (size_t)turn % SEEDS;
        uint32_t code[1024];
        const size_t words = seeds[which].words;
        BHT_LE(words, 1024);
        memcpy(code, seeds[which].code, words * 4);
        for (int changes = 1 + rand_r(&seed) % 3; changes > 0; changes--) {
            uint32_t *at = &code[5 + (size_t)rand_r(&seed) % (words - 5)];
            switch (rand_r(&seed) % 4) {
            case 0:
                *at ^= 1u << rand_r(&seed) % 32;
                break;
            case 1:
                *at = (uint32_t)rand_r(&seed) % 64;
                break;
            case 2:
                *at = code[5 + (size_t)rand_r(&seed) % (words - 5)];
                break;
            default:
                *at += 1;
                break;
            }
        }
        examine(code, words);
    }
    /* Some changes are harmless, most are not: both sides must have been seen. */
    BHT_GT(accepted, 50);
    BHT_GT(refused, 500);
}

/* A bound that asks for gigabytes of tables. */
TEST(huge_bounds) {
    uint32_t code[sizeof kernel_places / 4];
    memcpy(code, kernel_places, sizeof kernel_places);
    accepted = 0;
    code[3] = UINT32_MAX;
    examine(code, sizeof kernel_places / 4);
    code[3] = 0x400000;
    examine(code, sizeof kernel_places / 4);
    code[3] = 1;
    examine(code, sizeof kernel_places / 4);
    code[3] = 0;
    examine(code, sizeof kernel_places / 4);
    BHT_EQ(accepted, 0);
}
