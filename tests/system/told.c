/* What the host is told besides verdicts: the log, whose fault something was, which kernel; and the
 * end of all that a stream has. */
#include "fixture.h"

TEST(the_log_tells_of_deaths) {
    bh_context_options options = fx_options();
    fx_keep_log(&options);
    options.restart_budget = 1;
    bh_context *context = fx_context_with(options, "3:warm_up:1=segv");
    bh_stream *stream = fx_stream(context, "named", BH_FOREVER);
    pid_t pid = fx_ready(stream);
    WAIT_UNTIL(fx_logged_at(BH_LOG_INFO, "ready", "stream named"), 20000);
    bh_event *event = fx_hold(context, stream).event;
    WAIT_UNTIL(fx_logged_at(BH_LOG_DEBUG, "worker ", "kernel gate: compiled in "), 20000);
    fx_kill(pid, SIGSEGV);
    fx_expect(event, BH_WORKER_SIGNAL);
    WAIT_UNTIL(fx_logged_at(BH_LOG_WARNING, "stream named", "SIGSEGV"), 20000);
    /* The second dies idle before it has completed anything, and the one after it while starting.
     */
    pid = fx_ready(stream);
    fx_kill(pid, SIGSEGV);
    WAIT_UNTIL(fx_logged_at(BH_LOG_WARNING, "stream named", "idle"), 20000);
    WAIT_UNTIL(fx_logged_at(BH_LOG_ERROR, "stream named", "restart budget (1 in 60 s) is spent"),
               20000);
    const unsigned before = fx_logged("");
    fx_release_all();
    BHT_EQ(fx_logged(""), before); /* an ordered end is no news */
}

/* A dependent has its origin's status, but it is nobody's culprit. A detail names the kernel,
 * whatever its name: that of this one is a part of the word "worker". */
TEST(a_dependent_is_a_victim) {
    bh_kernel_options options = {.struct_size = sizeof options};
    options.name = "k";
    options.trusted = !fx_on_gpu();
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    pid_t pid = fx_ready(stream);
    bh_kernel *gate = fx_kernel_with(context, "gate", &options);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *data = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
    bh_event *bad = fx_gate(stream, gate, data);
    bh_event *dependent = fx_square(stream, square, data, y);
    fx_await_gate(data);
    fx_kill(pid, SIGSEGV); /* which a kernel could have caused */
    bh_verdict culprit = fx_verdict(bad), victim = fx_verdict(dependent);
    BHT_EQ(culprit.status, BH_WORKER_SIGNAL);
    BHT_EQ(victim.status, BH_WORKER_SIGNAL);
    BHT_EQ(bh_verdict_classify(&culprit), BH_STATUS_CLASS_GUILTY);
    BHT_EQ(bh_verdict_classify(&victim), BH_STATUS_CLASS_VICTIM);
    BHT_EQ(bh_verdict_classify(NULL), BH_STATUS_CLASS_NONE);
    /* The only command is the one; and who reads the buffer learns which kernel spoilt it. */
    BHT_EQ(culprit.command_index, 0);
    bh_detail detail;
    uint32_t word;
    BHT_EQ(bh_buffer_read(data, 0, &word, 4, FX_SECONDS, &detail), BH_WORKER_SIGNAL);
    BHT_STR_HAS(detail.message, "kernel k");
    BHT_STR_HAS(detail.message, "stream s");
    BHT_EQ(bh_stream_synchronize(stream, FX_SECONDS, &detail), BH_WORKER_SIGNAL);
    BHT_STR_HAS(detail.message, "kernel k");
    fx_expect(fx_square(stream, square, y, data),
              BH_WORKER_SIGNAL); /* it reads y, which the dependent should have written */
}

/* Queued behind another stream, in the lane, running: all of one stream, none of the other. */
TEST(a_stream_is_cancelled) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    bh_stream *other = fx_stream(context, "other", FX_SECONDS);
    fx_ready(stream);
    fx_ready(other);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0);
    bh_buffer *y = fx_words(context, 64, 0), *z = fx_words(context, 64, 0);
    enum { COUNT = 5000 }; /* more than the lane holds */
    static bh_event *events[COUNT];
    bh_event *running = fx_hold(context, stream).event;
    for (int i = 0; i < COUNT; i++) {
        events[i] = fx_square(stream, square, x, y);
    }
    bh_event *beside = fx_square(other, square, x, z);
    BHT_EQ(bh_stream_cancel(stream), BH_OK);
    bh_event *after = fx_square(stream, square, x, y);
    BHT_EQ(fx_expect(running, BH_CANCELLED).executed, BH_EXECUTED_UNKNOWN);
    for (int i = 0; i < COUNT; i++) {
        BHT_EQ(fx_expect(events[i], BH_CANCELLED).executed, BH_EXECUTED_NO);
    }
    fx_expect(beside, BH_OK);
    fx_expect(after, BH_OK);                 /* it was submitted after the call */
    BHT_EQ(bh_stream_cancel(stream), BH_OK); /* nothing to do */
    BHT_EQ(bh_stream_cancel(NULL), BH_INVALID_ARGUMENT);
    bh_stream_release(stream);
    BHT_EQ(bh_stream_cancel(stream), BH_INVALID_ARGUMENT);
}
