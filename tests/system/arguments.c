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
BHT_AT_START(bht_around(open_all, NULL))

/* The detail begins with the call that the caller made, whoever found the mistake. */
static void expect_told(const char *call, bh_status status, bh_status wanted, const char *words) {
    const size_t name = strcspn(call, "(");
    if (status != wanted || detail.status != wanted || strncmp(detail.message, call, name) != 0 ||
        strncmp(detail.message + name, ": ", 2) != 0 || !strstr(detail.message, words)) {
        BHT_FAIL("%s: %s, must be %s and say \"%s\": %s", call, bh_status_name(status),
                 bh_status_name(wanted), words, detail.message);
    }
    detail = (bh_detail){0};
}

/* Calls that fill in |detail|. */
#define TOLD(wanted, words, call) expect_told(#call, call, wanted, words)
#define INVALID(words, call)      TOLD(BH_INVALID_ARGUMENT, words, call)

static void refuses(bh_command command, const char *word) {
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &command, .command_count = 1};
    bh_event *event = (bh_event *)&event;
    BHT_EQ(bh_submit(stream, &info, &event, &detail), BH_INVALID_ARGUMENT);
    BHT_TRUE(!event);
    BHT_STR_HAS(detail.message, word);
    BHT_STR_HAS(detail.message, "command 0");
}

/* -- commands --------------------------------------------------------------------------------- */

static bh_command fill(bh_buffer *dst, uint64_t offset, uint64_t size, uint32_t value) {
    return (bh_command){.type = BH_COMMAND_FILL,
                        .fill = {.dst = dst, .offset = offset, .size = size, .value = value}};
}

static bh_command copy(bh_buffer *src, uint64_t src_offset, bh_buffer *dst, uint64_t dst_offset,
                       uint64_t size) {
    return (bh_command){.type = BH_COMMAND_COPY,
                        .copy = {.src = src,
                                 .src_offset = src_offset,
                                 .dst = dst,
                                 .dst_offset = dst_offset,
                                 .size = size}};
}

static bh_binding bind(bh_buffer *what, uint64_t offset, uint64_t size, uint32_t access) {
    return (bh_binding){
        .buffer = what, .offset = offset, .size = size, .access = (bh_access)access};
}

TEST(dispatches) {
    bh_buffer *foreign = fx_words(fx_context(NULL), 64, 0);
    bh_binding binding = bh_bind_read(0, buffer);
    bh_binding twice[] = {binding, binding};
    const bh_command good = fx_dispatch(square, &binding, 1);
    bh_command c = good;
    c.type = (bh_command_type)9;
    refuses(c, "type 9 is not a bh_command_type");
    c.type = (bh_command_type)0;
    refuses(c, "type 0 is not a bh_command_type");
    refuses(fx_dispatch(NULL, &binding, 1), "kernel");
    for (int axis = 0; axis < 3; axis++) {
        c = good;
        c.dispatch.groups[axis] = 0;
        refuses(c, "groups[");
    }
    refuses(fx_dispatch(square, NULL, 1), "bindings is NULL");
    refuses(fx_dispatch(square, &binding, 257), "binding_count 257 is over 256");
    refuses(fx_dispatch(square, twice, 2), "twice");
    c = good;
    c.dispatch.push_size = 3;
    c.dispatch.push = &c;
    refuses(c, "push_size 3 is not a multiple of 4");
    c.dispatch.push_size = 4100;
    refuses(c, "push_size 4100 is not a multiple of 4 up to 4096");
    c = good;
    c.dispatch.push_size = 8;
    refuses(c, "push is NULL");
    const struct {
        bh_binding binding;
        const char *words;
    } bad[] = {
        {bh_bind_read(0, NULL), "NULL"},
        {bh_bind_read(0, foreign), "another context"},
        {bind(buffer, 0, BH_WHOLE_SIZE, 0),
         "is not known: give an access, or call bh_kernel_reflect first"},
        {bind(buffer, 0, BH_WHOLE_SIZE, 8), "access 8 is not a bh_access"},
        {bind(buffer, 257, BH_WHOLE_SIZE, BH_ACCESS_READ), "offset"},
        {bind(buffer, 4, 256, BH_ACCESS_READ), "size"},
        {bind(buffer, 4, UINT64_MAX - 1, BH_ACCESS_READ), "size"},
        {bind(buffer, 0, 0, BH_ACCESS_READ), "size"},
    };
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {
        refuses(fx_dispatch(square, &bad[i].binding, 1), bad[i].words);
        BHT_STR_HAS(detail.message, "set 0 binding 0");
    }
    /* None of it has hurt the stream, and none has left a reference behind. */
    fx_expect_healthy(context, stream);
}

TEST(copies_and_fills) {
    bh_buffer *foreign = fx_words(fx_context(NULL), 64, 0);
    refuses(copy(NULL, 0, buffer, 0, 4), "src");
    refuses(copy(buffer, 0, NULL, 0, 4), "dst");
    refuses(copy(buffer, 0, buffer, 4, 8), "overlap");
    refuses(copy(buffer, 0, buffer, 0, 300), "size");
    refuses(copy(buffer, 0, buffer, 0, 0), "size");
    refuses(fill(buffer, 0, 2, 0), "multiples of 4");
    refuses(fill(buffer, 2, 4, 0), "multiples of 4");
    refuses(fill(foreign, 0, 4, 0), "another context");
    refuses(copy(buffer, 256, buffer, 0, BH_WHOLE_SIZE), "src of 256 bytes");
    refuses(copy(buffer, 124, buffer, 0, BH_WHOLE_SIZE), "overlap");
    refuses(copy(buffer, 0, buffer, 4, BH_WHOLE_SIZE), "size 256 do not fit dst");
    refuses(fill(buffer, 256, BH_WHOLE_SIZE, 0), "dst of 256 bytes");
    refuses(fill(buffer, 2, BH_WHOLE_SIZE, 0), "multiples of 4");
    refuses(fill(fx_buffer(context, 6), 0, BH_WHOLE_SIZE, 0), "size 6 must be multiples of 4");
    fx_expect_healthy(context, stream);
}

/* BH_WHOLE_SIZE: a copy of the rest of src, a fill of the rest of dst. */
TEST(whole_size) {
    const bh_command some[] = {fill(buffer, 0, BH_WHOLE_SIZE, 1),
                               fill(buffer, 248, BH_WHOLE_SIZE, 2),
                               copy(fx_words(context, 64, 7), 240, buffer, 8, BH_WHOLE_SIZE)};
    fx_expect(fx_commands(stream, some, BHT_COUNT(some)), BH_OK);
    const uint32_t *words = fx_mapped(buffer);
    for (uint32_t i = 0; i < 64; i++) {
        BHT_EQ(words[i], i >= 62 ? 2 : i >= 2 && i < 6 ? 7 : 1);
    }
}

/* -- calls ------------------------------------------------------------------------------------ */

TEST(who_is_told) {
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
    void *pointer;
    uint32_t module[16] = {0x07230203};

    INVALID("stream", bh_launch(NULL, square, one, NULL, 0, NULL, 0, &e, &detail));
    INVALID(": groups[1] is 0", bh_launch(stream, square, none, NULL, 0, NULL, 0, &e, &detail));
    INVALID(": set 2 binding 3 of kernel \"square\": buffer is NULL",
            bh_launch(stream, square, one, &bad, 1, NULL, 0, &e, &detail));
    INVALID("kernel", bh_kernel_prepare(NULL, stream, &e, &detail));
    INVALID("stream", bh_kernel_reflect(square, NULL, 0, &info, &detail));
    INVALID("context is NULL", bh_stream_create(NULL, NULL, &s, &detail));
    INVALID("context is NULL", bh_buffer_create(NULL, 1, NULL, &b, &detail));
    INVALID("context is NULL", bh_kernel_create_spirv(NULL, module, 64, NULL, &k, &detail));
    INVALID("NULL", bh_context_reset(NULL, &detail));
    INVALID("context is NULL", bh_devices(NULL, devices, 1, &count, &detail));
    INVALID("context is NULL", bh_doctor(NULL, checks, 1, &count, &detail));
    INVALID("intent 9 is not a bh_map_intent",
            bh_buffer_map(buffer, (bh_map_intent)9, 0, &pointer, &detail));
    static const bh_specialization many[257];
    bh_kernel_options options = {.struct_size = sizeof options, .specialization_count = 1};
    INVALID("specializations is NULL",
            bh_kernel_create_spirv(context, module, 64, &options, &k, &detail));
    options.specializations = many;
    options.specialization_count = 257;
    INVALID("257, over 256", bh_kernel_create_spirv(context, module, 64, &options, &k, &detail));

    BHT_EQ(bh_kernel_prepare(square, stream, &ended, NULL), BH_OK);
    fx_expect(ended, BH_OK);
    bh_context_destroy(context);
#define GONE(call) TOLD(BH_CLOSED, "the context was destroyed", call)
    const bh_command command = fill(buffer, 0, 4, 0);
    const bh_submit_info fills = {
        .struct_size = sizeof fills, .commands = &command, .command_count = 1};
    GONE(bh_submit(stream, &fills, &e, &detail));
    GONE(bh_launch(stream, square, one, NULL, 0, NULL, 0, &e, &detail));
    GONE(bh_kernel_prepare(square, stream, &e, &detail));
    GONE(bh_kernel_reflect(square, stream, 0, &info, &detail));
    GONE(bh_stream_wait_ready(stream, 0, &detail));
    GONE(bh_stream_reset(stream, &detail));
}

/* What is not made is NULL, whatever stood there. */
TEST(nothing_is_given_out_by_a_call_that_fails) {
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

/* Holes in submissions: events_refusals. */
TEST(submissions) {
    const bh_binding binding = bh_bind_read(0, buffer);
    const bh_command good = fx_dispatch(square, &binding, 1);
    enum { MANY = 60000 };
    bh_command *many = bht_own(calloc(MANY, sizeof *many));
    for (int i = 0; i < MANY; i++) {
        many[i] = good;
    }
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = many, .command_count = MANY};
    TOLD(BH_TOO_LARGE, "524288", bh_submit(stream, &info, NULL, &detail));
    INVALID("", bh_submit(NULL, &info, NULL, &detail));
    INVALID("", bh_submit(stream, NULL, NULL, &detail));
    BHT_EQ(bh_event_wait(NULL, 0), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_cancel(NULL), BH_INVALID_ARGUMENT);
}

/* A source in place of a module: the message has its first line. */
TEST(text_in_place_of_a_module) {
#define IS_TEXT(line) "bh_kernel_create_spirv: not SPIR-V, but text that begins \"" line "\""
    static char large[4096] = "#version 450\n", swapped[64] = "\x07\x23\x02\x03";
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
        {swapped, sizeof swapped, "not SPIR-V (64 bytes)"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        /* Exactly so many bytes, for ASan: no NUL is behind them. */
        void *code = bht_own(malloc(cases[i].size));
        bh_kernel *kernel = NULL;
        memcpy(code, cases[i].code, cases[i].size);
        BHT_EQ(bh_kernel_create_spirv(context, code, cases[i].size, NULL, &kernel, &detail),
               BH_INVALID_ARGUMENT);
        BHT_STR_HAS(detail.message, cases[i].why);
        BHT_EQ(detail.reason, BH_REASON_NOT_SPIRV);
    }
}

TEST(kernels) {
    uint32_t module[16] = {0x07230203};
    bh_kernel *kernel = NULL;
    bh_kernel_options options = {.struct_size = sizeof options};
    INVALID("", bh_kernel_create_spirv(context, NULL, 64, NULL, &kernel, &detail));
    INVALID("", bh_kernel_create_spirv(context, module, 63, NULL, &kernel, &detail));
    INVALID("", bh_kernel_create_spirv(context, module, 16, NULL, &kernel, &detail));
    const bh_specialization bad_size[] = {{.constant_id = 5, .size = 3}};
    const bh_specialization twice[] = {{5, 4, 1}, {5, 4, 2}};
    options.specializations = bad_size;
    options.specialization_count = 1;
    INVALID("constant 5", bh_kernel_create_spirv(context, module, 64, &options, &kernel, &detail));
    options.specializations = twice;
    options.specialization_count = 2;
    INVALID("twice", bh_kernel_create_spirv(context, module, 64, &options, &kernel, &detail));
    /* No message to a worker can carry such a name. */
    options.specialization_count = 0;
    static const char *const names[] = {"\xff", "ma\nin", "main\t", "\xe2\x80\x8bmain"};
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        options.entry = names[i];
        INVALID("options.entry is not UTF-8, or has control characters",
                bh_kernel_create_spirv(context, module, 64, &options, &kernel, &detail));
    }
    options.struct_size = 1;
    INVALID("set it to sizeof(bh_kernel_options)",
            bh_kernel_create_spirv(context, module, 64, &options, &kernel, &detail));
    /* A module of the right shape and no sense: the worker refuses it, and goes on. */
    BHT_EQ(bh_kernel_create_spirv(context, module, 64, NULL, &kernel, &detail), BH_OK);
    pid_t pid = fx_ready(stream);
    static bh_kernel_info info = {.struct_size = sizeof info};
    BHT_EQ(bh_kernel_reflect(kernel, stream, FX_SECONDS, &info, &detail), BH_INVALID_KERNEL);
    BHT_EQ(bh_status_classify(BH_INVALID_KERNEL), BH_STATUS_CLASS_INPUT);
    BHT_EQ(bh_stream_worker_pid(stream), pid);
}

#define PTX ".version 8.0\n.target sm_80\n.address_size 64\n"

TEST(images) {
    static const char ptx[] = "// made by a compiler\n" PTX,
                      elf[] = "\x7f"
                              "ELF",
                      fatbin[] = "\x50\xed\x55\xba", late[] = PTX "\0" PTX,
                      cuda[] = "__global__ void k() {}\n";
    static const uint32_t spirv[16] = {0x07230203};
    static const bh_specialization one = {5, 4, 1};
#define OPTIONS(...) {.struct_size = sizeof(bh_kernel_options), __VA_ARGS__}
    static const struct {
        const void *image;
        size_t size;
        bh_kernel_options options;
        const char *why; /* NULL: it is one */
        bh_reason reason;
    } rows[] = {
        {ptx, sizeof ptx - 1, OPTIONS(.entry = "k"), NULL, 0},
        {ptx, sizeof ptx, OPTIONS(.entry = "k", .block = {1, 2, 3}, .shared_bytes = 4), NULL, 0},
        {elf, 4, OPTIONS(.entry = "_Z1kPf"), NULL, 0},
        {fatbin, 4, OPTIONS(.entry = "k", .shared_bytes = 4), NULL, 0},
        {ptx, sizeof ptx, OPTIONS(.name = "k"),
         "options.entry is NULL; to correct it: name the kernel in the image", BH_REASON_NULL},
        {ptx, sizeof ptx, OPTIONS(.entry = "k", .specializations = &one, .specialization_count = 1),
         "options.specializations are for SPIR-V; an image for CUDA has none", BH_REASON_ARGUMENT},
        {ptx, sizeof ptx, OPTIONS(.entry = "k", .trusted = true),
         "options.trusted is for SPIR-V; a CUDA kernel has no guard", BH_REASON_ARGUMENT},
        {ptx, sizeof ptx, OPTIONS(.entry = "k", .noise = 1),
         "options.noise is for SPIR-V that is guarded", BH_REASON_ARGUMENT},
        {ptx, sizeof ptx, OPTIONS(.entry = "k", .block = {1, 0, 1}),
         "options.block is 1, 0, 1: give all three or none", BH_REASON_ARGUMENT},
        {ptx, sizeof ptx, OPTIONS(.entry = "k\n"), "options.entry is not UTF-8",
         BH_REASON_NOT_TEXT},
        {NULL, 1, OPTIONS(.entry = "k"), "image is NULL", BH_REASON_NULL},
        {ptx, 0, OPTIONS(.entry = "k"), "cubin nor a fatbin (0 bytes)", BH_REASON_NOT_IMAGE},
        {elf, 3, OPTIONS(.entry = "k"), "cubin nor a fatbin (3 bytes)", BH_REASON_NOT_IMAGE},
        {late, sizeof late, OPTIONS(.entry = "k"),
         "cubin nor a fatbin, but text that begins "
         "\".version 8.0\" (",
         BH_REASON_NOT_IMAGE},
        {cuda, sizeof cuda, OPTIONS(.entry = "k"),
         "no image for CUDA: neither PTX, a cubin nor a fatbin, but text that begins "
         "\"__global__ void k() {}\" (24 bytes)",
         BH_REASON_NOT_IMAGE},
        {spirv, sizeof spirv, OPTIONS(.entry = "k"),
         "image is SPIR-V; to correct it: use bh_kernel_create_spirv", BH_REASON_ARGUMENT},
    };
    bh_kernel *kernel = NULL;
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        /* Exactly so many bytes, for ASan. */
        void *image = bht_own(malloc(rows[i].size + !rows[i].size));
        if (rows[i].image) {
            memcpy(image, rows[i].image, rows[i].size);
        }
        const bh_status status =
            bh_kernel_create_image(context, rows[i].image ? image : NULL, rows[i].size,
                                   &rows[i].options, &kernel, &detail);
        if (!rows[i].why) {
            BHT_EQ(status, BH_OK);
            BHT_STR_EQ(bh_kernel_name(kernel), rows[i].options.entry);
            continue;
        }
        BHT_EQ(status, BH_INVALID_ARGUMENT);
        BHT_TRUE(!kernel);
        BHT_STR_HAS(detail.message, "bh_kernel_create_image: ");
        BHT_STR_HAS(detail.message, rows[i].why);
        BHT_EQ(detail.reason, rows[i].reason);
    }
    INVALID("options.entry is NULL",
            bh_kernel_create_image(context, ptx, sizeof ptx, NULL, &kernel, &detail));
    char *large = bht_own(calloc(1, (64u << 20) + 1));
    memcpy(large, elf, 4);
    INVALID("size is 67108865, over 67108864",
            bh_kernel_create_image(context, large, (64u << 20) + 1, &rows[0].options, &kernel,
                                   &detail));
    /* And what is an image's, of SPIR-V. */
    INVALID("not SPIR-V, but text that begins \"// made by a compiler\" (66 bytes); to correct it: "
            "use bh_kernel_create_image",
            bh_kernel_create_spirv(context, ptx, sizeof ptx - 1, NULL, &kernel, &detail));
    const bh_kernel_options block = OPTIONS(.block = {0, 0, 1}),
                            shared = OPTIONS(.shared_bytes = 1);
    INVALID("options.block is for images",
            bh_kernel_create_spirv(context, spirv, 64, &block, &kernel, &detail));
    INVALID("options.shared_bytes is for images",
            bh_kernel_create_spirv(context, spirv, 64, &shared, &kernel, &detail));
}

/* K1: what a block has is no part of an image; its bytes and its entry point are. */
TEST(hashes_of_images) {
    static const char *const images[] = {PTX, PTX "//"};
    const bh_kernel_options options[] = {OPTIONS(.entry = "k"),
                                         OPTIONS(.entry = "k", .name = "n", .block = {1, 1, 1}),
                                         OPTIONS(.entry = "l"), OPTIONS(.entry = "k")};
    uint8_t hashes[BHT_COUNT(options)][32];
    for (size_t i = 0; i < BHT_COUNT(options); i++) {
        const char *image = images[i == 3];
        bh_kernel *kernel = NULL;
        BHT_EQ(bh_kernel_create_image(context, image, strlen(image), &options[i], &kernel, NULL),
               BH_OK);
        bh_kernel_hash(kernel, hashes[i]);
        BHT_EQ(memcmp(hashes[0], hashes[i], 32) == 0, i < 2);
        char code[100] = "";
        size_t size = 0;
        BHT_EQ(bh_kernel_code(kernel, code, sizeof code, &size, NULL), BH_OK);
        BHT_EQ(size, strlen(image));
        BHT_STR_EQ(code, image);
    }
}

/* K1: the same kernel has the same hash, another constant another one, another guard, too. */
TEST(hashes) {
    const uint32_t module[16] = {0x07230203};
    const bh_specialization one = {5, 4, 1};
    const bh_kernel_options options[] = {
        {.struct_size = sizeof *options},
        {.struct_size = sizeof *options},
        {.struct_size = sizeof *options, .specializations = &one, .specialization_count = 1},
        {.struct_size = sizeof *options, .trusted = true}};
    uint8_t hashes[4][32];
    for (size_t i = 0; i < BHT_COUNT(options); i++) {
        bh_kernel *kernel = NULL;
        BHT_EQ(bh_kernel_create_spirv(context, module, 64, &options[i], &kernel, NULL), BH_OK);
        bh_kernel_hash(kernel, hashes[i]);
        BHT_EQ(memcmp(hashes[0], hashes[i], 32) == 0, i < 2);
    }
}

TEST(reflection) {
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
    bh_buffer *big = NULL;
    char bytes[16];
    TOLD(BH_TOO_LARGE, "", bh_buffer_create(context, (1ull << 40) + 1, NULL, &big, &detail));
    TOLD(BH_NO_MEMORY, "available", bh_buffer_create(context, 1ull << 40, NULL, &big, &detail));
    INVALID("", bh_buffer_create(context, 4, NULL, NULL, &detail));
    INVALID("256", bh_buffer_read(buffer, 250, bytes, 16, 0, &detail));
    INVALID("", bh_buffer_read(buffer, UINT64_MAX, bytes, 16, 0, &detail));
    INVALID("", bh_buffer_write(buffer, 0, NULL, 16, 0, &detail));
    /* Zero-length is legal (case 36). */
    bh_buffer *empty = fx_buffer(context, 0);
    BHT_EQ(bh_buffer_size(empty), 0);
    BHT_TRUE(fx_mapped(empty));
    BHT_EQ(bh_buffer_read(empty, 0, NULL, 0, 0, &detail), BH_OK);
    /* Fresh memory is zero (B6). */
    const char *fresh = fx_mapped(fx_buffer(context, 4096));
    for (int i = 0; i < 4096; i++) {
        BHT_EQ(fresh[i], 0);
    }
    /* NULL is nothing to release. */
    bh_buffer_release(NULL);
    bh_event_release(NULL);
    bh_kernel_release(NULL);
    bh_stream_release(NULL);
    bh_context_destroy(NULL);
}

TEST(streams) {
    static const char *const selectors[] = {"lavapipe:", "lavapipe:64", ":1", "Lava", "a/b", "99"};
    bh_stream_options options = {.struct_size = sizeof options};
    bh_stream *s = NULL;
    for (size_t i = 0; i < BHT_COUNT(selectors); i++) {
        options.device = selectors[i];
        INVALID(selectors[i], bh_stream_create(context, &options, &s, &detail));
    }
    options.device = NULL;
    options.memory_limit = 1 << 20;
    INVALID("", bh_stream_create(context, &options, &s, &detail));
    s = fx_stream_on(context, "nosuchdriver");
    BHT_EQ(bh_stream_wait_ready(s, FX_SECONDS, &detail), BH_NO_DEVICE);
    BHT_STR_HAS(detail.message, "nosuchdriver");
    BHT_STR_HAS(detail.message, "(known: ");
    BHT_TRUE(!strstr(detail.message, "No such file"));
    BHT_EQ(bh_stream_wait_ready(fx_stream_on(context, "lavapipe:7"), FX_SECONDS, &detail),
           BH_NO_DEVICE);
    /* With the default deadlines. */
    fx_expect_healthy(context,
                      fx_stream_with(context, (bh_stream_options){.device = "lavapipe:0"}));
}

TEST(contexts) {
    bh_context_options options = fx_options();
    bh_context *c = NULL;
    options.worker_path = "/nonexistent/bulkhead-worker";
    TOLD(BH_UNAVAILABLE, options.worker_path, bh_context_create(&options, &c, &detail));
    options.worker_path = "/bin/true";
    options.runtime_dir = "/nonexistent";
    TOLD(BH_SYSTEM, "", bh_context_create(&options, &c, &detail));
    /* An executable that is no worker: typed, in bounded time. */
    options.runtime_dir = NULL;
    options.restart_budget = 1;
    bh_stream *s = fx_stream(fx_context_with(options, NULL), "s", FX_SECONDS);
    BHT_EQ(bh_stream_wait_ready(s, FX_SECONDS, &detail), BH_UNAVAILABLE);
}

TEST(devices_and_doctor) {
    static bh_device_info devices[8] = {{.struct_size = sizeof devices[0]}};
    size_t count = 0, all = 0;
    BHT_EQ(bh_devices(context, NULL, 0, &all, NULL), BH_OK);
    BHT_EQ(bh_devices(context, devices, 8, &count, NULL), BH_OK);
    BHT_GE(count, 1);
    BHT_EQ(all, count);
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
