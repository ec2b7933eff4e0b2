/* Modules: sources that are compiled while the host goes on (with an event as any other), what
 * the context keeps of them (K1), and sources that end their compilers (K5). */
#include "fixture.h"

#include <stdio.h>

#define FILL                                                                                       \
    "#version 450\n"                                                                               \
    "layout(local_size_x = 1) in;\n"                                                               \
    "layout(constant_id = 3) const uint value = 7;\n"                                              \
    "layout(set = 0, binding = 0) buffer D { uint d[]; };\n"                                       \
    "void main() { d[0] = value; }\n"

static bh_source source_of(const char *text) {
    bh_source source = {.struct_size = sizeof source};
    source.text = text;
    source.name = "test.comp";
    source.deadline_ns = 3 * FX_SECONDS;
    return source;
}

static bh_module *start(bh_context *context, const bh_source *source, bh_event **out_event) {
    bh_module *module = NULL;
    BHT_EQ(bh_module_compile(context, source, &module, out_event, NULL), BH_OK);
    return module;
}

/* Returns the id of the compile's event. */
static uint64_t compile(bh_context *context, const bh_source *source, bh_status status) {
    bh_event *event;
    bh_module *module = start(context, source, &event);
    fx_expect(event, status);
    const uint64_t id = bh_event_id(event);
    BHT_EQ(bh_module_log(module, NULL, 0) > 0, status == BH_COMPILE_FAILED);
    bh_event_release(event);
    bh_module_release(module);
    return id;
}

static uint32_t run(bh_context *context, bh_kernel *kernel) {
    bh_buffer *data = fx_words(context, 1, 0);
    fx_expect(fx_run(fx_stream(context, "s", FX_SECONDS), kernel, data), BH_OK);
    return fx_pointer(data)[0];
}

TEST(a_module_makes_several_kernels) {
    bh_context *context = fx_context(NULL);
    bh_source source = source_of(FILL);
    bh_event *event;
    bh_module *module = start(context, &source, &event);
    const bh_verdict verdict = fx_expect(event, BH_OK);
    BHT_STR_EQ(verdict.kernel_name, "test.comp");
    bh_kernel_options options = {.struct_size = sizeof options};
    bh_kernel *plain = NULL, *other = NULL, *again = NULL;
    BHT_EQ(bh_module_kernel(module, NULL, &plain, NULL), BH_OK);
    options.specializations = &(bh_specialization){3, 4, 12};
    options.specialization_count = 1;
    BHT_EQ(bh_module_kernel(module, &options, &other, NULL), BH_OK);
    BHT_STR_EQ(bh_kernel_name(plain), "test.comp");
    BHT_EQ(run(context, plain), 7);
    BHT_EQ(run(context, other), 12);
    /* What it is made of can be taken out, and is the same kernel. */
    static uint32_t code[1 << 14];
    size_t size, same_size;
    uint8_t hash[32], hash_again[32];
    BHT_EQ(bh_kernel_code(plain, NULL, 0, &size, NULL), BH_OK);
    BHT_EQ(bh_kernel_code(plain, code, 4, &same_size, NULL), BH_OK);
    BHT_EQ(same_size, size);
    BHT_EQ(code[0], 0x07230203);
    BHT_EQ(code[1], 0);
    BHT_EQ(bh_kernel_code(plain, code, sizeof code, &size, NULL), BH_OK);
    BHT_EQ(bh_kernel_create_spirv(context, code, size, NULL, &again, NULL), BH_OK);
    bh_kernel_hash(plain, hash);
    bh_kernel_hash(again, hash_again);
    BHT_MEM_EQ(hash, hash_again, 32);
    char log[8] = "x";
    BHT_EQ(bh_module_log(module, log, sizeof log), 0);
    BHT_STR_EQ(log, "");
    bh_detail detail;
    options.entry = "other";
    bh_kernel *none = plain;
    BHT_EQ(bh_module_kernel(module, &options, &none, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "options.entry is 'other'; a compiled module's is main");
    BHT_TRUE(!none);
}

/* Its compiler is killed. */
TEST(a_pending_compile_is_cancelled) {
    bh_context *context = fx_context("1:compile:1=stop");
    bh_source source = source_of(FILL);
    bh_kernel *kernel;
    bh_event *event;
    bh_module *module = start(context, &source, &event);
    fx_await_stopped();
    BHT_EQ(bh_module_kernel(module, NULL, &kernel, NULL), BH_PENDING);
    BHT_EQ(bh_module_log(module, NULL, 0), 0);
    /* Whoever waits for an equal source is not cancelled with it. */
    const uint64_t id = compile(context, &source, BH_OK);
    BHT_NE(id, bh_event_id(event));
    BHT_EQ(bh_event_cancel(event), BH_OK);
    fx_expect(event, BH_CANCELLED);
    BHT_EQ(bh_module_kernel(module, NULL, &kernel, NULL), BH_CANCELLED);
    BHT_EQ(bh_context_synchronize(context, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(compile(context, &source, BH_OK), id);
}

TEST(a_released_compile_goes_on) {
    bh_context *context = fx_context(NULL);
    bh_source source = source_of(FILL);
    bh_event *event;
    bh_module *module = start(context, &source, &event);
    bh_module_release(module);
    fx_expect(event, BH_OK);
    BHT_EQ(bh_module_compile(context, &source, &module, NULL, NULL), BH_OK);
}

TEST(errors_poison_the_event) {
    bh_context *context = fx_context(NULL);
    bh_source source = source_of("#version 450\nvoid main() { a = 1; b = 2; }\n");
    bh_kernel *kernel;
    bh_detail detail;
    char log[4096], small[70];
    bh_event *event;
    bh_module *module = start(context, &source, &event);
    const bh_verdict verdict = fx_expect(event, BH_COMPILE_FAILED);
    BHT_STR_HAS(verdict.message, "test.comp:2: error: 'a' : undeclared identifier");
    BHT_EQ(bh_module_kernel(module, NULL, &kernel, &detail), BH_COMPILE_FAILED);
    BHT_STR_HAS(detail.message, "bh_module_kernel: test.comp:2: error: 'a' : undeclared");
    BHT_EQ(detail.cause, BH_OK);
    BHT_EQ(bh_module_log(module, log, sizeof log), strlen(log));
    BHT_STR_HAS(log, "\ntest.comp:2: error: 'b' : undeclared identifier\n");
    BHT_EQ(bh_module_log(module, small, sizeof small), strlen(log));
    BHT_STR_EQ(small, "test.comp:2: error: 'a' : undeclared identifier\n");
    /* It has them again, and no compiler is started for that. */
    BHT_EQ(compile(context, &source, BH_COMPILE_FAILED), bh_event_id(event));
    BHT_EQ(bh_context_synchronize(context, FX_SECONDS, NULL), BH_OK);
}

/* K1. What is kept is the tenant's own: another cannot tell by the time what was compiled. */
TEST(equal_sources_compile_once) {
    bh_context *context = fx_context(NULL);
    bh_source source = source_of(FILL);
    const uint64_t first = compile(context, &source, BH_OK);
    BHT_EQ(compile(context, &source, BH_OK), first);
    bh_source others[] = {source, source, source, source};
    others[0].tenant = "other";
    others[1].unoptimized = true;
    others[2].defines = &(bh_source_define){"X", "1"};
    others[2].define_count = 1;
    others[3].memory_limit = 512 << 20;
    for (size_t i = 0; i < BHT_COUNT(others); i++) {
        BHT_GT(compile(context, &others[i], BH_OK), first);
    }
    BHT_EQ(compile(context, &source, BH_OK), first);
    BHT_EQ(bh_context_trim(context, 0, NULL), BH_OK);
    BHT_GT(compile(context, &source, BH_OK), first);
}

TEST(the_longest_unused_is_forgotten) {
    bh_context *context = fx_context(NULL);
    uint64_t ids[65];
    char text[32];
    bh_source source = source_of(text);
    for (int i = 0; i < 65; i++) {
        snprintf(text, sizeof text, "nonsense %d", i);
        ids[i] = compile(context, &source, BH_COMPILE_FAILED);
        if (i == 63) { /* the first is used again, so the second one goes */
            snprintf(text, sizeof text, "nonsense 0");
            BHT_EQ(compile(context, &source, BH_COMPILE_FAILED), ids[0]);
        }
    }
    static const int kept[] = {0, 2, 64};
    for (size_t i = 0; i < BHT_COUNT(kept); i++) {
        snprintf(text, sizeof text, "nonsense %d", kept[i]);
        BHT_EQ(compile(context, &source, BH_COMPILE_FAILED), ids[kept[i]]);
    }
    snprintf(text, sizeof text, "nonsense 1");
    BHT_GT(compile(context, &source, BH_COMPILE_FAILED), ids[64]);
}

/* Returns the id of the compile of the tenant's source |number|, which a compiler refuses. */
static uint64_t compile_numbered(bh_context *context, const char *tenant, int number) {
    char text[32];
    snprintf(text, sizeof text, "nonsense %d", number);
    bh_source source = source_of(text);
    source.tenant = tenant;
    return compile(context, &source, BH_COMPILE_FAILED);
}

TEST(a_tenant_forgets_nothing_of_another) {
    bh_context *context = fx_context(NULL);
    uint64_t quiet[3], loud[80];
    for (int i = 0; i < 3; i++) {
        quiet[i] = compile_numbered(context, "quiet", i);
    }
    for (int i = 0; i < 80; i++) {
        loud[i] = compile_numbered(context, "loud", i);
    }
    for (int i = 0; i < 3; i++) {
        BHT_EQ(compile_numbered(context, "quiet", i), quiet[i]);
    }
    /* Half of the 125 places that are left, and the one between. */
    BHT_EQ(compile_numbered(context, "loud", 80 - 63), loud[80 - 63]);
    BHT_GT(compile_numbered(context, "loud", 80 - 64), loud[79]);
}

/* All places are taken: who comes gets the oldest one of the tenant that has most. */
TEST(a_tenant_that_has_nothing_gets_a_place) {
    enum { MOST = 1 };
    bh_context *context = fx_context(NULL);
    static const int counts[] = {1, 64, 32, 16, 8, 4, 2, 1}; /* 128 */
    uint64_t first[BHT_COUNT(counts)], second = 0;
    char tenant[8];
    for (size_t t = 0; t < BHT_COUNT(counts); t++) {
        snprintf(tenant, sizeof tenant, "t%zu", t);
        for (int i = 0; i < counts[t]; i++) {
            const uint64_t id = compile_numbered(context, tenant, i);
            first[t] = i == 0 ? id : first[t];
            second = t == MOST && i == 1 ? id : second;
        }
    }
    const uint64_t last = compile_numbered(context, "last", 0);
    BHT_EQ(compile_numbered(context, "last", 0), last);
    BHT_EQ(compile_numbered(context, "t1", 1), second);
    for (size_t t = 0; t < BHT_COUNT(counts); t++) {
        snprintf(tenant, sizeof tenant, "t%zu", t);
        if (t != MOST) {
            BHT_EQ(compile_numbered(context, tenant, 0), first[t]);
        }
    }
    BHT_GT(compile_numbered(context, "t1", 0), last);
}

static void *create(void *context) {
    bh_source source = source_of(FILL);
    bh_kernel *kernel = NULL;
    bh_detail detail;
    if (bh_kernel_create_source(context, &source, NULL, &kernel, &detail) != BH_OK) {
        BHT_FAIL("%s", detail.message);
    }
    bh_kernel_release(kernel);
    return NULL;
}

/* A second compiler crashes: that of the other source. */
TEST(threads_share_a_compile) {
    bh_context *context = fx_context("2:compile:1=segv");
    for (int i = 0; i < 4; i++) {
        bht_start(create, context);
    }
    bht_join();
    bh_source other = source_of("other");
    bh_kernel *kernel;
    bh_detail detail;
    BHT_EQ(bh_kernel_create_source(context, &other, NULL, &kernel, &detail), BH_COMPILE_FAILED);
    BHT_EQ(detail.cause, BH_WORKER_SIGNAL);
}

/* -- sources that end their compilers --------------------------------------------------------- */

static size_t held(bh_context *context, bh_quarantined *out) {
    size_t count = 99;
    if (out) {
        out->struct_size = sizeof *out;
    }
    BHT_EQ(bh_quarantine_list(context, out, out ? 1 : 0, &count, NULL), BH_OK);
    return count;
}

TEST(a_source_that_crashes_its_compiler_is_remembered) {
    bh_context *context = fx_context("1:compile:1=segv");
    bh_source source = source_of(FILL), other = source_of(FILL);
    bh_kernel *kernel;
    bh_detail detail;
    bh_quarantined entry = {.struct_size = sizeof entry};
    source.tenant = "a";
    BHT_EQ(bh_kernel_create_source(context, &source, NULL, &kernel, &detail), BH_COMPILE_FAILED);
    BHT_EQ(detail.cause, BH_WORKER_SIGNAL);
    BHT_EQ(held(context, &entry), 1);
    BHT_STR_EQ(entry.tenant, "a");
    BHT_STR_EQ(entry.kernel_name, "test.comp");
    BHT_EQ(entry.status, BH_COMPILE_FAILED);
    BHT_EQ(entry.cause, BH_WORKER_SIGNAL);
    BHT_EQ(bh_kernel_create_source(context, &source, NULL, &kernel, &detail), BH_COMPILE_FAILED);
    BHT_EQ(detail.reason, BH_REASON_NOT_AGAIN);
    BHT_EQ(detail.reason, BH_REASON_NOT_AGAIN);
    bh_event *event;
    start(context, &source, &event);
    const bh_verdict verdict = fx_expect(event, BH_COMPILE_FAILED);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(verdict.origin, entry.origin);
    BHT_MEM_EQ(verdict.kernel_hash, entry.kernel_hash, 32);
    /* Another tenant, or another source, has no part in it. */
    compile(context, &other, BH_OK);
    source.name = "other.comp";
    compile(context, &source, BH_OK);
    source.name = "test.comp";
    BHT_EQ(bh_quarantine_release(context, "a", entry.kernel_hash, NULL), BH_OK);
    compile(context, &source, BH_OK);
}

/* A compiler that is slow may be so because the machine is busy. */
TEST(a_compile_deadline_is_not_remembered) {
    bh_context *context = fx_context("2:compile:1=stop");
    bh_source source = source_of("#version 450\nvoid main() {}\n");
    compile(context, &source, BH_OK); /* what forks compilers runs now */
    source = source_of(FILL);
    source.deadline_ns = 300 * bht_slowness() * FX_MS;
    bh_kernel *kernel;
    bh_detail detail;
    bh_event *event;
    bh_module *module = start(context, &source, &event);
    fx_expect(event, BH_DEADLINE);
    BHT_EQ(bh_module_kernel(module, NULL, &kernel, &detail), BH_COMPILE_FAILED);
    BHT_EQ(detail.cause, BH_DEADLINE);
    BHT_EQ(held(context, NULL), 0);
    source.deadline_ns = 3 * FX_SECONDS;
    compile(context, &source, BH_OK);
}

/* -- the calls -------------------------------------------------------------------------------- */

TEST(arguments) {
    bh_context *context = fx_context(NULL);
    char log[8], tenant[65];
    memset(tenant, 't', sizeof tenant - 1);
    tenant[sizeof tenant - 1] = '\0';
    bh_source plain = source_of(FILL);
    bh_source bad[] = {plain, plain, plain, plain};
    static const char *const messages[] = {
        "source.log is not NULL: bh_module_log", "source.tenant is longer than 63 bytes",
        "source.memory_limit is 67108863, less than 64 MiB", "source.entry is 'other'"};
    bad[0].log = log;
    bad[0].log_size = sizeof log;
    bad[1].tenant = tenant;
    bad[2].memory_limit = (64 << 20) - 1;
    bad[3].entry = "other";
    bh_detail detail;
    bh_event *event = NULL;
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {
        bh_module *module = (bh_module *)log;
        event = (bh_event *)log;
        BHT_EQ(bh_module_compile(context, &bad[i], &module, &event, &detail), BH_INVALID_ARGUMENT);
        BHT_STR_HAS(detail.message, messages[i]);
        BHT_TRUE(!module && !event);
    }
    BHT_EQ(bh_module_compile(context, &plain, NULL, &event, NULL), BH_INVALID_ARGUMENT);
    bh_module *module = NULL;
    bh_kernel *kernel;
    BHT_EQ(bh_module_compile(context, &plain, &module, NULL, NULL), BH_OK);
    bh_module_retain(module);
    bh_module_release(module);
    bh_context_destroy(context);
    BHT_EQ(bh_module_kernel(module, NULL, &kernel, NULL), BH_CLOSED);
    bh_module_release(module);
    bh_module_release(module);
    BHT_EQ(bh_module_kernel(module, NULL, &kernel, NULL), BH_INVALID_ARGUMENT);
    bh_module_release(NULL);
}
