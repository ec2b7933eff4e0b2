/* bench-guard: what the guard costs, and what it buys.
 *
 * Cost: a module guarded and as it is, in turns, on one device in this process, in device-local
 * memory; how long guarding takes. Use: an endless kernel through libbulkhead with a deadline: when
 * its event is poisoned, whether its worker goes on, and how long a neighbour stands still, with
 * the guard and without. */
#define SPV_ENABLE_UTILITY_CODE /* SpvHasResultAndType */
#include "guard_device.h"

#include <bulkhead/bulkhead.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS  101u
#define DEADLINE_MS 100u /* of the endless kernel */

static const uint32_t MATMUL[] =
#include "guard_matmul.inc"
    ;
static const uint32_t MEMORY[] =
#include "guard_memory.inc"
    ;
static const uint32_t FMA[] =
#include "guard_fma.inc"
    ;
static const uint32_t HANG[] =
#include "hang.inc"
    ;

struct row {
    const char *id, *what, *unit;
    double plain, guarded; /* negative: there is none */
    double target;         /* of the ratio, or of |guarded| where |absolute| */
    bool absolute;
};

struct bench {
    struct bench_options options;
    struct row rows[16];
    size_t count;
};

static void add(struct bench *b, struct row row) {
    b->rows[b->count++] = row;
}

static struct bhi_guarded measure_pair(const struct bench *b, struct guard_device *d,
                                       const uint32_t *code, size_t words, const uint32_t groups[3],
                                       uint32_t n, uint64_t out[2]) {
    static uint64_t samples[2][MAX_ROUNDS];
    struct bhi_guarded guarded = guard_device_guard(d, code, words);
    struct guard_program programs[2] = {guard_program_make(d, code, words, NULL),
                                        guard_program_make(d, code, words, &guarded)};
    uint32_t repeat = 1;
    for (;; repeat *= 2) { /* long enough for the clock, and compiled by then */
        guard_program_record(d, &programs[0], groups, n, repeat);
        guard_program_run(d, &programs[0]);
        if (guard_program_run(d, &programs[0]) > (b->options.quick ? 2000000u : 20000000u) ||
            repeat >= 4096) {
            break;
        }
    }
    guard_program_record(d, &programs[1], groups, n, repeat);
    guard_program_run(d, &programs[1]);
    for (unsigned round = 0; round < b->options.rounds; round++) {
        for (unsigned turn = 0; turn < 2; turn++) {
            const unsigned side = (turn + round) % 2;
            samples[side][round] = guard_program_run(d, &programs[side]);
        }
    }
    for (int side = 0; side < 2; side++) {
        out[side] = bench_quantile(samples[side], b->options.rounds, 500) / repeat;
        guard_program_free(d, &programs[side]);
    }
    return guarded;
}

static void measure_cost(struct bench *b) {
    struct guard_device d;
    guard_device_open(&d, (VkDeviceSize)64 << 20);
    const bool processor = d.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    b->options.processor = processor;
    printf("device   %s\nrounds   %u, in turns; medians\n\n", d.properties.deviceName,
           b->options.rounds);
    const uint32_t side = processor ? 192 : 2048, vectors = (64u << 20) / 16;
    const struct {
        const char *id, *what;
        const uint32_t *code;
        size_t bytes;
        uint32_t groups[3], n;
        double target;
    } kernels[] = {
        {"matmul",
         "naive tiled matmul",
         MATMUL,
         sizeof MATMUL,
         {side / 16, side / 16, 1},
         side,
         processor ? 1.25 : 1.05},
        {"memory",
         "memory-bound (y = 2x + y, 64 MiB each)",
         MEMORY,
         sizeof MEMORY,
         {processor ? 256u : 8192u, 1, 1},
         vectors,
         processor ? 1.25 : 1.02},
        {"fma",
         "a loop of one fma",
         FMA,
         sizeof FMA,
         {processor ? 16u : 4096u, 1, 1},
         processor ? 40000u : 20000u,
         processor ? 0 : 1.1},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        uint64_t times[2];
        struct bhi_guarded guarded = measure_pair(b, &d, kernels[i].code, kernels[i].bytes / 4,
                                                  kernels[i].groups, kernels[i].n, times);
        bhi_guarded_fini(&guarded);
        add(b, (struct row){kernels[i].id, kernels[i].what, "us", (double)times[0] / 1e3,
                            (double)times[1] / 1e3, kernels[i].target, false});
    }
    guard_device_close(&d);
}

/* -- how long guarding takes ---------------------------------------------------------------- */

/* The matrix product's function again and again, with ids of its own each time: loops, arrays and
 * barriers as real modules have them, up to |bytes|. */
static uint32_t *grow(size_t bytes, size_t *out_words) {
    const size_t count = sizeof MATMUL / 4, most = bytes / 4 + count;
    uint32_t *out = bench_allocate(most, 4);
    size_t begin = 0, words;
    memcpy(out, MATMUL, sizeof MATMUL);
    words = count;
    for (size_t i = 5; i < count; i += MATMUL[i] >> 16) {
        begin = (MATMUL[i] & 0xffff) == SpvOpFunction ? i : begin;
    }
    /* Ids of the function are those that it defines. */
    uint8_t *own = bench_allocate(MATMUL[3], 1);
    uint32_t bound = MATMUL[3];
    for (size_t i = begin; i < count; i += MATMUL[i] >> 16) {
        bool result = false, type = false;
        SpvHasResultAndType((SpvOp)(MATMUL[i] & 0xffff), &result, &type);
        if (result) {
            own[MATMUL[i + (type ? 2 : 1)]] = 1;
        }
    }
    while ((words + (count - begin)) * 4 <= bytes) {
        for (size_t i = begin; i < count; i += MATMUL[i] >> 16) {
            const uint32_t length = MATMUL[i] >> 16;
            out[words] = MATMUL[i];
            for (uint32_t k = 1; k < length; k++) {
                const uint32_t word = MATMUL[i + k];
                /* Literals among the operands are masks of 0 and member numbers: no ids. */
                out[words + k] = word < MATMUL[3] && own[word] ? word + bound : word;
            }
            words += length;
        }
        bound += MATMUL[3];
    }
    out[3] = bound;
    free(own);
    *out_words = words;
    return out;
}

static void measure_guarding(struct bench *b) {
    size_t words;
    uint32_t *code = grow(100000, &words);
    static uint64_t samples[MAX_ROUNDS];
    const struct bhi_guard_options options = {
        .entry = "main", .max_sets = 4, .zero_initialize = true};
    uint32_t loops = 0;
    for (unsigned round = 0; round < b->options.rounds; round++) {
        struct bhi_guarded guarded;
        struct bhi_error error;
        const uint64_t start = bench_now_ns();
        if (!bhi_guard(code, words, &options, &guarded, &error)) {
            bench_die("guarding %zu bytes: %s", words * 4, bhi_error_line(&error));
        }
        samples[round] = bench_now_ns() - start;
        loops = guarded.loops;
        bhi_guarded_fini(&guarded);
    }
    if (loops < 100) {
        bench_die("the module of %zu bytes has %u loops only", words * 4, loops);
    }
    free(code);
    add(b, (struct row){"guarding", "guarding a module of 100 kB", "ms", -1,
                        (double)bench_quantile(samples, b->options.rounds, 500) / 1e6, 20, true});
}

/* -- the deadline --------------------------------------------------------------------------- */

/* An endless kernel through libbulkhead, and what a neighbour on the same device feels of it. */
struct hang {
    uint64_t poisoned_ns; /* from the launch; the deadline is DEADLINE_MS */
    uint64_t stall_ns;    /* the longest that a neighbour's small job took meanwhile */
    uint64_t next_ns;     /* from the poison to the next good result on the same stream */
    bool same_worker;
};

struct side {
    bh_stream *stream;
    bh_kernel *kernel, *count;
    bh_buffer *data, *counter;
};

static bh_event *launch(struct side *side, bh_kernel *kernel, bh_buffer *data, uint32_t x,
                        uint32_t y, uint64_t deadline_ns) {
    const bh_binding binding = bh_bind_read_write(0, data);
    const bh_command command = {
        .type = BH_COMMAND_DISPATCH,
        .dispatch = {
            .kernel = kernel, .groups = {x, y, 1}, .bindings = &binding, .binding_count = 1}};
    return bench_submit(side->stream, BENCH_WITH(bh_submit_info, .commands = &command,
                                                 .command_count = 1, .deadline_ns = deadline_ns));
}

static uint64_t count_once(struct side *side) {
    const uint64_t start = bench_now_ns();
    bench_finish(launch(side, side->count, side->counter, 1, 1, BH_FOREVER));
    return bench_now_ns() - start;
}

static struct side open_side(bh_context *context, const char *device, const char *name,
                             bool trusted) {
    struct side side = {
        .stream =
            bench_stream(context, BENCH_WITH(bh_stream_options, .name = name, .device = device)),
        .kernel = bench_kernel(context, HANG, sizeof HANG,
                               BENCH_WITH(bh_kernel_options, .name = "hang", .trusted = trusted)),
        .count = bench_kernel(context, BENCH_CODE[BENCH_COUNT].words, BENCH_CODE[BENCH_COUNT].bytes,
                              BENCH_WITH(bh_kernel_options, .name = "count", .trusted = true)),
        .data = bench_buffer(context, NULL, BH_MEMORY_HOST, 4096),
        .counter = bench_buffer(context, NULL, BH_MEMORY_HOST, 4096)};
    bench_ready(side.stream);
    count_once(&side);
    return side;
}

static void close_side(struct side *side) {
    bh_buffer_release(side->data);
    bh_buffer_release(side->counter);
    bh_kernel_release(side->kernel);
    bh_kernel_release(side->count);
    bh_stream_release(side->stream);
}

struct neighbour {
    struct side side;
    atomic_bool stop;
    atomic_uint done;
    uint64_t worst_ns;
};

static void *count_on(void *argument) {
    struct neighbour *n = argument;
    while (!atomic_load(&n->stop)) {
        const uint64_t took = count_once(&n->side);
        n->worst_ns = took > n->worst_ns ? took : n->worst_ns;
        atomic_fetch_add(&n->done, 1);
    }
    return NULL;
}

static struct hang measure_endless(const struct bench_options *options, bool trusted) {
    struct hang out;
    bh_context *context =
        bench_context(BENCH_WITH(bh_context_options, .worker_path = options->worker));
    struct side culprit = open_side(context, options->device, "culprit", trusted);
    struct neighbour n = {.side = open_side(context, options->device, "neighbour", trusted)};
    if (!trusted) { /* compiled before it is timed: a loop that is let go at once */
        const uint32_t go = 0x600D600Du;
        memcpy(bench_map(culprit.data, BH_MAP_DISCARD), &go, sizeof go);
        bench_finish(launch(&culprit, culprit.kernel, culprit.data, 1, 1, BH_FOREVER));
        memset(bench_map(culprit.data, BH_MAP_DISCARD), 0, 4096);
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, count_on, &n) != 0) {
        bench_die("cannot start a thread");
    }
    while (atomic_load(&n.done) < 20) {
    }
    const int pid = bh_stream_worker_pid(culprit.stream);
    const uint64_t start = bench_now_ns();
    bh_event *event =
        launch(&culprit, culprit.kernel, culprit.data, 2000, 1, DEADLINE_MS * 1000000ull);
    const bh_status status = bh_event_wait(event, BENCH_TIMEOUT_NS);
    const uint64_t poisoned = bench_now_ns();
    if (status != BH_DEADLINE) {
        bench_die("the endless kernel: %s", bh_status_name(status));
    }
    out.poisoned_ns = poisoned - start;
    count_once(&culprit);
    out.next_ns = bench_now_ns() - poisoned;
    out.same_worker = bh_stream_worker_pid(culprit.stream) == pid;
    const unsigned after = atomic_load(&n.done) + 20;
    while (atomic_load(&n.done) < after) { /* until what it stood in has passed */
    }
    atomic_store(&n.stop, true);
    pthread_join(thread, NULL);
    out.stall_ns = n.worst_ns;
    bh_event_release(event);
    close_side(&culprit);
    close_side(&n.side);
    bh_context_destroy(context);
    return out;
}

static bool measure_hang(struct bench *b) {
    const struct hang with = measure_endless(&b->options, false);
    const struct hang without = measure_endless(&b->options, true);
    add(b,
        (struct row){"poisoned", "endless kernel, deadline 100 ms: poisoned after", "ms",
                     (double)without.poisoned_ns / 1e6, (double)with.poisoned_ns / 1e6, 125, true});
    add(b, (struct row){"next", "then: the next good result after", "ms",
                        (double)without.next_ns / 1e6, (double)with.next_ns / 1e6, 0, true});
    add(b, (struct row){"stall", "a neighbour's worst stall meanwhile", "ms",
                        (double)without.stall_ns / 1e6, (double)with.stall_ns / 1e6,
                        b->options.processor ? 0 : 130, true});
    printf("endless kernel: guarded, %s; as it is, %s\n\n",
           with.same_worker ? "its worker goes on" : "its worker DIED",
           without.same_worker ? "its worker goes on" : "its worker was killed");
    return with.same_worker;
}

static size_t report(const struct bench *b) {
    size_t missed = 0;
    printf("%-50s %12s %12s %7s %8s\n", "", "as it is", "guarded", "ratio", "target");
    for (size_t i = 0; i < b->count; i++) {
        const struct row *r = &b->rows[i];
        const double ratio = r->plain > 0 ? r->guarded / r->plain : -1;
        const double value = r->absolute ? r->guarded : ratio;
        const bool ok = r->target <= 0 || value <= r->target;
        char plain[32] = "", share[32] = "", target[32] = "";
        if (r->plain >= 0) {
            snprintf(plain, sizeof plain, "%.3f %s", r->plain, r->unit);
            snprintf(share, sizeof share, "%.3f", ratio);
        }
        if (r->target > 0) {
            snprintf(target, sizeof target, "%.2f%s", r->target, r->absolute ? r->unit : "");
        }
        printf("%-50s %12s %9.3f %s %7s %8s%s\n", r->what, plain, r->guarded, r->unit, share,
               target, ok ? "" : "  MISSED");
        missed += !ok;
    }
    return missed;
}

static const char usage[] =
    "Usage: bench-guard [--quick] [--strict] [--rounds N] [--device SELECTOR] [--no-hang]\n"
    "  --quick     does it work; the numbers are worth little\n"
    "  --strict    exit status 3 where a target is missed\n"
    "  --no-hang   no endless kernels: the cost alone\n"
    "The cost is measured on the first device; --device is for the endless kernels.\n";

int main(int argc, char **argv) {
    static struct bench b;
    bool no_hang = false;
    const struct bench_option options[] = {
        {"--quick", .flag = &b.options.quick},
        {"--strict", .flag = &b.options.strict},
        {"--no-hang", .flag = &no_hang},
        {"--device", .text = &b.options.device},
        {"--rounds", .number = &b.options.rounds, .least = 1, .most = MAX_ROUNDS},
        {0}};
    bench_parse(argc, argv, options, usage);
    b.options.rounds = b.options.rounds ? b.options.rounds : b.options.quick ? 3 : 15;
    setvbuf(stdout, NULL, _IOLBF, 0);
    measure_cost(&b);
    measure_guarding(&b);
    const bool survived = no_hang || measure_hang(&b);
    const size_t missed = report(&b);
    if (!survived && !b.options.quick) { /* a machine that runs tests may be too busy to answer */
        bench_die("the worker of a guarded kernel did not survive its deadline");
    }
    return b.options.strict && missed > 0 ? 3 : 0;
}
