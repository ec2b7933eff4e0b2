/* Many deaths in a row leave the process as it was (E9, case 18). */
#include "fixture.h"

/* What an allocator may keep: a leak of a page a death would be 4 MB. The sanitizers hold on to
 * what is freed, and count more. */
#define GROWTH ((BHT_ASAN || BHT_TSAN ? 300ull : 3ull) << 20)

/* DEATHS times: a running submission, its worker killed, the event poisoned; on the stream's next
 * worker the same again. */
static void thousand_deaths(void) {
    enum { DEATHS = 1000, WARM_UP = 50 };
    bh_context_options options = fx_options();
    options.spares = 1;
    options.restart_budget = UINT32_MAX; /* some die before they have run anything */
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = fx_stream(context, "phoenix", BH_FOREVER);
    bh_kernel *hang = fx_kernel(context, "gate");
    bh_buffer *gate = fx_words(context, 64, 0);
    size_t descriptors = 0, descendants = 0;
    uint64_t resident = 0;
    for (int i = 0; i < DEATHS; i++) {
        pid_t pid = fx_ready(stream);
        if (i == WARM_UP) {
            WAIT_UNTIL(bht_count_descendants(getpid()) == 2 + 2 * PROCESSES_A_WORKER, 20000);
            descriptors = bht_count_descriptors(getpid());
            descendants = bht_count_descendants(getpid());
            resident = bht_resident_bytes(getpid());
        }
        fx_pointer(gate); /* DISCARD: the last death has poisoned it */
        bh_event *event = fx_gate(stream, hang, gate);
        /* Mostly while it runs; now and then at whatever moment it is. */
        bool early = i % 8 == 7;
        if (!early)
            fx_await_gate(gate);
        fx_kill(pid, SIGKILL);
        if (early) {
            /* It may not have started: then it runs on the next worker (E13). */
            (void)!bh_event_wait(event, 20 * FX_MS);
            BHT_EQ(bh_event_cancel(event), BH_OK);
        }
        bh_status status = bh_event_wait(event, FX_SECONDS);
        BHT_TRUE(status == BH_WORKER_SIGNAL || (early && status == BH_CANCELLED));
        bh_event_release(event);
        /* A cancelled one can end before its worker's death is seen. */
        WAIT_UNTIL(bh_stream_worker_pid(stream) != pid, 20000);
    }
    fx_expect_healthy(context, stream);
    WAIT_UNTIL(bht_count_descendants(getpid()) == descendants, 20000);
    /* A dozen for each worker; ZeroMQ closes its own a little later. */
    WAIT_UNTIL(bht_count_descriptors(getpid()) <= descriptors + 4, 20000);
    BHT_LT(bht_resident_bytes(getpid()), resident + GROWTH);
    bh_buffer_release(gate);
    bh_kernel_release(hang);
    bh_stream_release(stream);
    bh_context_destroy(context);
    BHT_EQ(bht_count_descendants(getpid()), 0);
}

/* Refused submissions cost no worker; 20,000 of them cost nothing that stays. */
static void many_refused_submissions(void) {
    enum { COUNT = 20000 };
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "refused", FX_SECONDS);
    pid_t pid = fx_ready(stream);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *y = fx_words(context, 64, 0);
    const bh_binding one[] = {
        {.binding = 1, .buffer = y, .size = BH_WHOLE_SIZE, .access = BH_WRITE}};
    const uint32_t groups[3] = {1, 1, 1};
    uint64_t resident = 0;
    for (int i = 0; i < COUNT; i++) {
        bh_event *event = NULL;
        BHT_EQ(bh_launch(stream, square, groups, one, 1, NULL, 0, &event, NULL), BH_OK);
        if (i % 64 == 0)
            fx_expect(event, BH_BINDING_MISMATCH);
        bh_event_release(event);
        if (i == 1000)
            resident = bht_resident_bytes(getpid());
    }
    BHT_EQ(bh_stream_synchronize(stream, FX_SECONDS, NULL), BH_BINDING_MISMATCH);
    BHT_EQ(bh_stream_worker_pid(stream), pid);
    BHT_LT(bht_resident_bytes(getpid()), resident + GROWTH);
    bh_buffer_release(y);
    bh_kernel_release(square);
    bh_stream_release(stream);
    bh_context_destroy(context);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST_WITH(thousand_deaths, 300, 0),
        BHT_TEST_WITH(many_refused_submissions, 60, 0),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
