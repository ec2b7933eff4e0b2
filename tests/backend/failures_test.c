/* Each call of the driver fails, the first time, the second, …: while a backend is made, and while it works.
 * Nothing is left behind then, no result is better than what was done, and the next try is good. */
#include "fake_driver.h"
#include "rig.h"
#include "worker/vulkan/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ALONE = 2, MERGED = 3 }; /* records */

static char what[96];

static void use_driver(bool fake) {
    rig_close();
    if (fake) {
        fake_driver_install(BHT_FAKE_COPIES);
    } else {
        unsetenv("VK_DRIVER_FILES");
    }
}

/* Makes |call| fail for the |which|-th time. Returns false if it was not called so often. */
static bool with_failing(const char *call, unsigned which, void (*act)(void)) {
    snprintf(what, sizeof what, "%s %u", call, which);
    rig_fail_call(call, which, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    act();
    rig_failing.name = NULL;
    return rig_failing.seen >= which;
}

static void with_each_failing(void (*act)(void), unsigned times, unsigned at_least) {
    unsigned failed = 0;
    for (size_t i = 0; rig_call_name(i); i++) {
        for (unsigned which = 1; which <= times && with_failing(rig_call_name(i), which, act);
             which++) {
            failed++;
        }
        if (rig_failing.seen > 0) {
            act(); /* the next try is good */
        }
    }
    BHT_GE(failed, at_least);
}

/* -- while it is made ------------------------------------------------------------------------- */

static void make_backend(void) {
    struct bhi_markers *page = aligned_alloc(4096, 4096);
    const size_t descriptors = bht_count_descriptors(getpid());
    const struct bhi_backend_config config = {
        .ops = &bhi_vulkan, .entry = rig_entry(), .markers = page, .layers = rig_layers};
    struct bhi_error error;
    rig_layer_reset();
    struct bhi_backend *backend = bhi_backend_create(&config, &error);
    const bool good = backend && bhi_backend_warm_up(backend, &error);
    const bool failed = rig_failing.name && rig_failing.seen >= rig_failing.which;
    BHT_TRUE(good || failed);
    if (failed && strcmp(rig_failing.name, "GetMemoryFdKHR") != 0 &&
        (good || (error.status != BH_OUT_OF_DEVICE_MEMORY && error.status != BH_DEVICE_LOST) ||
         error.told.text[0] == '\0')) {
        BHT_FAIL("%s: %s: %s", what, good ? "it is made" : bh_status_name(error.status),
                 bhi_error_line(&error));
    }
    bhi_backend_destroy(backend);
    BHT_EQ(rig_layer_messages(), 0);
    BHT_EQ(bht_count_descriptors(getpid()), descriptors);
    free(page);
}

TEST_WITH(a_backend_is_made_or_says_why_not, 300, 0) {
    for (int fake = 0; fake < 2; fake++) {
        use_driver(fake);
        with_each_failing(make_backend, 3, 30);
    }
}

/* -- while it works --------------------------------------------------------------------------- */

/* A bit for each record that has run, as far as the results say. */
static unsigned run_some(unsigned alone, unsigned merged) {
    unsigned good = 0;
    for (unsigned i = 0; i < alone + merged && !rig.backend->lost; i++) {
        rig_begin();
        rig_fill(2, i * 4, 4, i + 1);
        rig_dispatch(i == alone + 1 ? 2 : 1, 1, 1, 1, BINDINGS(BOTH(0, 1)), NULL, 0);
        if (i + 1 >= alone + merged || i < alone) {
            const size_t count = rig.record_count;
            unsigned bad = 0, named = 0;
            (void)rig_run();
            for (size_t k = 0; k < count; k++) {
                const struct bhi_result *result = &rig.results[k];
                good |= (unsigned)(result->status == BH_OK) << (i + 1 - count + k);
                bad += result->status != BH_OK;
                named += result->vk_result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
                BHT_TRUE(result->status == BH_OK || result->status == BH_OUT_OF_DEVICE_MEMORY ||
                         (result->status == BH_DEVICE_LOST && rig.backend->lost));
                BHT_TRUE(result->status != BH_OUT_OF_DEVICE_MEMORY ||
                         result->executed == BH_EXECUTED_NO);
                BHT_TRUE(result->status == BH_OK || rig.errors[k].told.text[0] != '\0');
            }
            BHT_TRUE(bad == 0 || named > 0); /* one has the cause */
        }
    }
    return good;
}

/* Memory of the device, which another worker imports. */
static void make_memory(void) {
    const size_t descriptors = bht_count_descriptors(getpid());
    int fd = bhi_backend_make(rig.backend, 3, 4096);
    if (fd >= 0) {
        bhi_backend_import(rig.backend, 4, fd, 4096);
        (void)(rig.backend->lost || bhi_backend_clear(rig.backend, 3));
    }
    bhi_backend_detach(rig.backend, 3);
    bhi_backend_detach(rig.backend, 4);
    BHT_EQ(bht_count_descriptors(getpid()), descriptors);
}

/* Buffers of all kinds, a kernel, records alone and together. */
static void work(void) {
    const struct rig_failing failing = rig_failing;
    if (!rig.backend || rig.backend->lost) {
        rig_failing.name = NULL;
        rig_open_usual();
        rig_failing = failing;
    }
    uint32_t *count = rig_buffer(1, 4);
    uint32_t *filled = rig_buffer(2, 4096);
    rig_kernel(1, CODE(increment));
    rig_kernel(2, CODE(increment)); /* compiled between two that are merged */
    const unsigned good = run_some(ALONE, MERGED);
    for (unsigned i = 0; i < ALONE + MERGED && !rig.backend->lost; i++) {
        if ((filled[i] == i + 1) != (good >> i & 1)) {
            BHT_FAIL("%s: record %u has run, or not, against what its result says", what, i);
        }
    }
    if (!rig.backend->lost) {
        BHT_EQ(*count, (unsigned)__builtin_popcount(good));
    }
    if (!failing.name) {
        BHT_EQ(good, (1u << (ALONE + MERGED)) - 1);
    }
    if (!rig.backend->lost) {
        make_memory();
    }
    rig_detach(2);
    rig_detach(1);
    bhi_backend_kernel_destroy(rig.backend, 1);
    bhi_backend_kernel_destroy(rig.backend, 2);
    if (!rig.backend->lost) {
        rig_check_state();
    }
}

/* On the driver with queues for transfers, which has all that the other has. */
TEST_WITH(each_result_is_that_of_what_was_done, 300, 0) {
    use_driver(true);
    with_each_failing(work, 4, 20);
}
