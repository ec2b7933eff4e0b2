/* Cases 11 to 20 of docs/semantics.md: what a failure leaves alone, and that it is seen as often as
 * one looks. */
#include "stage.h"

#include <unistd.h>

/* -- 11: the middle of a submission ----------------------------------------------------------- */

/* Refused before anything runs: also the command before it has not. */
TEST(case_11_refused_in_the_middle) {
    struct stage s = stage_open_with(NULL, FX_SECONDS);
    const uint32_t *y = fx_pointer(s.y), *w = fx_pointer(s.w);
    const bh_binding one = bh_bind_write(1, s.z);
    const bh_command commands[] = {
        {.type = BH_COMMAND_FILL, .fill = {.dst = s.y, .size = 256, .value = 7}},
        {.type = BH_COMMAND_DISPATCH,
         .dispatch =
             {.kernel = s.square, .groups = {1, 1, 1}, .bindings = &one, .binding_count = 1}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = s.w, .size = 256, .value = 9}},
    };
    bh_event *event = ev_submit(s.a, commands, 3, NULL, 0);
    bh_event *dependent = ev_square(&s, s.b, s.w, s.z, NULL, 0);
    bh_verdict verdict = ev_poisoned(event, BH_BINDING_MISMATCH, event, 0, BH_EXECUTED_NO);
    BHT_EQ(verdict.command_index, 1);
    BHT_STR_EQ(verdict.kernel_name, "square");
    BHT_STR_HAS(verdict.message, fx_on_cuda() ? "kernel \"square\"" : "set 0 binding 0");
    ev_poisoned(dependent, BH_BINDING_MISMATCH, event, 1, BH_EXECUTED_NO);
    BHT_EQ(y[0], 0);
    BHT_EQ(w[0], 0);
    ev_content_poisoned(s.y, BH_BINDING_MISMATCH);
    ev_content_poisoned(s.z, BH_BINDING_MISMATCH);
    ev_content_poisoned(s.w, BH_BINDING_MISMATCH);
    BHT_EQ(bh_stream_worker_pid(s.a), s.pid); /* that costs no worker */
    ev_well(&s);
}

/* Its worker dies of SIGSEGV while the second command runs: the third does not run. */
TEST(case_11_a_crash_in_the_middle) {
    struct stage s = stage_open_with(NULL, FX_SECONDS);
    const uint32_t *w = fx_pointer(s.w);
    fx_note_gate(s.z);
    const bh_binding data = bh_bind_read_write(0, s.z);
    const bh_command commands[] = {
        {.type = BH_COMMAND_FILL, .fill = {.dst = s.y, .size = 256, .value = 7}},
        {.type = BH_COMMAND_DISPATCH,
         .dispatch =
             {.kernel = s.hang, .groups = {8192, 1, 1}, .bindings = &data, .binding_count = 1}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = s.w, .size = 256, .value = 9}},
    };
    bh_event *event = ev_submit(s.a, commands, 3, NULL, 0);
    bh_event *dependent = ev_square(&s, s.b, s.y, s.gate, NULL, 0);
    fx_await_gate(s.z); /* it runs, closed */
    fx_kill(s.pid, SIGSEGV);
    bh_verdict verdict = ev_poisoned(event, BH_WORKER_SIGNAL, event, 0, BH_EXECUTED_UNKNOWN);
    BHT_EQ(verdict.signal, SIGSEGV);
    BHT_STR_EQ(verdict.kernel_name, "gate");
    ev_poisoned(dependent, BH_WORKER_SIGNAL, event, 1, BH_EXECUTED_NO);
    if (!fx_on_gpu()) { /* a GPU continues unseen, and the content is poisoned */
        BHT_EQ(w[0], 0);
    }
    ev_content_poisoned(s.y, BH_WORKER_SIGNAL);
    ev_content_poisoned(s.z, BH_WORKER_SIGNAL);
    ev_content_poisoned(s.w, BH_WORKER_SIGNAL);
    ev_well(&s);
}

/* -- 12: what was complete stays -------------------------------------------------------------- */

/* Eight in the lane at once, the fifth is refused: the others have nothing to do with it. */
TEST(case_12_one_of_a_batch_is_refused) {
    struct stage s = stage_open();
    enum { COUNT = 8, BAD = 4 };
    bh_buffer *outs[COUNT];
    bh_event *events[COUNT];
    for (int i = 0; i < COUNT; i++) {
        outs[i] = fx_words(s.context, STAGE_FLOATS, 0);
        events[i] =
            i == BAD ? ev_refused(&s, s.a, outs[i]) : ev_square(&s, s.a, s.x, outs[i], NULL, 0);
    }
    fx_open(s.word);
    for (int look = 0; look < 2; look++) { /* as they end, and when all have */
        for (int i = COUNT - 1; i >= 0; i--) {
            if (i == BAD) {
                ev_poisoned(events[i], BH_BINDING_MISMATCH, events[i], 0, BH_EXECUTED_NO);
                ev_content_poisoned(outs[i], BH_BINDING_MISMATCH);
            } else {
                ev_ready(events[i]);
                ev_squares(outs[i], 1);
            }
        }
    }
    BHT_EQ(bh_stream_worker_pid(s.a), s.pid);
    ev_well(&s);
}

/* The worker dies of a later one: what it had completed stays, what it had not begun runs again. */
TEST(case_12_one_of_a_batch_kills_the_worker) {
    struct stage s = stage_open_with(NULL, BH_FOREVER);
    enum { COUNT = 8, BEFORE = 4 };
    bh_buffer *outs[COUNT];
    bh_event *events[COUNT];
    for (int i = 0; i < COUNT; i++) {
        outs[i] = fx_words(s.context, STAGE_FLOATS, 0);
        events[i] = ev_square(&s, s.a, s.x, outs[i], NULL, 0);
        if (i == BEFORE - 1) {
            /* All so far are recorded and READY before the gate begins. */
            WAIT_UNTIL(bh_event_query(events[i]) == BH_EVENT_READY, 20000);
            stage_gate(&s);
        }
    }
    fx_kill(s.pid, SIGKILL);
    for (int i = 0; i < COUNT; i++) {
        ev_ready(events[i]);
        ev_squares(outs[i], 1);
        bh_verdict verdict = fx_verdict(events[i]);
        BHT_EQ(verdict.worker_pid == s.pid, i < BEFORE);
    }
    ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
    ev_well(&s);
}

/* -- 13 to 15: again and again ---------------------------------------------------------------- */

TEST(case_13_every_look_at_a_bad_result_fails) {
    struct stage s = stage_open();
    fx_kill(s.pid, SIGKILL);
    BHT_EQ(bh_event_wait(s.bad, FX_SECONDS), BH_WORKER_SIGNAL);
    for (int i = 0; i < 3; i++) {
        ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
        ev_content_poisoned(s.gate, BH_WORKER_SIGNAL);
        /* New work, good or bad, is no pardon. */
        fx_expect_healthy(s.context, s.a);
        bh_event *reader = ev_square(&s, s.b, s.gate, s.y, NULL, 0);
        ev_poisoned(reader, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
        ev_content_poisoned(s.y, BH_WORKER_SIGNAL);
    }
    /* Only writing all of it is: of the content, not of the event (B5). */
    uint32_t zero[STAGE_FLOATS] = {0};
    BHT_EQ(bh_buffer_write(s.gate, 0, zero, sizeof zero, FX_SECONDS, NULL), BH_OK);
    bh_event *reader = ev_square(&s, s.b, s.gate, s.y, NULL, 0);
    ev_ready(reader);
    ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
}

TEST(case_14_two_failures_on_one_stream_both_fail) {
    struct stage s = stage_open();
    fx_kill(s.pid, SIGKILL);
    ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
    pid_t next = fx_ready(s.a);
    const struct fx_held gate = fx_hold(s.context, s.a);
    fx_kill(next, SIGABRT);
    bh_verdict two = ev_poisoned(gate.event, BH_WORKER_SIGNAL, gate.event, 0, BH_EXECUTED_UNKNOWN);
    bh_verdict one = ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
    BHT_EQ(one.signal, SIGKILL);
    BHT_EQ(two.signal, SIGABRT);
    BHT_EQ(one.worker_pid, s.pid);
    BHT_EQ(two.worker_pid, next);
    ev_content_poisoned(s.gate, BH_WORKER_SIGNAL);
    ev_content_poisoned(gate.data, BH_WORKER_SIGNAL);
    /* synchronize keeps to the first. */
    bh_detail detail;
    BHT_EQ(bh_stream_synchronize(s.a, FX_SECONDS, &detail), BH_WORKER_SIGNAL);
    BHT_STR_HAS(detail.message, "SIGKILL");
    ev_well(&s);
}

/* Two of the same cause in one worker: the second is not taken for the first one's echo. */
TEST(case_14_two_refusals_on_one_stream_both_fail) {
    struct stage s = stage_open();
    bh_event *one = ev_refused(&s, s.a, s.y), *two = ev_refused(&s, s.a, s.z);
    fx_open(s.word);
    ev_poisoned(one, BH_BINDING_MISMATCH, one, 0, BH_EXECUTED_NO);
    ev_poisoned(two, BH_BINDING_MISMATCH, two, 0, BH_EXECUTED_NO);
    ev_content_poisoned(s.y, BH_BINDING_MISMATCH);
    ev_content_poisoned(s.z, BH_BINDING_MISMATCH);
    ev_ready(s.bad);
    ev_well(&s);
}

static void bad_then_dependent(bool same_stream) {
    struct stage s = stage_open();
    bh_stream *stream = same_stream ? s.a : s.b;
    bh_event *before = ev_square(&s, stream, s.x, s.y, &s.bad, 1);
    fx_kill(s.pid, SIGKILL);
    BHT_EQ(bh_event_wait(s.bad, FX_SECONDS), BH_WORKER_SIGNAL);
    ev_poisoned(before, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    bh_event *after = ev_square(&s, stream, s.x, s.z, &s.bad, 1);
    bh_event *reads = ev_square(&s, stream, s.gate, s.w, NULL, 0);
    ev_poisoned(after, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    ev_poisoned(reads, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    ev_content_poisoned(s.y, BH_WORKER_SIGNAL);
    ev_content_poisoned(s.z, BH_WORKER_SIGNAL);
    ev_content_poisoned(s.w, BH_WORKER_SIGNAL);
    ev_well(&s);
}

TEST(case_15_same_stream) {
    bad_then_dependent(true);
}

TEST(case_15_other_stream) {
    bad_then_dependent(false);
}

/* -- 16, 17: neighbours ----------------------------------------------------------------------- */

/* On the same stream and on another, before and after the death: neither gets the error nor takes
 * it away. */
TEST(case_16_unrelated_work_neither_gets_nor_takes_the_error) {
    struct stage s = stage_open();
    bh_event *same = ev_square(&s, s.a, s.x, s.y, NULL, 0); /* behind the gate */
    bh_event *other = ev_square(&s, s.b, s.x, s.z, NULL, 0);
    stage_fail_unseen(&s);
    bh_event *later = ev_square(&s, s.a, s.x, s.w, NULL, 0);
    ev_ready(later); /* waited for before the bad one, */
    ev_ready(same);
    ev_ready(other);
    BHT_EQ(bh_stream_synchronize(s.b, FX_SECONDS, NULL), BH_OK);
    ev_squares(s.y, 1);
    ev_squares(s.z, 1);
    ev_squares(s.w, 1);
    ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
    ev_ready(later); /* and after */
    ev_ready(same);
    ev_ready(other);
    BHT_EQ(bh_stream_synchronize(s.a, FX_SECONDS, NULL), BH_WORKER_SIGNAL);
}

/* a's worker is stopped in the middle of its gate: it fails, but not yet. */
TEST(case_17_a_healthy_command_beside_a_failing_one_completes) {
    struct stage s = stage_open();
    fx_stop(s.pid);
    bh_event *stuck = ev_square(&s, s.a, s.gate, s.y, NULL, 0);
    bh_event *healthy = ev_square(&s, s.b, s.x, s.z, NULL, 0);
    ev_ready(healthy);
    ev_squares(s.z, 1);
    fx_expect_healthy(s.context, s.b);
    BHT_EQ(bh_stream_synchronize(s.b, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(bh_event_query(s.bad), BH_EVENT_PENDING);
    BHT_EQ(bh_event_query(stuck), BH_EVENT_PENDING);
    fx_kill(s.pid, SIGKILL);
    ev_poisoned(stuck, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
    ev_ready(healthy);
    ev_well(&s);
}

/* -- 18: many failures ------------------------------------------------------------------------ */

/* What an allocator may keep; the sanitizers hold on to what is freed. */
#define GROWTH ((BHT_ASAN || BHT_TSAN ? 100ull : 2ull) << 20)

/* The short form: 1,000 caught failures, one in 20 of them a death, each with a dependent on
 * another stream. The long one, 100,000, is in tests/system/endurance.c and runs nightly. */
TEST(case_18_a_thousand_caught_failures) {
    enum { FAILURES = 1000, WARM_UP = 200, DEATH = 20 };
    const size_t processes = PROCESSES_A_CONTEXT + 2 * PROCESSES_A_WORKER;
    struct stage s = stage_open_with(NULL, BH_FOREVER);
    size_t descriptors = 0;
    uint64_t resident = 0;
    for (int i = 1; i <= FAILURES; i++) {
        bool death = i % DEATH == 0;
        bh_event *bad = death ? fx_gate(s.a, s.hang, s.y) : ev_refused(&s, s.a, s.y);
        bh_event *dependent = ev_square(&s, s.b, s.y, s.z, NULL, 0);
        if (death) {
            fx_await_gate(s.y);
            fx_kill(bh_stream_worker_pid(s.a), SIGKILL); /* not always who was there before (T2) */
        }
        bh_status status = death ? BH_WORKER_SIGNAL : BH_BINDING_MISMATCH;
        fx_expect(bad, status);
        fx_expect(dependent, status);
        BHT_EQ(fx_verdict(dependent).origin, bh_event_id(bad));
        bh_event_release(bad);
        bh_event_release(dependent);
        if (i == WARM_UP) {
            fx_ready(s.a);
            /* and two workers; the one that has died takes a moment to go */
            WAIT_UNTIL(bht_count_descendants(getpid()) == processes, 20000);
            descriptors = bht_count_descriptors(getpid());
            resident = bht_resident_bytes(getpid());
        }
    }
    BHT_EQ(bh_stream_synchronize(s.b, FX_SECONDS, NULL), BH_BINDING_MISMATCH);
    ev_well(&s);
    WAIT_UNTIL(bht_count_descendants(getpid()) == processes, 20000);
    /* ZeroMQ closes its own a little later, then as now. */
    WAIT_UNTIL(bht_count_descriptors(getpid()) <= descriptors + 4, 20000);
    BHT_LT(bht_resident_bytes(getpid()), resident + GROWTH);
    bh_context_destroy(s.context);
    BHT_EQ(bht_count_descendants(getpid()), 0);
}

/* -- 19: who comes last ----------------------------------------------------------------------- */

TEST(case_19_the_verdict_outlives_the_stream) {
    struct stage s = stage_open();
    bh_event *bad = s.bad, *dependent = ev_square(&s, s.b, s.gate, s.y, NULL, 0);
    s.bad = NULL; /* the fixture's */
    fx_kill(s.pid, SIGSEGV);
    bh_verdict before = ev_poisoned(bad, BH_WORKER_SIGNAL, bad, 0, BH_EXECUTED_UNKNOWN);
    bh_verdict other = ev_poisoned(dependent, BH_WORKER_SIGNAL, bad, 1, BH_EXECUTED_NO);
    bh_stream_release(s.a);
    s.a = NULL;
    bh_verdict after = ev_poisoned(bad, BH_WORKER_SIGNAL, bad, 0, BH_EXECUTED_UNKNOWN);
    ev_same_verdict(&before, &after);
    fx_expect_healthy(s.context, s.b);
    stage_close(&s); /* worker, kernels, buffers and context as well */
    after = ev_poisoned(bad, BH_WORKER_SIGNAL, bad, 0, BH_EXECUTED_UNKNOWN);
    ev_same_verdict(&before, &after);
    after = ev_poisoned(dependent, BH_WORKER_SIGNAL, bad, 1, BH_EXECUTED_NO);
    ev_same_verdict(&other, &after);
    BHT_EQ(before.signal, SIGSEGV);
    BHT_STR_EQ(before.stream_name, "a");
    BHT_STR_EQ(before.kernel_name, "gate");
    BHT_STR_HAS(before.message, "SIGSEGV");
}

/* -- 20: time limits -------------------------------------------------------------------------- */

/* |call| must answer BH_TIMEOUT, not before its time and not much later. */
#define TIMES_OUT(timeout_ns, call)                                                                \
    do {                                                                                           \
        uint64_t began_ns = bht_now_ns();                                                          \
        BHT_EQ(call, BH_TIMEOUT);                                                                  \
        BHT_GE(bht_now_ns() - began_ns, timeout_ns);                                               \
        BHT_LT(bht_now_ns() - began_ns, (timeout_ns) + 2 * BHT_SECOND_MS * FX_MS);                 \
    } while (0)

TEST(case_20_every_wait_takes_a_timeout) {
    struct stage s = stage_open();
    static bh_kernel_info info = {.struct_size = sizeof info};
    bh_event *held = ev_square(&s, s.b, s.x, s.y, &s.bad, 1);
    const uint64_t limits[] = {0, 5 * FX_MS};
    for (size_t i = 0; i < BHT_COUNT(limits); i++) {
        uint64_t t = limits[i];
        bh_detail detail = {0};
        bh_event *events[] = {held, s.bad};
        size_t index = 77;
        void *mapped = &s;
        uint32_t word = 0xABAD1DEA;
        TIMES_OUT(t, bh_event_wait(s.bad, t));
        TIMES_OUT(t, bh_event_wait(held, t));
        TIMES_OUT(t, bh_event_wait_any(&events[0], 1, t, &index));
        TIMES_OUT(t, bh_event_wait_any(events, 2, t, &index));
        TIMES_OUT(t, bh_stream_synchronize(s.a, t, &detail));
        BHT_EQ(detail.status, BH_TIMEOUT);
        TIMES_OUT(t, bh_stream_synchronize(s.b, t, NULL));
        const bh_map_intent intents[] = {BH_MAP_READ, BH_MAP_READ_WRITE, BH_MAP_DISCARD};
        for (size_t k = 0; k < BHT_COUNT(intents); k++) {
            TIMES_OUT(t, bh_buffer_map(s.gate, intents[k], t, &mapped, &detail));
            BHT_TRUE(!mapped);
            BHT_EQ(detail.status, BH_TIMEOUT);
            TIMES_OUT(t, bh_buffer_map(s.y, intents[k], t, &mapped, NULL));
        }
        TIMES_OUT(t, bh_buffer_read(s.gate, 8, &word, sizeof word, t, &detail));
        BHT_EQ(word, 0xABAD1DEA);
        TIMES_OUT(t, bh_buffer_write(s.gate, 8, &word, sizeof word, t, &detail));
        uint32_t words[STAGE_FLOATS] = {0};
        TIMES_OUT(t, bh_buffer_write(s.gate, 0, words, sizeof words, t, &detail));
        TIMES_OUT(t, bh_kernel_reflect(s.square, s.a, t, &info, &detail)); /* behind the gate */
        BHT_EQ(detail.status, BH_TIMEOUT);
    }
    /* And nothing has changed by it. */
    BHT_EQ(s.word[2], 0);
    bh_verdict verdict = {.struct_size = sizeof verdict};
    BHT_EQ(bh_event_query(s.bad), BH_EVENT_PENDING);
    BHT_EQ(bh_event_verdict(s.bad, &verdict), BH_PENDING);
    BHT_EQ(bh_event_query(held), BH_EVENT_PENDING);
    BHT_EQ(bh_stream_worker_pid(s.a), s.pid);
    fx_open(s.word);
    ev_ready(s.bad);
    ev_ready(held);
    ev_squares(s.y, 1);
    BHT_EQ(bh_stream_synchronize(s.a, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(bh_stream_synchronize(s.b, FX_SECONDS, NULL), BH_OK);
    ev_well(&s);
}

/* The waits for a worker, where none ever comes. */
TEST(case_20_waiting_for_a_worker_takes_a_timeout) {
    bh_context *context = fx_context("*:device:*=stop");
    bh_stream *stream = fx_stream(context, "none", FX_SECONDS);
    (void)fx_await_stopped();
    bh_kernel *square = fx_kernel(context, "square");
    static bh_kernel_info info = {.struct_size = sizeof info};
    bh_detail detail;
    const uint64_t limits[] = {0, 5 * FX_MS};
    for (size_t i = 0; i < BHT_COUNT(limits); i++) {
        TIMES_OUT(limits[i], bh_stream_wait_ready(stream, limits[i], &detail));
        BHT_EQ(detail.status, BH_TIMEOUT);
        BHT_EQ(bh_stream_synchronize(stream, limits[i], NULL), i ? BH_TIMEOUT : BH_OK);
        TIMES_OUT(limits[i], bh_kernel_reflect(square, stream, limits[i], &info, &detail));
    }
}
