/* The journal of a host (<bulkhead/history.h>): what it says of a file that cannot be written. What is in it
 * judges chaos_bugs. */
#include "fixture.h"

#include <bulkhead/history.h>
#include <errno.h>

TEST(a_journal_that_cannot_be_written_is_said_to_be_torn) {
    bh_history *history = (bh_history *)1;
    bh_detail detail;
    BHT_EQ(bh_history_create("/nonexistent/journal", BH_FOREVER, &history, &detail), BH_SYSTEM);
    BHT_EQ(detail.sys_errno, ENOENT);
    BHT_TRUE(!history);
    BHT_EQ(bh_history_create("/dev/full", BH_FOREVER, &history, &detail), BH_OK);
    bh_history_answered(history, 1, true);
    bh_history_rested(history);
    BHT_EQ(bh_history_finish(history, &detail), BH_SYSTEM);
    BHT_EQ(detail.sys_errno, ENOSPC);
}

TEST(without_a_history_its_calls_do_nothing) {
    bh_history_attempted(NULL, 1, NULL, false, NULL, 0);
    bh_history_ended(NULL, NULL);
    bh_history_used(NULL, NULL, NULL, 0);
    bh_history_answered(NULL, 1, true);
    bh_history_rested(NULL);
    bh_detail detail;
    bh_history *history;
    BHT_EQ(bh_history_finish(NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_history_create(NULL, BH_FOREVER, &history, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_history_create("/dev/null", 0, &history, &detail), BH_INVALID_ARGUMENT);
}
