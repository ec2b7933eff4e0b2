#include "fake_supervisor.h"
#include "lane_view.h"

#include "base/futex.h"
#include "base/memfd.h"
#include "ipc/fdpass.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#define CODE_NAME "code of a kernel"

struct fake fake;
enum bhi_worker_kind fake_kind = BHI_WORKER_DEVICE;

/* The worker's side. What fails here shows in the exit code: the asserts are for the main
 * thread. */
static void *worker(void *argument) {
    (void)argument;
    struct bhi_lane_view lane;
    struct bhi_progress progress;
    struct bhi_channel channel;
    fake.exit_code = -2;
    if (bhi_lane_view_map(&lane, fake.lane.fd,
                          bhi_page_round(sizeof(struct bhi_lane_header)) + BHI_LANE_CAPACITY) ||
        bhi_progress_map(&progress, fake.view.fd, bhi_progress_bytes(BHI_PROGRESS_RESULTS)) ||
        bhi_channel_accept(&channel, fake.listener)) {
        return NULL;
    }
    const struct bhi_session_config config = {
        .lane = &lane,
        .progress = &progress,
        .channel = &channel,
        .fdpass = fake.sockets[1],
        .doorbell = fake.doorbell,
        .ops = &bhi_vulkan,
        .entry = rig_entry(),
        .device_index = fake.device_index,
        .kind = fake_kind,
    };
    struct bhi_session *session = bhi_session_start(&config);
    fake.exit_code = session ? bhi_session_run(session, 0) : -1;
    bhi_session_destroy(session);
    bhi_channel_close(&channel);
    bhi_progress_unmap(&progress);
    bht_lane_view_unmap(&lane);
    return NULL;
}

static void ring_lane(void) {
    if (atomic_load(&fake.view.header->sleeping) != 0) {
        bhi_lane_wake(&fake.lane);
    }
}

void fake_hang_up(void) {
    bhi_channel_close(&fake.channel);
    bhi_lane_control(&fake.lane, ++fake.control_sent);
    atomic_thread_fence(memory_order_seq_cst);
    ring_lane();
}

int fake_join(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FAKE_PATIENCE_NS / 1000000000;
    if (pthread_timedjoin_np(fake.thread, NULL, &until) != 0) {
        fprintf(stderr, "the session does not end\n");
        abort(); /* its thread uses our memory: there is no way on */
    }
    fake.joined = true;
    return fake.exit_code;
}

static void fake_close(void) {
    if (!fake.zmq) {
        return;
    }
    if (!fake.joined) {
        fake_hang_up();
        BHT_EQ(fake_join(), BHI_EXIT_SUPERVISOR);
    }
    BHT_TRUE(!bht_maps(getpid(), "/memfd:" CODE_NAME)); /* the backend has its own copy */
    bhi_channel_close(&fake.channel);
    zmq_ctx_term(fake.zmq);
    bhi_lane_destroy(&fake.lane);
    bhi_progress_destroy(&fake.view);
    close(fake.sockets[0]);
    close(fake.sockets[1]);
    close(fake.doorbell);
    rmdir(fake.folder);
    memset(&fake, 0, sizeof fake);
    if (rig_layer_messages() != 0) {
        BHT_FAIL("the validation layer says: %s", rig_layer_text());
    }
}

void fake_open(uint32_t device_index) {
    fake_close();
    rig_layer_reset();
    fake.device_index = device_index;
    snprintf(fake.folder, sizeof fake.folder, "/tmp/bulkhead-session-XXXXXX");
    BHT_NE(mkdtemp(fake.folder), NULL);
    snprintf(fake.endpoint, sizeof fake.endpoint, "%s/worker", fake.folder);
    fake.zmq = zmq_ctx_new();
    BHT_NE(fake.zmq, NULL);
    BHT_EQ(bhi_channel_open(&fake.channel, fake.zmq, fake.endpoint, &fake.listener), 0);
    BHT_EQ(bhi_lane_create(&fake.lane, BHI_LANE_CAPACITY, BHI_PROGRESS_RESULTS), 0);
    BHT_EQ(bhi_progress_create(&fake.view, BHI_PROGRESS_RESULTS), 0);
    BHT_EQ(bhi_fdpass_pair(fake.sockets), 0);
    fake.doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    BHT_GE(fake.doorbell, 0);
    BHT_EQ(pthread_create(&fake.thread, NULL, worker, NULL), 0);
}

void fake_open_ready(void) {
    fake_open(0);
    fake_expect_ready();
}

static void at_start(void) {
    rig_force_layer();
    bht_default_flags(BHT_ALLOW_MAPPINGS); /* a driver stays loaded, and so do buffers */
    bht_end_with(fake_close);
}

BHT_AT_START(at_start())

void fake_expect(enum bhi_message_type type, struct bhi_message *out) {
    struct bhi_message unused;
    char why[256] = "";
    out = out ? out : &unused;
    int error;
    do {
        error = bhi_channel_recv(&fake.channel, BHI_W2S, BHI_WS_HELD | BHI_WS_RUNNING,
                                 FAKE_PATIENCE_MS, out, why, sizeof why);
    } while (error == 0 && ((out->type == BHI_MSG_LOG && type != BHI_MSG_LOG) ||
                            out->type == BHI_MSG_WORDS)); /* from a GPU: no sentinel here */
    if (error != 0 || out->type != type) {
        BHT_FAIL("expected message %d, got error %d (%s), message %d", (int)type, error, why,
                 error == 0 ? (int)out->type : 0);
    }
}

void fake_expect_ready(void) {
    struct bhi_message message;
    uint32_t chosen = 0, count;
    fake_expect(BHI_MSG_DEVICE, &message);
    count = message.device.count;
    chosen += message.device.chosen;
    for (uint32_t i = 1; i < count; i++) {
        fake_expect(BHI_MSG_DEVICE, &message);
        chosen += message.device.chosen;
    }
    BHT_EQ(chosen, 1);
    fake_expect(BHI_MSG_READY, &message);
}

void fake_send(const struct bhi_message *message, int fd, uint64_t fd_id) {
    if (fd >= 0) {
        const struct bhi_fd_tag tag = {.magic = BHI_WIRE_MAGIC, .type = message->type, .id = fd_id};
        BHT_EQ(bhi_fdpass_send(fake.sockets[0], &tag, sizeof tag, &fd, 1), 0);
        close(fd);
    }
    const uint64_t deadline = bhi_deadline_ns(FAKE_PATIENCE_NS);
    int error;
    while ((error = bhi_channel_send(&fake.channel, message)) == -EAGAIN &&
           bhi_now_ns() < deadline) {
        poll(NULL, 0, 1);
    }
    BHT_EQ(error, 0);
    fake.control_sent++;
    if (fake.withhold_count) {
        return;
    }
    bhi_lane_control(&fake.lane, fake.control_sent);
    atomic_thread_fence(memory_order_seq_cst);
    ring_lane();
}

void fake_kernel(uint64_t id, const uint32_t *code, size_t bytes) {
    struct bhi_message message = {.type = BHI_MSG_KERNEL_CREATE};
    message.kernel_create.format = BHI_KERNEL_SPIRV;
    message.kernel_create.kernel = id;
    message.kernel_create.code_bytes = bytes;
    snprintf(message.kernel_create.entry, sizeof message.kernel_create.entry, "main");
    int fd = bhi_memfd_create(CODE_NAME, bytes, 0);
    BHT_GE(fd, 0);
    BHT_EQ(pwrite(fd, code, bytes, 0), (ssize_t)bytes);
    fake_send(&message, fd, id);
}

void *fake_buffer(uint64_t id, uint64_t size) {
    struct bhi_message message = {.type = BHI_MSG_BUFFER_ATTACH};
    message.buffer_attach.buffer = id;
    message.buffer_attach.size = size;
    message.buffer_attach.access = 1;
    int fd = bhi_memfd_create("buffer", size, 0);
    BHT_GE(fd, 0);
    void *data = mmap(NULL, bhi_page_round(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    BHT_NE(data, MAP_FAILED);
    fake_send(&message, fd, id);
    return data;
}

struct fake_record fake_fill(uint64_t buffer, uint64_t offset, uint64_t bytes, uint32_t value) {
    return (struct fake_record){
        .record = {.size = sizeof(struct bhi_lane_record) + sizeof(struct bhi_cmd_fill),
                   .command_count = 1},
        .fill = {.header = {.type = BHI_CMD_FILL, .size = sizeof(struct bhi_cmd_fill)},
                 .dst = buffer,
                 .dst_offset = offset,
                 .bytes = bytes,
                 .value = value}};
}

struct fake_record fake_add(uint64_t kernel, uint64_t x, uint64_t x_offset, uint64_t y,
                            uint64_t y_offset, uint64_t bytes, uint32_t c) {
    return (struct fake_record){
        .record = {.size = sizeof(struct fake_record), .command_count = 1},
        .dispatch = {.header = {.type = BHI_CMD_DISPATCH,
                                .size =
                                    sizeof(struct fake_record) - sizeof(struct bhi_lane_record)},
                     .kernel = kernel,
                     .groups_x = (uint32_t)(bytes / 256),
                     .groups_y = 1,
                     .groups_z = 1,
                     .binding_count = 2,
                     .push_size = 4},
        .bindings = {{.buffer = x, .offset = x_offset, .size = bytes, .access = BH_ACCESS_READ},
                     {.buffer = y,
                      .offset = y_offset,
                      .size = bytes,
                      .binding = 1,
                      .access = BH_ACCESS_WRITE}},
        .push = {c, 0}};
}

static void poll_progress(uint64_t *out_completed, uint64_t *out_tail) {
    BHT_EQ(bhi_progress_poll(&fake.view, fake.published, fake.lane.head, out_completed, out_tail),
           0);
}

void fake_publish(struct bhi_lane_record *record, uint32_t control_ahead) {
    const uint64_t deadline = bhi_deadline_ns(FAKE_PATIENCE_NS);
    uint64_t completed, tail;
    for (;;) {
        poll_progress(&completed, &tail);
        int64_t space = bhi_lane_space(&fake.lane, tail);
        BHT_GE(space, 0);
        if ((uint64_t)space >= record->size &&
            fake.published - fake.harvested < BHI_PROGRESS_RESULTS) {
            break;
        }
        BHT_LT(bhi_now_ns(), deadline);
        if (completed > fake.harvested) {
            struct bhi_result result;
            char text[BHI_ERROR_TEXT];
            fake_harvest(&result, text);
            BHT_EQ(result.status, BH_OK);
        }
    }
    record->seq = ++fake.published;
    record->control_seq = fake.control_sent + control_ahead;
    bhi_lane_publish(&fake.lane, record);
    atomic_thread_fence(memory_order_seq_cst);
    ring_lane();
}

void fake_wait(uint64_t seq) {
    const uint64_t deadline = bhi_deadline_ns(FAKE_PATIENCE_NS);
    uint64_t completed = 0, tail;
    atomic_fetch_add(&fake.lane.header->waiters, 1);
    for (;;) {
        atomic_thread_fence(memory_order_seq_cst);
        const uint32_t seen = atomic_load(&fake.view.header->completed_word);
        poll_progress(&completed, &tail);
        if (completed >= seq) {
            break;
        }
        if (bhi_futex_wait(&fake.view.header->completed_word, seen, true, deadline) != 0) {
            BHT_FAIL("submission %llu is not completed; %llu is", (unsigned long long)seq,
                     (unsigned long long)completed);
        }
    }
    atomic_fetch_sub(&fake.lane.header->waiters, 1);
}

void fake_harvest(struct bhi_result *out, char text[BHI_ERROR_TEXT]) {
    struct bhi_told told;
    uint64_t completed, tail;
    poll_progress(&completed, &tail);
    BHT_GT(completed, fake.harvested);
    BHT_EQ(bhi_progress_read(&fake.view, fake.harvested + 1, out, &told, text), 0);
    fake.harvested++;
    atomic_store(&fake.lane.header->harvested, fake.harvested);
}

bool fake_rung(int timeout_ms) {
    struct pollfd poll_one = {.fd = fake.doorbell, .events = POLLIN};
    uint64_t count;
    return poll(&poll_one, 1, timeout_ms) == 1 &&
           read(fake.doorbell, &count, sizeof count) == sizeof count;
}
