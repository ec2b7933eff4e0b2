/* CUDA's driver behind the walls, on the fake one: who gets it, that its table knows all that it calls,
 * and what is said where it cannot run. */
#include "fixture.h"

#include <stdio.h>
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
        {"FAKE_CUDA_INIT=100\n", "cuda", "CUDA_ERROR_NO_DEVICE (100): ", false},
        {"FAKE_CUDA_INIT=304\n", "cuda", "(304): the system refuses it /proc", false},
        {"FAKE_CUDA_INIT=802\n", "cuda", "CUDA_ERROR_SYSTEM_NOT_READY (802): the GPUs are not",
         false},
        {"FAKE_CUDA_INIT=803\n", "cuda", "does not belong to the loaded kernel module", false},
        {"FAKE_CUDA_INIT=999\n", "cuda", "CUDA_ERROR_UNKNOWN (999): ", true},
        {"FAKE_CUDA_MODE=2\n", "cuda", "DEVICE_UNAVAILABLE (the GPU's compute mode is prohibited)",
         false},
        {"FAKE_CUDA_DEVICES=0\n", "cuda", "CUDA_ERROR_NO_DEVICE", false},
        {"FAKE_CUDA_VERSION=11000\n", "cuda", "or later", false},
        {"FAKE_CUDA_PAGEABLE=1\n", "cuda", "the memory of their process", true}, /* C1 */
        {"", "cuda:1", "the driver has no device 1", false},
        {"FAKE_CUDA_DEVICES=2\n", "cuda:2", "the driver has no device 2", false},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        fx_cuda_install(rows[i].settings);
        bh_context_options options = fx_options();
        options.restart_budget = 2;
        bh_context *context = fx_context_with(options, NULL);
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

/* One worker has the GPU; what waits for another says why there is none, and that one works on. */
TEST(an_exclusive_gpu_takes_one_worker) {
    fx_cuda_install("FAKE_CUDA_MODE=3\n");
    bh_context_options options = fx_options();
    options.restart_budget = 2;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *first = fx_stream_on(context, "cuda"), *second;
    fx_ready(first);
    second = fx_stream_on(context, "cuda");
    bh_detail detail = {0};
    BHT_NE(bh_stream_wait_ready(second, FX_SECONDS, &detail), BH_OK);
    BHT_STR_HAS(detail.message, "CUDA_ERROR_DEVICE_UNAVAILABLE (the GPU's compute mode is "
                                "exclusive-process: one worker has it");
    bh_buffer *words = fx_words(context, 64, 1);
    fx_expect(fx_fill(second, words, 7), BH_UNAVAILABLE);
    fx_expect(fx_fill(first, words, 8), BH_OK);
    BHT_EQ(fx_pointer(words)[63], 8);
}

/* -- device memory: what the context itself takes -------------------------------------------------- */

TEST(a_limit_below_the_context_is_refused_with_both_numbers) {
    static const char *const devices[] = {"cuda", "cuda:1"};
    bh_context *context = fx_context(NULL);
    bh_stream_options options = fx_stream_options();
    options.device_memory = FX_CUDA_CONTEXT - 1;
    fx_ready(fx_stream_with(context, options)); /* on a Vulkan device only buffers count */
    for (size_t i = 0; i < BHT_COUNT(devices); i++) {
        bh_stream *stream = NULL;
        bh_detail detail = {0};
        options.device = devices[i];
        BHT_EQ(bh_stream_create(context, &options, &stream, &detail), BH_INVALID_ARGUMENT);
        BHT_STR_HAS(detail.message, "options.device_memory is 337641471 bytes, less than the "
                                    "337641472 bytes that the CUDA context");
    }
}

TEST(the_context_counts_within_the_limit_of_its_stream) {
    fx_cuda_install("");
    bh_context *context = fx_context(NULL);
    bh_stream_options options = fx_stream_options();
    options.device = "cuda";
    options.device_memory = FX_CUDA_CONTEXT + (2 << 20);
    bh_stream *stream = fx_stream_with(context, options);
    const bh_buffer_options on_device = {
        .struct_size = sizeof on_device, .stream = stream, .memory = BH_MEMORY_DEVICE};
    bh_detail detail = {0};
    bh_buffer *buffer = NULL, *more = NULL;
    BHT_EQ(bh_buffer_create(context, (2 << 20) + 1, &on_device, &buffer, &detail),
           BH_OUT_OF_DEVICE_MEMORY);
    BHT_STR_HAS(detail.message, "has 337641472 of its limit of 339738624 bytes "
                                "(device_memory) in use, 337641472 of them by its CUDA context");
    BHT_EQ(bh_buffer_create(context, 2 << 20, &on_device, &buffer, &detail), BH_OK);
    BHT_EQ(bh_buffer_create(context, 1, &on_device, &more, &detail), BH_OUT_OF_DEVICE_MEMORY);
    bh_buffer_release(buffer);
}

/* Of each stream of a CUDA device, whether it has a limit or not. */
TEST(statistics_have_what_contexts_count_as) {
    fx_cuda_install("");
    bh_context *context = fx_context(NULL);
    (void)fx_stream_on(context, "cuda");
    (void)fx_stream_on(context, "cuda:0");
    (void)fx_stream_on(context, NULL);
    bh_stats stats = {.struct_size = sizeof stats};
    bh_work_stats rows[8] = {{.struct_size = sizeof rows[0]}};
    uint64_t of_streams = 0;
    size_t count;
    BHT_EQ(bh_context_stats(context, &stats, rows, BHT_COUNT(rows), &count, NULL), BH_OK);
    BHT_EQ(count, 5); /* the context, the tenant, and its streams */
    for (size_t i = 0; i < count; i++) {
        of_streams += rows[i].scope == BH_WORK_STREAM ? rows[i].context_bytes : 0;
        BHT_EQ(rows[i].device_bytes, 0);
    }
    BHT_EQ(of_streams, 2 * FX_CUDA_CONTEXT);
    BHT_EQ(rows[0].context_bytes, 2 * FX_CUDA_CONTEXT);
}

/* An instance of MIG is named by a text, a device by its number. */
TEST(a_name_that_is_no_number) {
    static const char *const names[] = {"cuda:MIG-3c2e6a4b-0000-0000-0000-000000000000",
                                        "cuda:", "cuda:-1", "cuda:1x"};
    bh_context *context = fx_context(NULL);
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        bh_stream_options options = fx_stream_options();
        options.device = names[i];
        bh_stream *stream = NULL;
        bh_detail detail = {0};
        BHT_EQ(bh_stream_create(context, &options, &stream, &detail), BH_INVALID_ARGUMENT);
        BHT_STR_HAS(detail.message, names[i]);
    }
}

/* -- kernels that take long to compile, launches that do not fit -------------------------------- */

static bh_kernel *ptx_kernel(bh_context *context, const char *name, const char *parameters) {
    char text[256];
    const int length = snprintf(text, sizeof text,
                                ".version 6.0\n.target sm_60\n.address_size 64\n"
                                ".visible .entry %s(%s)\n{\nret;\n}\n",
                                name, parameters);
    const bh_kernel_options options = {
        .struct_size = sizeof options, .name = name, .entry = name, .block = {64, 1, 1}};
    bh_kernel *kernel = NULL;
    BHT_EQ(bh_kernel_create_image(context, text, (size_t)length, &options, &kernel, NULL), BH_OK);
    return kernel;
}

static bh_kernel *image_kernel(bh_context *context, const char *text, const char *entry) {
    const bh_kernel_options options = {
        .struct_size = sizeof options, .name = entry, .entry = entry, .block = {1, 1, 1}};
    bh_kernel *kernel = NULL;
    BHT_EQ(bh_kernel_create_image(context, text, strlen(text), &options, &kernel, NULL), BH_OK);
    return kernel;
}

static bh_kernel *add_kernel(bh_context *context) {
    return ptx_kernel(context, "add", ".param .u64 x, .param .u64 y, .param .u32 c, .param .u32 n");
}

/* y = x + 1 over 64 words. */
static bh_dispatch adding(bh_kernel *add, const bh_binding bindings[2]) {
    static const uint32_t push[2] = {1, 64};
    return (bh_dispatch){.kernel = add,
                         .groups = {1, 1, 1},
                         .bindings = bindings,
                         .binding_count = 2,
                         .push = push,
                         .push_size = sizeof push};
}

static bh_event *dispatch(bh_stream *stream, bh_dispatch what) {
    return fx_command(stream, (bh_command){.type = BH_COMMAND_DISPATCH, .dispatch = what}, NULL, 0);
}

/* PTX that takes minutes: the compile deadline ends its worker, and the verdict says so of that kernel alone.
 * What was before it and behind it on the stream is not lost (E13), and nobody else is accused. */
TEST(a_compile_that_takes_minutes) {
    fx_cuda_install("");
    bh_context_options options = fx_options();
    options.quarantine_deaths = 0; /* the default: two */
    bh_context *context = fx_context_with(options, NULL);
    bh_stream_options of_stream = fx_stream_options();
    of_stream.device = "cuda";
    of_stream.compile_deadline_ns = 250 * FX_MS * bht_slowness();
    of_stream.deadline_ns = FX_SECONDS;
    bh_stream *stream = fx_stream_with(context, of_stream);
    bh_kernel *add = add_kernel(context), *slow = ptx_kernel(context, "takes_minutes", "");
    bh_buffer *x = fx_words(context, 64, 1), *y = fx_words(context, 64, 0),
              *z = fx_words(context, 64, 0);
    const bh_binding first[] = {bh_bind_read(0, x), bh_bind_write(1, y)},
                     second[] = {bh_bind_read(0, y), bh_bind_write(1, z)};
    const pid_t pid = fx_ready(stream);
    bh_event *before = dispatch(stream, adding(add, first));
    bh_event *bad = dispatch(stream, (bh_dispatch){.kernel = slow, .groups = {1, 1, 1}});
    bh_event *behind = dispatch(stream, adding(add, second));
    fx_expect(before, BH_OK);
    const bh_verdict verdict = fx_expect(bad, BH_COMPILE_FAILED);
    BHT_STR_EQ(verdict.kernel_name, "takes_minutes");
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(verdict.worker_pid, pid);
    BHT_STR_HAS(verdict.message, "compile");
    fx_expect(behind, BH_OK);
    BHT_EQ(fx_verdict(behind).worker_pid, fx_ready_after(stream, pid));
    BHT_EQ(fx_pointer(z)[63], 3);
    BHT_EQ(fx_quarantined(context), 0);
}

/* Each is refused by itself, before anything of it runs: the output is poisoned until it is written again,
 * and the worker stays. */
TEST(launches_that_do_not_fit) {
    enum change {
        BLOCK_X,
        BLOCK_Z,
        THREADS,
        NO_BLOCK,
        SHARED,
        GRID_Y,
        NO_GRID,
        FEWER,
        MORE,
        NO_POINTER,
        TWICE
    };
    static const struct {
        enum change change;
        bh_status status;
        const char *words;
    } rows[] = {
        {BLOCK_X, BH_LIMIT_EXCEEDED, "threads of a block in x: 2048"},
        {BLOCK_Z, BH_LIMIT_EXCEEDED, "threads of a block in z: 65"},
        {THREADS, BH_LIMIT_EXCEEDED, "threads of a block: 2048"},
        {NO_BLOCK, BH_INVALID_ARGUMENT, "kernel \"add\" is a CUDA kernel: a launch says how many"},
        {SHARED, BH_LIMIT_EXCEEDED, "bytes of shared memory: 1048576"},
        {GRID_Y, BH_LIMIT_EXCEEDED, "65536"},
        {NO_GRID, BH_INVALID_ARGUMENT, "groups"},
        {FEWER, BH_BINDING_MISMATCH, "takes 8 bytes"},
        {MORE, BH_BINDING_MISMATCH, "takes 8 bytes"},
        {NO_POINTER, BH_BINDING_MISMATCH, "parameter 2"},
        {TWICE, BH_INVALID_ARGUMENT, "twice"},
    };
    fx_cuda_install("");
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream_on(context, "cuda");
    bh_kernel *add = add_kernel(context);
    bh_buffer *x = fx_words(context, 64, 1), *y = fx_words(context, 64, 0);
    const pid_t pid = fx_ready(stream);
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bh_binding bindings[] = {bh_bind_read(0, x), bh_bind_write(1, y)};
        static const uint32_t push[3] = {1, 64, 0};
        bh_dispatch what = adding(add, bindings);
        memcpy(what.block, (const uint32_t[]){64, 1, 1}, sizeof what.block);
        switch (rows[i].change) {
        case BLOCK_X:
            what.block[0] = 2048;
            break;
        case BLOCK_Z:
            what.block[2] = 65;
            break;
        case THREADS:
            what.block[0] = 1024, what.block[1] = 2;
            break;
        case NO_BLOCK:
            what.block[1] = 0;
            break;
        case SHARED:
            what.shared_bytes = 1u << 20;
            break;
        case GRID_Y:
            what.groups[1] = 65536;
            break;
        case NO_GRID:
            what.groups[2] = 0;
            break;
        case FEWER:
            what.push_size = 4;
            break;
        case MORE:
            what.push = push, what.push_size = sizeof push;
            break;
        case NO_POINTER:
            bindings[1].binding = 2;
            break;
        case TWICE:
            bindings[1].binding = 0;
            break;
        }
        const bh_command command = {.type = BH_COMMAND_DISPATCH, .dispatch = what};
        const bh_submit_info info = {
            .struct_size = sizeof info, .commands = &command, .command_count = 1};
        bh_event *event = NULL;
        bh_detail detail = {0};
        bh_status status = bh_submit(stream, &info, &event, &detail);
        const char *message = detail.message;
        bh_verdict verdict;
        if (status == BH_OK) {
            verdict = fx_verdict(event);
            status = verdict.status;
            message = verdict.message;
            BHT_EQ(verdict.executed, BH_EXECUTED_NO);
            BHT_STR_EQ(verdict.kernel_name, "add");
            BHT_EQ(fx_content(y), status);
        }
        if (status != rows[i].status || !strstr(message, rows[i].words)) {
            BHT_FAIL("row %zu: %s: %s", i, bh_status_name(status), message);
        }
        fx_expect(dispatch(stream, adding(add, (const bh_binding[]){bh_bind_read(0, x),
                                                                    bh_bind_write(1, y)})),
                  BH_OK);
        BHT_EQ(fx_pointer(y)[63], 2);
        BHT_EQ(bh_stream_worker_pid(stream), pid);
    }
}

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

/* Of an autotuner that puts all variants into one module. */
TEST(an_image_of_100000_entries) {
    enum { ENTRIES = 100000, ROOM = 64 };
    fx_cuda_install("");
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream_on(context, "cuda");
    char *text = bht_own(malloc((size_t)ROOM * ENTRIES)), *at = stpcpy(text, HEAD);
    for (int i = 0; i < ENTRIES; i++) {
        at += sprintf(at, ".entry k%d(.param .u64 word) .body increment\n", i);
    }
    static const char *const entries[] = {"k0", "k99999"};
    bh_buffer *word = fx_words(context, 1, 40);
    const bh_binding binding = bh_bind_read_write(0, word);
    for (size_t i = 0; i < BHT_COUNT(entries); i++) {
        bh_kernel *kernel = image_kernel(context, text, entries[i]);
        fx_expect(fx_launch(stream, kernel, 1, &binding, 1, 0), BH_OK);
    }
    BHT_EQ(fx_pointer(word)[0], 42);
}

TEST(parameters_of_four_kilobytes) {
    fx_cuda_install("");
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream_on(context, "cuda");
    bh_kernel *kernel = image_kernel(
        context, HEAD ".entry four_kilobytes(.param .u64 sum, .param .align 4 .b8 words[4088]) {}",
        "four_kilobytes");
    bh_buffer *sum = fx_words(context, 1, 0);
    const bh_binding binding = bh_bind_write(0, sum);
    uint32_t words[1022], expected = 0;
    for (uint32_t i = 0; i < BHT_COUNT(words); i++) {
        expected += words[i] = i * i;
    }
    fx_expect(dispatch(stream, (bh_dispatch){.kernel = kernel,
                                             .groups = {1, 1, 1},
                                             .bindings = &binding,
                                             .binding_count = 1,
                                             .push = words,
                                             .push_size = sizeof words}),
              BH_OK);
    BHT_EQ(fx_pointer(sum)[0], expected);
}

/* What the driver would take, and we do not, is our limit, and no error of syntax. */
TEST(parameters_beyond_our_limits) {
    enum { MANY = 257 };
    fx_cuda_install("");
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream_on(context, "cuda");
    char many[MANY * 24 + 200] = HEAD ".entry nothing(.param .u64 p0";
    for (int i = 1; i < MANY; i++) {
        sprintf(many + strlen(many), ", .param .u64 p%d", i);
    }
    strcat(many, ") {}");
    const struct {
        const char *text, *words;
    } rows[] = {
        {many, "parameters: 257"},
        {HEAD ".entry nothing(.param .b8 p[4097]) {}", "bytes of a parameter: 4097"},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bh_kernel *kernel = image_kernel(context, rows[i].text, "nothing");
        const bh_verdict verdict =
            fx_expect(dispatch(stream, (bh_dispatch){.kernel = kernel, .groups = {1, 1, 1}}),
                      BH_LIMIT_EXCEEDED);
        BHT_STR_HAS(verdict.message, rows[i].words);
    }
}
