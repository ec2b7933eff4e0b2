/* What a worker's end costs. One that keeps its device from everybody for seconds: the stream pauses
 * as long, and so do the other streams of its tenant. */
#include "puppet.h"
#include "supervisor/context/context.h"
#include "supervisor/reactor/assignment.h"
#include "supervisor/stream/tenant.h"

#include <bulkhead/stats.h>
#include <stdio.h>
#include <stdlib.h>

static bool closing; /* the context */

/* Kills a worker in mid-job and sets its abort words. The device lets it end |ms| later. */
static void die_late(uint64_t ms) {
    struct bhi_worker *worker = puppet_serving();
    (void)puppet_submit(); /* which takes the blame: else that is charged as well */
    puppet_begins(worker, 1);
    puppet_end_process(worker, CLD_KILLED, SIGKILL);
    bhi_life_exit(&worker->core.life, 0, bhi_now_ns());
    worker->words.set_ns = worker->core.life.exited_ns - ms * 1000000;
    puppet.context->closed = closing;
    puppet_bury(worker);
    puppet.context->closed = false;
}

/* A late end costs the stream a pause of the same length; the fifth leaves it without a worker. */
TEST(an_end_that_comes_late_is_charged) {
    const struct bhi_core_stream *stream = &puppet.stream->core;
    die_late(1999);
    closing = true; /* then nobody waits for it */
    die_late(4000);
    closing = false;
    BHT_EQ(bhi_tenant_not_before(puppet.stream->owner), 0);
    for (int i = 0; i < 4; i++) {
        BHT_EQ(stream->state, BHI_STREAM_WANTING);
        die_late(i ? 4000 : 2000);
        BHT_GE(bhi_tenant_not_before(puppet.stream->owner), bhi_now_ns());
    }
    BHT_EQ(stream->state, BHI_STREAM_WANTING);
    die_late(4000);
    BHT_EQ(stream->state, BHI_STREAM_UNAVAILABLE);
    BHT_STR_HAS(stream->trouble.message, "the last did so for 4000 ms");
}

/* -- the tenant's pause ----------------------------------------------------------------------- */

/* Submits a fill. Returns the verdict's status if it ends at once, and BH_OK if it is pending. */
static bh_status submit_to(bh_stream *stream) {
    bh_event *event = fx_fill(stream, puppet.buffer, 7);
    const bool ended = bh_event_query(event) != BH_EVENT_PENDING;
    const bh_status status = ended ? fx_verdict(event).status : BH_OK;
    if (!ended) {
        BHT_EQ(bh_event_cancel(event), BH_OK);
    }
    return status;
}

/* No other stream of the tenant gets a worker, whether it is new, waiting or has one. */
TEST(it_is_charged_to_the_tenant) {
    bh_stream *same = puppet_stream(NULL, NULL), *other = puppet_stream(NULL, "other");
    bh_stream *served = puppet_stream(NULL, NULL);
    die_late(4000);
    /* The reactor begins nothing for it, although a worker is there. */
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    BHT_GE(bhi_assignment_turn(puppet.context), bhi_now_ns());
    BHT_TRUE(!same->core.worker && !puppet.stream->core.worker);
    BHT_TRUE(other->core.worker == &spare->core);
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
    puppet_bind(worker, served);
    bh_stream *late = puppet_stream(NULL, NULL), *starts = puppet_stream(NULL, NULL);
    puppet_bind(puppet_worker(BHI_HELD), starts);
    BHT_EQ(submit_to(served), BH_OK);
    for (int i = 0; i < 4; i++) {
        die_late(4000);
    }
    BHT_EQ(puppet.stream->core.state, BHI_STREAM_UNAVAILABLE);
    BHT_EQ(same->core.state, BHI_STREAM_UNAVAILABLE);
    BHT_EQ(late->core.state, BHI_STREAM_UNAVAILABLE);
    BHT_EQ(starts->core.state, BHI_STREAM_WANTING); /* it keeps the worker that it gets */
    uint64_t until_ns;
    BHT_TRUE(bhi_tenant_trouble(same->owner, &until_ns));
    BHT_EQ(same->core.heals_at_ns, until_ns);
    BHT_EQ(other->core.state, BHI_STREAM_SERVED);
    BHT_EQ(submit_to(same), BH_UNAVAILABLE);
    BHT_EQ(submit_to(served), BH_UNAVAILABLE);
    BHT_EQ(submit_to(other), BH_OK);
    bh_stream *latest = puppet_stream(NULL, NULL);
    BHT_EQ(submit_to(latest), BH_UNAVAILABLE);
    BHT_EQ(bh_stream_reset(same, NULL), BH_OK); /* the host knows better */
    BHT_EQ(same->core.state, BHI_STREAM_WANTING);
    BHT_EQ(submit_to(served), BH_OK);
}

/* UNAVAILABLE is not for ever, nor for a stream that has a worker all the time. */
TEST(the_tenants_trouble_passes) {
    for (int i = 0; i < 5; i++) {
        die_late(4000);
    }
    bh_stream *served = puppet_stream(NULL, NULL);
    puppet_bind(puppet_worker(BHI_RUNNING), served);
    BHT_EQ(submit_to(served), BH_UNAVAILABLE);
    BHT_TRUE(bhi_tenant_trouble(served->owner, NULL));
    served->owner->until_ns = bhi_now_ns();
    BHT_TRUE(!bhi_tenant_trouble(served->owner, NULL));
    BHT_EQ(submit_to(served), BH_OK);
}

/* Of tenants without streams so many are remembered, and those that are charged. What the others have
 * done stays in the numbers of the context. */
TEST(tenants_without_streams_are_bounded) {
    enum { MORE = 10, ALL = BHI_TENANTS + MORE };
    bh_stats stats = {.struct_size = sizeof stats};
    for (int i = 0; i < ALL; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d", i);
        bh_stream *stream = puppet_stream(NULL, name);
        if (i < 2) { /* two are charged; the host forgives one of them */
            bhi_context_lock(puppet.context);
            bhi_tenant_lost_late(stream->owner, "s", 1);
            bhi_context_unlock(puppet.context);
        }
        if (i == 1) {
            BHT_EQ(bh_stream_reset(stream, NULL), BH_OK);
        }
        BHT_EQ(submit_to(stream), BH_OK); /* cancelled */
        if (i == 2) {
            stream->owner->until_ns = BH_FOREVER; /* nothing is run for it */
        } else if (i == 3) {
            stream->owner->late.not_before_ns = BH_FOREVER; /* it gets no worker */
        }
        bh_stream_release(stream);
    }
    size_t count;
    bh_work_stats *rows = calloc(ALL, sizeof *rows);
    rows->struct_size = sizeof *rows;
    BHT_EQ(bh_context_stats(puppet.context, &stats, rows, ALL, &count, NULL), BH_OK);
    BHT_EQ(stats.tenants, BHI_TENANTS + 1); /* and the puppet's */
    BHT_EQ(count, 1 + BHI_TENANTS + 2);
    BHT_EQ(rows[0].ended[BH_CANCELLED], ALL);
    uint64_t remembered = 0;
    for (size_t i = 1; i < count; i++) {
        remembered += rows[i].scope == BH_WORK_TENANT ? rows[i].ended[BH_CANCELLED] : 0;
    }
    BHT_EQ(remembered, BHI_TENANTS);
    static const char *const kept[] = {"0", "2", "3", "13"}; /* the first three are charged */
    for (size_t i = 0; i < BHT_COUNT(kept); i++) {
        BHT_STR_EQ(rows[3 + i].tenant, kept[i]);
    }
    bh_stream *again = puppet_stream(NULL, "0");
    BHT_TRUE(bhi_tenant_not_before(again->owner) > 0);
    free(rows);
}

/* A sum with the window would wrap, and each tenant count as charged for ever. */
TEST(an_endless_window_keeps_no_tenant) {
    puppet.context->settings.restart_window_ns = BH_FOREVER;
    for (unsigned i = 0; i <= BHI_TENANTS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%u", i);
        bh_stream_release(puppet_stream(NULL, name));
    }
    BHT_EQ(fx_stats(puppet.context).tenants, BHI_TENANTS + 1); /* and the puppet's */
    BHT_EQ(bh_stream_reset(puppet.stream, NULL), BH_OK);       /* it has that window now, too */
    for (int i = 0; i < 5; i++) {
        die_late(4000);
    }
    BHT_EQ(puppet.stream->owner->until_ns, BH_FOREVER);
}
