/* Submissions without a command (E17): joins, which wait for events, and markers, which wait for
 * their turn on a stream. */
#include "stage.h"

static bh_event *mark(bh_stream *stream, bh_event *const *waits, uint32_t wait_count) {
    return ev_submit(stream, NULL, 0, waits, wait_count);
}

TEST(a_join_is_ready_when_all_are) {
    struct stage s = stage_open();
    bh_event *good = ev_square(&s, s.b, s.x, s.y, NULL, 0);
    bh_event *waits[] = {s.bad, good};
    bh_event *of_good = mark(s.b, waits + 1, 1), *join = mark(s.b, waits, 2);
    ev_ready(good);
    ev_ready(of_good);
    BHT_EQ(bh_event_query(join), BH_EVENT_PENDING);
    fx_open(s.word);
    ev_ready(join);
    ev_ready(s.bad);
    const bh_verdict verdict = ev_agree(join, BH_OK);
    BHT_EQ(verdict.executed, BH_EXECUTED_YES);
    BHT_EQ(verdict.command_index, BH_NO_COMMAND);
    BHT_STR_EQ(verdict.kernel_name, "");
}

TEST(a_join_is_poisoned_by_one) {
    struct stage s = stage_open();
    bh_event *good = ev_square(&s, s.b, s.x, s.y, NULL, 0);
    bh_event *waits[] = {good, s.bad};
    bh_event *join = mark(s.b, waits, 2);
    bh_event *after = ev_square(&s, s.b, s.y, s.z, &join, 1);
    stage_fail_unseen(&s);
    ev_poisoned(join, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    ev_poisoned(after, BH_WORKER_SIGNAL, s.bad, 2, BH_EXECUTED_NO);
    ev_ready(good);
    ev_well(&s);
}

/* It ends when what is before it has ended, well or badly, and is not poisoned by that. */
TEST(a_marker_waits_for_its_turn) {
    struct stage s = stage_open();
    bh_event *marker = mark(s.a, NULL, 0), *beside = mark(s.b, NULL, 0);
    ev_ready(beside);
    BHT_EQ(bh_event_query(marker), BH_EVENT_PENDING);
    stage_fail_unseen(&s);
    ev_ready(marker);
    BHT_EQ(bh_event_query(s.bad), BH_EVENT_POISONED);
    BHT_EQ(bh_stream_synchronize(s.a, FX_SECONDS, NULL), BH_WORKER_SIGNAL);
    ev_well(&s);
}

TEST(a_marker_is_cancelled) {
    struct stage s = stage_open();
    bh_event *marker = mark(s.a, NULL, 0), *after = mark(s.b, &marker, 1);
    BHT_EQ(bh_event_cancel(marker), BH_OK);
    ev_poisoned(marker, BH_CANCELLED, marker, 0, BH_EXECUTED_NO);
    ev_poisoned(after, BH_CANCELLED, marker, 1, BH_EXECUTED_NO);
    fx_open(s.word);
    ev_ready(s.bad);
    ev_well(&s);
}

/* Many at once are run together with what is between them. */
TEST(markers_between_work) {
    enum { ROUNDS = 200 };
    static bh_event *events[2 * ROUNDS];
    struct stage s = stage_open();
    for (int i = 0; i < ROUNDS; i++) {
        events[2 * i] = ev_square(&s, s.a, i % 2 ? s.y : s.x, i % 2 ? s.x : s.y, NULL, 0);
        events[2 * i + 1] = mark(s.a, NULL, 0);
    }
    fx_open(s.word);
    for (int i = 2 * ROUNDS; i > 0; i--) {
        BHT_EQ(bh_event_wait(events[i - 1], FX_SECONDS), BH_OK);
    }
}
