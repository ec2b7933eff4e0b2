/* The guard's own words count against the device's shared memory: at the limit, and one word over.
 */
#include "rig.h"
#include "worker/vulkan/backend.h"

#include <stdio.h>

/* The kernel's workgroup has 64 invocations: 16 groups of lanes, a word each. */
enum { GUARDS = 64, SUMS = 64, BYTES = 4096 };

static uint32_t open_rig(bool trusted) {
    rig_open_usual();
    rig.trusted = trusted;
    bhi_vk(rig.backend)->device.whole_loops =
        false; /* the guard counts rounds, whatever the driver */
    return bhi_vk(rig.backend)->device.limits.maxComputeSharedMemorySize;
}

/* An array of |count| words, which is written and read from end to end. */
static uint32_t *dispatch(uint32_t count) {
    const struct bhi_spec_constant constant = {0, 4, count};
    uint32_t *data = rig_buffer(1, BYTES);
    rig_kernel_entry(1, CODE(shared_loop), "main", &constant, 1);
    data[0] = count;
    rig_one(1, BINDINGS(BOTH(0, 1)));
    return data;
}

static void runs(uint32_t count) {
    uint64_t sum = 0;
    const uint32_t *data = dispatch(count);
    rig_run_ok();
    for (int i = 0; i < SUMS; i++) {
        sum += data[1 + i];
    }
    BHT_EQ(sum, (uint64_t)count * (count + 1) / 2);
}

TEST(all_of_it_with_the_guards) {
    const uint32_t most = open_rig(false);
    runs((most - GUARDS) / 4);
}

TEST(one_word_over) {
    char refusal[200];
    const uint32_t most = open_rig(false);
    snprintf(refusal, sizeof refusal,
             "bytes of shared memory, with the guard's: %u, the device allows %u "
             "(maxComputeSharedMemorySize)",
             most + 4, most);
    dispatch((most - GUARDS) / 4 + 1);
    rig_run_fails(BH_LIMIT_EXCEEDED, 0, refusal);
}

TEST(a_trusted_kernel_has_all_of_it) {
    const uint32_t most = open_rig(true);
    runs(most / 4);
}
