/* bench-guard: what the guard costs, and what it buys.
 *
 * Cost: a module guarded and as it is, in turns, on one device in this process, in device-local
 * memory; how long guarding takes. Use: an endless kernel through libbulkhead with a deadline: when
 * its event is poisoned, whether its worker goes on, and how long a neighbour stands still, with
 * the guard and without. */
#define SPV_ENABLE_UTILITY_CODE /* SpvHasResultAndType */
#include "guard_device.h"
#include "guard_hang.h"
#include "samples.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 101u

static const uint32_t MATMUL[] =
#include "guard_matmul.inc"
    ;
static const uint32_t MEMORY[] =
#include "guard_memory.inc"
    ;
static const uint32_t FMA[] =
#include "guard_fma.inc"
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
    uint32_t *out = malloc(most * 4);
    size_t begin = 0, words;
    if (!out) {
        bench_die("out of memory");
    }
    memcpy(out, MATMUL, sizeof MATMUL);
    words = count;
    for (size_t i = 5; i < count; i += MATMUL[i] >> 16) {
        begin = (MATMUL[i] & 0xffff) == SpvOpFunction ? i : begin;
    }
    /* Ids of the function are those that it defines. */
    uint8_t *own = calloc(MATMUL[3], 1);
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

static bool measure_hang(struct bench *b) {
    const struct guard_hang with = guard_hang_measure(&b->options, false);
    const struct guard_hang without = guard_hang_measure(&b->options, true);
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
    static struct bench b = {.options = {.rounds = 15}};
    bool hang = true;
    bench_help(argc, argv, usage);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            b.options.quick = true;
            b.options.rounds = 3;
        } else if (strcmp(argv[i], "--strict") == 0) {
            b.options.strict = true;
        } else if (strcmp(argv[i], "--no-hang") == 0) {
            hang = false;
        } else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
            b.options.device = argv[++i];
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            b.options.rounds = bench_number("--rounds", argv[++i], 1, MAX_ROUNDS);
        } else {
            bench_bad_usage(argv[i], usage);
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    measure_cost(&b);
    measure_guarding(&b);
    const bool survived = !hang || measure_hang(&b);
    const size_t missed = report(&b);
    if (!survived && !b.options.quick) { /* a machine that runs tests may be too busy to answer */
        bench_die("the worker of a guarded kernel did not survive its deadline");
    }
    return b.options.strict && missed > 0 ? 3 : 0;
}
