/* The session against a fake supervisor in another thread. */
#include "fake_supervisor.h"

#include "base/futex.h"
#include "base/memfd.h"
#include "ipc/fdpass.h"
#include "worker/backend/ops.h"
#include "worker/error.h"
#include "worker/sentinel.h"

#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

BHT_AT_START(bht_around(fake_open_ready, NULL))

static struct bhi_result harvest_one(char text[BHI_ERROR_TEXT]) {
    struct bhi_result result;
    fake_wait(fake.harvested + 1);
    fake_harvest(&result, text);
    return result;
}

static void harvest_ok(void) {
    char text[BHI_ERROR_TEXT];
    struct bhi_result result = harvest_one(text);
    if (result.status != BH_OK) {
        BHT_FAIL("status %u: %s", result.status, text);
    }
    BHT_STR_EQ(text, "");
}

static void run_ok(struct bhi_lane_record *record) {
    fake_publish(record, 0);
    harvest_ok();
}

static void prepare(uint64_t kernel) {
    struct {
        struct bhi_lane_record record;
        struct bhi_cmd_prepare prepare;
    } job = {.record = {.size = sizeof job, .command_count = 1},
             .prepare = {.header = {.type = BHI_CMD_PREPARE, .size = sizeof job.prepare},
                         .kernel = kernel}};
    run_ok(&job.record);
}

TEST(a_dispatch_from_end_to_end) {
    uint32_t *x = fake_buffer(1, 1024);
    uint32_t *y = fake_buffer(2, 1024);
    for (uint32_t i = 0; i < 256; i++) {
        x[i] = i;
    }
    fake_kernel(5, CODE(add));
    struct fake_record record = fake_add(5, 1, 0, 2, 0, 1024, 1000);
    run_ok(&record.record);
    for (uint32_t i = 0; i < 256; i++) {
        BHT_EQ(y[i], i + 1000);
    }
    struct bhi_message message;
    for (uint32_t i = 0; i < 2; i++) {
        fake_expect(BHI_MSG_KERNEL_BINDING, &message);
        BHT_EQ(message.kernel_binding.kernel, 5);
        BHT_EQ(message.kernel_binding.index, i);
        BHT_EQ(message.kernel_binding.binding, i);
        BHT_EQ(message.kernel_binding.access, i == 0 ? BH_ACCESS_READ : BH_ACCESS_WRITE);
        BHT_STR_EQ(message.kernel_binding.name, i == 0 ? "X" : "Y");
    }
    fake_expect(BHI_MSG_KERNEL_INFO, &message);
    BHT_EQ(message.kernel_info.bindings, 2);
    BHT_EQ(message.kernel_info.push_bytes, 4);
    BHT_EQ(message.kernel_info.local_x, 64);
}

/* More submissions than the ring of results or the lane holds, each seen to be done in order. */
TEST(many_submissions) {
    uint32_t *x = fake_buffer(1, 1024);
    uint32_t *y = fake_buffer(2, 1024);
    fake_kernel(1, CODE(add));
    enum { COUNT = 9000 };
    for (uint32_t i = 0; i < COUNT; i++) {
        struct fake_record record = fake_add(1, 1 + i % 2, 0, 2 - i % 2, 0, 1024, 1);
        fake_publish(&record.record, 0);
    }
    fake_wait(COUNT);
    BHT_EQ(x[7], COUNT);
    BHT_EQ(y[7], COUNT - 1);
    while (fake.harvested < COUNT) {
        harvest_ok();
    }
}

/* A record waits for the control messages that it needs, and only then runs. */
TEST(control_comes_first) {
    struct fake_record record = fake_fill(3, 8, 4, 77);
    fake_publish(&record.record, 1); /* the buffer is announced later */
    uint32_t *data = fake_buffer(3, 64);
    harvest_ok();
    BHT_EQ(data[2], 77);

    const struct bhi_message detach = {.type = BHI_MSG_BUFFER_DETACH,
                                       .buffer_detach = {.buffer = 3}};
    fake_send(&detach, -1, 0);
    fake_publish(&record.record, 0);
    char text[BHI_ERROR_TEXT];
    struct bhi_result result = harvest_one(text);
    BHT_EQ(result.status, BH_BINDING_MISMATCH);
    BHT_STR_EQ(text, "buffer 3 is not attached");
    BHT_EQ(result.executed, BH_EXECUTED_NO);
    BHT_EQ(result.command_index, 0);
}

static void wait_until_asleep(void) {
    const uint64_t deadline = bhi_deadline_ns(FAKE_PATIENCE_NS);
    while (atomic_load(&fake.view.header->sleeping) == 0) {
        BHT_LT(bhi_now_ns(), deadline);
        sched_yield();
    }
}

/* A record may ask for a message that is on its way and not yet counted in the lane. */
TEST(control_that_is_counted_late) {
    struct fake_record record = fake_fill(3, 8, 4, 77);
    fake.withhold_count = true;
    uint32_t *data = fake_buffer(3, 64);
    run_ok(&record.record);
    BHT_EQ(data[2], 77);
    wait_until_asleep(); /* and not in wait for another message */
    record.fill.value = 78;
    run_ok(&record.record);
    BHT_EQ(data[2], 78);
    fake.withhold_count = false;
}

/* Failures beyond the error slots: none is overwritten before it has been read, and the bell rings
 * for them. */
static void keep_their_texts(uint32_t flags) {
    fake_buffer(1, 64);
    enum { COUNT = 500 };
    for (uint32_t i = 1; i <= COUNT; i++) {
        struct fake_record record = fake_fill(i % 5 == 0 ? 1 : 100000 + i, 0, 4, i);
        record.record.flags = flags;
        fake_publish(&record.record, 0);
    }
    /* Nobody fetches: it stops when the slots are full, and stays there. */
    fake_wait(BHI_ERROR_SLOTS);
    const uint64_t until = bhi_now_ns() + 50000000;
    uint64_t completed, tail;
    while (bhi_now_ns() < until) {
        BHT_EQ(bhi_progress_poll(&fake.view, fake.published, fake.lane.head, &completed, &tail), 0);
        BHT_LE(completed, BHI_ERROR_SLOTS + 1);
        sched_yield();
    }
    while (fake.harvested < COUNT) {
        BHT_TRUE(fake_rung(FAKE_PATIENCE_MS));
        BHT_EQ(bhi_progress_poll(&fake.view, fake.published, fake.lane.head, &completed, &tail), 0);
        /* It cannot have gone on past the slots; a good one needs none, and leaves none occupied.
         */
        BHT_LE(completed - fake.harvested, BHI_ERROR_SLOTS + 2);
        while (fake.harvested < completed) {
            struct bhi_result result;
            char text[BHI_ERROR_TEXT], expected[64];
            const uint64_t seq = fake.harvested + 1;
            fake_harvest(&result, text);
            if (seq % 5 == 0) {
                BHT_EQ(result.status, BH_OK);
                continue;
            }
            snprintf(expected, sizeof expected, "buffer %llu is not attached",
                     (unsigned long long)(100000 + seq));
            BHT_EQ(result.status, BH_BINDING_MISMATCH);
            BHT_STR_EQ(text, expected);
        }
    }
}

TEST(failures_keep_their_texts) {
    keep_their_texts(0);
}
TEST(so_do_those_that_run_alone) {
    keep_their_texts(BHI_RECORD_ALONE);
}

/* The answer to `learn`. */
static uint32_t learn(uint64_t kernel) {
    const struct bhi_message message = {.type = BHI_MSG_LEARN, .learn = {.kernel = kernel}};
    struct bhi_message answer;
    fake_send(&message, -1, 0);
    fake_expect(BHI_MSG_LEARNED, &answer);
    BHT_EQ(answer.learned.kernel, kernel);
    return answer.learned.status;
}

TEST(the_bell) {
    fake_buffer(1, 64);
    wait_until_asleep();
    BHT_TRUE(!fake_rung(0)); /* nothing has happened */

    /* It rings before it sleeps on results that nobody has fetched. */
    struct fake_record record = fake_fill(1, 0, 4, 1);
    fake_publish(&record.record, 0);
    BHT_TRUE(fake_rung(FAKE_PATIENCE_MS));
    (void)learn(7); /* it wakes, and sleeps again: that is known */
    wait_until_asleep();
    BHT_TRUE(!fake_rung(0));
    harvest_ok();
    wait_until_asleep();
    BHT_TRUE(!fake_rung(0));

    /* It rings when notify_at is reached, though it does not sleep: a record holds it up that
     * needs a message which is yet to come. */
    atomic_store(&fake.lane.header->notify_at, 2);
    fake_publish(&record.record, 0);
    fake_publish(&record.record, 1);
    BHT_TRUE(fake_rung(FAKE_PATIENCE_MS));
    uint64_t completed, tail;
    BHT_EQ(bhi_progress_poll(&fake.view, fake.published, fake.lane.head, &completed, &tail), 0);
    BHT_EQ(completed, 2);
    harvest_ok();
    BHT_EQ(atomic_load(&fake.view.header->sleeping), 0);
    fake_buffer(2, 64);
    harvest_ok();

    /* Also for a number that it has passed already. */
    wait_until_asleep();
    (void)fake_rung(0);
    atomic_store(&fake.lane.header->notify_at, 3);
    fake_publish(&record.record, 0);
    fake_publish(&record.record, 1);
    BHT_TRUE(fake_rung(FAKE_PATIENCE_MS));
    harvest_ok();
    fake_buffer(3, 64);
    harvest_ok();
}

/* That a compile is over is said at once: from then on the deadline runs. (Nothing else rings: the
 * second record waits for a message, and does not sleep.) */
TEST(the_end_of_compiling_rings) {
    fake_buffer(1, 1024);
    fake_buffer(2, 1024);
    fake_kernel(5, CODE(add));
    BHT_TRUE(!fake_rung(0));
    struct fake_record record = fake_add(5, 1, 0, 2, 0, 1024, 1);
    fake_publish(&record.record, 0);
    fake_publish(&record.record, 1);
    BHT_TRUE(fake_rung(FAKE_PATIENCE_MS));
    BHT_EQ(atomic_load(&fake.view.header->run_seq), 1);
    harvest_ok();
    fake_buffer(3, 64);
    harvest_ok();
}

/* Once: what follows is nobody's business. (Each but the first waits for a message, so that nothing
 * rings because it sleeps.) */
TEST(what_is_awaited_rings_once) {
    fake_buffer(1, 64);
    wait_until_asleep();
    struct fake_record record = fake_fill(1, 0, 4, 1);
    atomic_store(&fake.lane.header->notify_at, 1);
    for (uint32_t i = 0; i < 4; i++) {
        fake_publish(&record.record, i);
    }
    BHT_TRUE(fake_rung(FAKE_PATIENCE_MS));
    for (uint64_t i = 2; i <= 3; i++) {
        fake_buffer(i, 64);
        fake_wait(i);
    }
    BHT_TRUE(!fake_rung(0));
    fake_buffer(4, 64);
    while (fake.harvested < fake.published) {
        harvest_ok();
    }
}

/* -- who sleeps on what it completes ----------------------------------------------------------- */

struct sleeper {
    pthread_t thread;
    _Atomic int tid;
    int result;
};

static void *sleep_on_it(void *argument) {
    struct sleeper *sleeper = argument;
    atomic_fetch_add(&fake.lane.header->waiters, 1);
    atomic_store(&sleeper->tid, (int)syscall(SYS_gettid));
    sleeper->result = bhi_futex_wait(&fake.view.header->completed_word, 0, true,
                                     bhi_deadline_ns(FAKE_PATIENCE_NS));
    return NULL;
}

/* Host threads that sleep on the completed word are woken by whoever changes it, all of them. */
TEST(all_who_sleep_are_woken) {
    fake_buffer(1, 64);
    struct sleeper sleepers[3];
    const size_t count = BHT_COUNT(sleepers);
    for (size_t i = 0; i < count; i++) {
        sleepers[i] = (struct sleeper){0};
        BHT_EQ(pthread_create(&sleepers[i].thread, NULL, sleep_on_it, &sleepers[i]), 0);
    }
    for (size_t i = 0; i < count; i++) {
        WAIT_UNTIL(bht_process_state(atomic_load(&sleepers[i].tid)) == 'S', FAKE_PATIENCE_MS);
    }
    struct fake_record record = fake_fill(1, 0, 4, 1);
    fake_publish(&record.record, 0);
    for (size_t i = 0; i < count; i++) {
        pthread_join(sleepers[i].thread, NULL);
        BHT_EQ(sleepers[i].result, 0); /* woken: it has not found out by itself */
    }
    atomic_store(&fake.lane.header->waiters, 0);
    harvest_ok();
}

TEST(the_published_is_done_first) {
    uint32_t *x = fake_buffer(1, 1024);
    fake_kernel(1, CODE(increment));
    enum { COUNT = 300 };
    for (uint32_t i = 0; i < COUNT; i++) {
        struct fake_record record = fake_add(1, 1, 0, 1, 0, 1024, 0);
        record.dispatch.binding_count = 1;
        record.dispatch.push_size = 0;
        record.dispatch.groups_x = 1;
        record.bindings[0].access = BH_ACCESS_READ_WRITE;
        record.dispatch.header.size =
            (uint32_t)bhi_cmd_dispatch_size(record.dispatch.binding_count, 0);
        record.record.size = sizeof record.record + record.dispatch.header.size;
        fake_publish(&record.record, 0);
        if (i == 0) {
            fake_wait(1); /* what a kernel is like is told while there is somebody to tell */
        }
    }
    fake_hang_up();
    BHT_EQ(fake_join(), BHI_EXIT_SUPERVISOR);
    while (fake.harvested < COUNT) {
        harvest_ok();
    }
    BHT_EQ(x[0], COUNT);
}

/* The host kills a worker that writes more than 200 lines at once, and 20 a second from then on. */
TEST(compiles_are_logged) {
    enum { COUNT = 150, AT_ONCE = 100, A_SECOND = 10 };
    const uint64_t began = bhi_now_ns();
    uint64_t lines = 0;
    for (uint64_t id = 1; id <= COUNT; id++) {
        fake_kernel(id, CODE(increment));
        prepare(id);
        struct bhi_message message;
        do {
            BHT_EQ(bhi_channel_recv(&fake.channel, BHI_W2S, BHI_WS_RUNNING, FAKE_PATIENCE_MS,
                                    &message, NULL, 0),
                   0);
            if (message.type == BHI_MSG_LOG) {
                BHT_EQ(message.log.level, 3);
                BHT_STR_HAS(message.log.text, "kernel main: compiled in ");
                lines++;
            }
        } while (message.type != BHI_MSG_KERNEL_INFO);
        BHT_TRUE(id > 1 || lines == 1);
    }
    BHT_LE(lines, AT_ONCE + 1 + (bhi_now_ns() - began) * A_SECOND / 1000000000);
}

TEST(specialization_constants_come_first) {
    for (uint32_t i = 0; i < 2; i++) {
        const struct bhi_message constant = {
            .type = BHI_MSG_KERNEL_SPEC,
            .kernel_spec = {.kernel = 4, .index = i, .constant_id = i, .size = 4, .bits = 3 + i}};
        fake_send(&constant, -1, 0);
    }
    struct bhi_message create = {.type = BHI_MSG_KERNEL_CREATE};
    create.kernel_create.format = BHI_KERNEL_SPIRV;
    create.kernel_create.kernel = 4;
    create.kernel_create.code_bytes = sizeof kernel_spec;
    create.kernel_create.spec_count = 2;
    memcpy(create.kernel_create.entry, "main", 5);
    int fd = bhi_memfd_create("code", sizeof kernel_spec, 0);
    BHT_EQ(pwrite(fd, kernel_spec, sizeof kernel_spec, 0), sizeof kernel_spec);
    fake_send(&create, fd, 4);
    prepare(4);
    struct bhi_message message;
    fake_expect(BHI_MSG_KERNEL_BINDING, &message);
    fake_expect(BHI_MSG_KERNEL_INFO, &message);
    BHT_EQ(message.kernel_info.local_x, 3);
    BHT_EQ(message.kernel_info.local_y, 4);
    fake_kernel(5, CODE(add)); /* which has none */
    prepare(5);
}

/* A kernel that was learned is told about like one that was used, and its first use compiles
 * nothing. */
TEST(what_is_learned_is_compiled) {
    struct bhi_message message;
    uint32_t *x = fake_buffer(1, 1024);
    uint32_t *y = fake_buffer(2, 1024);
    x[7] = 7;
    const struct bhi_progress_header *header = fake.view.header;
    fake_kernel(5, CODE(add));
    fake_kernel(6, CODE(add));
    const struct bhi_message request = {.type = BHI_MSG_LEARN, .learn = {.kernel = 5}};
    fake_send(&request, -1, 0);
    fake_expect(BHI_MSG_KERNEL_BINDING, &message);
    fake_expect(BHI_MSG_KERNEL_BINDING, &message);
    fake_expect(BHI_MSG_KERNEL_INFO, &message);
    BHT_EQ(message.kernel_info.kernel, 5);
    fake_expect(BHI_MSG_LEARNED, &message);
    BHT_EQ(message.learned.kernel, 5);
    BHT_EQ(message.learned.status, BH_OK);
    struct fake_record record = fake_add(5, 1, 0, 2, 0, 1024, 1000);
    run_ok(&record.record);
    BHT_EQ(y[7], 1007);
    BHT_EQ(atomic_load(&header->compile_seq), 0);
    record = fake_add(6, 1, 0, 2, 0, 1024, 2000); /* this one was not */
    run_ok(&record.record);
    BHT_EQ(y[7], 2007);
    BHT_EQ(atomic_load(&header->compile_seq), 2);
    fake_expect(BHI_MSG_KERNEL_BINDING, &message);
    fake_expect(BHI_MSG_KERNEL_BINDING, &message);
    fake_expect(BHI_MSG_KERNEL_INFO, &message);
    BHT_EQ(message.kernel_info.kernel, 6);
    BHT_EQ(learn(5), BH_OK); /* nothing to be done, and nothing to be told */
}

TEST(what_cannot_be_learned_harms_nothing) {
    static const uint32_t broken[] = {0x07230203, 0x00010000, 0, 1, 0};
    BHT_EQ(learn(5), BH_INVALID_KERNEL); /* it was not created */
    fake_kernel(5, broken, sizeof broken);
    BHT_EQ(learn(5), BH_INVALID_KERNEL);
    uint32_t *x = fake_buffer(1, 1024);
    uint32_t *y = fake_buffer(2, 1024);
    x[7] = 7;
    fake_kernel(6, CODE(add));
    struct fake_record record = fake_add(6, 1, 0, 2, 0, 1024, 1);
    run_ok(&record.record);
    BHT_EQ(y[7], 8);
}

static bool learning_loses; /* the device */

BHT_WRAP(bool, bhi_backend_learn, struct bhi_backend *backend, uint64_t kernel,
         struct bhi_error *error) {
    return learning_loses ? BHI_ERROR(error, BH_REASON_LOST, .text = "by a kernel") == 0
                          : __real_bhi_backend_learn(backend, kernel, error);
}

/* K2: a spare without a device serves nobody. */
TEST(a_device_that_is_lost_by_learning) {
    learning_loses = true;
    BHT_EQ(learn(5), BH_DEVICE_LOST);
    BHT_EQ(fake_join(), BHI_EXIT_DEVICE_LOST);
}

/* Each of several kernels is told about, and one that was destroyed is gone. */
TEST(kernels_are_made_and_destroyed) {
    struct {
        struct bhi_lane_record record;
        struct bhi_cmd_prepare prepares[2];
    } job = {.record = {.size = sizeof job, .command_count = 2}};
    for (uint64_t i = 0; i < 2; i++) {
        fake_kernel(5 + i, CODE(increment));
        job.prepares[i] = (struct bhi_cmd_prepare){
            .header = {.type = BHI_CMD_PREPARE, .size = sizeof job.prepares[i]}, .kernel = 5 + i};
    }
    run_ok(&job.record);
    for (uint64_t i = 0; i < 2; i++) {
        struct bhi_message message;
        fake_expect(BHI_MSG_KERNEL_BINDING, &message);
        fake_expect(BHI_MSG_KERNEL_INFO, &message);
        BHT_EQ(message.kernel_info.kernel, 5 + i);
    }
    const struct bhi_message destroy = {.type = BHI_MSG_KERNEL_DESTROY,
                                        .kernel_destroy = {.kernel = 6}};
    fake_send(&destroy, -1, 0);
    fake_publish(&job.record, 0);
    char text[BHI_ERROR_TEXT];
    const struct bhi_result result = harvest_one(text);
    BHT_EQ(result.status, BH_INVALID_KERNEL);
    BHT_EQ(result.command_index, 1);
    BHT_STR_EQ(text, "kernel 6 does not exist");
}

/* -- a supervisor that is broken ------------------------------------------------------------ */

static void malformed_record(void) {
    struct fake_record record = fake_fill(1, 0, 4, 1);
    record.fill.bytes = 3;
    fake_publish(&record.record, 0);
}

static void skipped_record(void) {
    struct fake_record record = fake_fill(1, 0, 4, 1);
    fake.published++;
    fake_publish(&record.record, 0);
}

/* Attaches buffer 9 with this tag and |fds| descriptors. */
static void attach_with(struct bhi_fd_tag tag, size_t fds) {
    const struct bhi_message attach = {.type = BHI_MSG_BUFFER_ATTACH,
                                       .buffer_attach = {.buffer = 9, .size = 64}};
    int fd = bhi_memfd_create("buffer", 64, 0);
    BHT_EQ(bhi_fdpass_send(fake.sockets[0], &tag, sizeof tag, &fd, fds), 0);
    close(fd);
    fake_send(&attach, -1, 0);
}

static void tag_of_another_id(void) {
    attach_with((struct bhi_fd_tag){BHI_WIRE_MAGIC, BHI_MSG_BUFFER_ATTACH, 8}, 1);
}

static void tag_of_another_type(void) {
    attach_with((struct bhi_fd_tag){BHI_WIRE_MAGIC, BHI_MSG_BUFFER_IMPORT, 9}, 1);
}

static void tag_without_magic(void) {
    attach_with((struct bhi_fd_tag){~BHI_WIRE_MAGIC, BHI_MSG_BUFFER_ATTACH, 9}, 1);
}

static void tag_without_descriptor(void) {
    attach_with((struct bhi_fd_tag){BHI_WIRE_MAGIC, BHI_MSG_BUFFER_ATTACH, 9}, 0);
}

static void sentinels_message(void) {
    const struct bhi_message set = {.type = BHI_MSG_SET, .set = {.worker = 1}};
    fake_send(&set, -1, 0);
}

static void constant(uint64_t kernel, uint32_t index) {
    const struct bhi_message message = {
        .type = BHI_MSG_KERNEL_SPEC, .kernel_spec = {.kernel = kernel, .index = index, .size = 4}};
    fake_send(&message, -1, 0);
}

static void skipped_constant(void) {
    constant(2, 0);
    constant(2, 2);
}

static void constant_of_another(void) {
    constant(2, 0);
    constant(3, 1);
}

static void short_code(void) {
    struct bhi_message create = {.type = BHI_MSG_KERNEL_CREATE};
    create.kernel_create.format = BHI_KERNEL_SPIRV;
    create.kernel_create.kernel = 1;
    create.kernel_create.code_bytes = 1 << 20;
    memcpy(create.kernel_create.entry, "main", 5);
    fake_send(&create, bhi_memfd_create("code", 4096, 0), 1);
}

static void missing_constants(void) {
    struct bhi_message create = {.type = BHI_MSG_KERNEL_CREATE};
    create.kernel_create.format = BHI_KERNEL_SPIRV;
    create.kernel_create.kernel = 1;
    create.kernel_create.code_bytes = 4096;
    create.kernel_create.spec_count = 1;
    memcpy(create.kernel_create.entry, "main", 5);
    fake_send(&create, bhi_memfd_create("code", 4096, 0), 1);
}

static void constants_of_another(void) {
    constant(2, 0);
    missing_constants();
}

TEST(broken_supervisors_end_it) {
    static void (*const errors[])(void) = {
        malformed_record,    skipped_record,    tag_of_another_id,
        tag_of_another_type, tag_without_magic, tag_without_descriptor,
        sentinels_message,   skipped_constant,  constant_of_another,
        short_code,          missing_constants, constants_of_another};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        fake_open_ready();
        errors[i]();
        BHT_EQ(fake_join(), BHI_EXIT_SUPERVISOR);
    }
}

/* -- a sentinel ------------------------------------------------------------------------------- */

static char sentinel; /* which has no device here, and loses it with the second worker */

BHT_WRAP(struct bhi_sentinel_device *, bhi_sentinel_device_create,
         const struct bhi_backend_config *config, struct bhi_error *error) {
    return (struct bhi_sentinel_device *)(void *)&sentinel;
}

BHT_WRAP(void, bhi_sentinel_device_destroy, struct bhi_sentinel_device *device) {}

BHT_WRAP(int32_t, bhi_sentinel_device_import, struct bhi_sentinel_device *device, uint64_t worker,
         int fd, uint64_t bytes) {
    close(fd);
    return worker == 3 ? VK_ERROR_OUT_OF_HOST_MEMORY : VK_SUCCESS;
}

BHT_WRAP(int32_t, bhi_sentinel_device_set, struct bhi_sentinel_device *device, uint64_t worker) {
    return worker == 2 ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
}

/* E16: words that it cannot take are no end; what it can no longer set, another one must. */
TEST(a_sentinel_that_fails_ends) {
    struct bhi_message message;
    fake_kind = BHI_WORKER_SENTINEL;
    fake_open(0);
    fake_expect(BHI_MSG_READY, NULL);
    for (uint64_t worker = 3; worker > 0; worker--) {
        const struct bhi_message request = {.type = BHI_MSG_IMPORT,
                                            .import = {.worker = worker, .bytes = 4096}};
        fake_send(&request, bhi_memfd_create("words", 4096, 0), worker);
        fake_expect(BHI_MSG_IMPORTED, &message);
        BHT_EQ(message.imported.worker, worker);
        BHT_EQ(message.imported.vk_result != VK_SUCCESS, worker == 3);
    }
    for (uint64_t worker = 1; worker < 3; worker++) {
        const struct bhi_message request = {.type = BHI_MSG_SET, .set = {.worker = worker}};
        fake_send(&request, -1, 0);
        fake_expect(BHI_MSG_WORDS_SET, &message);
        BHT_EQ(message.words_set.worker, worker);
        BHT_EQ(message.words_set.vk_result != VK_SUCCESS, worker == 2);
    }
    BHT_EQ(fake_join(), BHI_EXIT_DEVICE_LOST);
}

TEST(no_such_device) {
    struct bhi_message message;
    fake_open(63);
    fake_expect(BHI_MSG_DEVICE, &message);
    BHT_EQ(message.device.index, 0);
    BHT_EQ(message.device.chosen, 0);
    BHT_NE(message.device.features & 1, 0);
    BHT_EQ(fake_join(), -1);
    BHT_EQ(fake.view.header->step_status, BH_NO_DEVICE);
    BHT_EQ(fake.view.header->step_told.reason, BH_REASON_DEVICE_GONE);
    BHT_EQ(atomic_load(&fake.view.header->step), BHI_STEP_DEVICE);
}
