/* CUDA's driver behind the walls, on the fake one: who gets it, that its table knows all that it calls,
 * and what is said where it cannot run. */
#include "fixture.h"

#include <stdlib.h>

TEST(a_stream_that_names_cuda_gets_it) {
    static const char *const selectors[] = {"cuda", "cuda:0", "cuda:1"};
    fx_cuda_install("FAKE_CUDA_DEVICES=2\n");
    bh_context *context = fx_context(NULL);
    for (size_t i = 0; i < BHT_COUNT(selectors); i++) {
        bh_stream *stream = fx_stream_on(context, selectors[i]);
        bh_buffer *from = fx_words(context, 1024, 1), *to = fx_words(context, 1024, 2);
        char selector[48];
        fx_expect(fx_fill(stream, from, 0xa1b2c3d4), BH_OK);
        fx_expect(fx_copy(stream, from, to), BH_OK);
        uint32_t found[1024];
        BHT_EQ(bh_buffer_read(to, 0, found, sizeof found, FX_SECONDS, NULL), BH_OK);
        for (size_t word = 0; word < BHT_COUNT(found); word++) {
            BHT_EQ(found[word], 0xa1b2c3d4);
        }
        BHT_EQ(bh_stream_device(stream, selector), BH_OK);
        BHT_STR_EQ(selector, i == 0 ? "cuda:0" : selectors[i]);
    }
}

/* It is another driver's device once more: last in the list, and nobody's by default. */
TEST(nobody_gets_cuda_who_has_not_named_it) {
    static const char *const selectors[] = {NULL, "any", "0"};
    static bh_device_info devices[8] = {{.struct_size = sizeof devices[0]}};
    size_t count;
    fx_cuda_install("");
    bh_context *context = fx_context(NULL);
    BHT_EQ(bh_devices(context, devices, BHT_COUNT(devices), &count, NULL), BH_OK);
    BHT_GE(count, 2);
    BHT_STR_EQ(devices[count - 1].selector, "cuda:0");
    BHT_EQ(devices[count - 1].api_version, 12u << 22 | 8u << 12);
    BHT_TRUE(strncmp(devices[0].selector, "cuda", 4) != 0);
    for (size_t i = 0; i < BHT_COUNT(selectors); i++) {
        char selector[48];
        bh_stream *stream = fx_stream_on(context, selectors[i]);
        fx_ready(stream);
        BHT_EQ(bh_stream_device(stream, selector), BH_OK);
        BHT_TRUE(strncmp(selector, "cuda", 4) != 0);
    }
}

TEST(its_table_knows_all_that_it_calls) {
    static bh_traced_call calls[400] = {{.struct_size = sizeof calls[0]}};
    bh_trace seen = {.struct_size = sizeof seen};
    size_t count;
    fx_cuda_install("");
    BHT_EQ(
        bh_trace_driver(fx_context(NULL), "cuda:0", &seen, calls, BHT_COUNT(calls), &count, NULL),
        BH_OK);
    BHT_STR_EQ(seen.failure, "");
    BHT_TRUE(seen.complete && seen.unknown == 0);
    BHT_STR_EQ(seen.version, "CUDA 12.8");
    BHT_EQ(fx_doctor_says(fx_context(NULL), "cuda")->result, BH_CHECK_HOLDS);
}

TEST(what_is_missing_is_said) {
    static const struct {
        const char *settings, *selector, *words;
        bool doctor; /* it says the same */
    } rows[] = {
        {"FAKE_CUDA_INIT=100\n", "cuda", "CUDA_ERROR_NO_DEVICE (100): it sees no GPU", false},
        {"FAKE_CUDA_INIT=304\n", "cuda", "(304): the system refuses it /proc", false},
        {"FAKE_CUDA_INIT=803\n", "cuda", "does not belong to the loaded kernel module", false},
        {"FAKE_CUDA_INIT=999\n", "cuda", "(999): /dev/nvidia-uvm is missing", true},
        {"FAKE_CUDA_DEVICES=0\n", "cuda", "CUDA_ERROR_NO_DEVICE", false},
        {"FAKE_CUDA_VERSION=11000\n", "cuda", "or later", false},
        {"FAKE_CUDA_PAGEABLE=1\n", "cuda", "the memory of their process", true}, /* C1 */
        {"", "cuda:1", "no device", false},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        fx_cuda_install(rows[i].settings);
        bh_context *context = fx_context(NULL);
        bh_detail detail = {0};
        BHT_NE(bh_stream_wait_ready(fx_stream_on(context, rows[i].selector), FX_SECONDS, &detail),
               BH_OK);
        BHT_STR_HAS(detail.message, rows[i].words);
        if (rows[i].doctor) {
            const bh_check *check = fx_doctor_says(context, "cuda");
            BHT_EQ(check->result, BH_CHECK_ABSENT);
            BHT_STR_HAS(check->text, rows[i].words);
        }
        fx_release_all();
    }
}
