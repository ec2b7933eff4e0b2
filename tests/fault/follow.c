/* Whom a thread that waits follows: the worker that has the submission, and while it is queued the
 * one that has what it needs (E9, E15). */
#include "seam.h"

#include "fixture.h"

#include <bulkhead/bulkhead.h>
#include <semaphore.h>

#define THREE      0x40400000u /* as floats */
#define EIGHTY_ONE 0x42A20000u

static sem_t reactor_may_go;
static _Atomic bool reactor_stands;

static void stand_still(void *object) {
    (void)object;
    reactor_stands = true;
    BHT_EQ(sem_wait(&reactor_may_go), 0);
}

/* The reactor is woken by the producer's end, and gets no further. The dependent on another stream
 * is released all the same, by the thread that waits for it. */
TEST(a_waiter_releases_what_it_waits_for) {
    bh_context *context = fx_context(NULL);
    bh_stream *one = fx_stream(context, "one", FX_SECONDS);
    bh_stream *other = fx_stream(context, "other", FX_SECONDS);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, THREE), *y = fx_words(context, 64, 0);
    bh_buffer *z = fx_words(context, 64, 0);
    /* Both workers have all that the second round needs: nothing is left for the reactor. */
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            BHT_EQ(sem_init(&reactor_may_go, 0, 0), 0);
            bht_at_step("doorbell", 1, stand_still);
        }
        bh_event *producer = fx_square(one, square, x, y);
        bh_event *consumer = fx_square(other, square, y, z);
        if (round == 1) {
            WAIT_UNTIL(reactor_stands, 20000);
        }
        BHT_EQ(bh_event_wait(consumer, BH_FOREVER), BH_OK);
        bh_event_release(producer);
        bh_event_release(consumer);
    }
    uint32_t got;
    BHT_EQ(bh_buffer_read(z, 0, &got, sizeof got, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(got, EIGHTY_ONE);
    BHT_EQ(sem_post(&reactor_may_go), 0);
}

static bh_event *watched;

static void let_it_end(void *object) {
    (void)object;
    WAIT_UNTIL(bh_event_query(watched) != BH_EVENT_PENDING, 20000);
}

/* The event ends after a thread has seen it pending, and before that thread has the lock. */
TEST(what_ends_before_the_lock_is_seen) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "one", FX_SECONDS);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, THREE), *y = fx_words(context, 64, 0);
    fx_ready(stream);
    bht_at_step("await_due", 1, let_it_end);
    watched = fx_square(stream, square, x, y);
    BHT_EQ(bh_event_wait(watched, BH_FOREVER), BH_OK);
    BHT_EQ(bht_steps_passed(), 1);
}
