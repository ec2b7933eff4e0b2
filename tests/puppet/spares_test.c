/* What spares are told, and whom they serve. */
#include "spares_scene.h"
#include "supervisor/context/context.h"
#include "supervisor/kernel/death_records.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/kernel/usage.h"
#include "supervisor/reactor/assignment.h"
#include "supervisor/reactor/lessons.h"
#include "supervisor/reactor/spares.h"
#include "supervisor/worker/outbox.h"

/* A stream that wants a worker. */
static bh_stream *add_stream(const char *tenant, bh_isolation isolation) {
    bh_stream_options options = fx_stream_options();
    options.tenant = tenant;
    options.isolation = isolation;
    return fx_stream_with(puppet.context, options);
}

/* One that is served already. */
static bh_stream *add_served(const char *tenant, bh_isolation isolation) {
    bh_stream *stream = add_stream(tenant, isolation);
    puppet_bind(puppet_worker(BHI_RUNNING), stream);
    return stream;
}

/* Messages of a type in the worker's outbox. */
static int count_messages(const struct bhi_worker *worker, enum bhi_message_type type) {
    int count = 0;
    BHI_LIST_EACH(node, &worker->outbox)
    count += BHI_CONTAINER(node, struct bhi_outgoing, link)->message.type == type;
    return count;
}

/* Lets the spare learn all that it is told. */
static void learn_all(struct bhi_worker *worker) {
    spares_turn_due();
    while (worker->lessons.kernel) {
        BHT_TRUE(!spares_answer(worker, worker->lessons.kernel, BH_OK));
        spares_turn();
    }
}

static bool knows(const struct bhi_worker *worker, int kernel) {
    return bhi_worker_kernels_has(&worker->kernels, spares_id_of(kernel));
}

static struct bhi_worker *choose(const bh_stream *stream) {
    bhi_context_lock(puppet.context);
    struct bhi_worker *worker = bhi_spares_choose(puppet.context, stream);
    bhi_context_unlock(puppet.context);
    return worker;
}

/* -- lessons ---------------------------------------------------------------------------------- */

TEST(the_most_used_comes_first) {
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    spares_use("", 0, 1); /* once is not enough */
    spares_use("", 1, 3);
    spares_use("", 2, 5);
    spares_turn();
    BHT_TRUE(spare->lessons.adopted);
    BHT_EQ(spare->lessons.kernel, spares_id_of(2));
    BHT_STR_HAS(spare->lessons.name, "c");
    BHT_EQ(count_messages(spare, BHI_MSG_KERNEL_CREATE), 1);
    BHT_EQ(count_messages(spare, BHI_MSG_LEARN), 1);
    BHT_EQ(bhi_lessons_known(spare), 0); /* not yet */
    spares_turn_due();                   /* one at a time */
    BHT_EQ(spare->lessons.kernel, spares_id_of(2));
    BHT_TRUE(!spares_answer(spare, spares_id_of(2), BH_OK));
    spares_turn();
    BHT_EQ(spare->lessons.kernel, spares_id_of(1));
    BHT_TRUE(!spares_answer(spare, spares_id_of(1), BH_OK));
    spares_turn();
    BHT_EQ(spare->lessons.kernel, 0);
    BHT_EQ(bhi_lessons_known(spare), 2);
    BHT_EQ(count_messages(spare, BHI_MSG_LEARN), 2);
    BHT_EQ(puppet.context->kernels->told, 2);
}

TEST(a_lie_is_seen) {
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    BHT_TRUE(spares_answer(spare, spares_id_of(0), BH_OK)); /* it was told nothing */
    spares_use("", 0, 2);
    spares_turn();
    BHT_TRUE(spares_answer(spare, spares_id_of(1), BH_OK));
    BHT_EQ(spare->lessons.kernel, spares_id_of(0));
    spare->conduct.idle_known = true;
    BHT_TRUE(!spares_answer(spare, spares_id_of(0), BH_OK));
    BHT_TRUE(!spare->conduct.idle_known); /* T5: what it has used was for its lesson */
    BHT_TRUE(spares_answer(spare, spares_id_of(0), BH_OK)); /* once */
}

/* What it could not compile is not there, and it is not tried again. */
TEST(what_fails_is_forgotten) {
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    spares_use("", 0, 5);
    spares_turn();
    BHT_TRUE(!spares_answer(spare, spares_id_of(0), BH_OUT_OF_DEVICE_MEMORY));
    BHT_TRUE(!knows(spare, 0));
    BHT_EQ(count_messages(spare, BHI_MSG_KERNEL_DESTROY), 1);
    spares_use("", 0, 5);
    spares_turn_due();
    BHT_EQ(spare->lessons.kernel, 0);
    struct bhi_worker *another = puppet_worker(BHI_RUNNING);
    spares_turn_due();
    BHT_EQ(another->lessons.kernel, 0);
}

/* What has run is learned, as it was called, and with its stream's compile deadline. */
TEST(what_runs_is_worth_learning) {
    enum { NO_SPARES, NO_KERNELS, COMPILED, RUNS, WAYS };
    for (int way = NO_SPARES; way < WAYS; way++) {
        puppet_again();
        puppet.context->settings.spares = way != NO_SPARES;
        if (way == NO_KERNELS) {
            puppet.context->settings.spare_kernels = 0;
        }
        puppet.context->spares_due = false;
        puppet.stream->core.compile_deadline_ns = 12345;
        for (uint64_t i = 1; i <= BHI_USAGE_LEAST; i++) {
            bh_event *event = NULL;
            if (way == COMPILED) {
                BHT_EQ(bh_kernel_prepare(spares.kernels[0], puppet.stream, &event, NULL), BH_OK);
            } else {
                event = spares_launch(puppet.stream, 0, false);
            }
            puppet_complete(spares.serving, 1);
            fx_expect(event, BH_OK);
        }
        struct bhi_usage *usage =
            bhi_usage_find(puppet.context->usages, puppet.stream->device, puppet.stream->tenant);
        const struct bhi_used_kernel *used =
            usage ? bhi_usage_kernel(usage, spares_id_of(0)) : NULL;
        BHT_EQ(!!used, way == RUNS);
        BHT_EQ(puppet.context->spares_due, way == RUNS);
        BHT_TRUE(!used || (used->uses == BHI_USAGE_LEAST && used->compile_ns == 12345));
        BHT_TRUE(!used || memcmp(used->hash, spares.kernels[0]->body->hash, 32) == 0);
        BHT_TRUE(!used || strcmp(used->name, "a") == 0);
        puppet.context->settings.spares = 0;
    }
}

/* As many as a spare may know; then only what is used twice as much takes another's place. */
TEST(places_are_limited) {
    puppet.context->settings.spare_kernels = 2;
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    spares_use("", 0, 4);
    spares_use("", 1, 5);
    spares_use("", 2, 3);
    learn_all(spare);
    BHT_TRUE(knows(spare, 0) && knows(spare, 1) && !knows(spare, 2));
    spares_use("", 2, 6); /* 9: not twice as much as 4 and one more */
    spares_turn_due();
    BHT_EQ(spare->lessons.kernel, 0);
    spares_use("", 2, 1);
    learn_all(spare);
    BHT_TRUE(!knows(spare, 0) && knows(spare, 1) && knows(spare, 2));
    BHT_EQ(bhi_lessons_known(spare), 2);
}

TEST(bytes_are_limited) {
    puppet.context->settings.kernel_limit_bytes = 3 * 20;
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    for (int i = 0; i < KERNELS; i++) {
        spares_use("", i, 2);
    }
    struct bhi_kernel_body *large = spares.kernels[0]->body; /* as all it may have: not for it */
    large->code_size += 60;
    spares_use("", 0, 9);
    learn_all(spare);
    BHT_EQ(bhi_lessons_known(spare), 3);
    BHT_TRUE(!knows(spare, 0));
    large->code_size -= 60;
}

TEST(none_is_told_if_none_may_be) {
    puppet.context->settings.spare_kernels = 0;
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    spares_use("", 0, 5);
    spares_turn_due();
    BHT_TRUE(!spare->lessons.adopted);
    puppet.context->settings.spare_kernels = 16;
    puppet.context->closed = true;
    spares_turn_due();
    BHT_TRUE(!spare->lessons.adopted);
    puppet.context->closed = false;
    spares_turn_due();
    BHT_TRUE(spare->lessons.adopted);
}

/* K5. A kernel that is refused, on trial or gone is not told. */
TEST(refused_kernels_are_not_told) {
    struct bhi_death_records *records = puppet.context->death_records;
    records->most_deaths = 1;
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    for (int i = 0; i < 4; i++) {
        spares_use("", i, 5);
    }
    bh_verdict verdict = {.status = BH_WORKER_SIGNAL};
    memcpy(verdict.kernel_hash, spares.kernels[0]->body->hash, 32);
    BHT_TRUE(bhi_death_records_note(records, "", &verdict, false, bhi_now_ns()));
    memcpy(verdict.kernel_hash, spares.kernels[1]->body->hash, 32);
    bhi_death_records_try(records, "", &verdict, bhi_now_ns());
    bh_kernel_release(spares.kernels[2]);
    learn_all(spare);
    BHT_TRUE(!knows(spare, 0) && !knows(spare, 1) && knows(spare, 3));
    BHT_EQ(bhi_lessons_known(spare), 1);
    /* What was refused to one tenant is told to another's. */
    (void)add_served("bob", BH_ISOLATION_STREAM);
    struct bhi_worker *untold = puppet_worker(BHI_RUNNING);
    (void)puppet_worker(BHI_RUNNING);
    spares_use("bob", 0, 5);
    learn_all(untold);
    BHT_TRUE(knows(untold, 0));
}

TEST(a_kernel_that_is_destroyed_is_forgotten) {
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    spares_use("", 0, 5);
    spares_turn();
    const uint64_t id = spares_id_of(0);
    bh_kernel_release(spares.kernels[0]); /* while the spare compiles it */
    BHT_EQ(count_messages(spare, BHI_MSG_KERNEL_DESTROY), 1);
    BHT_TRUE(!spares_answer(spare, id, BH_OK));
    BHT_EQ(bhi_lessons_known(spare), 0);
    BHT_TRUE(!bhi_usage_kernel(bhi_usage_find(puppet.context->usages, "", ""), id));
    spares_turn();
    BHT_EQ(spare->lessons.kernel, 0);
}

TEST(a_lesson_has_a_deadline) {
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    const uint64_t before_ns = bhi_now_ns();
    spare->core.compile.used_ns = 77; /* of another compile */
    spares_use("", 0, 5);
    spares_turn();
    const uint64_t until_ns = spare->lessons.until_ns;
    BHT_GE(spare->lessons.since_ns, before_ns);
    BHT_EQ(until_ns - spare->lessons.since_ns, 600 * UINT64_C(1000000000)); /* not an hour */
    BHT_EQ(spare->core.compile.used_ns, 0);
    bhi_context_lock(puppet.context);
    spare->core.pid = 0; /* the processor time is unknown, and stays what it is */
    BHT_EQ(bhi_lesson_check_deadline(spares.serving, until_ns), BH_FOREVER);
    BHT_EQ(spares.serving->core.life.kill, BHI_KILL_NONE);
    BHT_EQ(bhi_lesson_check_deadline(spare, until_ns - 1), until_ns);
    BHT_EQ(spare->core.life.kill, BHI_KILL_NONE);
    spare->core.compile.used_ns = until_ns - spare->lessons.since_ns;
    BHT_EQ(bhi_lesson_check_deadline(spare, until_ns), BH_FOREVER);
    BHT_EQ(spare->core.life.kill, BHI_KILL_COMPILE);
    BHT_TRUE(!spare->core.life.kill_stopped);
    bhi_context_pump_unlock(puppet.context);
}

TEST(a_lesson_on_a_busy_machine_has_four_deadlines) {
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    spares_use("", 0, 5);
    spares_turn();
    const uint64_t since_ns = spare->lessons.since_ns, until_ns = spare->lessons.until_ns;
    const uint64_t limit_ns = until_ns - since_ns;
    bhi_context_lock(puppet.context);
    spare->core.pid = 0;
    spare->core.compile.used_ns = limit_ns / 2;
    BHT_EQ(bhi_lesson_check_deadline(spare, until_ns), until_ns + limit_ns - limit_ns / 2);
    BHT_EQ(bhi_lesson_check_deadline(spare, since_ns + 4 * limit_ns - 1), since_ns + 4 * limit_ns);
    BHT_EQ(spare->core.life.kill, BHI_KILL_NONE);
    BHT_EQ(bhi_lesson_check_deadline(spare, since_ns + 4 * limit_ns), BH_FOREVER);
    BHT_EQ(spare->core.life.kill, BHI_KILL_COMPILE);
    bhi_context_pump_unlock(puppet.context);
}

/* -- who gets which ---------------------------------------------------------------------------- */

TEST(the_one_that_knows_most_is_taken) {
    spares_use("", 0, 5);
    spares_use("", 1, 2);
    struct bhi_worker *little = puppet_worker(BHI_RUNNING);
    learn_all(little);
    bhi_context_lock(puppet.context);
    bhi_worker_forget_kernel(little, spares_id_of(1));
    bhi_context_pump_unlock(puppet.context);
    puppet_has_come_to(little, BHI_HELD); /* it is told nothing meanwhile */
    struct bhi_worker *much = puppet_worker(BHI_RUNNING);
    learn_all(much);
    BHT_TRUE(knows(much, 0) && knows(much, 1) && knows(little, 0));
    puppet_has_come_to(little, BHI_RUNNING);
    struct bhi_worker *untold = puppet_worker(BHI_RUNNING);
    bh_stream *stream = add_stream("", BH_ISOLATION_STREAM);
    BHT_TRUE(choose(stream) == much);
    /* One that compiles is not taken, and one that starts comes last. */
    much->lessons.kernel = spares_id_of(0);
    BHT_TRUE(choose(stream) == little);
    little->lessons.kernel = spares_id_of(0);
    BHT_TRUE(choose(stream) == untold);
    puppet_has_come_to(untold, BHI_HELD);
    BHT_TRUE(choose(stream) == untold);
    little->lessons.kernel = 0;
    BHT_TRUE(choose(stream) == little);
    /* What waits in the queue counts more than what the tenant uses. */
    puppet_has_come_to(untold, BHI_RUNNING);
    much->lessons.kernel = little->lessons.kernel = 0;
    bhi_context_lock(puppet.context);
    bhi_worker_forget_kernel(much, spares_id_of(0));
    bhi_context_pump_unlock(puppet.context);
    BHT_TRUE(choose(stream) == little);
    spares_launch(stream, 1, false);
    BHT_TRUE(choose(stream) == much);
}

/* T1. What a tenant's kernels may have taken over meets no other tenant. */
TEST(a_spare_that_was_told_serves_one_tenant) {
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    spares_use("", 0, 5);
    spares_turn();
    BHT_TRUE(spare->lessons.adopted);
    bh_stream *other = add_stream("bob", BH_ISOLATION_STREAM);
    bh_stream *own = add_stream("", BH_ISOLATION_STREAM);
    BHT_TRUE(!choose(other) && !choose(own));
    BHT_EQ(bhi_spares_patience(puppet.context, other), 0);
    BHT_TRUE(bhi_spares_patience(puppet.context, own) > 0);
    BHT_TRUE(!spares_answer(spare, spares_id_of(0), BH_OK));
    BHT_TRUE(!choose(other));
    BHT_TRUE(choose(own) == spare);
    /* Nor is it told another tenant's. */
    spares_use("bob", 1, 9);
    spares_turn_due();
    BHT_TRUE(!knows(spare, 1));
}

/* T2, T3. What it has compiled is its past: a stream that keeps kernels apart has another one, and
 * so has a launch that must be alone. */
TEST(what_it_knows_is_its_past) {
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    spares_use("", 0, 5);
    spares_use("", 1, 4);
    learn_all(spare);
    BHT_TRUE(spare->core.past.code && spare->core.past.mixed && !spare->core.past.used);
    bh_stream *apart = add_stream("", BH_ISOLATION_KERNEL);
    bh_stream *own = add_stream("", BH_ISOLATION_STREAM);
    BHT_TRUE(!choose(apart));
    BHT_TRUE(choose(own) == spare);
    spares_launch(own, 0, true);
    BHT_TRUE(!choose(own));
    struct bhi_worker *untold = puppet_worker(BHI_RUNNING);
    BHT_TRUE(choose(own) == untold);
    BHT_TRUE(choose(apart) == untold);
}

/* A stream does not take a spare that learns. It waits for it, but not for long. */
TEST(a_lesson_is_waited_for) {
    puppet_end_process(spares.serving, CLD_KILLED, SIGKILL);
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    spares_use("", 0, 5);
    spares_turn();
    puppet_bury(spares.serving);
    struct bhi_worker *starting = puppet_worker(BHI_HELD);
    const uint64_t since_ns = bhi_now_ns() + 3600 * UINT64_C(1000000000);
    spare->lessons.since_ns = since_ns; /* it has just begun */
    BHT_EQ(bhi_assignment_turn(puppet.context), since_ns + 50 * UINT64_C(1000000));
    BHT_TRUE(!puppet.stream->core.worker);
    BHT_TRUE(!spares_answer(spare, spares_id_of(0), BH_OK));
    spares_turn();
    BHT_TRUE(puppet.stream->core.worker == &spare->core);
    /* What it knows is not introduced again, and it is no spare any more. */
    bh_event *event = spares_launch(puppet.stream, 0, false);
    BHT_EQ(spare->core.published, 1);
    BHT_EQ(count_messages(spare, BHI_MSG_KERNEL_CREATE), 1);
    BHT_EQ(puppet.context->kernels->introduced, 0);
    spares_use("", 1, 5);
    spares_turn_due();
    BHT_EQ(spare->lessons.kernel, 0);
    puppet_complete(spare, 1);
    fx_expect(event, BH_OK);
    /* The patience is over. */
    puppet_has_come_to(starting, BHI_RUNNING);
    spares_turn_due();
    BHT_TRUE(starting->lessons.kernel);
    struct bhi_worker *next = puppet_worker(BHI_HELD);
    puppet_killed(spare, SIGKILL);
    starting->lessons.since_ns = 0;
    spares_turn();
    BHT_TRUE(puppet.stream->core.worker == &next->core);
    /* Nobody waits where another spare is ready. */
    starting->lessons.since_ns = since_ns;
    bh_stream *other = add_stream("", BH_ISOLATION_STREAM);
    struct bhi_worker *ready = puppet_worker(BHI_RUNNING);
    (void)bhi_assignment_turn(puppet.context);
    BHT_TRUE(other->core.worker == &ready->core);
}

/* -- how spares are shared --------------------------------------------------------------------- */

/* One stays for whoever comes, as soon as there are several tenants or kernels are kept apart. */
TEST(one_stays_untold) {
    (void)add_served("bob", BH_ISOLATION_STREAM);
    struct bhi_worker *one = puppet_worker(BHI_RUNNING);
    spares_use("", 0, 5);
    spares_use("bob", 1, 9);
    spares_turn_due();
    BHT_TRUE(!one->lessons.adopted);
    struct bhi_worker *two = puppet_worker(BHI_HELD); /* soon */
    learn_all(one);
    BHT_TRUE(one->lessons.adopted);
    BHT_STR_HAS(one->lessons.tenant, "bob"); /* it uses its kernels most */
    puppet_has_come_to(two, BHI_RUNNING);
    spares_turn_due();
    BHT_TRUE(!two->lessons.adopted);
    struct bhi_worker *three = puppet_worker(BHI_RUNNING);
    spares_turn_due();
    learn_all(two);
    learn_all(three);
    /* The next one goes to the tenant that has none. */
    BHT_EQ(two->lessons.adopted + three->lessons.adopted, 1);
    const struct bhi_worker *told = two->lessons.adopted ? two : three;
    BHT_EQ(told->lessons.tenant[0], '\0');
    BHT_TRUE(knows(told, 0) && !knows(told, 1));
}

/* Who uses much, but has nothing to teach, keeps nobody from it; nor does who uses less. */
TEST(the_tenant_that_uses_most_teaches) {
    (void)add_served("bob", BH_ISOLATION_STREAM);
    (void)add_served("carl", BH_ISOLATION_STREAM);
    for (int kernel = 0; kernel < KERNELS; kernel++) {
        spares_use("bob", kernel, 1);
    }
    spares_use("", 0, 5);
    spares_use("carl", 1, 4);
    struct bhi_worker *one = puppet_worker(BHI_RUNNING);
    (void)puppet_worker(BHI_HELD); /* it stays untold */
    spares_turn_due();
    BHT_TRUE(one->lessons.adopted);
    BHT_STR_EQ(one->lessons.tenant, "");
}

/* Who has no stream that could take such a spare is not taught for, however much it used there. */
TEST(kernels_are_for_streams_that_may_take_the_spare) {
    enum { HAS_NONE, ON_ANOTHER_DEVICE, KEEPS_KERNELS_APART, ENDS };
    for (int how = 0; how < ENDS; how++) {
        puppet_again();
        bh_stream *bobs = add_served("bob", how == KEEPS_KERNELS_APART ? BH_ISOLATION_SUBMISSION
                                                                       : BH_ISOLATION_STREAM);
        spares_use("bob", 1, 9);
        spares_use("", 0, 5);
        if (how == HAS_NONE) {
            bh_stream_release(bobs);
        } else if (how == ON_ANOTHER_DEVICE) {
            strcpy(bobs->device, "1");
        }
        struct bhi_worker *one = puppet_worker(BHI_RUNNING);
        (void)puppet_worker(BHI_HELD); /* it stays untold */
        spares_turn_due();
        if (!one->lessons.adopted || one->lessons.tenant[0]) {
            BHT_FAIL("row %d: it is told kernels of \"%s\"", how, one->lessons.tenant);
        }
    }
}

/* What is used on another device neither teaches nor shares a spare of this one. */
TEST(each_device_has_its_own_tenants) {
    enum { ITS_STREAM, ITS_KERNELS, OWN_KERNELS, ENDS };
    for (int what = 0; what < ENDS; what++) {
        puppet_again();
        char here[sizeof puppet.stream->device];
        strcpy(here, puppet.stream->device);
        if (what != ITS_KERNELS) {
            strcpy(add_served("bob", BH_ISOLATION_STREAM)->device, "1");
        }
        if (what != ITS_STREAM) {
            strcpy(puppet.stream->device, "1");
            spares_use(what == OWN_KERNELS ? "" : "bob", 1, 9);
            strcpy(puppet.stream->device, here);
        }
        struct bhi_worker *one = puppet_worker(BHI_RUNNING); /* no other stays untold */
        spares_use("", 0, 5);
        spares_turn_due();
        if (one->lessons.kernel != spares_id_of(0)) {
            BHT_FAIL("row %d: it is not told what its own device runs", what);
        }
    }
}

TEST(kernels_that_are_kept_apart_need_an_untold_one) {
    bh_stream *apart = add_served("", BH_ISOLATION_SUBMISSION);
    struct bhi_worker *one = puppet_worker(BHI_RUNNING);
    spares_use("", 0, 5);
    spares_turn_due();
    BHT_TRUE(!one->lessons.adopted);
    bh_stream_release(apart);
    spares_turn_due();
    BHT_TRUE(one->lessons.adopted);
}

/* All spares know one tenant's kernels, and a second tenant comes: one of them makes place, and
 * not more than one a second. */
TEST(a_second_tenant_gets_room) {
    struct bhi_worker *one = puppet_worker(BHI_RUNNING);
    struct bhi_worker *two = puppet_worker(BHI_RUNNING);
    puppet.context->settings.spares = 2;
    spares_use("", 0, 5);
    spares_turn();
    learn_all(one);
    learn_all(two);
    BHT_TRUE(one->lessons.adopted && two->lessons.adopted);
    spares_turn_due();
    BHT_TRUE(bhi_spare_is_free(one) && bhi_spare_is_free(two));
    (void)add_served("bob", BH_ISOLATION_STREAM);
    struct bhi_worker *elsewhere = puppet_worker(BHI_RUNNING); /* it counts for nothing here */
    strcpy(elsewhere->device, "1");
    strcpy(add_served("bob", BH_ISOLATION_STREAM)->device, "1"); /* which wants it */
    spares.serving->lessons.adopted = elsewhere->lessons.adopted = true;
    puppet.context->settings.spares = 3; /* there will be another one */
    spares_turn_due();
    BHT_TRUE(bhi_spare_is_free(one) && bhi_spare_is_free(two));
    elsewhere->lessons.adopted = false;
    puppet.context->settings.spares = 2;
    one->lessons.kernel = two->lessons.kernel = 7; /* neither is at rest */
    spares_turn_due();
    BHT_TRUE(bhi_spare_is_free(one) && bhi_spare_is_free(two));
    one->lessons.kernel = two->lessons.kernel = 0;
    spares_turn_due();
    BHT_EQ(bhi_spare_is_free(one) + bhi_spare_is_free(two), 1);
    spares_turn_due();
    BHT_EQ(bhi_spare_is_free(one) + bhi_spare_is_free(two), 1);
    const struct bhi_worker *gone = bhi_spare_is_free(one) ? two : one;
    BHT_EQ(gone->core.life.kill, BHI_KILL_RETIRED);
}

static uint64_t turn_at(uint64_t now_ns) {
    bhi_context_lock(puppet.context);
    puppet.context->spares_due = true;
    const uint64_t due_ns = bhi_spares_turn(puppet.context, now_ns);
    bhi_context_pump_unlock(puppet.context);
    return due_ns;
}

/* One a second; of several those go first that nobody misses. */
TEST(spares_make_place_one_after_the_other) {
    const uint64_t second = 1000000000, now_ns = bhi_now_ns();
    struct bhi_worker *all[3];
    puppet.context->settings.spares = 9; /* there is room */
    bh_stream *bob = add_served("bob", BH_ISOLATION_STREAM);
    for (int i = 0; i < 3; i++) {
        all[i] = puppet_worker(BHI_RUNNING);
    }
    spares_use("", 0, 5);
    spares_use("bob", 1, 9);
    for (int i = 0; i < 3; i++) { /* the last one is told as well, though none stays untold */
        all[i]->lessons.adopted = true;
        strcpy(all[i]->lessons.tenant, i == 1 ? "bob" : "");
        learn_all(all[i]);
    }
    puppet.context->settings.spares = 1;
    bh_stream_release(bob); /* it uses most, and has no stream any more */
    (void)add_served("carl", BH_ISOLATION_STREAM);
    BHT_EQ(turn_at(now_ns), BH_FOREVER);
    BHT_TRUE(!puppet.context->spares_due);
    BHT_EQ(all[1]->core.life.kill, BHI_KILL_RETIRED);
    for (int i = 0; i < 2; i++) {
        BHT_EQ(turn_at(now_ns + second - 1), now_ns + second);
        BHT_TRUE(puppet.context->spares_due);
        BHT_TRUE(bhi_spare_is_free(all[0]) && bhi_spare_is_free(all[2]));
    }
    BHT_EQ(turn_at(now_ns + second), BH_FOREVER);
    BHT_EQ(all[0]->core.life.kill, BHI_KILL_RETIRED); /* the first of equals */
    BHT_TRUE(bhi_spare_is_free(all[2]));
}

/* Of equal ones the first is taken, and none whose zygote is lost; the longest lesson is waited for. Only
 * so many submissions are looked at. */
TEST(which_of_several_is_taken) {
    struct bhi_worker *one = puppet_worker(BHI_RUNNING), *two = puppet_worker(BHI_RUNNING);
    bh_stream *stream = add_stream("", BH_ISOLATION_STREAM);
    BHT_TRUE(choose(stream) == one);
    puppet_has_come_to(one, BHI_HELD);
    BHT_TRUE(choose(stream) == two);
    puppet_has_come_to(one, BHI_RUNNING);
    one->lessons.kernel = two->lessons.kernel = 7;
    one->lessons.since_ns = 2000;
    two->lessons.since_ns = 1000;
    BHT_EQ(bhi_spares_patience(puppet.context, stream), 2000 + 50 * UINT64_C(1000000));
    two->lessons.kernel = 0; /* its lesson has ended */
    two->lessons.since_ns = 3000;
    BHT_EQ(bhi_spares_patience(puppet.context, stream), 2000 + 50 * UINT64_C(1000000));
    one->lessons.kernel = 0;
    uint32_t *const made[][2] = {{&one->nice, &stream->nice},
                                 {&one->processor, &stream->processor}};
    for (size_t i = 0; i < BHT_COUNT(made); i++) {
        *made[i][0] = 1; /* it was started for others */
        BHT_TRUE(choose(stream) == two);
        *made[i][1] = 1;
        BHT_TRUE(choose(stream) == one);
        *made[i][0] = *made[i][1] = 0;
    }
    stream->kind = BHI_WORKER_COMPILER;
    BHT_TRUE(!choose(stream));
    stream->kind = BHI_WORKER_DEVICE;
    two->lessons.adopted = true; /* others cannot use it, although it knows nothing */
    BHT_TRUE(choose(stream) == two);
    puppet_has_come_to(two, BHI_HELD); /* it is not ready, whatever it knows */
    BHT_TRUE(choose(stream) == one);
    puppet_has_come_to(two, BHI_RUNNING);
    one->lessons.adopted = true;
    bhi_context_lock(puppet.context);
    BHT_TRUE(bhi_worker_kernels_add(&two->kernels, spares_id_of(1), 1, false, 0));
    bhi_context_unlock(puppet.context);
    for (int i = 0; i < 8; i++) {
        BHT_TRUE(choose(stream) == one);
        spares_launch(stream, 0, false);
    }
    spares_launch(stream, 1, false); /* the ninth */
    BHT_TRUE(choose(stream) == one);
    struct bhi_zygote lost = {.state = BHI_ZYGOTE_LOST};
    one->zygote = &lost;
    BHT_TRUE(choose(stream) == two);
    one->zygote = puppet.zygote;
}

TEST(a_spare_of_a_tenant_that_has_gone_makes_place) {
    bh_stream *other = add_served("bob", BH_ISOLATION_STREAM);
    struct bhi_worker *one = puppet_worker(BHI_RUNNING);
    struct bhi_worker *two = puppet_worker(BHI_RUNNING);
    puppet.context->settings.spares = 2;
    spares_use("bob", 1, 9);
    learn_all(one);
    learn_all(two);
    BHT_EQ(one->lessons.adopted + two->lessons.adopted, 1);
    struct bhi_worker *bobs = one->lessons.adopted ? one : two, *third = NULL;
    for (int i = 0; i < 4; i++) {
        spares_turn_due();
        BHT_TRUE(bhi_spare_is_free(bobs));
        if (i == 0) {
            bh_stream_release(other); /* nobody else has anything to teach */
        } else if (i == 1) {
            spares_use("", 0, 5);
            puppet.context->settings.spares = 3; /* there is room */
        } else if (i == 2) {
            third = puppet_worker(BHI_RUNNING);
            third->lessons.adopted = true; /* who has more to teach has a spare */
        }
    }
    puppet_bury(third);
    puppet.context->settings.spares = 2;
    spares_turn_due();
    BHT_EQ(bobs->core.life.kill, BHI_KILL_RETIRED);
}

/* It can be told what another tenant uses; only a spare that was told is of no use to others. */
TEST(an_untold_spare_does_not_make_place) {
    struct bhi_worker *untold[2] = {puppet_worker(BHI_RUNNING), puppet_worker(BHI_RUNNING)};
    struct bhi_worker *bobs = puppet_worker(BHI_RUNNING);
    puppet.context->settings.spares = 2;
    strcpy(puppet.stream->tenant, "carl"); /* the only one with a stream */
    spares_use("carl", 0, 5);
    spares_use("bob", 1, 9);
    bobs->lessons.adopted = true;
    strcpy(bobs->lessons.tenant, "bob");
    untold[0]->lessons.kernel = untold[1]->lessons.kernel = 7; /* neither is at rest */
    learn_all(bobs);
    BHT_EQ(turn_at(bhi_now_ns()), BH_FOREVER);
    BHT_TRUE(bhi_spare_is_free(bobs)); /* one of two untold ones is to be told */
    untold[0]->lessons.kernel = untold[1]->lessons.kernel = 0;
    puppet_bury(untold[1]);
    BHT_EQ(turn_at(bhi_now_ns()), BH_FOREVER);
    BHT_TRUE(bhi_spare_is_free(untold[0]) && !untold[0]->lessons.adopted);
    BHT_EQ(bobs->core.life.kill, BHI_KILL_RETIRED);
}

/* A stream is enough: it will use something. */
TEST(a_tenant_that_has_used_nothing_counts) {
    struct bhi_worker *bobs = puppet_worker(BHI_RUNNING);
    puppet.context->settings.spares = 1;
    bobs->lessons.adopted = true;
    strcpy(bobs->lessons.tenant, "bob");
    strcpy(puppet.stream->tenant, "bob");
    BHT_EQ(turn_at(bhi_now_ns()), BH_FOREVER);
    BHT_TRUE(bhi_spare_is_free(bobs));
    (void)add_served("carl", BH_ISOLATION_STREAM);
    BHT_EQ(turn_at(bhi_now_ns()), BH_FOREVER);
    BHT_EQ(bobs->core.life.kill, BHI_KILL_RETIRED);
}

static const bh_stream *wanted(void) {
    bhi_context_lock(puppet.context);
    const struct bh_stream *stream = bhi_spares_wanted(puppet.context);
    bhi_context_pump_unlock(puppet.context);
    return stream;
}

/* So many for each device and memory limit, not in all. */
TEST(each_device_and_memory_limit_has_spares) {
    BHT_TRUE(!wanted());
    puppet.context->settings.spares = 1;
    BHT_TRUE(wanted() == puppet.stream);
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    BHT_TRUE(!wanted());
    bh_stream *narrow = add_stream("", BH_ISOLATION_STREAM);
    narrow->memory_limit /= 2;
    BHT_TRUE(!wanted()); /* it needs its own worker first */
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
    worker->memory_limit = narrow->memory_limit;
    spares_turn();
    BHT_TRUE(narrow->core.worker == &worker->core);
    BHT_TRUE(wanted() == narrow);
    struct bhi_worker *starting = puppet_worker(BHI_HELD), *loader = puppet_worker(BHI_RUNNING);
    starting->memory_limit = 1;
    loader->kind = BHI_WORKER_LOADER;
    struct bhi_worker *second = puppet_worker(BHI_RUNNING);
    second->memory_limit = narrow->memory_limit;
    BHT_TRUE(!wanted());
    /* What no stream uses any more makes place when another is wanted, and not before. */
    bh_stream_release(narrow);
    spares_turn();
    BHT_TRUE(!wanted());
    BHT_TRUE(bhi_spare_is_free(second));
    puppet_bury(spare);
    BHT_TRUE(wanted() == puppet.stream);
    BHT_EQ(second->core.life.kill, BHI_KILL_RETIRED);
    BHT_TRUE(bhi_spare_is_free(starting) && bhi_spare_is_free(loader));
}

/* Sixteen kinds have spares, however many streams are of one. */
TEST(streams_alike_are_one_kind) {
    puppet.context->settings.spares = 1;
    for (int i = 0; i < 17; i++) {
        add_served("", BH_ISOLATION_STREAM)->nice = 1;
    }
    puppet_worker(BHI_RUNNING)->nice = 1;
    BHT_TRUE(wanted() == puppet.stream);
}

/* What runs on no device has none, and a stream that may run anywhere none before it has a place. */
TEST(only_devices_have_spares) {
    puppet.context->settings.spares = 1;
    puppet.stream->kind = BHI_WORKER_LOADER;
    BHT_TRUE(!wanted());
    puppet.stream->kind = BHI_WORKER_DEVICE;
    puppet.stream->placed = false;
    BHT_TRUE(!wanted());
    puppet.stream->placed = true;
    BHT_TRUE(wanted() == puppet.stream);
}

/* However many streams want how many: 64 at most. */
TEST(all_spares_together_are_bounded) {
    puppet.context->settings.spares = 1000;
    for (uint32_t kind = 0; kind < 17; kind++) {
        bh_stream *stream = add_served("", BH_ISOLATION_STREAM);
        stream->nice = kind;
        BHT_TRUE(wanted() == stream); /* the newest first */
    }
    puppet_worker(BHI_RUNNING)->kind = BHI_WORKER_LOADER; /* is none */
    for (uint32_t i = 0; i < 64; i++) {
        BHT_TRUE(wanted());
        puppet_worker(BHI_RUNNING)->nice = 1 + i % 16;
    }
    BHT_TRUE(!wanted());
}
