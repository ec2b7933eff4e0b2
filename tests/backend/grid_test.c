/* Grids: each workgroup runs once, and knows its id and the grid's size, also in parts. */
#include "rig.h"
#include "worker/vulkan/backend.h"
#include "worker/vulkan/dispatch.h"

BHT_AT_START(bht_around(rig_open_usual, NULL))

/* Each invocation wrote where it is, in a grid whose size it read. */
static void check_places(const uint32_t *out, const uint32_t groups[3]) {
    const uint32_t size_x = groups[0] * 2, size_y = groups[1] * 3;
    for (uint32_t z = 0; z < groups[2]; z++) {
        for (uint32_t y = 0; y < size_y; y++) {
            for (uint32_t x = 0; x < size_x; x++) {
                BHT_EQ(out[(z * size_y + y) * size_x + x], x + 100 * y + 10000 * z);
            }
        }
    }
}

/* A grid of workgroups of 2 x 3 x 1. */
TEST(grid_in_three_dimensions) {
    static const uint32_t groups[3] = {3, 2, 4};
    uint32_t *out = rig_buffer(1, 3 * 2 * 2 * 3 * 4 * 4);
    rig_kernel(1, CODE(grid));
    rig_begin();
    rig_dispatch(1, 3, 2, 4, BINDINGS(WRITE(0, 1)), NULL, 0);
    rig_run_ok();
    check_places(out, groups);
}

/* A grid that is dispatched in parts: each workgroup once, with its id in the whole. */
TEST(a_large_grid_is_whole) {
    static const uint32_t grids[][3] = {{16, 64, 100}, {150, 200, 2}, {40000, 3, 1}, {2, 1, 20000}};
    BHT_EQ(bhi_vk(rig.backend)->device.in_parts, rig_is_lavapipe());
    rig_kernel(1, CODE(parts));
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        const uint32_t *g = grids[i];
        const uint32_t all = g[0] * g[1] * g[2];
        const uint32_t size[3] = {g[0], g[1], g[2]};
        uint32_t part[3];
        uint32_t *out = rig_buffer(1 + i, all * 4);
        BHT_TRUE(bhi_vk_dispatch_part(g, part));
        rig_begin();
        rig_dispatch(1, g[0], g[1], g[2], BINDINGS(BOTH(0, 1 + i)), size, sizeof size);
        rig_run_ok();
        for (uint32_t at = 0; at < all; at++) {
            BHT_EQ(out[at], at + 1);
        }
    }
}

/* The same for a kernel that reads how many workgroups there are: those of the whole grid, in each
 * of several records and for each of their dispatches, in parts or not. */
TEST(a_large_grid_knows_its_size) {
    static const uint32_t grids[][3] = {{3, 2, 4},     {100, 90, 2}, {2, 3, 1},
                                        {20000, 1, 1}, {1, 90, 200}, {5, 5, 1}};
    const bool in_parts = bhi_vk(rig.backend)->device.in_parts;
    uint32_t *out[BHT_COUNT(grids)];
    rig_kernel(1, CODE(grid));
    for (size_t i = 0; i < BHT_COUNT(grids); i++) {
        out[i] = rig_buffer(1 + i, (size_t)grids[i][0] * grids[i][1] * grids[i][2] * 6 * 4);
    }
    for (int turn = 0; turn < 3; turn++) { /* one record after the other, then both together */
        for (size_t i = 0; i < BHT_COUNT(grids); i++) {
            memset(out[i], 0, (size_t)grids[i][0] * grids[i][1] * grids[i][2] * 6 * 4);
        }
        for (size_t i = 0; i < BHT_COUNT(grids); i++) {
            if (i % 3 == 0) {
                rig_begin();
            }
            rig_dispatch(1, grids[i][0], grids[i][1], grids[i][2], BINDINGS(WRITE(0, 1 + i)), NULL,
                         0);
            if (i % 3 == 2 && (turn == 0 || i > 3)) {
                rig_run_ok();
            }
        }
        for (size_t i = 0; i < BHT_COUNT(grids); i++) {
            check_places(out[i], grids[i]);
        }
    }
    const struct bhi_vk_kernel *kernel = bhi_map_get(&bhi_vk(rig.backend)->kernels.map, 1);
    BHT_EQ(kernel->in_parts, in_parts);
    BHT_EQ(kernel->reads_grid, in_parts);
    BHT_EQ(!!kernel->split, in_parts);
}

static uint64_t compiled; /* for this record */

static void note_compiling(void *user, uint64_t seq, bool over) {
    compiled = seq;
}

/* K5: the deadline of the first large grid begins when the kernel is compiled for it, too. */
TEST(compiling_for_parts_is_said) {
    rig_open(&(struct rig_options){.compiling = note_compiling});
    const bool in_parts = bhi_vk(rig.backend)->device.in_parts;
    rig_buffer(1, 20000 * 6 * 4);
    rig_kernel(1, CODE(grid));
    for (uint32_t large = 0; large < 2; large++) {
        rig_begin();
        rig_dispatch(1, large ? 20000 : 1, 1, 1, BINDINGS(WRITE(0, 1)), NULL, 0);
        rig_run_ok();
        BHT_EQ(compiled, large && in_parts ? 2 : 1);
    }
}

TEST(the_parts_of_a_grid) {
    static const uint32_t whole[][3] = {{1, 1, 1}, {16384, 1, 1}, {128, 128, 1}, {1, 1, 16384}};
    static const uint32_t split[][3] = {{16385, 1, 1},         {65535, 1, 1},  {1, 1, 65535},
                                        {65535, 64, 1},        {7, 11, 5003},  {65535, 65535, 1},
                                        {65535, 65535, 65535}, {3, 65535, 33}, {2, UINT32_MAX, 2}};
    uint32_t part[3];
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        BHT_TRUE(!bhi_vk_dispatch_part(whole[i], part));
        BHT_MEM_EQ(part, whole[i], sizeof part);
    }
    for (size_t i = 0; i < sizeof split / sizeof *split; i++) {
        uint64_t count = 1, size = 1, all = 1;
        BHT_TRUE(bhi_vk_dispatch_part(split[i], part));
        for (int axis = 0; axis < 3; axis++) {
            BHT_TRUE(part[axis] >= 1 && part[axis] <= split[i][axis]);
            count *= (split[i][axis] + (uint64_t)part[axis] - 1) / part[axis];
            size *= part[axis];
            all *= split[i][axis];
        }
        const uint64_t most = all / BHI_DISPATCH_PARTS;
        BHT_LE(size, (most < BHI_DISPATCH_PART ? BHI_DISPATCH_PART : most));
        BHT_TRUE(count >= 2 && count <= 4u * BHI_DISPATCH_PARTS);
    }
}
