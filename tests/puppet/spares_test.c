/* What spares are told, whom they serve, and what a spare that dies of it costs. */
#include "puppet.h"
#include "supervisor/context/pump.h"
#include "supervisor/kernel/death_records.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/kernel/usage.h"
#include "supervisor/reactor/assignment.h"
#include "supervisor/reactor/lessons.h"
#include "supervisor/reactor/spares.h"
#include "supervisor/worker/outbox.h"

#include <stdio.h>
#include <sys/wait.h>

#define KERNELS 8

static struct {
    struct puppet p;
    bh_kernel *kernels[KERNELS];
} s;

/* No worker can be started. The puppet's stream is served. */
static struct bhi_worker *open_scene(void) {
    puppet_open(&s.p);
    s.p.context->settings.spare_kernels = 16;
    s.p.zygote->state = BHI_ZYGOTE_STARTING;
    for (uint32_t i = 0; i < KERNELS; i++) {
        const uint32_t code[] = {0x07230203, i, 0, 0, 0};
        const bh_kernel_options options = {.struct_size = sizeof options,
                                           .name = (char[]){(char)('a' + i), 0}};
        BHT_EQ(
            bh_kernel_create_spirv(s.p.context, code, sizeof code, &options, &s.kernels[i], NULL),
            BH_OK);
    }
    return puppet_serving(&s.p);
}

static void close_scene(void) {
    for (int i = 0; i < KERNELS; i++) {
        bh_kernel_release(s.kernels[i]);
    }
    puppet_close(&s.p);
}

static uint64_t id_of(int kernel) {
    return s.kernels[kernel]->body->id;
}

/* |tenant| launches a kernel so many times. */
static void use(const char *tenant, int kernel, int times) {
    bhi_context_lock(s.p.context);
    for (int i = 0; i < times; i++) {
        struct bhi_used_kernel used = {.body = s.kernels[kernel]->body,
                                       .id = id_of(kernel),
                                       .compile_ns = 3600 * UINT64_C(1000000000)};
        memcpy(used.hash, s.kernels[kernel]->body->hash, sizeof used.hash);
        memcpy(used.name, s.kernels[kernel]->name, sizeof used.name);
        s.p.context->spares_due |=
            bhi_usage_note(s.p.context->usages, s.p.stream->device, tenant, &used);
    }
    bhi_context_unlock(s.p.context);
}

/* A stream that wants a worker. */
static bh_stream *add_stream(const char *tenant, bh_isolation isolation) {
    bh_stream_options options;
    bh_stream *stream = NULL;
    bh_stream_options_init(&options);
    options.tenant = tenant;
    options.isolation = isolation;
    BHT_EQ(bh_stream_create(s.p.context, &options, &stream, NULL), BH_OK);
    return stream;
}

/* One that is served already. */
static bh_stream *add_served(const char *tenant, bh_isolation isolation) {
    bh_stream *stream = add_stream(tenant, isolation);
    struct bhi_worker *worker = puppet_worker(&s.p, BHI_RUNNING);
    bhi_context_lock(s.p.context);
    bhi_stream_bind(&stream->core, &worker->core);
    bhi_worker_retain(worker);
    bhi_stream_served(&stream->core);
    bhi_context_pump_unlock(s.p.context);
    return stream;
}

static void turn(void) {
    (void)bhi_assignment_turn(s.p.context);
}

static void turn_due(void) {
    bhi_context_lock(s.p.context);
    s.p.context->spares_due = true;
    bhi_context_unlock(s.p.context);
    turn();
}

/* Messages of a type in the worker's outbox. */
static int count_messages(const struct bhi_worker *worker, enum bhi_message_type type) {
    int count = 0;
    BHI_LIST_EACH(node, &worker->outbox)
    count += BHI_CONTAINER(node, struct bhi_outgoing, link)->message.type == type;
    return count;
}

static const char *answer(struct bhi_worker *worker, uint64_t kernel, uint32_t status) {
    const struct bhi_msg_learned learned = {.kernel = kernel, .status = status};
    bhi_context_lock(s.p.context);
    const char *wrong = bhi_lesson_learned(worker, &learned);
    bhi_context_pump_unlock(s.p.context);
    return wrong;
}

/* Lets the spare learn all that it is told. */
static void learn_all(struct bhi_worker *worker) {
    turn_due();
    while (worker->lessons.kernel) {
        BHT_TRUE(!answer(worker, worker->lessons.kernel, BH_OK));
        turn();
    }
}

static bool knows(const struct bhi_worker *worker, int kernel) {
    return bhi_worker_kernels_has(&worker->kernels, id_of(kernel));
}

static struct bhi_worker *choose(const bh_stream *stream) {
    bhi_context_lock(s.p.context);
    struct bhi_worker *worker = bhi_spares_choose(s.p.context, stream);
    bhi_context_unlock(s.p.context);
    return worker;
}

/* -- lessons ---------------------------------------------------------------------------------- */

static void the_most_used_comes_first(void) {
    open_scene();
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    use("", 0, 1); /* once is not enough */
    use("", 1, 3);
    use("", 2, 5);
    turn();
    BHT_TRUE(spare->lessons.adopted);
    BHT_EQ(spare->lessons.kernel, id_of(2));
    BHT_STR_HAS(spare->lessons.name, "c");
    BHT_EQ(count_messages(spare, BHI_MSG_KERNEL_CREATE), 1);
    BHT_EQ(count_messages(spare, BHI_MSG_LEARN), 1);
    turn_due(); /* one at a time */
    BHT_EQ(spare->lessons.kernel, id_of(2));
    BHT_TRUE(!answer(spare, id_of(2), BH_OK));
    turn();
    BHT_EQ(spare->lessons.kernel, id_of(1));
    BHT_TRUE(!answer(spare, id_of(1), BH_OK));
    turn();
    BHT_EQ(spare->lessons.kernel, 0);
    BHT_EQ(bhi_lessons_known(spare), 2);
    BHT_EQ(count_messages(spare, BHI_MSG_LEARN), 2);
    BHT_EQ(s.p.context->kernels->told, 2);
    close_scene();
}

static void a_lie_is_seen(void) {
    open_scene();
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    BHT_TRUE(answer(spare, id_of(0), BH_OK)); /* it was told nothing */
    use("", 0, 2);
    turn();
    BHT_TRUE(answer(spare, id_of(1), BH_OK));
    BHT_EQ(spare->lessons.kernel, id_of(0));
    BHT_TRUE(!answer(spare, id_of(0), BH_OK));
    BHT_TRUE(answer(spare, id_of(0), BH_OK)); /* once */
    close_scene();
}

/* What it could not compile is not there, and it is not tried again. */
static void what_fails_is_forgotten(void) {
    open_scene();
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    use("", 0, 5);
    turn();
    BHT_TRUE(!answer(spare, id_of(0), BH_OUT_OF_DEVICE_MEMORY));
    BHT_TRUE(!knows(spare, 0));
    BHT_EQ(count_messages(spare, BHI_MSG_KERNEL_DESTROY), 1);
    use("", 0, 5);
    turn_due();
    BHT_EQ(spare->lessons.kernel, 0);
    struct bhi_worker *another = puppet_worker(&s.p, BHI_RUNNING);
    turn_due();
    BHT_EQ(another->lessons.kernel, 0);
    close_scene();
}

/* As many as a spare may know; then only what is used twice as much takes another's place. */
static void places_are_limited(void) {
    open_scene();
    s.p.context->settings.spare_kernels = 2;
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    use("", 0, 4);
    use("", 1, 5);
    use("", 2, 3);
    learn_all(spare);
    BHT_TRUE(knows(spare, 0) && knows(spare, 1) && !knows(spare, 2));
    use("", 2, 6); /* 9: not twice as much as 4 and one more */
    turn_due();
    BHT_EQ(spare->lessons.kernel, 0);
    use("", 2, 1);
    learn_all(spare);
    BHT_TRUE(!knows(spare, 0) && knows(spare, 1) && knows(spare, 2));
    BHT_EQ(bhi_lessons_known(spare), 2);
    close_scene();
}

static void bytes_are_limited(void) {
    open_scene();
    s.p.context->settings.kernel_limit_bytes = 3 * 20;
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    for (int i = 0; i < KERNELS; i++) {
        use("", i, 2);
    }
    learn_all(spare);
    BHT_EQ(bhi_lessons_known(spare), 3);
    close_scene();
}

static void none_is_told_if_none_may_be(void) {
    open_scene();
    s.p.context->settings.spare_kernels = 0;
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    use("", 0, 5);
    turn_due();
    BHT_TRUE(!spare->lessons.adopted);
    close_scene();
}

/* K5. A kernel that is refused, on trial or gone is not told. */
static void refused_kernels_are_not_told(void) {
    open_scene();
    struct bhi_death_records *records = s.p.context->death_records;
    records->most_deaths = 1;
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    for (int i = 0; i < 4; i++) {
        use("", i, 5);
    }
    bh_verdict verdict = {.status = BH_WORKER_SIGNAL};
    memcpy(verdict.kernel_hash, s.kernels[0]->body->hash, 32);
    BHT_TRUE(bhi_death_records_note(records, "", &verdict, false, bhi_now_ns()));
    memcpy(verdict.kernel_hash, s.kernels[1]->body->hash, 32);
    bhi_death_records_try(records, "", &verdict, bhi_now_ns());
    bh_kernel_release(s.kernels[2]);
    s.kernels[2] = NULL;
    learn_all(spare);
    BHT_TRUE(!knows(spare, 0) && !knows(spare, 1) && knows(spare, 3));
    BHT_EQ(bhi_lessons_known(spare), 1);
    /* What was refused to one tenant is told to another's. */
    bh_stream *other = add_served("bob", BH_ISOLATION_STREAM);
    struct bhi_worker *untold = puppet_worker(&s.p, BHI_RUNNING);
    (void)puppet_worker(&s.p, BHI_RUNNING);
    use("bob", 0, 5);
    learn_all(untold);
    BHT_TRUE(knows(untold, 0));
    bh_stream_release(other);
    close_scene();
}

static void a_kernel_that_is_destroyed_is_forgotten(void) {
    open_scene();
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    use("", 0, 5);
    turn();
    const uint64_t id = id_of(0);
    bh_kernel_release(s.kernels[0]); /* while the spare compiles it */
    s.kernels[0] = NULL;
    BHT_EQ(count_messages(spare, BHI_MSG_KERNEL_DESTROY), 1);
    BHT_TRUE(!answer(spare, id, BH_OK));
    BHT_EQ(bhi_lessons_known(spare), 0);
    BHT_TRUE(!bhi_usage_kernel(bhi_usage_find(s.p.context->usages, "", ""), id));
    turn();
    BHT_EQ(spare->lessons.kernel, 0);
    close_scene();
}

static void a_lesson_has_a_deadline(void) {
    open_scene();
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    use("", 0, 5);
    turn();
    const uint64_t until_ns = spare->lessons.until_ns;
    bhi_context_lock(s.p.context);
    BHT_EQ(bhi_lesson_check_deadline(spare, until_ns - 1), until_ns);
    BHT_EQ(spare->core.kill, BHI_KILL_NONE);
    BHT_EQ(bhi_lesson_check_deadline(spare, until_ns), BH_FOREVER);
    BHT_EQ(spare->core.kill, BHI_KILL_COMPILE);
    bhi_context_pump_unlock(s.p.context);
    close_scene();
}

/* -- who gets which ---------------------------------------------------------------------------- */

static void the_one_that_knows_most_is_taken(void) {
    open_scene();
    use("", 0, 5);
    use("", 1, 2);
    struct bhi_worker *little = puppet_worker(&s.p, BHI_RUNNING);
    learn_all(little);
    bhi_context_lock(s.p.context);
    bhi_worker_forget_kernel(little, id_of(1));
    bhi_context_pump_unlock(s.p.context);
    little->state = BHI_HELD; /* it is told nothing meanwhile */
    struct bhi_worker *much = puppet_worker(&s.p, BHI_RUNNING);
    learn_all(much);
    BHT_TRUE(knows(much, 0) && knows(much, 1) && knows(little, 0));
    little->state = BHI_RUNNING;
    struct bhi_worker *untold = puppet_worker(&s.p, BHI_RUNNING);
    bh_stream *stream = add_stream("", BH_ISOLATION_STREAM);
    BHT_TRUE(choose(stream) == much);
    /* One that compiles is not taken, and one that starts comes last. */
    much->lessons.kernel = id_of(0);
    BHT_TRUE(choose(stream) == little);
    little->lessons.kernel = id_of(0);
    BHT_TRUE(choose(stream) == untold);
    untold->state = BHI_HELD;
    BHT_TRUE(choose(stream) == untold);
    little->lessons.kernel = 0;
    BHT_TRUE(choose(stream) == little);
    /* What waits in the queue counts more than what the tenant uses. */
    untold->state = BHI_RUNNING;
    much->lessons.kernel = little->lessons.kernel = 0;
    bhi_context_lock(s.p.context);
    bhi_worker_forget_kernel(much, id_of(0));
    bhi_context_pump_unlock(s.p.context);
    BHT_TRUE(choose(stream) == little);
    const bh_command command = {
        .type = BH_COMMAND_DISPATCH, .kernel = s.kernels[1], .groups = {1, 1, 1}};
    const bh_submit_info info = {.commands = &command, .command_count = 1};
    bh_event *event = NULL;
    BHT_EQ(bh_submit(stream, &info, &event, NULL), BH_OK);
    BHT_TRUE(choose(stream) == much);
    bh_event_release(event);
    bh_stream_release(stream);
    close_scene();
}

/* T1. What a tenant's kernels may have taken over meets no other tenant. */
static void a_spare_that_was_told_serves_one_tenant(void) {
    open_scene();
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    use("", 0, 5);
    turn();
    BHT_TRUE(spare->lessons.adopted);
    bh_stream *other = add_stream("bob", BH_ISOLATION_STREAM);
    bh_stream *own = add_stream("", BH_ISOLATION_STREAM);
    BHT_TRUE(!choose(other) && !choose(own));
    BHT_EQ(bhi_spares_patience(s.p.context, other), 0);
    BHT_TRUE(bhi_spares_patience(s.p.context, own) > 0);
    BHT_TRUE(!answer(spare, id_of(0), BH_OK));
    BHT_TRUE(!choose(other));
    BHT_TRUE(choose(own) == spare);
    /* Nor is it told another tenant's. */
    use("bob", 1, 9);
    turn_due();
    BHT_TRUE(!knows(spare, 1));
    bh_stream_release(other);
    bh_stream_release(own);
    close_scene();
}

/* T2, T3. What it has compiled is its past: a stream that keeps kernels apart has another one, and
 * so has a launch that must be alone. */
static void what_it_knows_is_its_past(void) {
    open_scene();
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    use("", 0, 5);
    use("", 1, 4);
    learn_all(spare);
    BHT_TRUE(spare->core.past.code && spare->core.past.mixed && !spare->core.past.used);
    bh_stream *apart = add_stream("", BH_ISOLATION_KERNEL);
    bh_stream *own = add_stream("", BH_ISOLATION_STREAM);
    BHT_TRUE(!choose(apart));
    BHT_TRUE(choose(own) == spare);
    const bh_command command = {
        .type = BH_COMMAND_DISPATCH, .kernel = s.kernels[0], .groups = {1, 1, 1}};
    const bh_submit_info info = {.commands = &command, .command_count = 1, .alone = true};
    bh_event *event = NULL;
    BHT_EQ(bh_submit(own, &info, &event, NULL), BH_OK);
    BHT_TRUE(!choose(own));
    struct bhi_worker *untold = puppet_worker(&s.p, BHI_RUNNING);
    BHT_TRUE(choose(own) == untold);
    BHT_TRUE(choose(apart) == untold);
    bh_event_release(event);
    bh_stream_release(apart);
    bh_stream_release(own);
    close_scene();
}

/* A stream does not take a spare that learns. It waits for it, but not for long. */
static void a_lesson_is_waited_for(void) {
    struct bhi_worker *serving = open_scene();
    puppet_end_process(serving, CLD_KILLED, SIGKILL);
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    use("", 0, 5);
    turn();
    puppet_bury(serving, NULL);
    struct bhi_worker *starting = puppet_worker(&s.p, BHI_HELD);
    spare->lessons.since_ns = bhi_now_ns() + 3600 * UINT64_C(1000000000); /* it has just begun */
    BHT_TRUE(bhi_assignment_turn(s.p.context) >= spare->lessons.since_ns);
    BHT_TRUE(!s.p.stream->core.worker);
    BHT_TRUE(!answer(spare, id_of(0), BH_OK));
    turn();
    BHT_TRUE(s.p.stream->core.worker == &spare->core);
    /* What it knows is not introduced again, and it is no spare any more. */
    const bh_command command = {
        .type = BH_COMMAND_DISPATCH, .kernel = s.kernels[0], .groups = {1, 1, 1}};
    const bh_submit_info info = {.commands = &command, .command_count = 1};
    bh_event *event = NULL;
    BHT_EQ(bh_submit(s.p.stream, &info, &event, NULL), BH_OK);
    BHT_EQ(spare->core.published, 1);
    BHT_EQ(count_messages(spare, BHI_MSG_KERNEL_CREATE), 1);
    BHT_EQ(s.p.context->kernels->introduced, 0);
    use("", 1, 5);
    turn_due();
    BHT_EQ(spare->lessons.kernel, 0);
    puppet_complete(spare, 1);
    BHT_EQ(bh_event_wait(event, PUPPET_SECONDS), BH_OK);
    bh_event_release(event);
    /* The patience is over. */
    starting->state = BHI_RUNNING;
    turn_due();
    BHT_TRUE(starting->lessons.kernel);
    struct bhi_worker *next = puppet_worker(&s.p, BHI_HELD);
    puppet_end_process(spare, CLD_KILLED, SIGKILL);
    puppet_bury(spare, NULL);
    starting->lessons.since_ns = 0;
    turn();
    BHT_TRUE(s.p.stream->core.worker == &next->core);
    close_scene();
}

/* -- how spares are shared --------------------------------------------------------------------- */

/* One stays for whoever comes, as soon as there are several tenants or kernels are kept apart. */
static void one_stays_untold(void) {
    open_scene();
    bh_stream *other = add_served("bob", BH_ISOLATION_STREAM);
    struct bhi_worker *one = puppet_worker(&s.p, BHI_RUNNING);
    use("", 0, 5);
    use("bob", 1, 9);
    turn_due();
    BHT_TRUE(!one->lessons.adopted);
    struct bhi_worker *two = puppet_worker(&s.p, BHI_HELD); /* soon */
    learn_all(one);
    BHT_TRUE(one->lessons.adopted);
    BHT_STR_HAS(one->lessons.tenant, "bob"); /* it uses its kernels most */
    two->state = BHI_RUNNING;
    turn_due();
    BHT_TRUE(!two->lessons.adopted);
    struct bhi_worker *three = puppet_worker(&s.p, BHI_RUNNING);
    turn_due();
    learn_all(two);
    learn_all(three);
    /* The next one goes to the tenant that has none. */
    BHT_EQ(two->lessons.adopted + three->lessons.adopted, 1);
    const struct bhi_worker *told = two->lessons.adopted ? two : three;
    BHT_EQ(told->lessons.tenant[0], '\0');
    BHT_TRUE(knows(told, 0) && !knows(told, 1));
    bh_stream_release(other);
    close_scene();
}

static void kernels_that_are_kept_apart_need_an_untold_one(void) {
    open_scene();
    bh_stream *apart = add_served("", BH_ISOLATION_SUBMISSION);
    struct bhi_worker *one = puppet_worker(&s.p, BHI_RUNNING);
    use("", 0, 5);
    turn_due();
    BHT_TRUE(!one->lessons.adopted);
    bh_stream_release(apart);
    turn_due();
    BHT_TRUE(one->lessons.adopted);
    close_scene();
}

/* All spares know one tenant's kernels, and a second tenant comes: one of them makes place, and
 * not more than one a second. */
static void a_second_tenant_gets_room(void) {
    open_scene();
    struct bhi_worker *one = puppet_worker(&s.p, BHI_RUNNING);
    struct bhi_worker *two = puppet_worker(&s.p, BHI_RUNNING);
    s.p.context->settings.spares = 2;
    use("", 0, 5);
    turn();
    learn_all(one);
    learn_all(two);
    BHT_TRUE(one->lessons.adopted && two->lessons.adopted);
    turn_due();
    BHT_TRUE(bhi_spare_is_free(one) && bhi_spare_is_free(two));
    bh_stream *other = add_served("bob", BH_ISOLATION_STREAM);
    turn();
    BHT_EQ(bhi_spare_is_free(one) + bhi_spare_is_free(two), 1);
    turn_due();
    BHT_EQ(bhi_spare_is_free(one) + bhi_spare_is_free(two), 1);
    const struct bhi_worker *gone = bhi_spare_is_free(one) ? two : one;
    BHT_EQ(gone->core.kill, BHI_KILL_RETIRED);
    bh_stream_release(other);
    close_scene();
}

static void a_spare_of_a_tenant_that_has_gone_makes_place(void) {
    open_scene();
    bh_stream *other = add_served("bob", BH_ISOLATION_STREAM);
    struct bhi_worker *one = puppet_worker(&s.p, BHI_RUNNING);
    struct bhi_worker *two = puppet_worker(&s.p, BHI_RUNNING);
    s.p.context->settings.spares = 2;
    use("bob", 1, 9);
    learn_all(one);
    learn_all(two);
    BHT_EQ(one->lessons.adopted + two->lessons.adopted, 1);
    struct bhi_worker *bobs = one->lessons.adopted ? one : two;
    use("", 0, 5);
    turn_due();
    BHT_TRUE(bhi_spare_is_free(bobs));
    bh_stream_release(other);
    turn_due();
    BHT_EQ(bobs->core.kill, BHI_KILL_RETIRED);
    close_scene();
}

static const bh_stream *wanted(void) {
    bhi_context_lock(s.p.context);
    const struct bh_stream *stream = bhi_spares_wanted(s.p.context);
    bhi_context_pump_unlock(s.p.context);
    return stream;
}

/* So many for each device and memory limit, not in all. */
static void each_device_and_memory_limit_has_spares(void) {
    open_scene();
    BHT_TRUE(!wanted());
    s.p.context->settings.spares = 1;
    BHT_TRUE(wanted() == s.p.stream);
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    BHT_TRUE(!wanted());
    bh_stream *narrow = add_stream("", BH_ISOLATION_STREAM);
    narrow->memory_limit /= 2;
    BHT_TRUE(!wanted()); /* it needs its own worker first */
    struct bhi_worker *worker = puppet_worker(&s.p, BHI_RUNNING);
    worker->memory_limit = narrow->memory_limit;
    turn();
    BHT_TRUE(narrow->core.worker == &worker->core);
    BHT_TRUE(wanted() == narrow);
    struct bhi_worker *second = puppet_worker(&s.p, BHI_RUNNING);
    second->memory_limit = narrow->memory_limit;
    BHT_TRUE(!wanted());
    /* What no stream uses any more makes place when another is wanted, and not before. */
    bh_stream_release(narrow);
    turn();
    BHT_TRUE(!wanted());
    BHT_TRUE(bhi_spare_is_free(second));
    puppet_bury(spare, NULL);
    BHT_TRUE(wanted() == s.p.stream);
    BHT_EQ(second->core.kill, BHI_KILL_RETIRED);
    close_scene();
}

/* -- deaths ------------------------------------------------------------------------------------ */

static const struct bhi_death_record *record_of(int kernel, const char *tenant) {
    return bhi_death_records_held(s.p.context->death_records, tenant, s.kernels[kernel]->body->hash,
                                  bhi_now_ns());
}

static bool on_trial(int kernel) {
    return bhi_death_records_on_trial(s.p.context->death_records, "", s.kernels[kernel]->body->hash,
                                      bhi_now_ns());
}

static struct bhi_used_kernel *used(int kernel) {
    struct bhi_usage *usage = bhi_usage_find(s.p.context->usages, "", "");
    BHT_TRUE(usage);
    usage->quiet_until_ns = 0; /* as if a while had passed */
    return bhi_usage_kernel(usage, id_of(kernel));
}

static struct bhi_obituary obituary; /* of the last one */

/* A spare dies while it compiles kernel 0, |before| which it has compiled kernel 1 or not. */
static void die(int code_kind, int status, bool before) {
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    use("", 0, 5);
    if (before) {
        use("", 1, 9);
    }
    turn_due();
    if (before) {
        BHT_EQ(spare->lessons.kernel, id_of(1));
        BHT_TRUE(!answer(spare, id_of(1), BH_OK));
        turn();
    }
    BHT_EQ(spare->lessons.kernel, id_of(0));
    puppet_end_process(spare, code_kind, status);
    puppet_bury(spare, &obituary);
}

/* K5. As for a launch that it was compiled for. */
static void a_crash_is_charged(void) {
    open_scene();
    die(CLD_DUMPED, SIGSEGV, false);
    const struct bhi_death_record *record = record_of(0, "");
    BHT_TRUE(record);
    BHT_TRUE(record->uncompilable);
    BHT_EQ(record->cause, BH_COMPILE_FAILED);
    BHT_EQ(record->signal, SIGSEGV);
    BHT_STR_HAS(record->message, "a spare worker died while compiling it");
    BHT_TRUE(!record_of(0, "bob"));
    BHT_TRUE(used(0)->barred);
    BHT_STR_HAS(obituary.line, "a spare: worker 4242 died while it compiled kernel \"a\" before");
    /* No other spare is told. */
    struct bhi_worker *next = puppet_worker(&s.p, BHI_RUNNING);
    use("", 0, 9);
    turn_due();
    BHT_EQ(next->lessons.kernel, 0);
    /* A launch says why it is refused. */
    const bh_command command = {
        .type = BH_COMMAND_DISPATCH, .kernel = s.kernels[0], .groups = {1, 1, 1}};
    const bh_submit_info info = {.commands = &command, .command_count = 1};
    bh_event *event = NULL;
    BHT_EQ(bh_submit(s.p.stream, &info, &event, NULL), BH_OK);
    const bh_verdict verdict = puppet_verdict(event);
    BHT_EQ(verdict.status, BH_COMPILE_FAILED);
    BHT_STR_HAS(verdict.message, "did not survive it in a spare worker");
    bh_event_release(event);
    close_scene();
}

/* T2. What it had compiled before may be to blame. */
static void a_crash_after_another_kernel_is_suspected(void) {
    open_scene();
    die(CLD_DUMPED, SIGSEGV, true);
    BHT_TRUE(!record_of(0, "") && !record_of(1, ""));
    BHT_TRUE(on_trial(0) && !on_trial(1));
    BHT_TRUE(used(0)->barred && !used(1)->barred);
    close_scene();
}

/* A kill from outside proves nothing. The kernel has to be used anew. There is no third time. */
static void a_kill_is_nobodys_fault(void) {
    open_scene();
    die(CLD_KILLED, SIGKILL, false);
    BHT_TRUE(!record_of(0, "") && !on_trial(0));
    BHT_EQ(used(0)->uses, 0);
    struct bhi_worker *next = puppet_worker(&s.p, BHI_RUNNING);
    turn_due();
    BHT_EQ(next->lessons.kernel, 0);
    puppet_bury(next, NULL);
    die(CLD_KILLED, SIGKILL, false);
    BHT_TRUE(!record_of(0, "") && used(0)->barred);
    close_scene();
}

/* A spare that ends with its zygote, or because it is not needed, says nothing of its lesson. */
static void an_end_with_its_zygote_costs_nothing(void) {
    open_scene();
    s.p.zygote->state = BHI_ZYGOTE_STARTING;
    struct bhi_worker *spare = puppet_worker(&s.p, BHI_RUNNING);
    use("", 0, 5);
    turn();
    BHT_EQ(spare->lessons.kernel, id_of(0));
    s.p.zygote->state = BHI_ZYGOTE_LOST;
    puppet_bury(spare, NULL);
    BHT_EQ(used(0)->uses, 5);
    BHT_TRUE(!used(0)->deaths);
    close_scene();
}

/* After such a death no spare is told anything for a while: new spares stay alive meanwhile. */
static void a_death_makes_a_pause(void) {
    open_scene();
    use("", 1, 2);
    die(CLD_DUMPED, SIGSEGV, false);
    struct bhi_worker *next = puppet_worker(&s.p, BHI_RUNNING);
    struct bhi_usage *usage = bhi_usage_find(s.p.context->usages, "", "");
    BHT_TRUE(usage->quiet_until_ns);
    usage->quiet_until_ns = bhi_now_ns() + 3600 * UINT64_C(1000000000); /* this one is not over */
    bhi_context_lock(s.p.context);
    s.p.context->spares_due = true;
    bhi_context_unlock(s.p.context);
    BHT_EQ(bhi_assignment_turn(s.p.context), usage->quiet_until_ns);
    BHT_TRUE(!next->lessons.kernel && !next->lessons.adopted);
    usage->quiet_until_ns = 0;
    turn();
    BHT_EQ(next->lessons.kernel, id_of(1));
    close_scene();
}

int main(int argc, char **argv) {
    static const struct bht_test TESTS[] = {
        BHT_TEST(the_most_used_comes_first),
        BHT_TEST(a_lie_is_seen),
        BHT_TEST(what_fails_is_forgotten),
        BHT_TEST(places_are_limited),
        BHT_TEST(bytes_are_limited),
        BHT_TEST(none_is_told_if_none_may_be),
        BHT_TEST(refused_kernels_are_not_told),
        BHT_TEST(a_kernel_that_is_destroyed_is_forgotten),
        BHT_TEST(a_lesson_has_a_deadline),
        BHT_TEST(the_one_that_knows_most_is_taken),
        BHT_TEST(a_spare_that_was_told_serves_one_tenant),
        BHT_TEST(what_it_knows_is_its_past),
        BHT_TEST(a_lesson_is_waited_for),
        BHT_TEST(one_stays_untold),
        BHT_TEST(kernels_that_are_kept_apart_need_an_untold_one),
        BHT_TEST(a_second_tenant_gets_room),
        BHT_TEST(a_spare_of_a_tenant_that_has_gone_makes_place),
        BHT_TEST(each_device_and_memory_limit_has_spares),
        BHT_TEST(a_crash_is_charged),
        BHT_TEST(a_crash_after_another_kernel_is_suspected),
        BHT_TEST(a_kill_is_nobodys_fault),
        BHT_TEST(an_end_with_its_zygote_costs_nothing),
        BHT_TEST(a_death_makes_a_pause),
    };
    return bht_main(argc, argv, TESTS, BHT_COUNT(TESTS));
}
