/* Step by action: what a spare does at each step of learning a kernel (tests/hostile/faults.h), and
 * what the next launch of that kernel says, for which its stream needs the next worker. Work
 * besides is unharmed, and no second spare dies of it. */
#include "plan.h"

#include <stdio.h>

struct row {
    const char *point, *action;
    bh_status verdict; /* of the next launch */
    bool either;       /* or READY */
};

/* Only what points at the kernel counts against it (K5). */
static const struct row rows[] = {
    {"learn", "kill", BH_OK, false},
    {"learn", "segv", BH_COMPILE_FAILED, false},
    {"learn", "abort", BH_COMPILE_FAILED, false},
    {"learn", "exit0", BH_COMPILE_FAILED, false},
    {"learn", "sigsys", BH_OK, false}, /* a death, of which here none is too many */
    /* These pass the deadline, which proves nothing (T2): the next launch is tried on a fresh worker. */
    {"learn", "stop", BH_OK, false},
    {"learn", "spin", BH_OK, false},
    {"learn", "hang", BH_OK, false},
    {"learn", "garbage", BH_OK, false}, /* nobody reads it: it hangs */
    {"learn", "flood", BH_OK, false},
    /* ZeroMQ's thread aborts without its descriptors, as a compiler may, unless the supervisor has
     * seen the hang-up and killed the worker before. */
    {"learn", "close", BH_COMPILE_FAILED, true},
    {"learn", "close_hang", BH_COMPILE_FAILED, true},
    {"learned", "kill", BH_OK, false},
    {"learned", "segv", BH_COMPILE_FAILED, false},
    {"learned", "fail", BH_OK, false},
    {"lie_learned", "fail", BH_OK, false},
    {"lie_learned_twice", "fail", BH_OK, false},
};

/* The line of the only spare begins so. */
static void name_spare(bh_context *context, char *name, size_t size) {
    static char text[1 << 14];
    bh_context_describe(context, text, sizeof text);
    const char *line = strstr(text, "spare worker ");
    BHT_TRUE(line);
    snprintf(name, size, "%.*s", (int)strcspn(line, ","), line);
}

static bh_event *launch(bh_stream *stream, bh_kernel *add, bh_buffer *x, bh_buffer *y) {
    const bh_binding bindings[] = {
        bh_bind_read(0, x),
        bh_bind_read(1, x),
        bh_bind_write(2, y),
    };
    return fx_launch(stream, add, 1, bindings, 3, 0);
}

static void meet(const struct row *row) {
    char what[64], spare[64];
    snprintf(what, sizeof what, "%s: %s", row->point, row->action);
    bh_context_options options = fx_options();
    options.spares = 1;
    options.spare_kernels = 16;
    bh_context *context = fx_context_with(options, bht_plan_open());
    bh_stream_options of_stream = fx_stream_options();
    of_stream.deadline_ns = FX_SECONDS;
    of_stream.compile_deadline_ns = BHT_SECOND_MS * FX_MS;
    bh_stream *stream = fx_stream_with(context, of_stream);
    bh_stream *neighbour = fx_stream(context, "neighbour", FX_SECONDS);
    bh_kernel *add = fx_kernel(context, "add");
    bh_buffer *x = fx_words(context, 64, 3), *y = fx_words(context, 64, 0);
    const pid_t beside = fx_ready(neighbour);
    fx_expect(launch(stream, add, x, y), BH_OK);
    WAIT_UNTIL(bht_says(context, "spare worker ", ", ready"), 20000);
    name_spare(context, spare, sizeof spare);
    bht_plan_arm(row->point, row->action, 1);
    fx_expect(launch(stream, add, x, y), BH_OK);
    WAIT_UNTIL(bht_plan_fired(), 20000);
    if (strcmp(row->point, "lie_learned_twice") == 0) { /* between the two it could serve */
        WAIT_UNTIL(!bht_says(context, spare, ""), 20000);
    }
    fx_kill(fx_ready(stream), SIGKILL);
    bh_verdict verdict;
    do { /* READY by a worker that had not died yet, or before the spare's death was seen */
        verdict = fx_verdict(launch(stream, add, x, y));
        bht_poll_pause();
    } while (verdict.status == BH_OK && row->verdict != BH_OK && !row->either);
    if (verdict.status != row->verdict && !(row->either && verdict.status == BH_OK)) {
        BHT_FAIL("%s: %s: %s", what, bh_status_name(verdict.status), verdict.message);
    }
    BHT_TRUE(bht_plan_disarm());
    fx_expect_healthy(context, stream);
    fx_expect_healthy(context, neighbour);
    BHT_EQ(fx_ready(neighbour), beside);
    for (int i = 0; i < 4 && row->verdict == BH_COMPILE_FAILED && !row->either; i++) {
        fx_expect(launch(stream, add, x, y), BH_COMPILE_FAILED);
    }
    bh_context_destroy(context);
}

TEST_WITH(each_step_of_learning, 200, 0) {
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        if (bht_mine(i)) {
            meet(&rows[i]);
        }
    }
}
