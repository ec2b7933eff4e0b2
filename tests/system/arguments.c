/* Bad arguments: a typed error that names the argument, and nothing else happens. */
#include "fixture.h"

static bh_context *context;
static bh_stream *stream;
static bh_kernel *square;
static bh_buffer *buffer;
static bh_detail detail;

static void open_all(void) {
    context = fx_context(NULL);
    stream = fx_stream(context, "s", FX_SECONDS);
    square = fx_kernel(context, "square");
    buffer = fx_words(context, 64, 0);
}

static void refuses(const bh_command *command, const char *word) {
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = command, .command_count = 1};
    bh_event *event = (bh_event *)&event;
    BHT_EQ(bh_submit(stream, &info, &event, &detail), BH_INVALID_ARGUMENT);
    BHT_TRUE(!event);
    BHT_STR_HAS(detail.message, word);
    BHT_STR_HAS(detail.message, "command 0");
}

TEST(commands) {
    open_all();
    bh_context *elsewhere = fx_context(NULL);
    bh_buffer *foreign = fx_words(elsewhere, 64, 0);
    bh_binding binding = bh_bind_read(0, buffer);
    bh_binding twice[] = {binding, binding};
    bh_command good = {
        .type = BH_COMMAND_DISPATCH,
        .dispatch = {
            .kernel = square, .groups = {1, 1, 1}, .bindings = &binding, .binding_count = 1}};
    bh_command c = good;
    c.type = (bh_command_type)9;
    refuses(&c, "type 9 is not a bh_command_type");
    c.type = (bh_command_type)0;
    refuses(&c, "type 0 is not a bh_command_type");
    c = good;
    c.dispatch.kernel = NULL;
    refuses(&c, "kernel");
    for (int axis = 0; axis < 3; axis++) {
        c = good;
        c.dispatch.groups[axis] = 0;
        refuses(&c, "groups[");
    }
    c = good;
    c.dispatch.bindings = NULL;
    refuses(&c, "bindings is NULL");
    c = good;
    c.dispatch.binding_count = 257;
    refuses(&c, "binding_count 257 is over 256");
    c = good;
    c.dispatch.push_size = 3;
    c.dispatch.push = &c;
    refuses(&c, "push_size 3 is not a multiple of 4");
    c.dispatch.push_size = 4100;
    refuses(&c, "push_size 4100 is not a multiple of 4 up to 4096");
    c = good;
    c.dispatch.push_size = 8;
    refuses(&c, "push is NULL");
    c = good;
    c.dispatch.bindings = twice;
    c.dispatch.binding_count = 2;
    refuses(&c, "twice");
    const bh_binding bad[] = {
        bh_bind_read(0, NULL),
        bh_bind_read(0, foreign),
        {.buffer = buffer, .size = BH_WHOLE_SIZE, .access = (bh_access)0},
        {.buffer = buffer, .size = BH_WHOLE_SIZE, .access = (bh_access)8},
        {.buffer = buffer, .offset = 257, .size = BH_WHOLE_SIZE, .access = BH_ACCESS_READ},
        {.buffer = buffer, .offset = 4, .size = 256, .access = BH_ACCESS_READ},
        {.buffer = buffer, .offset = 4, .size = UINT64_MAX - 1, .access = BH_ACCESS_READ},
        {.buffer = buffer, .offset = 0, .size = 0, .access = BH_ACCESS_READ},
    };
    static const char *const words[] = {
        "NULL",
        "another context",
        "is not known: give an access, or call bh_kernel_reflect first",
        "access 8 is not a bh_access",
        "offset",
        "size",
        "size",
        "size"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        c = good;
        c.dispatch.bindings = &bad[i];
        refuses(&c, words[i]);
        BHT_STR_HAS(detail.message, "set 0 binding 0");
    }
    const bh_command copies[] = {
        {.type = BH_COMMAND_COPY, .copy = {.src = NULL, .dst = buffer, .size = 4}},
        {.type = BH_COMMAND_COPY, .copy = {.src = buffer, .dst = NULL, .size = 4}},
        {.type = BH_COMMAND_COPY,
         .copy = {.src = buffer, .dst = buffer, .size = 8, .dst_offset = 4}},
        {.type = BH_COMMAND_COPY, .copy = {.src = buffer, .dst = buffer, .size = 300}},
        {.type = BH_COMMAND_COPY, .copy = {.src = buffer, .dst = buffer, .size = 0}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = buffer, .size = 2}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = buffer, .size = 4, .offset = 2}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = foreign, .size = 4}},
        {.type = BH_COMMAND_COPY,
         .copy = {.src = buffer, .dst = buffer, .src_offset = 256, .size = BH_WHOLE_SIZE}},
        {.type = BH_COMMAND_COPY,
         .copy = {.src = buffer, .dst = buffer, .src_offset = 124, .size = BH_WHOLE_SIZE}},
        {.type = BH_COMMAND_COPY,
         .copy = {.src = buffer, .dst = buffer, .dst_offset = 4, .size = BH_WHOLE_SIZE}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = buffer, .offset = 256, .size = BH_WHOLE_SIZE}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = buffer, .offset = 2, .size = BH_WHOLE_SIZE}},
    };
    static const char *const copy_words[] = {"src",
                                             "dst",
                                             "overlap",
                                             "size",
                                             "size",
                                             "multiples of 4",
                                             "multiples of 4",
                                             "another context",
                                             "src of 256 bytes",
                                             "overlap",
                                             "size 256 do not fit dst",
                                             "dst of 256 bytes",
                                             "multiples of 4"};
    for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++) {
        refuses(&copies[i], copy_words[i]);
    }
    /* None of it has hurt the stream, and none has left a reference behind. */
    fx_expect_healthy(context, stream);
}

/* BH_WHOLE_SIZE: a copy of the rest of src, a fill of the rest of dst. */
TEST(whole_size) {
    open_all();
    bh_buffer *source = fx_words(context, 64, 7), *odd = fx_buffer(context, 6);
    const bh_command some[] = {
        {.type = BH_COMMAND_FILL, .fill = {.dst = buffer, .size = BH_WHOLE_SIZE, .value = 1}},
        {.type = BH_COMMAND_FILL,
         .fill = {.dst = buffer, .offset = 248, .size = BH_WHOLE_SIZE, .value = 2}},
        {.type = BH_COMMAND_COPY,
         .copy = {.src = source,
                  .dst = buffer,
                  .src_offset = 240,
                  .dst_offset = 8,
                  .size = BH_WHOLE_SIZE}},
    };
    const bh_submit_info info = {.struct_size = sizeof info, .commands = some, .command_count = 3};
    bh_event *event = NULL;
    BHT_EQ(bh_submit(stream, &info, &event, &detail), BH_OK);
    fx_expect(event, BH_OK);
    bh_event_release(event);
    uint32_t words[64];
    BHT_EQ(bh_buffer_read(buffer, 0, words, sizeof words, FX_SECONDS, &detail), BH_OK);
    for (uint32_t i = 0; i < 64; i++) {
        BHT_EQ(words[i], i >= 62 ? 2 : i >= 2 && i < 6 ? 7 : 1);
    }
    const bh_command bad = {.type = BH_COMMAND_FILL, .fill = {.dst = odd, .size = BH_WHOLE_SIZE}};
    refuses(&bad, "size 6 must be multiples of 4");
}

static void expect_says(bh_status status, bh_status wanted, const char *call, const char *words) {
    BHT_EQ(status, wanted);
    BHT_EQ(detail.status, wanted);
    if (strncmp(detail.message, call, strlen(call)) != 0) {
        BHT_FAIL("does not begin with \"%s\": %s", call, detail.message);
    }
    BHT_STR_HAS(detail.message, words);
}

/* The detail begins with the call that the caller made, whoever found the mistake. */
TEST(who_is_told) {
    open_all();
    static bh_kernel_info info = {.struct_size = sizeof info};
    static bh_device_info devices[1] = {{.struct_size = sizeof devices[0]}};
    static bh_check checks[1] = {{.struct_size = sizeof checks[0]}};
    const uint32_t one[3] = {1, 1, 1}, none[3] = {1, 0, 1};
    const bh_binding bad = {.set = 2, .binding = 3, .buffer = NULL, .access = BH_ACCESS_READ};
    bh_stream *s = NULL;
    bh_kernel *k = NULL;
    bh_buffer *b = NULL;
    bh_event *e = NULL, *ended = NULL;
    size_t count;
    uint32_t module[16] = {0x07230203};

    expect_says(bh_launch(NULL, square, one, NULL, 0, NULL, 0, &e, &detail), BH_INVALID_ARGUMENT,
                "bh_launch: ", "stream");
    expect_says(bh_launch(stream, square, none, NULL, 0, NULL, 0, &e, &detail), BH_INVALID_ARGUMENT,
                "bh_launch: groups[1] is 0", "");
    expect_says(bh_launch(stream, square, one, &bad, 1, NULL, 0, &e, &detail), BH_INVALID_ARGUMENT,
                "bh_launch: set 2 binding 3 of kernel \"square\": ", "NULL");
    expect_says(bh_kernel_prepare(NULL, stream, &e, &detail), BH_INVALID_ARGUMENT,
                "bh_kernel_prepare: ", "kernel");
    expect_says(bh_kernel_reflect(square, NULL, 0, &info, &detail), BH_INVALID_ARGUMENT,
                "bh_kernel_reflect: ", "stream");
    expect_says(bh_stream_create(NULL, NULL, &s, &detail), BH_INVALID_ARGUMENT,
                "bh_stream_create: ", "context is NULL");
    expect_says(bh_buffer_create(NULL, 1, NULL, &b, &detail), BH_INVALID_ARGUMENT,
                "bh_buffer_create: ", "context is NULL");
    expect_says(bh_kernel_create_spirv(NULL, module, 64, NULL, &k, &detail), BH_INVALID_ARGUMENT,
                "bh_kernel_create_spirv: ", "context is NULL");
    expect_says(bh_context_reset(NULL, &detail), BH_INVALID_ARGUMENT, "bh_context_reset: ", "NULL");
    expect_says(bh_devices(NULL, devices, 1, &count, &detail), BH_INVALID_ARGUMENT,
                "bh_devices: ", "context is NULL");
    expect_says(bh_doctor(NULL, checks, 1, &count, &detail), BH_INVALID_ARGUMENT,
                "bh_doctor: ", "context is NULL");
    void *pointer;
    expect_says(bh_buffer_map(buffer, (bh_map_intent)9, 0, &pointer, &detail), BH_INVALID_ARGUMENT,
                "bh_buffer_map: ", "intent 9 is not a bh_map_intent");
    bh_kernel_options options = {.struct_size = sizeof options};
    options.specialization_count = 1;
    expect_says(bh_kernel_create_spirv(context, module, 64, &options, &k, &detail),
                BH_INVALID_ARGUMENT, "bh_kernel_create_spirv: ", "specializations is NULL");
    static const bh_specialization many[257];
    options.specializations = many;
    options.specialization_count = 257;
    expect_says(bh_kernel_create_spirv(context, module, 64, &options, &k, &detail),
                BH_INVALID_ARGUMENT, "bh_kernel_create_spirv: ", "257, over 256");

    BHT_EQ(bh_kernel_prepare(square, stream, &ended, NULL), BH_OK);
    fx_expect(ended, BH_OK);
    bh_context_destroy(context);
    static const char gone[] = "the context was destroyed";
    const bh_command fill = {.type = BH_COMMAND_FILL, .fill = {.dst = buffer, .size = 4}};
    const bh_submit_info fills = {
        .struct_size = sizeof fills, .commands = &fill, .command_count = 1};
    expect_says(bh_submit(stream, &fills, &e, &detail), BH_CLOSED, "bh_submit: ", gone);
    expect_says(bh_launch(stream, square, one, NULL, 0, NULL, 0, &e, &detail), BH_CLOSED,
                "bh_launch: ", gone);
    expect_says(bh_kernel_prepare(square, stream, &e, &detail), BH_CLOSED,
                "bh_kernel_prepare: ", gone);
    expect_says(bh_kernel_reflect(square, stream, 0, &info, &detail), BH_CLOSED,
                "bh_kernel_reflect: ", gone);
    expect_says(bh_stream_wait_ready(stream, 0, &detail), BH_CLOSED,
                "bh_stream_wait_ready: ", gone);
    expect_says(bh_stream_reset(stream, &detail), BH_CLOSED, "bh_stream_reset: ", gone);
}

/* What is not made is NULL, whatever stood there. */
TEST(nothing_is_given_out_by_a_call_that_fails) {
    open_all();
    bh_context_options options = fx_options();
    options.spares = 65;
    const uint32_t one[3] = {1, 1, 1};
    bh_context *c = context;
    bh_stream *s = stream;
    bh_kernel *k = square;
    bh_buffer *b = buffer;
    bh_event *none = (bh_event *)&none, *e[3] = {none, none, none};
    BHT_EQ(bh_context_create(&options, &c, NULL), BH_INVALID_ARGUMENT);
    BHT_TRUE(!c);
    BHT_EQ(bh_stream_create(NULL, NULL, &s, NULL), BH_INVALID_ARGUMENT);
    BHT_TRUE(!s);
    BHT_EQ(bh_kernel_create_spirv(context, NULL, 0, NULL, &k, NULL), BH_INVALID_ARGUMENT);
    BHT_TRUE(!k);
    BHT_EQ(bh_buffer_create(context, UINT64_MAX, NULL, &b, NULL), BH_TOO_LARGE);
    BHT_TRUE(!b);
    BHT_EQ(bh_launch(stream, square, NULL, NULL, 0, NULL, 0, &e[0], NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_launch(NULL, square, one, NULL, 0, NULL, 0, &e[1], NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_kernel_prepare(square, NULL, &e[2], NULL), BH_INVALID_ARGUMENT);
    for (size_t i = 0; i < BHT_COUNT(e); i++) {
        BHT_TRUE(!e[i]);
    }
}

TEST(submissions) {
    open_all();
    bh_binding binding = bh_bind_read(0, buffer);
    bh_command good = {
        .type = BH_COMMAND_DISPATCH,
        .dispatch = {
            .kernel = square, .groups = {1, 1, 1}, .bindings = &binding, .binding_count = 1}};
    bh_submit_info info = {.struct_size = sizeof info, .command_count = 1};
    BHT_EQ(bh_submit(stream, &info, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "commands is NULL");
    info = (bh_submit_info){.struct_size = sizeof(bh_submit_info),
                            .commands = &good,
                            .command_count = 1,
                            .wait_count = 1};
    BHT_EQ(bh_submit(stream, &info, NULL, &detail), BH_INVALID_ARGUMENT);
    bh_event *none = NULL;
    info.waits = &none;
    BHT_EQ(bh_submit(stream, &info, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "waits[0]");
    enum { MANY = 60000 };
    bh_command *many = calloc(MANY, sizeof *many);
    for (int i = 0; i < MANY; i++) {
        many[i] = good;
    }
    info = (bh_submit_info){
        .struct_size = sizeof(bh_submit_info), .commands = many, .command_count = MANY};
    BHT_EQ(bh_submit(stream, &info, NULL, &detail), BH_TOO_LARGE);
    BHT_STR_HAS(detail.message, "524288");
    free(many);
    BHT_EQ(bh_submit(NULL, &info, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_submit(stream, NULL, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_wait(NULL, 0), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_cancel(NULL), BH_INVALID_ARGUMENT);
}

/* A source in place of a module: the message has its first line. */
TEST(text_in_place_of_a_module) {
#define IS_TEXT(line) "bh_kernel_create_spirv: not SPIR-V, but text that begins \"" line "\""
    static char large[4096] = "#version 450\n";
    static const char glsl[] = "#version 450\nlayout(local_size_x = 64) in;\nvoid main() {}\n",
                      hlsl[] = "\xef\xbb\xbf\r\n\t // squares\r\n[numthreads(64, 1, 1)]\r\n",
                      hostile[] = "// \xe2\x80\xae evil \xff of a line that is longer than what is "
                                  "shown of it, and goes on",
                      binary[] = "#version 450\n\x01\x02\x03 and more bytes",
                      high[] = "\xf1\xf2\xf3\xf4 #version 450, and \xf5\xf6\xf7\xf8\xf9\xfa\xfb";
    const struct {
        const char *code;
        size_t size;
        const char *why;
    } cases[] = {
        {glsl, sizeof glsl - 1, IS_TEXT("#version 450")},
        {glsl, (sizeof glsl - 1) & ~(size_t)3, IS_TEXT("#version 450")},
        {glsl, sizeof glsl, IS_TEXT("#version 450")},   /* with its NUL */
        {large, sizeof large, IS_TEXT("#version 450")}, /* in a larger array */
        {hlsl, sizeof hlsl - 1, IS_TEXT("// squares")},
        {hostile, sizeof hostile - 1,
         IS_TEXT("// ? evil ? of a line that is longer than what is shown of it, ")},
        {glsl, 9, IS_TEXT("#version ")},
        {glsl, 7, "not SPIR-V (7 bytes)"},
        {"        \n\n\n\n\n\n\n\n\n\n\n\n", 20, "not SPIR-V (20 bytes)"},
        {binary, sizeof binary - 1, "not SPIR-V ("},
        {high, 28, "not SPIR-V (28 bytes)"},
    };
    open_all();
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        /* Exactly so many bytes, for ASan: no NUL is behind them. */
        void *code = malloc(cases[i].size);
        bh_kernel *kernel = NULL;
        memcpy(code, cases[i].code, cases[i].size);
        BHT_EQ(bh_kernel_create_spirv(context, code, cases[i].size, NULL, &kernel, &detail),
               BH_INVALID_ARGUMENT);
        BHT_STR_HAS(detail.message, cases[i].why);
        BHT_EQ(detail.reason, BH_REASON_NOT_SPIRV);
        free(code);
    }
}

TEST(kernels) {
    open_all();
    uint32_t module[16] = {0x07230203};
    bh_kernel *kernel = NULL;
    bh_kernel_options options = {.struct_size = sizeof options};
    BHT_EQ(bh_kernel_create_spirv(context, NULL, 64, NULL, &kernel, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_kernel_create_spirv(context, module, 63, NULL, &kernel, &detail),
           BH_INVALID_ARGUMENT);
    BHT_EQ(bh_kernel_create_spirv(context, module, 16, NULL, &kernel, &detail),
           BH_INVALID_ARGUMENT);
    module[0] = 0x03022307;
    BHT_EQ(bh_kernel_create_spirv(context, module, 64, NULL, &kernel, &detail),
           BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_NOT_SPIRV);
    module[0] = 0x07230203;
    const bh_specialization bad_size[] = {{.constant_id = 5, .size = 3}};
    const bh_specialization twice[] = {{5, 4, 1}, {5, 4, 2}};
    options.specializations = bad_size;
    options.specialization_count = 1;
    BHT_EQ(bh_kernel_create_spirv(context, module, 64, &options, &kernel, &detail),
           BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "constant 5");
    options.specializations = twice;
    options.specialization_count = 2;
    BHT_EQ(bh_kernel_create_spirv(context, module, 64, &options, &kernel, &detail),
           BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "twice");
    /* No message to a worker can carry such a name. */
    options.specialization_count = 0;
    static const char *const names[] = {"\xff", "ma\nin", "main\t", "\xe2\x80\x8bmain"};
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        options.entry = names[i];
        BHT_EQ(bh_kernel_create_spirv(context, module, 64, &options, &kernel, &detail),
               BH_INVALID_ARGUMENT);
        BHT_STR_HAS(detail.message, "options.entry is not UTF-8, or has control characters");
    }
    options.struct_size = 1;
    BHT_EQ(bh_kernel_create_spirv(context, module, 64, &options, &kernel, &detail),
           BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "set it to sizeof(bh_kernel_options)");
    /* A module of the right shape and no sense: the worker refuses it, and goes on. */
    BHT_EQ(bh_kernel_create_spirv(context, module, 64, NULL, &kernel, &detail), BH_OK);
    pid_t pid = fx_ready(stream);
    static bh_kernel_info info = {.struct_size = sizeof info};
    BHT_EQ(bh_kernel_reflect(kernel, stream, FX_SECONDS, &info, &detail), BH_INVALID_KERNEL);
    BHT_EQ(bh_status_classify(BH_INVALID_KERNEL), BH_STATUS_CLASS_INPUT);
    BHT_EQ(bh_stream_worker_pid(stream), pid);
    /* K1: the same kernel has the same hash, another constant another one, another guard, too. */
    bh_kernel *again = NULL, *other = NULL, *trusted = NULL;
    uint8_t h1[32], h2[32], h3[32], h4[32];
    BHT_EQ(bh_kernel_create_spirv(context, module, 64, NULL, &again, &detail), BH_OK);
    options = (bh_kernel_options){.struct_size = sizeof(bh_kernel_options)};
    options.specializations = twice;
    options.specialization_count = 1;
    BHT_EQ(bh_kernel_create_spirv(context, module, 64, &options, &other, &detail), BH_OK);
    options = (bh_kernel_options){.struct_size = sizeof(bh_kernel_options)};
    options.trusted = true;
    BHT_EQ(bh_kernel_create_spirv(context, module, 64, &options, &trusted, &detail), BH_OK);
    bh_kernel_hash(kernel, h1);
    bh_kernel_hash(again, h2);
    bh_kernel_hash(other, h3);
    bh_kernel_hash(trusted, h4);
    BHT_MEM_EQ(h1, h2, 32);
    BHT_TRUE(memcmp(h1, h3, 32) != 0);
    BHT_TRUE(memcmp(h1, h4, 32) != 0);
}

TEST(reflection) {
    open_all();
    static bh_kernel_info info = {.struct_size = sizeof info};
    for (int i = 0; i < 2; i++) { /* the second time from what the worker has said */
        BHT_EQ(bh_kernel_reflect(square, stream, FX_SECONDS, &info, &detail), BH_OK);
        BHT_EQ(info.binding_count, 2);
        BHT_EQ(info.bindings[0].binding, 0);
        BHT_EQ(info.bindings[0].access, BH_ACCESS_READ);
        BHT_EQ(info.bindings[1].access, BH_ACCESS_WRITE);
        BHT_EQ(info.bindings[1].kind, BH_BINDING_STORAGE_BUFFER);
        BHT_EQ(info.local_size[0], 64);
        BHT_EQ(info.push_size, 0);
    }
    /* Again after its worker has died. */
    fx_kill(fx_ready(stream), SIGKILL);
    fx_expect_healthy(context, stream);
    BHT_EQ(bh_kernel_reflect(square, stream, FX_SECONDS, &info, &detail), BH_OK);
    BHT_EQ(info.binding_count, 2);
}

TEST(buffers) {
    open_all();
    bh_buffer *big = NULL;
    BHT_EQ(bh_buffer_create(context, (1ull << 40) + 1, NULL, &big, &detail), BH_TOO_LARGE);
    BHT_EQ(bh_buffer_create(context, 1ull << 40, NULL, &big, &detail), BH_NO_MEMORY);
    BHT_STR_HAS(detail.message, "available");
    BHT_EQ(bh_buffer_create(context, 4, NULL, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_buffer_create(NULL, 4, NULL, &big, &detail), BH_INVALID_ARGUMENT);
    char bytes[16];
    BHT_EQ(bh_buffer_read(buffer, 250, bytes, 16, 0, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "256");
    BHT_EQ(bh_buffer_read(buffer, UINT64_MAX, bytes, 16, 0, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_buffer_write(buffer, 0, NULL, 16, 0, &detail), BH_INVALID_ARGUMENT);
    void *pointer;
    BHT_EQ(bh_buffer_map(buffer, (bh_map_intent)7, 0, &pointer, &detail), BH_INVALID_ARGUMENT);
    /* Zero-length is legal (case 36). */
    bh_buffer *empty = fx_buffer(context, 0);
    BHT_EQ(bh_buffer_size(empty), 0);
    BHT_EQ(bh_buffer_map(empty, BH_MAP_READ, 0, &pointer, &detail), BH_OK);
    BHT_TRUE(pointer);
    BHT_EQ(bh_buffer_read(empty, 0, NULL, 0, 0, &detail), BH_OK);
    bh_buffer_release(empty);
    /* Fresh memory is zero (B6). */
    bh_buffer *fresh = fx_buffer(context, 4096);
    BHT_EQ(bh_buffer_map(fresh, BH_MAP_READ, 0, &pointer, &detail), BH_OK);
    for (int i = 0; i < 4096; i++) {
        BHT_EQ(((char *)pointer)[i], 0);
    }
}

TEST(streams_and_contexts) {
    open_all();
    bh_stream_options options = {.struct_size = sizeof options};
    bh_stream *s = NULL;
    static const char *const selectors[] = {"lavapipe:", "lavapipe:64", ":1", "Lava", "a/b", "99"};
    for (size_t i = 0; i < sizeof selectors / sizeof selectors[0]; i++) {
        options.device = selectors[i];
        BHT_EQ(bh_stream_create(context, &options, &s, &detail), BH_INVALID_ARGUMENT);
        BHT_STR_HAS(detail.message, selectors[i]);
    }
    options.device = "nosuchdriver";
    BHT_EQ(bh_stream_create(context, &options, &s, &detail), BH_OK);
    BHT_EQ(bh_stream_wait_ready(s, FX_SECONDS, &detail), BH_NO_DEVICE);
    BHT_STR_HAS(detail.message, "nosuchdriver");
    BHT_STR_HAS(detail.message, "(known: ");
    BHT_TRUE(!strstr(detail.message, "No such file"));
    bh_stream_release(s);
    options.device = "lavapipe:7";
    BHT_EQ(bh_stream_create(context, &options, &s, &detail), BH_OK);
    BHT_EQ(bh_stream_wait_ready(s, FX_SECONDS, &detail), BH_NO_DEVICE);
    bh_stream_release(s);
    options.device = "lavapipe:0";
    options.deadline_ns = options.compile_deadline_ns = 0; /* the defaults */
    BHT_EQ(bh_stream_create(context, &options, &s, &detail), BH_OK);
    fx_expect_healthy(context, s);
    bh_stream_release(s);
    options.device = NULL;
    options.memory_limit = 1 << 20;
    BHT_EQ(bh_stream_create(context, &options, &s, &detail), BH_INVALID_ARGUMENT);
    bh_context_options bad = fx_options();
    bh_context *c = NULL;
    bad.worker_path = "/nonexistent/bulkhead-worker";
    BHT_EQ(bh_context_create(&bad, &c, &detail), BH_UNAVAILABLE);
    BHT_STR_HAS(detail.message, "/nonexistent/bulkhead-worker");
    bad = fx_options();
    bad.runtime_dir = "/nonexistent";
    bad.worker_path = "/bin/true";
    BHT_EQ(bh_context_create(&bad, &c, &detail), BH_SYSTEM);
    /* An executable that is no worker: typed, in bounded time. */
    bad = fx_options();
    bad.worker_path = "/bin/true";
    bad.restart_budget = 1;
    BHT_EQ(bh_context_create(&bad, &c, &detail), BH_OK);
    BHT_EQ(bh_stream_create(c, NULL, &s, &detail), BH_OK);
    BHT_EQ(bh_stream_wait_ready(s, FX_SECONDS, &detail), BH_UNAVAILABLE);
}

TEST(devices_and_doctor) {
    open_all();
    static bh_device_info devices[8] = {{.struct_size = sizeof devices[0]}};
    size_t count = 0;
    if (bh_devices(context, devices, 8, &count, &detail) != BH_OK) {
        BHT_FAIL("bh_devices: %s", detail.message);
    }
    BHT_GE(count, 1);
    bool found = false;
    for (size_t i = 0; i < count && i < 8; i++) {
        found = found || strcmp(devices[i].selector, "lavapipe:0") == 0;
    }
    BHT_TRUE(found);
    static bh_check checks[64] = {{.struct_size = sizeof checks[0]}};
    BHT_EQ(bh_doctor(context, checks, 64, &count, &detail), BH_OK);
    BHT_GT(count, 15);
    BHT_LE(count, 64);
    /* Where the suite runs every required layer must hold: a missing one is a failure. */
    for (size_t i = 0; i < count; i++) {
        if (checks[i].required && checks[i].result != BH_CHECK_HOLDS) {
            BHT_FAIL("%s %s: %s", checks[i].group, checks[i].name, checks[i].text);
        }
    }
}
