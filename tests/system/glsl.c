/* Kernels from GLSL: what a source may say, and what a hostile one does to its compiler. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define SQUARE                                                                                     \
    "#version 450\n"                                                                               \
    "layout(local_size_x = 64) in;\n"                                                              \
    "layout(set = 0, binding = 0) readonly buffer X { float x[]; };\n"                             \
    "layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };\n"                            \
    "void main() { uint i = gl_GlobalInvocationID.x; y[i] = x[i] * x[i]; }\n"

static char log_text[40000];

static bh_source source_of(const char *text) {
    bh_source source = {.struct_size = sizeof source};
    source.text = text;
    source.name = "test.comp";
    source.log = log_text;
    source.log_size = sizeof log_text;
    source.deadline_ns = 3 * FX_SECONDS; /* the usual minute, or more where others keep busy */
    return source;
}

static bh_context *context;
static bh_detail detail; /* of the last call */

static void open_context(void) {
    context = fx_context(NULL);
}
BHT_AT_START(bht_around(open_context, NULL))

static bh_kernel *make_with(const bh_source *source, const bh_kernel_options *options) {
    bh_kernel *kernel = NULL;
    if (bh_kernel_create_source(context, source, options, &kernel, &detail) != BH_OK) {
        BHT_FAIL("%s\n%s", detail.message, log_text);
    }
    return kernel;
}

static bh_kernel *make(const bh_source *source) {
    return make_with(source, NULL);
}

static void refused(const bh_source *source, bh_status status, const char *words) {
    bh_kernel *kernel = (bh_kernel *)log_text;
    BHT_EQ(bh_kernel_create_source(context, source, NULL, &kernel, &detail), status);
    BHT_TRUE(!kernel);
    BHT_EQ(detail.status, status);
    BHT_STR_HAS(detail.message, words);
}

static void fails(const bh_source *source, const char *words) {
    refused(source, BH_COMPILE_FAILED, words);
}

/* The context is as good as ever. */
static void still_compiles(void) {
    bh_source source = source_of(SQUARE);
    make(&source);
    BHT_EQ(bh_context_synchronize(context, FX_SECONDS, NULL), BH_OK);
}

TEST(it_runs) {
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    bh_source source = source_of(SQUARE);
    for (int optimize = 0; optimize < 2; optimize++) {
        source.unoptimized = !optimize;
        bh_kernel *kernel = make(&source);
        BHT_STR_EQ(bh_kernel_name(kernel), "test.comp");
        BHT_STR_EQ(log_text, "");
        bh_buffer *x = fx_buffer(context, 1024 * 4), *y = fx_buffer(context, 1024 * 4);
        for (int i = 0; i < 1024; i++) {
            ((float *)fx_pointer(x))[i] = (float)i;
        }
        fx_expect(fx_square(stream, kernel, x, y), BH_OK);
        BHT_EQ(((const float *)fx_pointer(y))[31], 31 * 31);
    }
}

/* Reflects |kernel| on a stream of its own. */
static bh_kernel_info *reflect(bh_kernel *kernel) {
    static bh_kernel_info info = {.struct_size = sizeof info};
    bh_stream *stream = fx_stream(context, "r", FX_SECONDS);
    BHT_EQ(bh_kernel_reflect(kernel, stream, FX_SECONDS, &info, NULL), BH_OK);
    return &info;
}

/* Optimised or not, the kernel has the names of its source. */
TEST(names_stay) {
    bh_source source = source_of("#version 450\n"
                                 "layout(local_size_x_id = 3) in;\n"
                                 "layout(set = 0, binding = 4) buffer Used { float u[]; } used;\n"
                                 "void main() { used.u[0] = 1.0; }\n");
    for (int optimize = 0; optimize < 2; optimize++) {
        source.unoptimized = !optimize;
        bh_kernel *kernel = make(&source);
        const bh_kernel_info *info = reflect(kernel);
        BHT_EQ(info->binding_count, 1);
        BHT_EQ(info->bindings[0].binding, 4);
        BHT_STR_EQ(info->bindings[0].name, "used");
    }
}

TEST(a_name_that_ends_in_hlsl_says_the_language) {
    bh_source source = source_of("[numthreads(1, 1, 1)] void main() {}\n");
    fails(&source, "");
    source.name = "test.hlsl";
    make(&source);
    source.language = BH_LANGUAGE_GLSL;
    fails(&source, "");
}

/* What is bound is what the code uses: of dead code that is nothing. */
TEST(dead_code_binds_nothing) {
    bh_source source = source_of("#version 450\n"
                                 "layout(local_size_x = 1) in;\n"
                                 "layout(set = 0, binding = 0) buffer A { int a[]; };\n"
                                 "layout(set = 0, binding = 1) buffer B { int b[]; };\n"
                                 "void main() { b[0] = a[0] * 0 + 1; }\n");
    for (int optimize = 0; optimize < 2; optimize++) {
        source.unoptimized = !optimize;
        bh_kernel *kernel = make(&source);
        BHT_EQ(reflect(kernel)->binding_count, optimize ? 1 : 2);
    }
}

TEST(defines_and_includes) {
    bh_source source = source_of("#version 450\n"
                                 "#include \"lib/first.glsl\"\n"
                                 "#include <plain.glsl>\n"
                                 "#ifndef FLAG\n"
                                 "#error no flag\n"
                                 "#endif\n"
                                 "layout(local_size_x = SIZE) in;\n"
                                 "layout(set = 0, binding = 0) buffer D { uint d[]; };\n"
                                 "void main() { d[0] = first() + plain() + VALUE; }\n");
    static const bh_source_define defines[] = {
        {"SIZE", "1"}, {"VALUE", "(400 + 4)"}, {"FLAG", NULL}};
    static const bh_source_include includes[] = {
        {"lib/first.glsl", "#include \"second.glsl\"\nuint first() { return second(); }\n", 0},
        {"lib/second.glsl", "#include \"../plain.glsl\"\nuint second() { return 20; }\n", 0},
        {"plain.glsl", "#ifndef PLAIN\n#define PLAIN\nuint plain() { return 1; }\n#endif\nnot this",
         61},
    };
    source.defines = defines;
    source.define_count = BHT_COUNT(defines);
    source.includes = includes;
    source.include_count = BHT_COUNT(includes);
    bh_kernel *kernel = make(&source);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    bh_buffer *data = fx_words(context, 1, 0);
    fx_expect(fx_run(stream, kernel, data), BH_OK);
    BHT_EQ(fx_pointer(data)[0], 425);
}

/* SPIR-V has the conversion of the constant from 1.4 on; the usual is 1.3. */
TEST(it_is_compiled_for_the_spirv_version_that_it_needs) {
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    bh_source source =
        source_of("#version 450\n"
                  "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n"
                  "layout(local_size_x = 1) in;\n"
                  "layout(constant_id = 0) const uint N = 4;\n"
                  "const uint64_t WIDE = uint64_t(N) << 32;\n"
                  "const uint SIZE = uint(WIDE >> 31);\n"
                  "layout(set = 0, binding = 0) buffer D { uint64_t d[1]; uint size; };\n"
                  "shared uint s[SIZE];\n"
                  "void main() { s[0] = 1; d[0] = WIDE + s[0]; size = s.length(); }\n");
    const bh_specialization seven = {.constant_id = 0, .size = 4, .bits = 7};
    bh_kernel_options options = {.struct_size = sizeof options};
    options.specializations = &seven;
    for (int i = 0; i < 4; i++) {
        source.unoptimized = i % 2 == 0;
        options.specialization_count = i / 2 ? 1 : 0;
        bh_buffer *data = fx_words(context, 3, 0);
        fx_expect(fx_run(stream, make_with(&source, &options), data), BH_OK);
        const uint32_t n = i / 2 ? 7 : 4;
        BHT_EQ(fx_pointer(data)[0], 1);
        BHT_EQ(fx_pointer(data)[1], n);
        BHT_EQ(fx_pointer(data)[2], 2 * n);
    }
}

/* K1: what it was made of does not count, what came out of it does. */
TEST(identity_is_the_modules) {
    bh_source source = source_of(SQUARE), again = source_of(SQUARE "\n// a comment\n"),
              other = source_of(SQUARE);
    again.name = "another.comp";
    other.unoptimized = true;
    uint8_t hash_a[32], hash_b[32], hash_c[32];
    bh_kernel_hash(make(&source), hash_a);
    bh_kernel_hash(make(&again), hash_b);
    bh_kernel_hash(make(&other), hash_c);
    BHT_MEM_EQ(hash_a, hash_b, 32);
    BHT_NE(memcmp(hash_a, hash_c, 32), 0);
}

TEST(errors_have_file_and_line) {
    bh_source source = source_of("#version 450\n"
                                 "#include \"bad.glsl\"\n"
                                 "void main() { uint a = nothing; }\n");
    static const bh_source_include includes[] = {
        {"bad.glsl", "// fine\n\nuint bad() { return missing; }\n", 0}};
    fails(&source, "bh_kernel_create_source: test.comp:2: error: ");
    BHT_STR_HAS(detail.message, "no file named 'bad.glsl' was given for #include; none was given");
    source.includes = includes;
    source.include_count = 1;
    fails(&source, "bad.glsl:3: error: 'missing' : undeclared identifier");
    BHT_STR_HAS(log_text, "bad.glsl:3: error: 'missing'");
    BHT_STR_HAS(log_text, "test.comp:3: error: 'nothing'");
    /* A small log: the first line whole. */
    char small[100];
    memset(small, 'x', sizeof small);
    source.log = small;
    source.log_size = sizeof small;
    fails(&source, "");
    BHT_STR_EQ(small, "bad.glsl:3: error: 'missing' : undeclared identifier\n");
    source.log = NULL;
    fails(&source, "");
    still_compiles();
}

/* Whether it is there is read from the source: one in a comment is none, and of one that stands in
 * the wrong place the compiler speaks. */
TEST(a_missing_version_line_is_named_first) {
    static const struct {
        const char *head;
        bool missing;
    } cases[] = {
        {"", true},
        {"// #version 450\n", true},
        {"/* as in\n#version 450\n*/ // \\\n#version 450\n", true},
        {"int a; /*\n#version 450\n*/\n", true},
        {"#define VERSION 450\n#versions\nint version, x; // #version\n", true},
        {"int x; #version 450\n", true},
        {"/**/ // //\n \t#version 450\n", false},
        {"int x; // */\n # \\\n version 450\n", false},
        {"int x; /*\n*/\r\n#\tversion 450\n", false},
        {"int x;\n#version", false},
    };
    static const char said[] =
        "test.comp:1: error: there is no #version line; make the first line '#version 450'\n";
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        char text[256];
        snprintf(text, sizeof text, "%s%s\n#error here\n", cases[i].head,
                 cases[i].missing ? "layout(local_size_x = 1) in;\nvoid main() {}\n" : "");
        bh_source source = source_of(text);
        fails(&source, "");
        BHT_EQ(i << 1 | (strncmp(log_text, said, sizeof said - 1) == 0), i << 1 | cases[i].missing);
        BHT_GT(strlen(log_text), cases[i].missing ? sizeof said : 1); /* the compiler's own, too */
    }
    bh_source bare = source_of("void main() {}\n");
    fails(&bare, "there is no #version line");
    still_compiles();
}

/* Far more errors than a log holds: the first ones, whole. */
TEST(a_long_log) {
    size_t size = 400000, used = 0;
    char *text = bht_own(malloc(size));
    used += (size_t)snprintf(text, size, "#version 450\nvoid main() {}\n");
    for (int i = 0; used < size - 200; i++) {
        used += (size_t)snprintf(text + used, size - used,
                                 "#error a line that is wrong, number %d of many\n", i);
    }
    bh_source source = source_of(text);
    fails(&source, "test.comp:3: error: '#error' : a line that is wrong , number 0");
    BHT_STR_HAS(log_text, "test.comp:3: error: ");
    BHT_GT(strlen(log_text), 20000);
    BHT_LE(strlen(log_text), 32768);
    BHT_STR_HAS(log_text, "(there is more of it)\n");
    BHT_EQ(log_text[strlen(log_text) - 1], '\n');
}

TEST(a_warning_is_in_the_log) {
    bh_source source = source_of("#version 450\n#extension GL_NO_such : enable\n"
                                 "void main() {}\n");
    make(&source);
    BHT_STR_HAS(log_text, "test.comp:2: warning: ");
}

/* -- hostile sources -------------------------------------------------------------------------- */

/* |depth| macros, each twice the one before, the first of which is |atom|. Then |before|, the last
 * macro, |after|. */
static char *macro_bomb(const char *atom, int depth, const char *before, const char *after) {
    static char text[16384];
    size_t used = (size_t)snprintf(text, sizeof text, "#version 450\n#define M0 %s\n", atom);
    for (int i = 1; i <= depth; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "#define M%d M%d M%d\n", i, i - 1,
                                 i - 1);
    }
    snprintf(text + used, sizeof text - used, "%s M%d %s\n", before, depth, after);
    return text;
}

TEST(a_compile_that_does_not_end) {
    bh_source source = source_of(macro_bomb("", 60, "", "\nvoid main() {}"));
    source.deadline_ns = 300 * FX_MS;
    fails(&source, "test.comp: the compile deadline of 300 ms passed before the compiler ended");
    BHT_EQ(detail.cause, BH_DEADLINE);
    still_compiles();
}

TEST(a_memory_bomb) {
    if (BHT_ASAN) { /* there is no limit then, and its allocator is not ours */
        return;
    }
    bh_source source = source_of(macro_bomb("x=x+x;", 40, "void main() { int x = 1;", "}"));
    source.memory_limit = 128 << 20;
    fails(&source, "test.comp: the compiler ran out of its memory of 128 MiB");
    BHT_EQ(detail.cause, BH_OUT_OF_HOST_MEMORY);
    fails(&source, "is not compiled again");
    BHT_EQ(detail.cause, BH_OK);
    still_compiles();
}

TEST(a_compiler_that_crashes) {
    /* An expression so long that the stack does not take it. */
    const size_t terms = 1000000;
    char *text = bht_own(malloc(2 * terms + 200));
    size_t used = (size_t)snprintf(text, 100, "#version 450\nvoid main() { int x = 1; x = x");
    for (size_t i = 0; i < terms; i++) {
        memcpy(text + used + 2 * i, "+x", 2);
    }
    strcpy(text + used + 2 * terms, "; }\n");
    bh_source source = source_of(text);
    fails(&source, "test.comp: the compiler crashed (SIGSEGV)");
    BHT_EQ(detail.cause, BH_WORKER_SIGNAL);
    BHT_EQ(detail.signal, 11);
    still_compiles();
}

TEST(includes_without_end) {
    bh_source source = source_of("#version 450\n#include \"self\"\nvoid main() {}\n");
    static const bh_source_include self[] = {{"self", "#include \"self\"\n", 0}};
    source.includes = self;
    source.include_count = 1;
    fails(&source, "'self': includes are nested deeper than 64");
    BHT_EQ(detail.cause, BH_OK); /* it answered */
    /* Each includes the next one twice: 2^40 inclusions, none of them deep. */
    static char names[41][8], texts[41][64];
    bh_source_include doubling[41];
    for (int i = 0; i <= 40; i++) {
        snprintf(names[i], sizeof names[i], "d%d", i);
        snprintf(texts[i], sizeof texts[i], "#include \"d%d\"\n#include \"d%d\"\n", i + 1, i + 1);
        doubling[i] = (bh_source_include){names[i], i < 40 ? texts[i] : "\n", 0};
    }
    source.text = "#version 450\n#include \"d0\"\nvoid main() {}\n";
    source.includes = doubling;
    source.include_count = BHT_COUNT(doubling);
    fails(&source, "more than 4096 inclusions");
    still_compiles();
}

/* Names that would lead out of a folder lead nowhere; and there is no folder. */
TEST(nothing_is_read_from_disk) {
    static const char *const names[] = {"/etc/passwd", "../../../../etc/passwd", "/proc/self/maps"};
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        char text[200], wanted[200];
        snprintf(text, sizeof text, "#version 450\n#include \"%s\"\nvoid main() {}\n", names[i]);
        snprintf(wanted, sizeof wanted, "no file named '%s' was given", names[i]);
        bh_source source = source_of(text);
        fails(&source, wanted);
    }
}

/* -- a compiler that was taken over ----------------------------------------------------------- */

struct end {
    const char *fault;
    bh_status status;
    const char *message;
};

static void expect_ends(const struct end *ends, size_t count) {
    for (size_t i = 0; i < count; i++) {
        context = fx_context(ends[i].fault);
        bh_source source = source_of(SQUARE);
        if (strstr(ends[i].fault, "hang")) {
            source.deadline_ns = 500 * bht_slowness() * FX_MS;
        }
        refused(&source, ends[i].status, ends[i].message);
        BHT_TRUE(!strchr(log_text, '\x1b'));
        fx_release_all();
    }
}

TEST(lies_are_seen_through) {
    static const struct end lies[] = {
        {"*:lie_odd:1=fail", BH_PROTOCOL, "the compiler gave an impossible answer"},
        {"*:lie_magic:1=fail", BH_PROTOCOL, "the compiler gave an impossible answer"},
        {"*:lie_huge:1=fail", BH_COMPILE_FAILED,
         "the module takes 18446744073709551615 bytes, over"},
        {"*:lie_more:1=fail", BH_COMPILE_FAILED, "the module takes 16777220 bytes, over"},
        {"*:lie_log:1=fail", BH_COMPILE_FAILED, "bh_kernel_create_source: ????"},
    };
    expect_ends(lies, BHT_COUNT(lies));
}

TEST(deaths_have_a_cause) {
    static const struct end deaths[] = {
        {"*:compile:1=segv", BH_COMPILE_FAILED, "test.comp: the compiler crashed (SIGSEGV)"},
        {"*:compiled:1=kill", BH_WORKER_SIGNAL,
         "test.comp: the compiler was killed from outside (SIGKILL)"},
        {"*:compile:1=exit7", BH_COMPILE_FAILED, "exit"},
        {"*:compile:1=hang", BH_COMPILE_FAILED, "test.comp: the compile deadline of "},
    };
    expect_ends(deaths, BHT_COUNT(deaths));
}

/* -- the call --------------------------------------------------------------------------------- */

TEST(arguments) {
    bh_kernel *kernel = NULL;
    bh_source source = source_of(SQUARE);
    BHT_EQ(bh_kernel_create_source(NULL, &source, NULL, &kernel, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_kernel_create_source(context, NULL, NULL, &kernel, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_kernel_create_source(context, &source, NULL, NULL, &detail), BH_INVALID_ARGUMENT);
    static const bh_source_define bad_name[] = {{"A B", "1"}}, no_name[] = {{NULL, "1"}},
                                  lines[] = {{"A", "1\n#define B"}};
    static const bh_source_include no_text[] = {{"a", NULL, 0}}, empty_name[] = {{"", "text", 0}};
#define GIVEN(...) {.struct_size = sizeof source, .text = "", __VA_ARGS__}
    const struct {
        bh_source source;
        const char *message;
    } bad[] = {
        {{0}, "source: struct_size is 0"},
        {{.struct_size = sizeof source}, "source.text is NULL"},
        {GIVEN(.log = log_text), "source.log_size is 0"},
        {GIVEN(.language = BH_LANGUAGE_SPIRV),
         "source.language 1 is neither GLSL, HLSL nor CUDA C++"},
        {GIVEN(.define_count = 1), "source.defines is NULL"},
        {GIVEN(.defines = bad_name, .define_count = 257), "source.define_count is 257, over 256"},
        {GIVEN(.defines = bad_name, .define_count = 1),
         "source.defines[0].name is not an identifier: A B"},
        {GIVEN(.defines = no_name, .define_count = 1), "source.defines[0].name is NULL"},
        {GIVEN(.defines = lines, .define_count = 1),
         "source.defines[0].value (A) is more than one line"},
        {GIVEN(.include_count = 1), "source.includes is NULL"},
        {GIVEN(.includes = no_text, .include_count = 1), "source.includes[0].text is NULL"},
        {GIVEN(.includes = empty_name, .include_count = 1), "source.includes[0].name is empty"},
    };
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {
        refused(&bad[i].source, BH_INVALID_ARGUMENT, bad[i].message);
    }
    bh_kernel_options options = {.struct_size = sizeof options};
    options.entry = "other";
    BHT_EQ(bh_kernel_create_source(context, &source, &options, &kernel, &detail),
           BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "bh_kernel_create_source: options.entry is 'other'");
    source.length = (4 << 20) + 1;
    source.text = bht_own(calloc(1, source.length + 1));
    refused(&source, BH_TOO_LARGE, "");
}

struct compile {
    const char *text;
    bh_status status;
};

static void *compile_it(void *argument) {
    struct compile *compile = argument;
    bh_source source = source_of(compile->text);
    source.log = NULL;
    bh_kernel *kernel;
    compile->status = bh_kernel_create_source(context, &source, NULL, &kernel, NULL);
    return NULL;
}

/* Each has a compiler of its own: a bad one is nobody else's. */
TEST(many_at_once) {
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    struct compile compiles[THREADS];
    for (int i = 0; i < THREADS; i++) {
        compiles[i] = (struct compile){.text = i % 2 ? SQUARE : "nonsense"};
        BHT_EQ(pthread_create(&threads[i], NULL, compile_it, &compiles[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        BHT_EQ(pthread_join(threads[i], NULL), 0);
        BHT_EQ(compiles[i].status, i % 2 ? BH_OK : BH_COMPILE_FAILED);
    }
}

TEST(closed_while_it_compiles) {
    context = fx_context("*:compile:1=stop");
    struct compile compile = {.text = SQUARE};
    pthread_t thread;
    BHT_EQ(pthread_create(&thread, NULL, compile_it, &compile), 0);
    fx_await_stopped();
    bh_context_destroy(context);
    BHT_EQ(pthread_join(thread, NULL), 0);
    BHT_EQ(compile.status, BH_CONTEXT_CLOSED);
}

static void compile_and_expect_a_refusal(void *unused) {
    (void)unused;
    struct compile compile = {.text = SQUARE};
    compile_it(&compile);
    BHT_EQ(compile.status, BH_IN_CALLBACK);
}

TEST(compiling_in_a_log_callback_is_refused) {
    fx_in_log_callback(compile_and_expect_a_refusal, NULL);
}

/* A name is no line of the log, whoever chose it; what is included is found by it all the same. */
TEST(names_are_one_line) {
    const bh_source_include includes[] = {{"an \xe2\x80\xaeodd\tname.glsl", "#error here\n", 0}};
    bh_source source =
        source_of("#version 450\n#include \"an \xe2\x80\xaeodd\tname.glsl\"\nvoid main() {}\n");
    source.name = "first\nsecond.comp: forged";
    source.includes = includes;
    source.include_count = 1;
    fails(&source, "");
    BHT_STR_HAS(log_text, "an ?odd name.glsl:1: error: '#error' : here");
    BHT_TRUE(!strchr(detail.message, '\n'));
    source.text = "#version 450\n#error there\nvoid main() {}\n";
    fails(&source, "");
    BHT_STR_HAS(log_text, "first second.comp: forged:2: error: '#error' : there");
    BHT_TRUE(!strstr(log_text, "\nsecond.comp"));
}
