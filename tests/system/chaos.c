/* bh_context_options.chaos (docs/chaos.md): each fault comes as the real one does, is the host's to see,
 * and blames no kernel for certain. */
#include "device_scene.h"

#include <stdlib.h>
#include <unistd.h>

#define COUNT 64

struct stage {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *square;
    bh_buffer *x, *y;
};

static bh_context *context_with(const char *chaos) {
    bh_context_options options = fx_options();
    options.chaos = chaos;
    options.quarantine_deaths = 1; /* whatever is blamed for certain is held at once */
    fx_keep_log(&options);
    return fx_context_with(options, NULL);
}

static struct stage stage_on(bh_context *context) {
    struct stage s = {.context = context};
    s.stream = fx_stream(context, "s", FX_SECONDS);
    s.square = fx_kernel(context, "square");
    s.x = fx_buffer(context, COUNT * sizeof(float));
    s.y = fx_buffer(context, COUNT * sizeof(float));
    float *x = (float *)fx_pointer(s.x);
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)i;
    }
    return s;
}

static bh_event *launch(struct stage *s) {
    return fx_square(s->stream, s->square, s->x, s->y);
}

static void expect_squares(bh_buffer *y) {
    const float *values = fx_mapped(y);
    for (int i = 0; i < COUNT; i++) {
        BHT_EQ(values[i], (float)(i * i));
    }
}

/* It ends so because of chaos, and says so; nobody is blamed for certain, or held. */
static bh_verdict expect_injected(struct stage *s, bh_event *event, bh_status status,
                                  bh_executed executed) {
    const bh_verdict verdict = fx_expect(event, status);
    BHT_EQ(verdict.reason, BH_REASON_INJECTED);
    BHT_STR_HAS(verdict.message, "injected: options.chaos");
    BHT_EQ(verdict.executed, executed);
    BHT_EQ(verdict.hops, 0);
    BHT_TRUE(verdict.blame != BH_BLAME_CERTAIN);
    BHT_EQ(fx_quarantined(s->context), 0);
    return verdict;
}

/* D5, E5, T2. Some launches lose the device. Each is on a worker that ends then; what reads its output
 * is poisoned, and what another stream does is not; the next launch has another worker. */
TEST(a_lost_device_poisons_what_depends_on_it_and_its_worker_is_replaced) {
    struct stage s = stage_on(context_with("seed=3 device_lost=40%"));
    bh_stream *other = fx_stream(s.context, "other", FX_SECONDS);
    bh_buffer *z = fx_buffer(s.context, COUNT * sizeof(float));
    bh_buffer *beside = fx_words(s.context, COUNT, 0);
    pid_t gone = 0;
    unsigned lost = 0, ready = 0;
    for (int i = 0; i < 6 || lost == 0 || ready == 0; i++) {
        bh_event *event = launch(&s), *reads = fx_copy(other, s.y, z);
        bh_event *apart = fx_fill(other, beside, 7);
        BHT_TRUE(bh_event_wait(event, FX_SECONDS) != BH_TIMEOUT);
        const bh_verdict verdict = fx_verdict(event);
        BHT_TRUE(verdict.worker_pid != gone); /* the last one that lost its device */
        if (verdict.status == BH_OK) {
            expect_squares(s.y);
            ready++;
        } else {
            expect_injected(&s, event, BH_DEVICE_LOST, BH_EXECUTED_UNKNOWN);
            BHT_EQ(verdict.blame, BH_BLAME_SUSPECTED);
            BHT_EQ(fx_content(s.y), BH_DEVICE_LOST);
            const bh_verdict read = fx_expect(reads, BH_DEVICE_LOST);
            BHT_EQ(read.origin, verdict.event);
            BHT_EQ(read.reason, BH_REASON_INJECTED);
            gone = verdict.worker_pid;
            lost++;
        }
        BHT_TRUE(bh_event_wait(apart, FX_SECONDS) != BH_TIMEOUT);
        BHT_EQ(fx_verdict(apart).hops, 0);
        BHT_TRUE(bh_event_wait(reads, FX_SECONDS) != BH_TIMEOUT);
    }
}

/* D6. The launch does not run, and its worker lives on. */
TEST(no_device_memory_poisons_the_launch_alone) {
    struct stage s = stage_on(context_with("out_of_memory=100%"));
    const pid_t pid = fx_ready(s.stream);
    const bh_verdict verdict =
        expect_injected(&s, launch(&s), BH_OUT_OF_DEVICE_MEMORY, BH_EXECUTED_NO);
    BHT_EQ(verdict.worker_pid, pid);
    BHT_EQ(verdict.command_index, 0);
    BHT_EQ(fx_content(s.y), BH_OUT_OF_DEVICE_MEMORY);
    BHT_EQ(fx_content(s.x), BH_OK);
    BHT_EQ(fx_ready(s.stream), pid);
}

TEST(what_is_unavailable_reaches_no_worker) {
    struct stage s = stage_on(context_with("unavailable=100%"));
    const pid_t pid = fx_ready(s.stream);
    const bh_verdict verdict = expect_injected(&s, launch(&s), BH_UNAVAILABLE, BH_EXECUTED_NO);
    BHT_EQ(verdict.worker_pid, 0);
    BHT_EQ(verdict.blame, BH_BLAME_NONE);
    BHT_EQ(fx_ready(s.stream), pid);
}

TEST(a_late_result_is_right) {
    struct stage s = stage_on(context_with("late=100%/300ms"));
    const bh_verdict verdict = fx_expect(launch(&s), BH_OK);
    BHT_GE(verdict.ended_ns - verdict.started_ns, 300 * FX_MS);
    BHT_EQ(verdict.reason, BH_REASON_NONE);
    expect_squares(s.y);
}

/* T2, K5: a deadline that passes because the result is late says nothing about the kernel. */
TEST(a_late_result_may_miss_its_deadline_and_blames_no_kernel) {
    struct stage s = stage_on(context_with("late=100%/60s"));
    const pid_t pid = fx_ready(s.stream);
    const bh_binding bindings[] = {bh_bind_read(0, s.x), bh_bind_write(1, s.y)};
    const bh_verdict verdict =
        expect_injected(&s, fx_launch(s.stream, s.square, 1, bindings, 2, BHT_SECOND_MS * FX_MS),
                        BH_DEADLINE, BH_EXECUTED_UNKNOWN);
    BHT_EQ(verdict.blame, BH_BLAME_SUSPECTED);
    BHT_EQ(verdict.worker_pid, pid);
    BHT_TRUE(fx_ready_after(s.stream, pid) != pid);
}

/* E9: failed forks delay a stream, and cost its restart budget as real ones do. */
TEST(a_stream_outlives_failed_starts) {
    struct stage s = stage_on(context_with("seed=1 spawn=50%"));
    for (int i = 0; i < 8; i++) {
        fx_expect(launch(&s), BH_OK);
        expect_squares(s.y);
        const pid_t pid = fx_ready(s.stream);
        fx_kill(pid, SIGKILL);
        fx_ready_after(s.stream, pid);
    }
    WAIT_UNTIL(fx_logged("could not fork: EAGAIN (injected: options.chaos)") > 0, 20000);
}

TEST(a_stream_that_gets_no_process_is_unavailable) {
    bh_context_options options = fx_options();
    options.chaos = "spawn=100%";
    options.restart_budget = 1;
    struct stage s = stage_on(fx_context_with(options, NULL));
    const bh_verdict verdict = fx_expect(launch(&s), BH_UNAVAILABLE);
    BHT_STR_HAS(verdict.message, "could not fork");
}

/* B7: a submission waits for a slow file, and then has all of it. */
TEST(a_slow_load_is_whole) {
    bh_context *context = context_with("slow_load=100%/300ms");
    static const uint32_t words[4] = {1, 2, 3, 4};
    fx_write_file("words", words, sizeof words);
    const bh_file_source file = {
        .struct_size = sizeof file, .path = "words", .format = BH_FILE_RAW};
    bh_buffer *buffer = fx_load(context, &file);
    bh_event *load = fx_load_event(buffer);
    const bh_verdict verdict = fx_expect(load, BH_OK);
    BHT_GE(verdict.ended_ns - verdict.started_ns, 300 * FX_MS);
    BHT_MEM_EQ(fx_mapped(buffer), words, sizeof words);
}

/* E17: what needs nothing of a worker cannot fail there. */
TEST(what_has_no_commands_has_no_faults) {
    struct stage s = stage_on(context_with("device_lost=50% unavailable=50%"));
    const bh_submit_info nothing = {.struct_size = sizeof nothing};
    for (int i = 0; i < 8; i++) {
        fx_expect(fx_submit(s.stream, &nothing), BH_OK);
    }
}

/* D1: they are made again until they succeed, which with the same fault each time would be never. */
TEST(copies_of_the_library_have_no_faults) {
    bh_context_options options = fx_options();
    options.chaos = "device_lost=50% out_of_memory=50%";
    bh_context *context = fx_context_with(options, "?*:poses_as_gpu:*=fail");
    bh_stream *stream = device_stream(context, "s", NULL, 0);
    const uint64_t size = COUNT * sizeof(uint32_t);
    uint32_t *words = bht_own(device_pattern(size, 7));
    bh_buffer *buffer = device_buffer(context, stream, size, BH_MEMORY_DEVICE);
    device_put(buffer, words, size);
    device_expect(buffer, words, size);
}

/* -- who gets which --------------------------------------------------------------------------- */

/* A bit for each of 32 launches, one after the other: it was UNAVAILABLE. */
static uint32_t faults_of(const char *chaos, const char *name) {
    struct stage s = stage_on(context_with(chaos));
    bh_stream *stream = fx_stream(s.context, name, FX_SECONDS);
    uint32_t faults = 0;
    for (int i = 0; i < 32; i++) {
        bh_event *event = fx_fill(stream, s.y, 1);
        BHT_TRUE(bh_event_wait(event, FX_SECONDS) != BH_TIMEOUT);
        faults |= (uint32_t)(fx_verdict(event).status == BH_UNAVAILABLE) << i;
    }
    fx_release_all();
    return faults;
}

TEST(a_seed_gives_a_stream_the_same_faults_again) {
    const uint32_t faults = faults_of("seed=7 unavailable=50%", "a");
    BHT_TRUE(faults != 0 && faults != UINT32_MAX);
    BHT_EQ(faults_of("unavailable=50% seed=7", "a"), faults);
    BHT_NE(faults_of("seed=8 unavailable=50%", "a"), faults);
    BHT_NE(faults_of("seed=7 unavailable=50%", "b"), faults);
}

/* -- who may ask for it ----------------------------------------------------------------------- */

static bh_verdict verdict_in(const char *chaos, bool from_environment) {
    bh_context_options options = fx_options();
    options.chaos = chaos;
    options.chaos_from_environment = from_environment;
    struct stage s = stage_on(fx_context_with(options, NULL));
    bh_event *event = fx_fill(s.stream, s.y, 1);
    BHT_TRUE(bh_event_wait(event, FX_SECONDS) != BH_TIMEOUT);
    const bh_verdict verdict = fx_verdict(event);
    fx_release_all();
    return verdict;
}

TEST(the_variable_needs_the_hosts_permission) {
    setenv("BULKHEAD_CHAOS", "unavailable=100%", 1);
    BHT_EQ(verdict_in(NULL, false).status, BH_OK);
    const bh_verdict verdict = verdict_in(NULL, true);
    BHT_EQ(verdict.status, BH_UNAVAILABLE);
    BHT_STR_HAS(verdict.message, "injected: BULKHEAD_CHAOS");
    setenv("BULKHEAD_CHAOS", "no chaos", 1);
    BHT_EQ(verdict_in(NULL, false).status, BH_OK);
}

TEST(the_variable_replaces_the_option) {
    setenv("BULKHEAD_CHAOS", "", 1);
    BHT_EQ(verdict_in("unavailable=100%", true).status, BH_OK);
    BHT_EQ(verdict_in("unavailable=100%", false).status, BH_UNAVAILABLE);
    unsetenv("BULKHEAD_CHAOS");
    BHT_EQ(verdict_in("unavailable=100%", true).status, BH_UNAVAILABLE);
}

static void refused(const char *text, uint64_t place, const char *words) {
    bh_context_options options = fx_options();
    options.chaos = text;
    bh_context *context;
    bh_detail why;
    BHT_EQ(bh_context_create(&options, &context, &why), BH_INVALID_ARGUMENT);
    BHT_TRUE(!context);
    BHT_EQ(why.reason, BH_REASON_ARGUMENT);
    BHT_STR_EQ(why.subject_name, "options.chaos");
    BHT_EQ(why.value, place);
    BHT_STR_HAS(why.message, words);
}

TEST(a_text_that_is_wrong_anywhere_is_refused_by_its_place) {
    refused("devicelost=1%", 0, "(byte 0: \"devicelost=1%\")");
    refused("seed=7 lost=1% late=1%/1s", 7, "takes seed=, device_lost=");
    refused("seed=7  lost", 8, "(byte 8: \"lost\")");
    refused("seed", 0, "takes");
    refused("seed=", 0, "number");
    refused("seed=-1", 0, "number");
    refused("seed=18446744073709551616", 0, "number");
    refused("seed=1,device_lost=1%", 0, "number");
    refused("seed=1 seed=1", 7, "twice");
    refused("spawn=1% spawn=1%", 9, "twice");
    refused("spawn", 0, "takes");
    refused("spawn=1", 0, "share");
    refused("spawn=%", 0, "share");
    refused("spawn=1.%", 0, "share");
    refused("spawn=1.00001%", 0, "share");
    refused("spawn=100.0001%", 0, "share");
    refused("spawn=101%", 0, "share");
    refused("spawn=1%/2s", 0, "blank");
    refused("late=1%", 0, "time");
    refused("late=1%/", 0, "time");
    refused("late=1%/5", 0, "time");
    refused("late=1%/5m", 0, "time");
    refused("late=1%/5ns", 0, "time");
    refused("late=1%/0ms", 0, "time");
    refused("late=1%/60001ms", 0, "time");
    refused("slow_load=1%/61s", 0, "time");
    refused("slow_load=1%/1sx", 0, "time");
    refused("device_lost=50% late=50.0001%/1s", 16, "over 100%");
}

TEST(a_text_may_have_every_fault) {
    (void)context_with(" seed=18446744073709551615 device_lost=0.0001% out_of_memory=0.001% "
                       "unavailable=0.01%  late=99.9888%/60s spawn=100% slow_load=100%/60000ms ");
    WAIT_UNTIL(fx_logged("options.chaos asks for faults (seed 18446744073709551615)") == 1, 20000);
}
