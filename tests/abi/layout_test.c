/* The library's side of structs that differ (supervisor/context/layout.h), compiled with headers in
 * which each struct has one more field than today's (grow.sh): what is today's is an older
 * program's. */
#include "base/detail.h"
#include "harness.h"
#include "supervisor/context/layout.h"

#include <bulkhead/judge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLD_OPTIONS (sizeof(bh_stream_options) - sizeof(uint64_t))
#define OLD_BINDING (sizeof(bh_binding) - sizeof(uint64_t))

static bh_detail why;

static bh_status take(bh_stream_options *ours, const void *theirs) {
    return bhi_layout_take_options(BHI_OURS(bh_stream_options), ours, theirs, "bh_call", "options",
                                   &why);
}

static void older_fields_arrive_and_newer_ones_keep_their_defaults(void) {
    bh_stream_options ours = {.deadline_ns = 1, .abi_probe = 7}, theirs = {0};
    theirs.struct_size = OLD_OPTIONS;
    theirs.deadline_ns = 5;
    theirs.strict = true;
    theirs.abi_probe = 99; /* of somebody else: it lies behind the program's struct */
    BHT_EQ(take(&ours, &theirs), BH_OK);
    BHT_EQ(ours.deadline_ns, 5);
    BHT_TRUE(ours.strict);
    BHT_EQ(ours.abi_probe, 7);
    BHT_EQ(ours.struct_size, sizeof ours);
    theirs.struct_size = sizeof theirs;
    BHT_EQ(take(&ours, &theirs), BH_OK);
    BHT_EQ(ours.abi_probe, 99);
}

/* Only sizes that the struct has had: neither the first version's less something, nor the middle of
 * a field, nor more than any version is going to have. */
static void only_sizes_of_versions(void) {
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
                     "options.struct_size is %zu, which is not the size of a bh_stream_options",
                     size);
            BHT_STR_HAS(why.message, "bh_call: ");
            BHT_STR_HAS(why.message, said);
        }
    }
    room.options.struct_size = SIZE_MAX;
    bh_stream_options ours;
    BHT_EQ(take(&ours, &room), BH_INVALID_ARGUMENT);
}

static void a_newer_field_that_is_set_is_refused(void) {
    struct {
        bh_stream_options options;
        uint8_t newer[40];
    } theirs;
    bh_stream_options ours = {.deadline_ns = 1};
    memset(&theirs, 0, sizeof theirs);
    theirs.options.struct_size = sizeof theirs;
    for (size_t i = 0; i < sizeof theirs.newer; i++) {
        theirs.newer[i] = 1;
        BHT_EQ(take(&ours, &theirs), BH_INVALID_ARGUMENT);
        BHT_STR_HAS(why.message, "bh_call: options: the program sets a field");
        BHT_STR_HAS(why.message, "of bh_stream_options");
        BHT_EQ(ours.deadline_ns, 1); /* nothing was taken */
        theirs.newer[i] = 0;
        BHT_EQ(take(&ours, &theirs), BH_OK);
        ours.deadline_ns = 1;
    }
}

/* Not a byte past the size that it is told. */
static void init_writes_within_the_struct(void) {
    const bh_stream_options defaults = {.deadline_ns = 3, .abi_probe = 4};
    uint8_t room[sizeof defaults + 64];
    for (size_t size = 0; size < sizeof room; size++) {
        memset(room, 0xA5, sizeof room);
        bhi_layout_init(room, size, &defaults, sizeof defaults);
        for (size_t i = size < sizeof size ? 0 : size; i < sizeof room; i++) {
            BHT_EQ(room[i], 0xA5);
        }
        for (size_t i = sizeof defaults; i < size; i++) {
            BHT_EQ(room[i], 0);
        }
        size_t told;
        memcpy(&told, room, sizeof told);
        if (size >= sizeof size) {
            BHT_EQ(told, size);
        }
    }
    bhi_layout_init(NULL, sizeof defaults, &defaults, sizeof defaults);
}

static void arrays_have_their_own_stride(void) {
    const void *array;
    void *copy;
    uint8_t old[3 * OLD_BINDING];
    for (uint32_t i = 0; i < 3; i++) {
        const bh_binding one = {.set = i, .access = BH_ACCESS_READ, .abi_probe = 1};
        memcpy(old + i * OLD_BINDING, &one, OLD_BINDING);
    }
    BHT_EQ(bhi_layout_take_array(BHI_OURS(bh_binding), old, OLD_BINDING, 3, "bh_call", "bindings",
                                 &array, &copy, &why),
           BH_OK);
    BHT_TRUE(copy);
    for (uint32_t i = 0; i < 3; i++) {
        BHT_EQ(((const bh_binding *)array)[i].set, i);
        BHT_EQ(((const bh_binding *)array)[i].access, BH_ACCESS_READ);
        BHT_EQ(((const bh_binding *)array)[i].abi_probe, 0);
    }
    free(copy);
    struct {
        bh_binding it;
        uint64_t newer;
    } newer[2] = {{.newer = 0}, {.newer = 2}};
    BHT_EQ(bhi_layout_take_array(BHI_OURS(bh_binding), newer, sizeof newer[0], 2, "bh_call",
                                 "bindings", &array, &copy, &why),
           BH_INVALID_ARGUMENT);
    BHT_STR_HAS(why.message, "bh_call: bindings[1]: the program sets a field");
    BHT_STR_HAS(why.message, "of bh_binding");
    /* The program's own, and no copy, where there is no difference. */
    BHT_EQ(bhi_layout_take_array(BHI_OURS(bh_binding), newer, sizeof(bh_binding), 1, "bh_call",
                                 "bindings", &array, &copy, &why),
           BH_OK);
    BHT_TRUE(array == (const void *)newer && !copy);
}

static void what_is_given_is_cut_or_followed_by_zeros(void) {
    const bh_pool_stats ours = {.bytes = 1, .zeroed_bytes = 2, .abi_probe = 3};
    uint8_t room[sizeof ours + 16];
    const size_t sizes[] = {sizeof ours - 8, sizeof ours, sizeof ours + 8};
    for (size_t i = 0; i < BHT_COUNT(sizes); i++) {
        memset(room, 0xA5, sizeof room);
        bhi_layout_give(room, sizes[i], &ours, sizeof ours);
        BHT_TRUE(!memcmp(room, &ours, sizes[i] < sizeof ours ? sizes[i] : sizeof ours));
        for (size_t k = sizeof ours; k < sizes[i]; k++) {
            BHT_EQ(room[k], 0);
        }
        BHT_EQ(room[sizes[i]], 0xA5);
    }
}

/* Each struct has a row for what it is now: to a version that has added a field, that is a known
 * size. */
static void each_struct_has_a_row_for_today(void) {
#define BHI_LAYOUT(type, field)                                                                    \
    BHT_EQ(bhi_layout_check(#type, sizeof(type) + 8, sizeof(type), "bh_call", "it", &why), BH_OK); \
    BHT_EQ(bhi_layout_check(#type, sizeof(type) + 8, sizeof(type) - 1, "bh_call", "it", &why),     \
           BH_INVALID_ARGUMENT);
#include "supervisor/context/layout.def"
#undef BHI_LAYOUT
}

int main(int argc, char **argv) {
    static const struct bht_test TESTS[] = {
        BHT_TEST(older_fields_arrive_and_newer_ones_keep_their_defaults),
        BHT_TEST(only_sizes_of_versions),
        BHT_TEST(a_newer_field_that_is_set_is_refused),
        BHT_TEST(init_writes_within_the_struct),
        BHT_TEST(arrays_have_their_own_stride),
        BHT_TEST(what_is_given_is_cut_or_followed_by_zeros),
        BHT_TEST(each_struct_has_a_row_for_today),
    };
    return bht_main(argc, argv, TESTS, BHT_COUNT(TESTS));
}
