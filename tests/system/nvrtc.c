/* Kernels of CUDA C++: the compiler in its sandbox with an NVRTC of the tests (tests/fake_nvrtc), what it
 * makes on the fake CUDA driver, and what is said where NVRTC is missing or is too old. */
#include "fake_driver.h"
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define BUILTINS  "libnvrtc-builtins.so.12.8"
#define INCREMENT "extern \"C\" __global__ void increment(unsigned *word) { ++*word; }\n"
#define SAXPY     "__global__ void saxpy(const float *x, float *y, float a, unsigned n) {}\n"
#define FILL      "template <class T> __global__ void fill(T *y, unsigned value, unsigned count) {}\n"

static bh_context *context;
static bh_detail detail; /* of the last call */
static char log_text[40000];

/* Copies NVRTC and its builtins into a folder below the test's, where everybody can read them: workers of
 * a root's host are nobody here. Returns NVRTC's path, until the next call. */
static const char *install(const char *folder, const char *nvrtc, const char *name,
                           const char *builtins) {
    static char path[300];
    static const char *tests;
    if (!tests) {
        tests = bht_folder();
        BHT_EQ(chmod(tests, 0755), 0);
    }
    char below[200];
    snprintf(below, sizeof below, "%s/%s", tests, folder);
    for (char *slash = below + strlen(tests); slash; slash = strchr(slash + 1, '/')) {
        snprintf(path, sizeof path, "%.*s", (int)(strchrnul(slash + 1, '/') - below), below);
        BHT_TRUE(mkdir(path, 0755) == 0 || errno == EEXIST);
    }
    if (builtins) {
        snprintf(path, sizeof path, "%s/" BUILTINS, below);
        fake_library_copy(builtins, path);
    }
    snprintf(path, sizeof path, "%s/%s", below, name);
    fake_library_copy(nvrtc, path);
    return path;
}

static const char *install_whole(const char *folder, const char *name) {
    return install(folder, BHT_FAKE_NVRTC, name, BHT_FAKE_NVRTC_BUILTINS);
}

/* The machine's own NVRTC stays out of it. */
static void set_up(void) {
    BHT_EQ(unsetenv("CUDA_HOME"), 0);
    BHT_EQ(unsetenv("CUDA_PATH"), 0);
    fx_cuda_install("");
    BHT_EQ(setenv("BULKHEAD_NVRTC", install_whole("a", "libnvrtc.so.12"), 1), 0);
    context = fx_context(NULL);
}
BHT_AT_START(bht_around(set_up, NULL))

static bh_source source_of(const char *text) {
    bh_source source = {.struct_size = sizeof source};
    source.text = text;
    source.name = "test.cu";
    source.log = log_text;
    source.log_size = sizeof log_text;
    source.deadline_ns = 3 * FX_SECONDS;
    return source;
}

static bh_kernel *make(const bh_source *source, const char *entry) {
    bh_kernel_options options = {.struct_size = sizeof options};
    bh_kernel *kernel = NULL;
    options.entry = entry;
    options.block[0] = options.block[1] = options.block[2] = 1;
    if (bh_kernel_create_source(context, source, &options, &kernel, &detail) != BH_OK) {
        BHT_FAIL("%s\n%s", detail.message, log_text);
    }
    return kernel;
}

static void refused(const bh_source *source, bh_status status, const char *words) {
    bh_kernel *kernel = NULL;
    BHT_EQ(bh_kernel_create_source(context, source, NULL, &kernel, &detail), status);
    BHT_TRUE(!kernel);
    BHT_STR_HAS(detail.message, words);
}

static void fails(const char *text, const char *words) {
    const bh_source source = source_of(text);
    refused(&source, BH_COMPILE_FAILED, words);
}

static uint32_t incremented(bh_kernel *kernel) {
    bh_buffer *word = fx_words(context, 1, 41);
    const bh_binding binding = bh_bind_read_write(0, word);
    uint32_t found;
    fx_expect(fx_launch(fx_stream_on(context, "cuda"), kernel, 1, &binding, 1, 0), BH_OK);
    BHT_EQ(bh_buffer_read(word, 0, &found, sizeof found, FX_SECONDS, NULL), BH_OK);
    return found;
}

/* What NVRTC makes is an image as any other, and its identity is the image's (K1). */
TEST(a_source_becomes_an_image_that_runs) {
    const bh_source source = source_of(INCREMENT);
    static char code[4096];
    uint8_t hash[2][32];
    size_t size;
    bh_kernel *kernel = make(&source, NULL), *image;
    BHT_STR_EQ(bh_kernel_name(kernel), "test.cu");
    BHT_EQ(incremented(kernel), 42);
    BHT_EQ(bh_kernel_code(kernel, code, sizeof code, &size, &detail), BH_OK);
    BHT_STR_HAS(code, ".target sm_75\n");
    bh_kernel_options options = {.struct_size = sizeof options};
    options.entry = "increment";
    BHT_EQ(bh_kernel_create_image(context, code, size, &options, &image, &detail), BH_OK);
    bh_kernel_hash(kernel, hash[0]);
    bh_kernel_hash(image, hash[1]);
    BHT_EQ(memcmp(hash[0], hash[1], sizeof hash[0]), 0);
}

TEST(a_mangled_name_and_a_template_are_found_by_their_cpp_names) {
    static const float x[] = {1, 2, 3, 4};
    const struct {
        uint32_t value, count;
    } push = {7, 4};
    const struct {
        float a;
        uint32_t n;
    } factors = {2, 4};
    const bh_source source = source_of(SAXPY FILL);
    bh_stream *stream = fx_stream_on(context, "cuda");
    bh_buffer *in = fx_words(context, 4, 0), *out = fx_words(context, 4, 0);
    const bh_binding written = bh_bind_read_write(0, out),
                     both[] = {bh_bind_read(0, in), bh_bind_read_write(1, out)};
    float found[4];
    BHT_EQ(bh_buffer_write(in, 0, x, sizeof x, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(bh_launch(stream, make(&source, "saxpy"), (uint32_t[]){4, 1, 1}, both, 2, &factors,
                     sizeof factors, NULL, &detail),
           BH_OK);
    BHT_EQ(bh_buffer_read(out, 0, found, sizeof found, FX_SECONDS, &detail), BH_OK);
    for (size_t i = 0; i < BHT_COUNT(found); i++) {
        BHT_TRUE(found[i] == 2 * x[i]);
    }
    BHT_EQ(bh_launch(stream, make(&source, "fill<unsigned int>"), (uint32_t[]){4, 1, 1}, &written,
                     1, &push, sizeof push, NULL, &detail),
           BH_OK);
    uint32_t words[4];
    BHT_EQ(bh_buffer_read(out, 0, words, sizeof words, FX_SECONDS, &detail), BH_OK);
    BHT_EQ(words[3], 7);
    make(&source, "_Z5saxpyv"); /* the name in the PTX is one, too */
}

TEST(an_entry_that_is_not_clear_lists_the_kernels) {
    static const struct {
        const char *text, *entry, *words;
    } rows[] = {
        {INCREMENT SAXPY, NULL,
         "test.cu: error: there are 2 kernels, choose the entry point: "
         "increment, _Z5saxpyv"},
        {INCREMENT SAXPY, "other",
         "test.cu: error: there is no kernel 'other'; there are increment, _Z5saxpyv"},
        {INCREMENT FILL, "fill", "test.cu: error: there is no kernel 'fill'; there is increment"},
        {FILL, NULL,
         "test.cu: error: there is no kernel: no __global__ function, or only templates"},
        {"", NULL, "test.cu: error: there is no kernel: no __global__ function"},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bh_source source = source_of(rows[i].text);
        source.entry = rows[i].entry;
        refused(&source, BH_COMPILE_FAILED, rows[i].words);
    }
}

/* Inline PTX can say anything there. */
TEST(an_entry_in_a_comment_or_a_string_is_no_kernel) {
    static const char *const lines[] = {
        "// .entry ghost(.u64)",
        "/* .entry ghost(.u64)",
        "*/ // /* \" .entry ghost(.u64)",
        ".file 1 \".entry ghost(.u64)\"",
        ".file 2 \"\\\" .entry ghost(.u64) //\"",
        ".file 3 \"/*\"",
        ".entrys ghost(.u64)",
        "/* \" */ .visible .entry /* ghost */ other(.u64) .body increment",
        "// \"",
    };
    char text[1000] = INCREMENT;
    for (size_t i = 0; i < BHT_COUNT(lines); i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "#pragma ptx %s\n", lines[i]);
    }
    const bh_source source = source_of(text);
    refused(&source, BH_COMPILE_FAILED,
            "there are 2 kernels, choose the entry point: increment, other");
    make(&source, "other");
    snprintf(text, sizeof text,
             INCREMENT "#pragma ptx // .entry ghost(\n#pragma ptx /* .entry ghost( */");
    const bh_source one = source_of(text);
    BHT_EQ(incremented(make(&one, NULL)), 42);
}

TEST(errors_have_a_file_and_a_line) {
    fails("\n\n#error so it is\n" INCREMENT, "test.cu:3: error: #error directive: so it is");
    BHT_STR_EQ(log_text, "test.cu:3: error: #error directive: so it is\n"
                         "  #error so it is\n   ^\n\n");
    bh_source source = source_of("#pragma warn\n" INCREMENT);
    make(&source, NULL);
    BHT_STR_HAS(log_text, "test.cu:1: warning #177-D: ");
    /* With an entry point that is named, too, the log has nothing of the compiler's own files. */
    source = source_of("#error so it is\n" INCREMENT);
    source.entry = "increment";
    refused(&source, BH_COMPILE_FAILED, "test.cu:1: error: ");
    BHT_TRUE(!strstr(log_text, "__nv_name_map"));
}

TEST(includes_are_those_given_and_no_file) {
    static const bh_source_include include = {"dir/i.cuh", INCREMENT, 0};
    bh_source source = source_of("#include \"dir/i.cuh\"\n");
    source.includes = &include;
    source.include_count = 1;
    BHT_EQ(incremented(make(&source, NULL)), 42);
    fails("#include </etc/passwd>\n" INCREMENT,
          "test.cu:1: error: could not open source file \"/etc/passwd\"");
    BHT_TRUE(!strstr(log_text, "root"));
}

/* The list has room for our own options, whatever the caller gives. */
TEST(defines_and_our_own_options_fit_without_options_of_the_callers) {
    static const bh_source_define defines[] = {{"A", NULL}, {"B", NULL}, {"C", NULL}, {"D", NULL}};
    bh_source source = source_of(INCREMENT "#pragma needs --device-debug\n");
    source.defines = defines;
    source.unoptimized = true;
    for (source.define_count = 0; source.define_count <= BHT_COUNT(defines);
         source.define_count++) {
        make(&source, NULL);
    }
}

TEST(defines_and_options_get_there) {
    static const bh_source_define defines[] = {{"A", "1 + 2"}, {"B", NULL}};
    bh_source source = source_of("#pragma needs -DA=1 + 2\n#pragma needs -DB=\n"
                                 "#pragma needs --std=c++20\n#pragma needs --device-debug\n"
                                 "#pragma needs --gpu-architecture=compute_90\n" INCREMENT);
    static char code[4096];
    size_t size;
    source.defines = defines;
    source.define_count = BHT_COUNT(defines);
    source.options = "  --std=c++20\t--gpu-architecture=compute_90 ";
    source.unoptimized = true;
    bh_kernel *kernel = make(&source, NULL);
    BHT_EQ(bh_kernel_code(kernel, code, sizeof code, &size, &detail), BH_OK);
    BHT_STR_HAS(code, ".target sm_90\n");
    source.options = "--bogus";
    refused(&source, BH_COMPILE_FAILED, "nvrtc: error: unrecognized option --bogus found");
    BHT_NE(detail.reason, BH_REASON_COMPILER); /* the caller's fault, and not the machine's */
    source.name = "test.comp";
    refused(&source, BH_INVALID_ARGUMENT, "source.options are NVRTC's");
    source = source_of(INCREMENT);
    source.text = "a\0b";
    source.length = 3;
    refused(&source, BH_COMPILE_FAILED, "test.cu: error: the source has a NUL byte");
}

/* NVRTC 13 ends in SIGSYS or SIGABRT with the first ones, and makes something else than PTX of the
 * last ones. */
TEST(options_that_need_files_or_make_no_ptx_are_refused_by_name) {
    static const struct {
        const char *options, *words;
    } rows[] = {
        {"--pch",
         "test.cu: error: option --pch is not possible here: precompiled headers are files"},
        {"--std=c++20 -pch", "option -pch is not"},
        {"--create-pch=a.pch", "option --create-pch is not"},
        {"-use-pch=/etc/passwd", "option -use-pch is not"},
        {"--pch-dir=/tmp", "option --pch-dir is not"},
        {"--time=/tmp/times.csv", "option --time is not possible here: it writes a file, and the "
                                  "compiler has none; --time=- puts the times into the log"},
        {"-time=--", "option -time is not"},
        {"--fdevice-time-trace=x", "option --fdevice-time-trace is not possible here: it writes"},
        {"-dlto", "option -dlto is not possible here: it makes no PTX"},
        {"--optix-ir", "option --optix-ir is not"},
        {"--fdevice-syntax-only", "option --fdevice-syntax-only is not"},
    };
    bh_source source = source_of(INCREMENT);
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        source.options = rows[i].options;
        refused(&source, BH_COMPILE_FAILED, rows[i].words);
    }
    static const char *const passed_on[] = {"--pch-verbose=true", "--tim=x", "--timer", "-pc"};
    for (size_t i = 0; i < BHT_COUNT(passed_on); i++) {
        source.options = passed_on[i];
        refused(&source, BH_COMPILE_FAILED, "nvrtc: error: unrecognized option");
    }
    source.options = "--time=-";
    make(&source, NULL);
}

/* A source that ends its compiler is nobody else's trouble. */
TEST(a_compiler_that_ends_otherwise) {
    bh_source source = source_of("#pragma hang\n");
    source.deadline_ns = 500 * bht_slowness() * FX_MS;
    refused(&source, BH_COMPILE_FAILED, "test.cu: the compile deadline of ");
    BHT_EQ(detail.cause, BH_DEADLINE);
    fails("#pragma crash\n", "test.cu: the compiler crashed (SIGSEGV)");
    BHT_EQ(detail.cause, BH_WORKER_SIGNAL);
    fails("#pragma connect\n", "that the sandbox forbids; its source, or one of its options, asks "
                               "for it");
    BHT_EQ(detail.cause, BH_SECCOMP);
    fails("#pragma break\n", "NVRTC 12.8 says NVRTC_ERROR_INTERNAL_ERROR");
    BHT_EQ(detail.reason, BH_REASON_COMPILER);
    if (!BHT_ASAN) { /* there is no limit then, and its allocator is not ours */
        source = source_of("#pragma eat\n");
        source.memory_limit = 128 << 20;
        refused(&source, BH_COMPILE_FAILED,
                "test.cu: the compiler ran out of its memory of 128 MiB");
    }
    source = source_of(INCREMENT);
    BHT_EQ(incremented(make(&source, NULL)), 42);
}

TEST(lies_about_code_and_entry_are_seen_through) {
    static const char *const lies[] = {"*:lie_entry:1=fail", "*:lie_magic:1=fail"};
    for (size_t i = 0; i < BHT_COUNT(lies); i++) {
        fx_release_all();
        context = fx_context(lies[i]);
        const bh_source source = source_of(INCREMENT);
        refused(&source, BH_PROTOCOL, "the compiler gave an impossible answer");
    }
}

TEST(a_module_has_the_entry_of_its_source) {
    bh_source source = source_of(INCREMENT SAXPY);
    bh_kernel_options options = {.struct_size = sizeof options};
    bh_module *module;
    bh_event *event;
    bh_kernel *kernel;
    source.log = NULL;
    source.entry = "increment";
    BHT_EQ(bh_module_compile(context, &source, &module, &event, &detail), BH_OK);
    fx_expect(event, BH_OK);
    options.block[0] = options.block[1] = options.block[2] = 1;
    BHT_EQ(bh_module_kernel(module, &options, &kernel, &detail), BH_OK);
    BHT_EQ(incremented(kernel), 42);
    options.entry = "saxpy";
    BHT_EQ(bh_module_kernel(module, &options, &kernel, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "options.entry is 'saxpy'; a compiled module's is its source's");
    options = (bh_kernel_options){.struct_size = sizeof options, .trusted = true};
    BHT_EQ(bh_module_kernel(module, &options, &kernel, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "options.trusted");
}

/* -- the library ------------------------------------------------------------------------------- */

/* |up|: how many folders above the library the variable's is. */
static void compiles_with(const char *variable, const char *library, int up) {
    char value[300];
    snprintf(value, sizeof value, "%s", library);
    for (; up > 0; up--) {
        *strrchr(value, '/') = '\0';
    }
    fx_release_all();
    BHT_EQ(setenv(variable, value, 1), 0);
    context = fx_context(NULL);
    const bh_source source = source_of(INCREMENT);
    make(&source, NULL);
    BHT_EQ(unsetenv(variable), 0);
}

TEST(nvrtc_is_found_in_a_toolkit_and_by_the_linker) {
    BHT_EQ(setenv("BULKHEAD_NVRTC", "", 1), 0); /* as if it were not set */
    compiles_with("CUDA_HOME", install_whole("home/lib64", "libnvrtc.so.12.8.1"), 2);
    compiles_with("CUDA_PATH", install_whole("path/lib", "libnvrtc.so.12"), 2);
    compiles_with("LD_LIBRARY_PATH", install_whole("linker", "libnvrtc.so.13"), 1);
}

TEST(a_missing_nvrtc_is_said_with_its_package) {
    fx_release_all();
    BHT_EQ(setenv("BULKHEAD_NVRTC", "/nowhere/libnvrtc.so", 1), 0);
    context = fx_context(NULL);
    const bh_source source = source_of(INCREMENT);
    refused(&source, BH_UNSUPPORTED,
            "CUDA C++ cannot be compiled here: NVRTC does not load (/nowhere/libnvrtc.so: ");
    BHT_STR_HAS(detail.message, "libnvrtc11.2");
    BHT_EQ(detail.reason, BH_REASON_NO_NVRTC);
    refused(&source, BH_UNSUPPORTED, "CUDA C++ cannot be compiled here"); /* again, and no less */
    const bh_check *check = fx_doctor_says(context, "nvrtc");
    BHT_EQ(check->result, BH_CHECK_ABSENT);
    BHT_STR_HAS(check->advice, "libnvrtc11.2");
}

/* The dynamic linker would wait for a writer. */
TEST(what_is_no_file_in_place_of_nvrtc_is_said_at_once) {
    char path[300];
    fx_release_all();
    snprintf(path, sizeof path, "%s/fifo", bht_folder());
    BHT_EQ(mkfifo(path, 0666), 0);
    const struct {
        const char *path, *words;
    } rows[] = {
        {path, "which BULKHEAD_NVRTC names, is a FIFO, not a library)"},
        {bht_folder(), "which BULKHEAD_NVRTC names, is a folder, not a library)"},
        {"/dev/zero", "(/dev/zero, which BULKHEAD_NVRTC names, is a device, not a library)"},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        BHT_EQ(setenv("BULKHEAD_NVRTC", rows[i].path, 1), 0);
        context = fx_context(NULL);
        const bh_source source = source_of(INCREMENT);
        refused(&source, BH_UNSUPPORTED, rows[i].words);
        BHT_EQ(detail.reason, BH_REASON_NO_NVRTC);
        fx_release_all();
    }
}

/* The deadline of the compile ends the wait for the process that loads it; others are not concerned. */
TEST(a_compile_does_not_outlast_its_deadline_while_nvrtc_does_not_load) {
    char words[400];
    fx_release_all();
    snprintf(words, sizeof words,
             "passed before a compiler was ready: NVRTC has not loaded, which is %s",
             install("endless", BHT_FAKE_NVRTC_ENDLESS, "libnvrtc.so.12", BHT_FAKE_NVRTC_BUILTINS));
    BHT_EQ(setenv("BULKHEAD_NVRTC", strrchr(words, ' ') + 1, 1), 0);
    context = fx_context(NULL);
    bh_source source = source_of(INCREMENT);
    source.deadline_ns = 200 * FX_MS;
    refused(&source, BH_COMPILE_FAILED, words);
    BHT_EQ(detail.reason, BH_REASON_COMPILER_LATE);
    BHT_EQ(detail.cause, BH_DEADLINE);
    bh_module *module;
    bh_event *event;
    source.log = NULL;
    BHT_EQ(bh_module_compile(context, &source, &module, &event, &detail), BH_OK);
    const bh_verdict verdict = fx_expect(event, BH_DEADLINE);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(verdict.reason, BH_REASON_COMPILER_LATE);
    fx_expect_healthy(context, fx_stream(context, "other", FX_SECONDS));
}

TEST(an_nvrtc_that_lacks_something_is_said) {
    static const struct {
        const char *folder, *original, *builtins, *words;
    } rows[] = {
        {"old", BHT_FAKE_NVRTC_OLD, BHT_FAKE_NVRTC_BUILTINS,
         "compile CUDA C++: NVRTC 7.5 has no nvrtcGetLoweredName; CUDA 11 or later has it"},
        {"other", BHT_FAKE_NVRTC_BUILTINS, NULL,
         "what was loaded is not NVRTC (BULKHEAD_NVRTC names it): it has no nvrtcVersion"},
        {"alone", BHT_FAKE_NVRTC, NULL,
         "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE: nvrtc: error: failed to open " BUILTINS},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        fx_release_all();
        BHT_EQ(setenv("BULKHEAD_NVRTC",
                      install(rows[i].folder, rows[i].original, "libnvrtc.so.12", rows[i].builtins),
                      1),
               0);
        context = fx_context(NULL);
        fails(INCREMENT, rows[i].words);
    }
}

TEST(the_doctor_says_which_nvrtc_it_is) {
    const bh_check *check = fx_doctor_says(context, "nvrtc");
    BHT_EQ(check->result, BH_CHECK_HOLDS);
    BHT_STR_EQ(check->text, "NVRTC 12.8 compiled CUDA C++ in the sandbox");
}

TEST(nvrtc_is_no_device) {
    bh_detail why = {0};
    BHT_NE(bh_stream_wait_ready(fx_stream_on(context, "nvrtc"), FX_SECONDS, &why), BH_OK);
    BHT_STR_HAS(why.message, "no driver is called 'nvrtc'");
}
