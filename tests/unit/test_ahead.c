/* Which records of a lane a session begins ahead of their turn, while the device runs another one. */
#include "ipc/commands.h"
#include "lane_view.h"
#include "support.h"
#include "worker/backend.h"
#include "worker/session/internal.h"

#define LANE_BYTES ((uint64_t)sysconf(_SC_PAGESIZE) + BHI_LANE_CAPACITY)

static struct {
    struct bhi_lane lane;
    struct bhi_lane_view view;
    struct bhi_progress_view told;
    struct bhi_progress progress;
    struct bhi_session session;
    uint32_t room; /* for so many copies */
    bool fits;
    uint32_t asked, begun;
    uint64_t began; /* the last */
} f;

bool bhi_backend_copy_room(const struct bhi_backend *backend) {
    return f.begun < f.room;
}
bool bhi_backend_copy_fits(const struct bhi_backend *backend,
                           const struct bhi_lane_record *record) {
    f.asked++;
    return f.fits;
}
void bhi_backend_copy_begin(struct bhi_backend *backend, const struct bhi_lane_record *record) {
    f.begun++;
    f.began = record->seq;
}

static void set_up(void) {
    memset(&f, 0, sizeof f);
    BHT_EQ(bhi_lane_create(&f.lane, BHI_LANE_CAPACITY, 16), 0);
    BHT_EQ(bhi_lane_view_map(&f.view, f.lane.fd, LANE_BYTES), 0);
    BHT_EQ(bhi_progress_create(&f.told, 16), 0);
    BHT_EQ(bhi_progress_map(&f.progress, f.told.fd, f.told.bytes), 0);
    f.session.config.lane = &f.view;
    f.session.config.progress = &f.progress;
    f.session.control_handled = 1;
    f.session.next_seq = 1;
    f.room = 8;
    f.fits = true;
}

static void tear_down(void) {
    bhi_progress_unmap(&f.progress);
    bhi_progress_destroy(&f.told);
    bht_lane_view_unmap(&f.view);
    bhi_lane_destroy(&f.lane);
}

struct copy_record {
    struct bhi_lane_record record;
    struct bhi_cmd_copy copy;
};

static void publish(uint64_t seq, uint32_t control_seq, uint32_t commands) {
    const struct copy_record copy = {
        .record = {.size = sizeof copy,
                   .seq = seq,
                   .control_seq = control_seq,
                   .command_count = commands},
        .copy = {.header = {.type = BHI_CMD_COPY, .size = sizeof copy.copy},
                 .src = 1,
                 .dst = 2,
                 .bytes = 4}};
    bhi_lane_publish(&f.lane, &copy.record);
}

/* The first record runs. */
static void run_first(void) {
    publish(1, 0, 1);
    f.session.batch = 1;
    f.session.ahead_bytes = sizeof(struct copy_record);
}

static uint64_t started(void) {
    return atomic_load(&f.progress.header->started_seq);
}

/* Each is announced before it begins, and only the device's room ends it. */
TEST(test_copies_begin_as_far_as_there_is_room) {
    run_first();
    for (uint64_t seq = 2; seq <= 4; seq++) {
        publish(seq, 1, 1);
    }
    f.room = 2;
    bhi_session_look_ahead(&f.session);
    BHT_EQ(f.begun, 2);
    BHT_EQ(f.began, 3);
    BHT_EQ(started(), 3);
    BHT_EQ(f.session.ahead, 2);
    BHT_EQ(f.session.ahead_bytes, 3 * sizeof(struct copy_record));
    BHT_EQ(f.session.passed_seq, 0);
    f.room = 8;
    bhi_session_look_ahead(&f.session);
    BHT_EQ(f.begun, 3);
    BHT_EQ(started(), 4);
    bhi_session_look_ahead(&f.session); /* there is none left */
    BHT_EQ(f.begun, 3);
}

/* Nothing begins ahead of nothing. */
TEST(test_nothing_begins_where_nothing_runs) {
    publish(1, 1, 1);
    bhi_session_look_ahead(&f.session);
    BHT_EQ(f.asked + f.begun, 0);
    BHT_EQ(started(), 0);
}

/* One that cannot begin is passed: what is behind it waits, and it is looked at once. */
TEST(test_what_does_not_begin) {
    enum { ANOTHER_NUMBER, A_MESSAGE_TO_COME, MALFORMED, NO_PLACE, WITHDRAWN, WHYS };
    for (int why = 0; why < WHYS; why++) {
        tear_down();
        set_up();
        run_first();
        f.fits = why != NO_PLACE;
        if (why == WITHDRAWN) {
            bhi_lane_withdraw(&f.lane, 2, true);
        }
        publish(why == ANOTHER_NUMBER ? 3 : 2, why == A_MESSAGE_TO_COME ? 2 : 1,
                why == MALFORMED ? 2 : 1);
        publish(3, 1, 1);
        bhi_session_look_ahead(&f.session);
        const uint32_t asked = f.asked;
        BHT_EQ(asked, why == NO_PLACE || why == WITHDRAWN);
        BHT_EQ(started(), why == WITHDRAWN ? 2 : 0); /* the supervisor asks what has started */
        bhi_session_look_ahead(&f.session);
        BHT_EQ(f.asked, asked);
        BHT_EQ(f.begun, 0);
        BHT_EQ(f.session.ahead, 0);
        BHT_EQ(f.session.passed_seq, 2);
    }
}

/* Numbers of messages come again after 2^32. */
TEST(test_a_message_handled_before_the_numbers_came_again) {
    run_first();
    publish(2, UINT32_MAX, 1);
    bhi_session_look_ahead(&f.session);
    BHT_EQ(f.begun, 1);
}

BHT_AT_START(bht_around(set_up, tear_down))
