/* Kernels that are out to hurt, through real workers: each ends as a verdict that says what it was,
 * or is harmless once it is guarded; the stream goes on (K4, K5; docs/kernels.md). */
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

static bh_context *context;
static bh_stream *stream;

static void open_stage(uint64_t deadline_ns) {
    context = fx_context(NULL);
    stream = fx_stream(context, "hostile", deadline_ns);
    fx_ready(stream);
    fx_expect_healthy_after(context, stream);
}

static bh_verdict launch(bh_kernel *kernel, const bh_binding *binding, uint32_t groups) {
    bh_event *event = fx_launch(stream, kernel, groups, binding, binding ? 1 : 0, 0);
    BHT_NE(bh_event_wait(event, 6 * FX_SECONDS), BH_TIMEOUT);
    return fx_verdict(event);
}

/* Launches one of the kernels on a buffer. */
static bh_verdict launch_shipped(const char *name, uint32_t groups) {
    const bh_binding binding = bh_bind_read_write(0, fx_words(context, 4096, 1));
    return launch(fx_kernel(context, name), &binding, groups);
}

static void expect_refused(const bh_verdict *verdict, pid_t pid, bh_status status,
                           const char *text) {
    BHT_EQ(verdict->status, status);
    BHT_STR_HAS(verdict->message, text);
    BHT_EQ(verdict->executed, BH_EXECUTED_NO);
    BHT_EQ(bh_stream_worker_pid(stream), pid);
    fx_expect_healthy(context, stream);
}

/* Refused: nothing runs, nobody dies. */
static void refused(struct words w, const char *text) {
    open_stage(FX_SECONDS);
    const pid_t pid = bh_stream_worker_pid(stream);
    bh_kernel *kernel = NULL;
    BHT_EQ(bh_kernel_create_spirv(context, w.at, w.count * 4, NULL, &kernel, NULL), BH_OK);
    free(w.at);
    const bh_verdict verdict = launch(kernel, NULL, 1);
    expect_refused(&verdict, pid, BH_LIMIT_EXCEEDED, text);
}

static bh_verdict refused_shipped(const char *name, bh_status status, const char *text) {
    open_stage(FX_SECONDS);
    const pid_t pid = bh_stream_worker_pid(stream);
    const bh_verdict verdict = launch_shipped(name, 1);
    expect_refused(&verdict, pid, status, text);
    return verdict;
}

/* -- the table of docs/kernels.md and docs/testing.md -------------------------------------- */

TEST(a_shared_index_out_of_range) {
    open_stage(FX_SECONDS);
    const pid_t pid = bh_stream_worker_pid(stream);
    BHT_EQ(launch_shipped("crash_shared", 16).status, BH_OK);
    BHT_EQ(bh_stream_worker_pid(stream), pid);
}

TEST(a_physical_pointer) {
    refused_shipped("hostile_pointer", BH_INVALID_KERNEL, "PhysicalStorageBufferAddresses");
}

TEST(a_huge_workgroup) {
    static const uint32_t sizes[][3] = {{65535, 65535, 64}, {1048576, 1, 1}, {1024, 1024, 1}};
    for (size_t i = 0; i < BHT_COUNT(sizes); i++) {
        struct words w = begin(sizes[i]);
        open_main(&w);
        close_main(&w);
        refused(w, i < 2 ? "workgroup size in x" : "workgroup");
    }
}

TEST(loops_in_loops_in_65535_groups) {
    open_stage(BHT_SECOND_MS * FX_MS / 5);
    const bh_verdict verdict = launch_shipped("hang", 65535);
    BHT_EQ(verdict.status, BH_DEADLINE);
    BHT_EQ(verdict.executed, BH_EXECUTED_UNKNOWN);
}

TEST(five_thousand_nested_ifs) {
    refused(nested_ifs(5000), "ifs, switches and loops nested in each other");
}

TEST(twenty_thousand_nested_ifs) {
    refused(nested_ifs(20000), "ifs, switches and loops nested in each other");
}

TEST(nested_struct_types) {
    refused(nested_structs(400000), "bytes of the module");
    refused(nested_structs(300000), "types nested in each other");
}

TEST(a_huge_initialiser) {
    refused_shipped("memory_bomb", BH_LIMIT_EXCEEDED, "1073741824, the guard allows 16384");
}

/* Whatever the compiler makes of it: a result, or a verdict that says that it was the compiler. */
TEST(arithmetic_that_compilers_die_of) {
    open_stage(FX_SECONDS);
    const bh_status status = launch_shipped("hostile_arithmetic", 1).status;
    BHT_TRUE(status == BH_OK || status == BH_COMPILE_FAILED || status == BH_INVALID_KERNEL);
}

/* A float atomic that the device does not advertise: a compiler's crash elsewhere. */
TEST(a_float_atomic) {
    BHT_STR_HAS(refused_shipped("hostile_atomic", BH_INVALID_KERNEL, "AtomicFloat").message,
                "is not supported by this device");
}
