/* Kernels that are out to hurt, through real workers: each ends as a verdict that says what it was,
 * or is harmless once it is guarded; the stream goes on (K4, K5; docs/guard.md). */
#include "fixture.h"

#include <stdio.h>

/* -- modules that grow ---------------------------------------------------------------------- */

struct words {
    uint32_t *at;
    size_t count, room;
    uint32_t bound;
};

static void put(struct words *w, uint32_t word) {
    if (w->count == w->room) {
        w->room = w->room * 2 + 1024;
        w->at = realloc(w->at, w->room * sizeof *w->at);
        BHT_TRUE(w->at);
    }
    w->at[w->count++] = word;
}

#define INS(w, op, ...)                                                                            \
    put_ins(w, op, (const uint32_t[]){__VA_ARGS__},                                                \
            sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
static void put_ins(struct words *w, uint32_t op, const uint32_t *operands, size_t count) {
    put(w, (uint32_t)(count + 1) << 16 | op);
    for (size_t i = 0; i < count; i++) {
        put(w, operands[i]);
    }
}

enum {
    CAPABILITY = 17,
    MEMORY_MODEL = 14,
    ENTRY_POINT = 15,
    EXECUTION_MODE = 16,
    TYPE_VOID = 19,
    TYPE_BOOL = 20,
    TYPE_INT = 21,
    TYPE_STRUCT = 30,
    TYPE_FUNCTION = 33,
    CONSTANT_TRUE = 41,
    FUNCTION = 54,
    FUNCTION_END = 56,
    SELECTION_MERGE = 247,
    LABEL = 248,
    BRANCH = 249,
    BRANCH_CONDITIONAL = 250,
    RETURN = 253,
};
enum { VOID = 1, NOTHING, UINT, BOOL, YES, MAIN, FIRST };

static struct words begin(const uint32_t size[3]) {
    struct words w = {.bound = FIRST};
    for (int i = 0; i < 5; i++) {
        put(&w, 0);
    }
    w.at[0] = 0x07230203;
    w.at[1] = 0x00010300;
    INS(&w, CAPABILITY, 1);
    INS(&w, MEMORY_MODEL, 0, 1);
    INS(&w, ENTRY_POINT, 5, MAIN, 0x6e69616d, 0);
    INS(&w, EXECUTION_MODE, MAIN, 17, size[0], size[1], size[2]);
    INS(&w, TYPE_VOID, VOID);
    INS(&w, TYPE_FUNCTION, NOTHING, VOID);
    INS(&w, TYPE_INT, UINT, 32, 0);
    INS(&w, TYPE_BOOL, BOOL);
    INS(&w, CONSTANT_TRUE, BOOL, YES);
    return w;
}

static void open_main(struct words *w) {
    INS(w, FUNCTION, VOID, MAIN, 0, NOTHING);
    INS(w, LABEL, w->bound++);
}

static void close_main(struct words *w) {
    put(w, 1u << 16 | RETURN);
    put(w, 1u << 16 | FUNCTION_END);
    w->at[3] = w->bound;
}

static const uint32_t ONE[3] = {1, 1, 1};

static struct words nested_ifs(uint32_t count) {
    struct words w = begin(ONE);
    open_main(&w);
    const uint32_t first = w.bound;
    w.bound += 2 * count;
    for (uint32_t i = 0; i < count; i++) {
        INS(&w, SELECTION_MERGE, first + 2 * i + 1, 0);
        INS(&w, BRANCH_CONDITIONAL, YES, first + 2 * i, first + 2 * i + 1);
        INS(&w, LABEL, first + 2 * i);
    }
    for (uint32_t i = count; i-- > 0;) {
        INS(&w, BRANCH, first + 2 * i + 1);
        INS(&w, LABEL, first + 2 * i + 1);
    }
    close_main(&w);
    return w;
}

static struct words nested_structs(uint32_t count) {
    struct words w = begin(ONE);
    uint32_t inner = UINT;
    for (uint32_t i = 0; i < count; i++) {
        INS(&w, TYPE_STRUCT, w.bound, inner);
        inner = w.bound++;
    }
    open_main(&w);
    close_main(&w);
    return w;
}

/* -- one stage for all ---------------------------------------------------------------------- */

struct stage {
    bh_context *context;
    bh_stream *stream;
    bh_buffer *data;
};

static struct stage open_stage(uint64_t deadline_ns) {
    struct stage s = {.context = fx_context(NULL)};
    s.stream = fx_stream(s.context, "hostile", deadline_ns);
    s.data = fx_words(s.context, 4096, 1);
    fx_ready(s.stream);
    return s;
}

static void close_stage(struct stage *s) {
    fx_expect_healthy(s->context, s->stream);
    bh_buffer_release(s->data);
    bh_stream_release(s->stream);
    bh_context_destroy(s->context);
}

static bh_verdict launch(struct stage *s, bh_kernel *kernel, bool bound, uint32_t groups_x) {
    const bh_binding binding = bh_bind_read_write(0, s->data);
    bh_event *event = NULL;
    bh_detail detail;
    if (bh_launch(s->stream, kernel, (uint32_t[]){groups_x, 1, 1}, &binding, bound, NULL, 0, &event,
                  &detail) != BH_OK) {
        BHT_FAIL("bh_launch: %s", detail.message);
    }
    bh_verdict verdict = {.status = BH_OK};
    const bh_status status = bh_event_wait(event, 6 * FX_SECONDS);
    BHT_NE(status, BH_TIMEOUT);
    if (status != BH_OK) {
        verdict = fx_verdict(event);
    }
    bh_event_release(event);
    bh_kernel_release(kernel);
    return verdict;
}

static bh_kernel *kernel_of(struct stage *s, struct words *w) {
    bh_kernel *kernel = NULL;
    bh_detail detail;
    if (bh_kernel_create_spirv(s->context, w->at, w->count * 4, NULL, &kernel, &detail) != BH_OK) {
        BHT_FAIL("bh_kernel_create_spirv: %s", detail.message);
    }
    free(w->at);
    return kernel;
}

/* Refused: nothing runs, nobody dies. */
static void refused(struct words w, bh_status status, const char *text) {
    struct stage s = open_stage(FX_SECONDS);
    const pid_t pid = bh_stream_worker_pid(s.stream);
    const bh_verdict verdict = launch(&s, kernel_of(&s, &w), false, 1);
    BHT_EQ(verdict.status, status);
    BHT_STR_HAS(verdict.message, text);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(bh_stream_worker_pid(s.stream), pid);
    close_stage(&s);
}

/* -- the table of docs/guard.md and docs/facts.md ------------------------------------------- */

TEST(a_shared_index_out_of_range) {
    struct stage s = open_stage(FX_SECONDS);
    const pid_t pid = bh_stream_worker_pid(s.stream);
    BHT_EQ(launch(&s, fx_kernel(s.context, "crash_shared"), true, 16).status, BH_OK);
    BHT_EQ(bh_stream_worker_pid(s.stream), pid);
    close_stage(&s);
}

TEST(a_physical_pointer) {
    struct stage s = open_stage(FX_SECONDS);
    const bh_verdict verdict = launch(&s, fx_kernel(s.context, "hostile_pointer"), true, 1);
    BHT_EQ(verdict.status, BH_INVALID_KERNEL);
    BHT_STR_HAS(verdict.message, "PhysicalStorageBufferAddresses");
    close_stage(&s);
}

TEST_WITH(a_huge_workgroup, 60, 0) {
    static const uint32_t sizes[][3] = {{65535, 65535, 64}, {1048576, 1, 1}, {1024, 1024, 1}};
    for (size_t i = 0; i < BHT_COUNT(sizes); i++) {
        struct words w = begin(sizes[i]);
        open_main(&w);
        close_main(&w);
        refused(w, BH_LIMIT_EXCEEDED, i < 2 ? "workgroup size in x" : "workgroup");
    }
}

TEST(loops_in_loops_in_65535_groups) {
    struct stage s = open_stage(BHT_SECOND_MS * FX_MS / 5);
    const bh_verdict verdict = launch(&s, fx_kernel(s.context, "hang"), true, 65535);
    BHT_EQ(verdict.status, BH_DEADLINE);
    BHT_EQ(verdict.executed, BH_EXECUTED_UNKNOWN);
    close_stage(&s);
}

TEST(five_thousand_nested_ifs) {
    refused(nested_ifs(5000), BH_LIMIT_EXCEEDED, "ifs, switches and loops nested in each other");
}

TEST(twenty_thousand_nested_ifs) {
    refused(nested_ifs(20000), BH_LIMIT_EXCEEDED, "ifs, switches and loops nested in each other");
}

TEST_WITH(nested_struct_types, 60, 0) {
    refused(nested_structs(400000), BH_LIMIT_EXCEEDED, "bytes of the module");
    refused(nested_structs(300000), BH_LIMIT_EXCEEDED, "types nested in each other");
}

TEST(a_huge_initialiser) {
    struct stage s = open_stage(FX_SECONDS);
    const bh_verdict verdict = launch(&s, fx_kernel(s.context, "memory_bomb"), true, 1);
    BHT_EQ(verdict.status, BH_LIMIT_EXCEEDED);
    BHT_STR_HAS(verdict.message, "1073741824, the guard allows 16384");
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    close_stage(&s);
}

/* Whatever the compiler makes of it: a result, or a verdict that says that it was the compiler. */
TEST_WITH(arithmetic_that_compilers_die_of, 90, 0) {
    struct stage s = open_stage(FX_SECONDS);
    const bh_verdict verdict = launch(&s, fx_kernel(s.context, "hostile_arithmetic"), true, 1);
    BHT_TRUE(verdict.status == BH_OK || verdict.status == BH_COMPILE_FAILED ||
             verdict.status == BH_INVALID_KERNEL);
    close_stage(&s);
}

/* A float atomic that the device does not advertise: a compiler's crash elsewhere. */
TEST(a_float_atomic) {
    struct stage s = open_stage(FX_SECONDS);
    const bh_verdict verdict = launch(&s, fx_kernel(s.context, "hostile_atomic"), true, 1);
    BHT_EQ(verdict.status, BH_INVALID_KERNEL);
    BHT_STR_HAS(verdict.message, "AtomicFloat");
    BHT_STR_HAS(verdict.message, "is not supported by this device");
    close_stage(&s);
}
