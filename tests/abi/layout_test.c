/* The library's side of structs that differ (supervisor/context/layout.h), compiled with headers in
 * which each struct has one more field than today's (grow.sh): what is today's is an older
 * program's. */
#include "base/detail.h"
#include "harness.h"
#include "supervisor/context/layout.h"

#include <bulkhead/array.h>
#include <bulkhead/bulkhead.h>
#include <bulkhead/device.h>
#include <bulkhead/doctor.h>
#include <bulkhead/file.h>
#include <bulkhead/inspect.h>
#include <bulkhead/judge.h>
#include <bulkhead/quarantine.h>
#include <bulkhead/stats.h>
#include <bulkhead/template.h>
#include <bulkhead/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLD_OPTIONS (sizeof(bh_stream_options) - sizeof(uint64_t))

static bh_detail why;

static bh_status take(bh_stream_options *ours, const void *theirs) {
    return bhi_layout_take(BHI_OURS(bh_stream_options), ours, theirs, "bh_call", "options", &why);
}

TEST(older_fields_arrive_and_newer_ones_are_the_default) {
    bh_stream_options ours = {.deadline_ns = 1, .abi_probe = 7}, theirs = {0};
    theirs.struct_size = OLD_OPTIONS;
    theirs.deadline_ns = 5;
    theirs.strict = true;
    theirs.abi_probe = 99; /* of somebody else: it lies behind the program's struct */
    BHT_EQ(take(&ours, &theirs), BH_OK);
    BHT_EQ(ours.deadline_ns, 5);
    BHT_TRUE(ours.strict);
    BHT_EQ(ours.abi_probe, BH_DEFAULT);
    BHT_EQ(ours.struct_size, sizeof ours);
    theirs.struct_size = sizeof theirs;
    BHT_EQ(take(&ours, &theirs), BH_OK);
    BHT_EQ(ours.abi_probe, 99);
}

/* Only sizes that the struct has had: neither the first version's less something, nor the middle of
 * a field, nor more than any version is going to have. */
TEST(only_sizes_of_versions) {
    union {
        bh_stream_options options;
        uint8_t bytes[sizeof(bh_stream_options) + 8192];
    } room;
    memset(&room, 0, sizeof room);
    for (size_t size = 0; size < sizeof room; size++) {
        bh_stream_options ours = {0};
        room.options.struct_size = size;
        bool known = size == OLD_OPTIONS || (size >= sizeof ours && size <= sizeof ours + 4096);
        if ((take(&ours, &room) == BH_OK) != known) {
            BHT_FAIL("%zu bytes of %zu: %s", size, sizeof ours, why.message);
        }
        if (!known) {
            char said[96];
            snprintf(said, sizeof said,
                     "options: struct_size is %zu, which is not the size of a bh_stream_options",
                     size);
            BHT_EQ(why.reason, BH_REASON_STRUCT_SIZE);
            BHT_STR_HAS(why.message, said);
        }
    }
    room.options.struct_size = SIZE_MAX;
    bh_stream_options ours;
    BHT_EQ(take(&ours, &room), BH_INVALID_ARGUMENT);
}

TEST(a_newer_field_that_is_set_is_refused) {
    struct {
        bh_stream_options options;
        uint8_t newer[40];
    } theirs;
    bh_stream_options ours;
    memset(&theirs, 0, sizeof theirs);
    theirs.options.struct_size = sizeof theirs;
    for (size_t i = 0; i < sizeof theirs.newer; i++) {
        theirs.newer[i] = 1;
        BHT_EQ(take(&ours, &theirs), BH_INVALID_ARGUMENT);
        BHT_STR_HAS(why.message, "bh_call: options: the program sets a field");
        BHT_STR_HAS(why.message, "of bh_stream_options");
        theirs.newer[i] = 0;
        BHT_EQ(take(&ours, &theirs), BH_OK);
    }
}

TEST(no_struct_is_all_defaults) {
    const bh_stream_options defaults = {.struct_size = sizeof defaults};
    bh_stream_options ours;
    memset(&ours, 0xA5, sizeof ours);
    BHT_EQ(take(&ours, NULL), BH_OK);
    BHT_TRUE(!memcmp(&ours, &defaults, sizeof ours));
    BHT_EQ(bhi_given(BH_DEFAULT, 7), 7);
    BHT_EQ(bhi_given(BH_OFF, 7), 0);
    BHT_EQ(bhi_given(BH_FOREVER, 7), BH_FOREVER);
}

/* Elements of a caller's size: cut, or followed by zeros, each with that size. */
TEST(what_is_given_is_cut_or_followed_by_zeros) {
    const bh_stats ours = {.pool_bytes = 1, .kernels_told = 2, .abi_probe = 3};
    const size_t sizes[] = {sizeof ours - 8, sizeof ours, sizeof ours + 8};
    for (size_t i = 0; i < BHT_COUNT(sizes); i++) {
        uint8_t room[2 * sizeof ours + 32];
        const size_t size = sizes[i], known = size < sizeof ours ? size : sizeof ours;
        memset(room, 0xA5, sizeof room);
        memcpy(room, &size, sizeof size);
        size_t stride = 0;
        BHT_EQ(bhi_layout_stride(BHI_OURS(bh_stats), room, 2, "bh_call", "out", &stride, &why),
               BH_OK);
        BHT_EQ(stride, size);
        bhi_layout_give(room, &ours, sizeof ours);
        BHT_EQ(room[size], 0xA5);
        bhi_layout_put(room, 1, stride, &ours, sizeof ours);
        for (const uint8_t *at = room; at < room + 2 * size; at += size) {
            BHT_TRUE(!memcmp(at, &size, sizeof size));
            BHT_TRUE(!memcmp(at + 8, (const uint8_t *)&ours + 8, known - 8));
            for (size_t k = sizeof ours; k < size; k++) {
                BHT_EQ(at[k], 0);
            }
        }
        BHT_EQ(room[2 * size], 0xA5);
    }
    size_t stride = 1;
    BHT_EQ(bhi_layout_stride(BHI_OURS(bh_stats), NULL, 0, "bh_call", "out", &stride, &why), BH_OK);
    BHT_EQ(stride, 0);
}

/* To a version that has added a field, today's size is known, and no other. */
TEST(each_struct_has_a_row_for_today) {
#define BHI_LAYOUT(type, field)                                                                    \
    do {                                                                                           \
        const size_t now = sizeof(type);                                                           \
        for (size_t size = 0; size < now + 16; size++) {                                           \
            BHT_EQ(bhi_layout_check(#type, now + 8, &size, "bh_call", "it", &why) == BH_OK,        \
                   size == now || size == now - 8 || size >= now + 8);                             \
        }                                                                                          \
    } while (0);
#include "supervisor/context/layout.def"
#undef BHI_LAYOUT
}
