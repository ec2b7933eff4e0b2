/* What comes over a worker's control channel, and of which worker it is taken to be; and what goes. */
#include "base/fd.h"
#include "ipc/channel.h"
#include "ipc/fdpass.h"
#include "ipc/layers.h"
#include "puppet.h"
#include "supervisor/context/context.h"
#include "supervisor/event/harvest.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/reactor/control.h"
#include "supervisor/worker/conduct.h"
#include "supervisor/worker/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#define KERNEL          77u
#define DEVICE_TYPE_CPU 4 /* VK_PHYSICAL_DEVICE_TYPE_CPU */
#define MOST_BINDINGS   256u

/* The lines of the host's log. */
static struct {
    int lines;
    char last[512];
} heard;

static void keep(bh_log_level level, const char *line, void *user) {
    (void)level, (void)user;
    heard.lines++;
    snprintf(heard.last, sizeof heard.last, "%s", line);
}

/* A worker and the far end of its channel. */
struct peer {
    struct bhi_worker *worker; /* referenced */
    struct bhi_channel far;
};

static struct {
    void *zmq;
    char folder[64];
    struct peer peers[2];
    int count;
} scene;

static void set_up(void) {
    memset(&scene, 0, sizeof scene);
    scene.zmq = zmq_ctx_new();
    strcpy(scene.folder, "/tmp/bulkhead-control-XXXXXX");
    BHT_TRUE(scene.zmq && mkdtemp(scene.folder));
    puppet.context->settings.log = keep;
    puppet.context->poller.stopped = false;
}

static void tear_down(void) {
    for (int i = 0; i < scene.count; i++) {
        bhi_channel_close(&scene.peers[i].far);
        bhi_channel_close(&scene.peers[i].worker->channel);
        bhi_worker_release(scene.peers[i].worker);
    }
    zmq_ctx_term(scene.zmq);
    BHT_EQ(rmdir(scene.folder), 0);
}

BHT_AT_START(puppet_around(set_up, tear_down))

/* It serves the stream, knows the kernel, and has its channel. */
static struct peer *connect_peer(int pid) {
    struct peer *peer = &scene.peers[scene.count++];
    char path[96];
    int listener = -1;
    peer->worker = puppet_serving();
    peer->worker->core.pid = pid;
    bhi_worker_retain(peer->worker);
    snprintf(path, sizeof path, "%s/w", scene.folder); /* each has the same name in turn */
    BHT_EQ(bhi_channel_open(&peer->worker->channel, scene.zmq, path, &listener), 0);
    BHT_EQ(bhi_channel_accept(&peer->far, listener), 0);
    bhi_context_lock(puppet.context);
    BHT_TRUE(bhi_worker_kernels_add(&peer->worker->kernels, KERNEL, 1, false, 0));
    bhi_context_unlock(puppet.context);
    return peer;
}

static struct bhi_message line(const char *text) {
    struct bhi_message message = {.type = BHI_MSG_LOG, .log = {.level = 2}};
    snprintf(message.log.text, sizeof message.log.text, "%s", text);
    return message;
}

static struct bhi_message info_of(uint64_t kernel, uint32_t local_x) {
    return (struct bhi_message){
        .type = BHI_MSG_KERNEL_INFO,
        .kernel_info = {.kernel = kernel, .local_x = local_x, .local_y = 1, .local_z = 1}};
}

static struct bhi_message kernel_info(uint32_t local_x) {
    return info_of(KERNEL, local_x);
}

static void send_it(struct peer *peer, struct bhi_message message) {
    WAIT_UNTIL(bhi_channel_send(&peer->far, &message) == 0, 20000);
}

/* Something is there to be read. */
static bool has_come(const struct bhi_channel *channel) {
    int events = 0;
    size_t size = sizeof events;
    BHT_EQ(zmq_getsockopt(channel->socket, ZMQ_EVENTS, &events, &size), 0);
    return events & ZMQ_POLLIN;
}

static uint32_t local_size(struct bhi_worker *worker, uint64_t kernel) {
    bhi_context_lock(worker->context);
    const struct bhi_reflection *reflection = bhi_worker_reflection(worker, kernel);
    const uint32_t size = reflection ? reflection->info.local_size[0] : 0;
    bhi_context_unlock(worker->context);
    return size;
}

static uint32_t local_size_of(struct bhi_worker *worker) {
    return local_size(worker, KERNEL);
}

/* The first worker is dead and buried, the second serves the stream and knows the same kernel. Then
 * the first one's last words come in, it writes a completion record, and looks at it are due. */
TEST(case_46_late_words_of_a_dead_generation) {
    struct peer *old = connect_peer(4242);
    bh_event *lost = puppet_submit();
    send_it(old, line("alive"));
    WAIT_UNTIL(has_come(&old->worker->channel), 20000);
    bhi_control_woken(old->worker);
    BHT_EQ(heard.lines, 1);
    BHT_STR_HAS(heard.last, "worker 4242: alive");
    BHT_EQ(old->worker->conduct.messages.level, 0); /* a line is none */

    puppet_begins(old->worker, 1);
    puppet_killed(old->worker, SIGKILL);
    struct peer *next = connect_peer(4343);
    bh_event *waits = puppet_submit();
    puppet_complete(old->worker, 1);
    send_it(old, kernel_info(1000));
    send_it(old, line("late"));
    WAIT_UNTIL(has_come(&old->worker->channel), 20000);
    for (int i = 0; i < 3; i++) {
        bhi_control_woken(old->worker);
        bhi_control_receive(next->worker);
        bhi_context_lock(puppet.context);
        bhi_worker_harvest(old->worker);
        bhi_context_pump_unlock(puppet.context);
    }
    fx_expect(lost, BH_WORKER_SIGNAL);
    BHT_EQ(bh_event_query(waits), BH_EVENT_PENDING);
    BHT_EQ(heard.lines, 1);
    BHT_EQ(local_size_of(old->worker), 0);
    BHT_EQ(local_size_of(next->worker), 0);
    BHT_EQ(old->worker->core.life.kill, BHI_KILL_NONE);
    BHT_TRUE(has_come(&old->worker->channel)); /* not even read */

    /* The next one's words are its own. */
    send_it(next, kernel_info(64));
    send_it(next, line("mine"));
    WAIT_UNTIL((bhi_control_receive(next->worker), heard.lines == 2), 20000);
    BHT_STR_HAS(heard.last, "worker 4343: mine");
    BHT_EQ(local_size_of(next->worker), 64);
    BHT_EQ(local_size_of(old->worker), 0);
    BHT_EQ(next->worker->core.life.kill, BHI_KILL_NONE);
    BHT_TRUE(puppet.stream->core.worker == &next->worker->core);
    puppet_complete(next->worker, 1);
    BHT_EQ(bh_event_query(waits), BH_EVENT_READY);
}

/* Killed in mid-job for what it sent, and its verdict says so; nothing of what it sent before its
 * budget was used up is held against it. */
static void expect_flood(struct peer *peer, bh_event *event, uint32_t count) {
    BHT_GT(count, bhi_conduct_limits.messages);
    BHT_TRUE(peer->worker->core.life.violated);
    BHT_EQ(peer->worker->core.life.kill, BHI_KILL_PROTOCOL);
    BHT_STR_EQ(peer->worker->core.life.kill_text, "it sent too many control messages");
    puppet_killed(peer->worker, SIGKILL);
    const bh_verdict verdict = fx_verdict(event);
    BHT_EQ(verdict.status, BH_PROTOCOL);
    BHT_STR_HAS(verdict.message,
                "worker 4242 broke the protocol: it sent too many control messages");
    BHT_EQ(heard.lines, 0);
}

TEST(messages_without_end) {
    struct peer *peer = connect_peer(4242);
    bh_event *done = puppet_submit(), *event = puppet_submit();
    puppet_complete(peer->worker, 1);
    const struct bhi_message message = kernel_info(64);
    uint32_t sent = 0;
    for (uint64_t end = bht_now_ns() + FX_SECONDS; !peer->worker->core.life.violated;) {
        BHT_LT(bht_now_ns(), end);
        sent += bhi_channel_send(&peer->far, &message) == 0;
        bhi_control_receive(peer->worker);
    }
    /* What it had completed before stays good (E11). */
    fx_expect(done, BH_OK);
    expect_flood(peer, event, sent);
}

/* The descriptor of its channel fires, and there is no message: it sends its bytes one by one. */
TEST(wake_ups_without_a_message) {
    struct peer *peer = connect_peer(4242);
    bh_event *event = puppet_submit();
    uint32_t woken = 0;
    for (uint64_t end = bht_now_ns() + FX_SECONDS; !peer->worker->core.life.violated; woken++) {
        BHT_LT(bht_now_ns(), end);
        bhi_control_woken(peer->worker);
    }
    expect_flood(peer, event, woken);
}

/* A worker reports a binding. The library's readers count on it that only a CUDA image has
 * parameters, because the count of those is not one of buffers. */
TEST(parameters_are_of_images) {
    static const struct {
        bool image, known;
        uint32_t kind, count;
        bool kept;
        const char *why; /* NULL: nothing is wrong */
    } cases[] = {
        {false, true, BH_BINDING_STORAGE_BUFFER, 256, true, NULL},
        {false, true, BH_BINDING_STORAGE_BUFFER, 257, false, "it"},
        {false, true, BH_BINDING_PARAMETER, 1, false, "it takes parameters for bindings"},
        {true, true, BH_BINDING_PARAMETER, 4096, true, NULL},
        {true, true, BH_BINDING_UNIFORM_BUFFER, 1, false, "it takes parameters for bindings"},
        {true, false, BH_BINDING_PARAMETER, 1, false, NULL}, /* it was told to forget it */
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        puppet_again();
        struct peer *peer = connect_peer(4242);
        bhi_context_lock(puppet.context);
        if (cases[i].known) {
            BHT_TRUE(bhi_worker_kernels_add(&peer->worker->kernels, 78, 1, cases[i].image, 0));
        }
        bhi_context_unlock(puppet.context);
        send_it(peer, (struct bhi_message){.type = BHI_MSG_KERNEL_BINDING,
                                           .kernel_binding = {.kernel = 78,
                                                              .kind = cases[i].kind,
                                                              .access = 3,
                                                              .count = cases[i].count}});
        struct bhi_message info = info_of(78, 1);
        info.kernel_info.bindings = 1;
        send_it(peer, info);
        send_it(peer, kernel_info(64)); /* a kernel of the other kind that it knows, too */
        WAIT_UNTIL((bhi_control_receive(peer->worker),
                    peer->worker->core.life.violated || local_size_of(peer->worker)),
                   20000);
        BHT_EQ(peer->worker->core.life.violated, !!cases[i].why);
        BHT_EQ(local_size(peer->worker, 78), cases[i].kept);
        if (cases[i].why) {
            BHT_STR_HAS(peer->worker->core.life.kill_text, cases[i].why);
        }
    }
}

/* A call of bh_kernel_reflect, in a thread of its own. */
struct asked {
    bh_kernel *kernel;
    bh_status status;
    bh_kernel_info info;
};

static void *ask(void *argument) {
    struct asked *asked = argument;
    asked->info.struct_size = sizeof asked->info;
    asked->status = bh_kernel_reflect(asked->kernel, puppet.stream, FX_SECONDS, &asked->info, NULL);
    return NULL;
}

static uint64_t published(struct bhi_worker *worker) {
    bhi_context_lock(worker->context);
    const uint64_t count = worker->core.published;
    bhi_context_unlock(worker->context);
    return count;
}

/* It compiles the kernel, and dies before it has said what the kernel binds. The call gives the
 * kernel to the next worker; and waits for that one's word, which comes after its completion. */
TEST(case_46_a_reflection_that_died_with_its_worker) {
    static const uint32_t module[] = {0x07230203, 0x00010000, 0, 1, 0};
    struct asked asked = {.status = BH_PENDING};
    BHT_EQ(bh_kernel_create_spirv(puppet.context, module, sizeof module, NULL, &asked.kernel, NULL),
           BH_OK);
    struct peer *old = connect_peer(4242);
    pthread_t thread;
    BHT_EQ(pthread_create(&thread, NULL, ask, &asked), 0);
    WAIT_UNTIL(published(old->worker) == 1, 20000);
    puppet_complete(old->worker, 1);
    puppet_bury(old->worker);

    struct peer *next = connect_peer(4343);
    WAIT_UNTIL(published(next->worker) == 1, 20000); /* it asks again */
    puppet_complete(next->worker, 1);
    bhi_context_lock(puppet.context);
    bhi_worker_harvest(next->worker);
    bhi_context_pump_unlock(puppet.context);
    send_it(next, info_of(asked.kernel->body->id, 48));
    WAIT_UNTIL(
        (bhi_control_receive(next->worker), local_size(next->worker, asked.kernel->body->id) == 48),
        20000);
    BHT_EQ(pthread_join(thread, NULL), 0);
    BHT_EQ(asked.status, BH_OK);
    BHT_EQ(asked.info.local_size[0], 48);
}

/* There was no memory to keep what its worker said: the call says so, and the next one asks that worker
 * again, as it has forgotten the kernel. */
TEST(a_lost_reflection_is_asked_for_again) {
    static const uint32_t module[] = {0x07230203, 0x00010000, 0, 1, 0};
    struct asked asked = {.status = BH_PENDING};
    BHT_EQ(bh_kernel_create_spirv(puppet.context, module, sizeof module, NULL, &asked.kernel, NULL),
           BH_OK);
    struct peer *peer = connect_peer(4242);
    struct bhi_worker *worker = peer->worker;
    const uint64_t id = asked.kernel->body->id;
    for (uint64_t calls = 1; calls <= 2; calls++) {
        pthread_t thread;
        BHT_EQ(pthread_create(&thread, NULL, ask, &asked), 0);
        WAIT_UNTIL(published(worker) == calls, 20000);
        bhi_context_lock(puppet.context);
        worker->reflection_lost = calls == 1;
        bhi_context_unlock(puppet.context);
        if (calls == 2) {
            send_it(peer, info_of(id, 48));
            WAIT_UNTIL((bhi_control_receive(worker), local_size(worker, id) == 48), 20000);
        }
        puppet_complete(worker, 1);
        bhi_context_lock(puppet.context);
        bhi_worker_harvest(worker);
        bhi_context_pump_unlock(puppet.context);
        BHT_EQ(pthread_join(thread, NULL), 0);
        BHT_EQ(asked.status, calls == 1 ? BH_NO_MEMORY : BH_OK);
        BHT_EQ(bhi_worker_kernels_has(&worker->kernels, id), calls == 2);
    }
    BHT_EQ(asked.info.local_size[0], 48);
}

/* A call that does not wait finds nothing out. */
TEST(a_reflection_that_nobody_awaits) {
    static const uint32_t module[] = {0x07230203, 0x00010000, 0, 1, 0};
    bh_kernel_info info = {.struct_size = sizeof info};
    bh_kernel *kernel;
    bh_detail detail = {0};
    BHT_EQ(bh_kernel_create_spirv(puppet.context, module, sizeof module, NULL, &kernel, NULL),
           BH_OK);
    (void)connect_peer(4242);
    BHT_EQ(bh_kernel_reflect(kernel, puppet.stream, 0, &info, &detail), BH_TIMEOUT);
    BHT_EQ(detail.reason, BH_REASON_LATE);
    BHT_TRUE(!kernel->declared);
}

/* The first of a driver's two devices. */
static struct bhi_message device_of(uint64_t heap, uint64_t total, uint64_t unused, bool known) {
    return (struct bhi_message){.type = BHI_MSG_DEVICE,
                                .device = {.count = 2,
                                           .max_groups_x = 1,
                                           .max_groups_y = 1,
                                           .max_groups_z = 1,
                                           .max_group_invocations = 1,
                                           .storage_alignment = 1,
                                           .uniform_alignment = 1,
                                           .import_alignment = 1,
                                           .memory_bytes = heap,
                                           .memory_total = total,
                                           .memory_free = unused,
                                           .memory_known = known}};
}

/* A worker says how much memory its device has, and how much of it is free. |why|: what is wrong
 * with that; NULL: nothing. */
static void says_of_memory(struct bhi_message message, const char *why) {
    puppet_again();
    struct peer *peer = connect_peer(4242);
    bhi_context_lock(puppet.context);
    puppet_has_come_to(peer->worker, BHI_HELD);
    bhi_context_unlock(puppet.context);
    send_it(peer, message);
    WAIT_UNTIL((bhi_control_receive(peer->worker),
                peer->worker->core.life.violated || peer->worker->device_count),
               20000);
    BHT_EQ(peer->worker->core.life.violated, !!why);
    BHT_EQ(peer->worker->device_count, why ? 0 : 1);
    if (why) {
        BHT_EQ(peer->worker->core.life.kill, BHI_KILL_PROTOCOL);
        BHT_STR_EQ(peer->worker->core.life.kill_text, why);
    }
}

TEST(what_a_worker_says_of_device_memory) {
    static const char too_much[] = "it reports more free device memory than there is";
    says_of_memory(device_of(4096, 8192, 8192, true), NULL);
    says_of_memory(device_of(4096, 4096, 0, false), NULL);
    says_of_memory(device_of(4096, 8192, 8193, true), too_much);
    says_of_memory(device_of(0, 0, UINT64_MAX, true), too_much);
    says_of_memory(device_of(4096, 8192, 1, false), too_much); /* and it does not know */
    says_of_memory(device_of(8193, 8192, 0, true),
                   "it reports a heap that is larger than all heaps");
}

static struct {
    int error; /* -errno */
    const char *why;
    int watched; /* side channels */
} isolation;

/* A puppet is no process: there is nothing in /proc to look at, and no thread to keep off. */
int __wrap_bhi_proc_status_check(const struct bhi_proc_place *place, int pidfd, char *why,
                                 size_t why_size);
int __wrap_bhi_proc_status_check(const struct bhi_proc_place *place, int pidfd, char *why,
                                 size_t why_size) {
    (void)place, (void)pidfd;
    snprintf(why, why_size, "%s", isolation.why ? isolation.why : "");
    return isolation.error;
}
void __wrap_bhi_watch_side_channel(struct bhi_worker *worker);
void __wrap_bhi_watch_side_channel(struct bhi_worker *worker) {
    (void)worker;
    isolation.watched++;
}
static struct {
    pid_t pid; /* 0: nobody */
    char address[20];
} kept_off;
void __wrap_bhi_interrupts_keep_off(pid_t pid, const char *address);
void __wrap_bhi_interrupts_keep_off(pid_t pid, const char *address) {
    kept_off.pid = pid;
    snprintf(kept_off.address, sizeof kept_off.address, "%s", address);
}

static _Atomic int woken; /* the reactor; by any thread */
void __wrap_bhi_poller_wake(struct bhi_poller *poller);
void __real_bhi_poller_wake(struct bhi_poller *poller);
void __wrap_bhi_poller_wake(struct bhi_poller *poller) {
    woken++;
    if (poller->wake >= 0) { /* its thread still runs */
        __real_bhi_poller_wake(poller);
    }
}

/* A worker is ready on a device of |type|, of which the PCI address is |known|: its zygote has told of
 * it before, or does so now. A |spare| serves nobody yet. */
static void becomes_ready(uint32_t type, bool known, const char *address, bool late, bool spare) {
    puppet_again();
    struct peer *peer = connect_peer(4242);
    struct bhi_worker *worker = peer->worker;
    struct bhi_message message = device_of(4096, 4096, 0, false);
    message.device.count = message.device.chosen = 1;
    message.device.device_type = type;
    message.device.pci_known = known;
    message.device.pci_domain = 1;
    message.device.pci_bus = 0x65;
    message.device.pci_device = 2;
    message.device.pci_function = 3;
    peer->worker->devices = calloc(1, sizeof *peer->worker->devices); /* released with it */
    BHT_TRUE(peer->worker->devices);
    peer->worker->devices[0] = message.device;
    peer->worker->device_count = peer->worker->device_capacity = 1;
    puppet_has_come_to(worker, BHI_HELD);
    worker->core.stream->state = BHI_STREAM_WANTING;
    if (spare) {
        bhi_context_lock(puppet.context);
        worker->core.stream->worker = NULL;
        worker->core.stream = NULL;
        bhi_context_pump_unlock(puppet.context);
        bhi_worker_release(worker);
        worker->kind = type == DEVICE_TYPE_CPU ? BHI_WORKER_DEVICE : BHI_WORKER_SENTINEL;
        strcpy(puppet.zygote->requested, "fake");
    }
    kept_off.pid = 0;
    isolation.watched = 0;
    worker->core.life.born = !late;
    puppet.context->spares_due = false;
    bhi_room_hold(&worker->room, worker->lane.fd);
    woken = 0;
    /* A limit on its address space could not be set: on a GPU it is not. */
    const bool limited = type != DEVICE_TYPE_CPU;
    send_it(peer,
            (struct bhi_message){
                .type = BHI_MSG_READY,
                .ready = {.aborts = 1, .layers = limited ? 1ull << BHI_LAYER_MEMORY_RLIMIT : 0}});
    WAIT_UNTIL((bhi_control_receive(worker), worker->ready_logged), 20000);
    if (late) {
        BHT_EQ(worker->core.life.state, BHI_HELD);
        bhi_control_ready(worker);
    }
    BHT_EQ(worker->core.life.state, BHI_RUNNING);
    BHT_TRUE(worker->core.can_abort && worker->core.on_gpu == (type != DEVICE_TYPE_CPU));
    BHT_TRUE(puppet.context->spares_due);
    BHT_EQ(worker->room.count, 0);
    BHT_GT(woken, 0);
    BHT_EQ(bhi_list_empty(&puppet.context->places), spare); /* of the driver that is named */
    BHT_EQ(puppet.stream->core.state, spare ? BHI_STREAM_WANTING : BHI_STREAM_SERVED);
    BHT_EQ(puppet.stream->runs_on.known, !spare);
    BHT_EQ(isolation.watched, type != DEVICE_TYPE_CPU && !spare);
    BHT_EQ(kept_off.pid, address ? 4242 : 0);
    BHT_TRUE(!address || strcmp(kept_off.address, address) == 0);
}

TEST(a_gpus_worker_keeps_off_interrupts) {
    const uint32_t discrete = 2, cpu = DEVICE_TYPE_CPU;
    becomes_ready(discrete, true, "0001:65:02.3", false, false);
    becomes_ready(discrete, false, NULL, true, false);
    becomes_ready(cpu, true, NULL, false, true);
    becomes_ready(discrete, true, NULL, false, true); /* a sentinel */
}

/* It is used only if /proc shows that it is isolated. One that has died meanwhile is left to its end. */
TEST(one_that_is_ready_is_looked_at) {
    static const struct {
        int error;
        const char *why, *killed_for;
    } rows[] = {{-ESRCH, NULL, NULL},
                {0, NULL, "it is to go"}, /* before */
                {-EACCES, NULL, "its isolation could not be checked: EACCES"},
                {-EPERM, "it has capabilities", "it is not isolated: it has capabilities"}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        struct peer *peer = connect_peer(4242);
        const struct bhi_life *life = &peer->worker->core.life;
        puppet_has_come_to(peer->worker, BHI_HELD);
        isolation.error = rows[i].error;
        isolation.why = rows[i].why;
        isolation.watched = 0;
        puppet.stream->core.state = BHI_STREAM_WANTING;
        if (!rows[i].error) {
            bhi_context_lock(puppet.context);
            bhi_core_worker_kill(&peer->worker->core, BHI_KILL_START, 0, "it is to go");
            bhi_context_pump_unlock(puppet.context);
        }
        bhi_control_ready(peer->worker);
        BHT_EQ(puppet.stream->core.state, BHI_STREAM_WANTING);
        isolation.error = 0;
        isolation.why = NULL;
        BHT_EQ(life->kill, rows[i].killed_for ? BHI_KILL_START : BHI_KILL_NONE);
        BHT_STR_EQ(life->kill_text, rows[i].killed_for ? rows[i].killed_for : "");
        BHT_TRUE(!bhi_worker_served(peer->worker) && heard.lines == 0 && isolation.watched == 0);
    }
}

/* The chosen one is its device, whichever comes last. */
TEST(which_device_is_chosen) {
    for (uint32_t chosen = 0; chosen < 2; chosen++) {
        puppet_again();
        struct peer *peer = connect_peer(4242);
        puppet_has_come_to(peer->worker, BHI_HELD);
        for (uint32_t i = 0; i < 2; i++) {
            struct bhi_message message = device_of(4096, 4096, 0, false);
            message.device.index = i;
            message.device.chosen = i == chosen;
            send_it(peer, message);
        }
        WAIT_UNTIL((bhi_control_receive(peer->worker), peer->worker->device_count == 2), 20000);
        BHT_EQ(peer->worker->core.device[strlen(peer->worker->core.device) - 1], '0' + (int)chosen);
        struct bhi_message third = device_of(4096, 4096, 0, false);
        third.device.index = 2;
        send_it(peer, third);
        WAIT_UNTIL((bhi_control_receive(peer->worker), peer->worker->core.life.violated), 20000);
        BHT_STR_EQ(peer->worker->core.life.kill_text, "its device messages are out of order");
    }
}

/* Nothing is read any more of one that has broken the protocol. */
static void say(struct peer *peer, struct bhi_message message) {
    WAIT_UNTIL((bhi_control_receive(peer->worker), peer->worker->core.life.violated) ||
                   bhi_channel_send(&peer->far, &message) == 0,
               20000);
}

/* As many bindings as a kernel can have, in order. What is said twice is kept once. */
TEST(what_a_worker_says_of_a_kernel) {
    enum { ALL, OUT_OF_ORDER, TWICE, MIXED, OF_ANOTHER, WAYS };
    for (int way = ALL; way < WAYS; way++) {
        puppet_again();
        struct peer *peer = connect_peer(4242);
        struct bhi_worker *worker = peer->worker;
        bhi_conduct_asks(&worker->conduct, 1000);
        for (uint32_t i = 0; i < MOST_BINDINGS && way != TWICE; i++) {
            say(peer, (struct bhi_message){
                          .type = BHI_MSG_KERNEL_BINDING,
                          .kernel_binding = {.kernel = KERNEL + (way == MIXED && i == 9),
                                             .index = way == OUT_OF_ORDER && i == 9 ? 8 : i,
                                             .kind = BH_BINDING_STORAGE_BUFFER,
                                             .access = 3,
                                             .count = 1}});
        }
        struct bhi_message info = info_of(KERNEL + (way == OF_ANOTHER), 64);
        info.kernel_info.push_bytes = 12;
        info.kernel_info.local_y = 2;
        info.kernel_info.local_z = 3;
        info.kernel_info.bindings = way == TWICE ? 0 : MOST_BINDINGS;
        say(peer, info);
        if (way == TWICE) {
            say(peer, kernel_info(65));
        }
        say(peer, line("that is all"));
        WAIT_UNTIL((bhi_control_receive(worker), worker->core.life.violated || heard.lines), 20000);
        heard.lines = 0;
        const bool good = way == ALL || way == TWICE;
        BHT_EQ(worker->core.life.violated, !good);
        BHT_STR_EQ(worker->core.life.kill_text, good ? ""
                                                : way == OF_ANOTHER
                                                    ? "its kernel info does not fit its bindings"
                                                    : "its kernel bindings are out of order");
        const struct bhi_reflection *kept = bhi_worker_reflection(worker, KERNEL);
        BHT_EQ(!!kept, good);
        BHT_TRUE(!kept || (kept->info.push_size == 12 && kept->info.local_size[0] == 64 &&
                           kept->info.local_size[1] == 2 && kept->info.local_size[2] == 3));
        BHT_TRUE(!good || worker->reflections.next->next == &worker->reflections); /* one */
        worker->messages_left = true;
        bhi_control_receive(worker);
        BHT_TRUE(!worker->messages_left);
    }
}

static struct {
    struct bhi_worker *to;
    int error;                  /* of the next message to it */
    struct bhi_outgoing *later; /* is queued meanwhile */
    bool swallows;              /* what is sent to it comes nowhere */
    unsigned woken;
} sending;

static const struct bhi_channel *endless; /* a message more each time */

BHT_WRAP(int, bhi_channel_recv, struct bhi_channel *channel, enum bhi_direction direction,
         uint32_t states, int timeout_ms, struct bhi_message *out, char *why, size_t why_size) {
    if (sending.swallows) {
        return -EAGAIN;
    }
    if (channel == endless) {
        *out = kernel_info(64);
        return 0;
    }
    return __real_bhi_channel_recv(channel, direction, states, timeout_ms, out, why, why_size);
}

/* However much one says, the others get their turn; and it gets another. */
TEST(who_says_much_is_heard_in_turns) {
    struct bhi_worker *worker = connect_peer(4242)->worker;
    endless = &worker->channel;
    bhi_control_receive(worker);
    BHT_TRUE(worker->messages_left);
    BHT_EQ(worker->conduct.messages.level, 64);
    endless = NULL;
    bhi_control_receive(worker);
    BHT_TRUE(!worker->messages_left);
}

/* -- what goes --------------------------------------------------------------------------------- */

static void queue_it(struct bhi_worker *worker, struct bhi_outgoing *outgoing) {
    bhi_context_lock(puppet.context);
    bhi_outbox_add(worker, outgoing);
    bhi_context_pump_unlock(puppet.context);
}

BHT_WRAP(int, bhi_channel_send, struct bhi_channel *channel, const struct bhi_message *message) {
    if (sending.swallows) {
        return 0;
    }
    if (sending.to && channel == &sending.to->channel && sending.error) {
        const int error = sending.error;
        sending.error = 0;
        if (sending.later) {
            queue_it(sending.to, sending.later);
        }
        return error;
    }
    return __real_bhi_channel_send(channel, message);
}

BHT_WRAP(void, bhi_lane_wake, struct bhi_lane *lane) {
    sending.woken += sending.to && lane == &sending.to->lane;
    __real_bhi_lane_wake(lane);
}

static struct bhi_outgoing *detach(uint64_t buffer) {
    struct bhi_outgoing *outgoing = bhi_outgoing_new(BHI_MSG_BUFFER_DETACH);
    BHT_TRUE(outgoing);
    outgoing->message.buffer_detach.buffer = buffer;
    return outgoing;
}

/* A message that has its descriptor, then one without. */
static struct peer *with_two_messages(int ends[2]) {
    struct peer *peer = connect_peer(4242);
    memset(&sending, 0, sizeof sending);
    sending.to = peer->worker;
    BHT_EQ(bhi_fdpass_pair(ends), 0);
    peer->worker->fdpass = ends[0];
    struct bhi_outgoing *cache = bhi_outgoing_new(BHI_MSG_CACHE_ATTACH);
    BHT_TRUE(cache);
    cache->message.cache_attach.cache = 5;
    cache->message.cache_attach.room = 4096;
    cache->fd = fcntl(ends[1], F_DUPFD_CLOEXEC, 0);
    queue_it(peer->worker, cache);
    queue_it(peer->worker, detach(6));
    return peer;
}

static void expect_message(struct peer *peer, enum bhi_message_type type) {
    struct bhi_message message;
    char why[192];
    WAIT_UNTIL(
        bhi_channel_recv(&peer->far, BHI_S2W, BHI_WS_RUNNING, 0, &message, why, sizeof why) == 0,
        20000);
    BHT_EQ(message.type, type);
    BHT_TRUE(type != BHI_MSG_BUFFER_DETACH || message.buffer_detach.buffer >= 6);
}

/* One descriptor comes, whose tag names its message. */
static void expect_descriptor(int end, unsigned count) {
    struct bhi_fd_tag tag;
    for (unsigned i = 0; i < 2; i++) {
        int fd = -1;
        size_t fds = 1;
        const int length = bhi_fdpass_recv(end, &tag, sizeof tag, &fd, &fds, MSG_DONTWAIT);
        BHT_EQ(length > 0, i < count);
        if (length > 0) {
            BHT_EQ(length, sizeof tag);
            BHT_TRUE(tag.magic == BHI_WIRE_MAGIC && tag.type == BHI_MSG_CACHE_ATTACH &&
                     tag.id == 5);
            BHT_EQ(fds, 1);
            close(fd);
        }
    }
}

static bool send_all(struct bhi_worker *worker) {
    worker->control_sent = 7;
    return bhi_control_send(worker);
}

/* What could not be sent goes first the next time, and its descriptor once. The worker is told of what
 * was sent, and of nothing else. */
TEST(what_does_not_fit_goes_later_and_in_order) {
    for (int full = 0; full < 2; full++) {
        int ends[2];
        puppet_again();
        struct peer *peer = with_two_messages(ends);
        struct bhi_worker *worker = peer->worker;
        const _Atomic uint32_t *told = &worker->lane.header->control_sent;
        send_it(peer, line("meanwhile"));
        WAIT_UNTIL(has_come(&worker->channel), 20000);
        if (full) {
            sending.error = -EAGAIN;
            sending.later = detach(7);
            BHT_TRUE(send_all(worker));
            BHT_EQ(*told, 0);
            BHT_EQ(sending.woken, 0);
            BHT_EQ(worker->conduct.asked, 0);
            BHT_STR_HAS(heard.last, "meanwhile");
        }
        BHT_TRUE(!send_all(worker));
        BHT_STR_HAS(heard.last, "meanwhile"); /* sending may take the channel's wake-up */
        BHT_EQ(*told, 7);
        BHT_EQ(sending.woken, 1);
        BHT_EQ(worker->conduct.asked, full ? 3 : 2);
        BHT_TRUE(bhi_list_empty(&worker->outbox));
        expect_message(peer, BHI_MSG_CACHE_ATTACH);
        for (int i = 0; i < 1 + full; i++) {
            expect_message(peer, BHI_MSG_BUFFER_DETACH);
        }
        expect_descriptor(ends[1], 1);
        BHT_TRUE(!send_all(worker)); /* nothing */
        BHT_EQ(sending.woken, 1);
        sending.to = NULL;
        close(ends[1]);
    }
}

/* To whom nothing is sent; and who has hung up is not told, but may yet say why. */
TEST(to_whom_nothing_is_sent) {
    enum { KILLED, STARTS, CLOSED, REFUSES, WAYS };
    for (int way = KILLED; way < WAYS; way++) {
        int ends[2];
        puppet_again();
        struct peer *peer = with_two_messages(ends);
        struct bhi_worker *worker = peer->worker;
        if (way == KILLED) {
            bhi_context_lock(puppet.context);
            bhi_core_worker_kill(&worker->core, BHI_KILL_RETIRED, 0, "as the test says");
            bhi_context_pump_unlock(puppet.context);
        } else if (way == STARTS) {
            puppet_has_come_to(worker, BHI_HELD);
        } else if (way == CLOSED) {
            bhi_fd_close(&worker->fdpass);
        } else {
            sending.error = -ECONNREFUSED;
        }
        BHT_TRUE(!send_all(worker));
        BHT_EQ(worker->lane.header->control_sent, 0);
        BHT_EQ(sending.woken, 0);
        BHT_EQ(worker->core.life.state == BHI_HUNG_UP, way >= CLOSED);
        BHT_TRUE(!bhi_list_empty(&worker->outbox));
        expect_descriptor(ends[1], way == REFUSES);
        sending.to = NULL;
        close(ends[1]);
    }
}

/* It is told once to forget what it has, and nothing of that is left here. */
TEST(what_is_to_be_forgotten) {
    static const enum bhi_message_type told[] = {BHI_MSG_BUFFER_DETACH, BHI_MSG_FILE_DETACH,
                                                 BHI_MSG_KERNEL_DESTROY};
    struct bhi_worker *worker = connect_peer(4242)->worker;
    struct bhi_idset *const sets[] = {&worker->buffers, &worker->written, &worker->constants,
                                      &worker->files};
    bhi_context_lock(puppet.context);
    for (size_t i = 0; i < BHT_COUNT(sets); i++) {
        BHT_TRUE(bhi_idset_reserve(sets[i], 1));
        bhi_idset_add(sets[i], 9);
    }
    bhi_address_space_add(&worker->space, worker->core.pid, 4096);
    struct bhi_reflection *reflection = calloc(1, sizeof *reflection);
    BHT_TRUE(reflection);
    bhi_list_init(&reflection->link);
    reflection->kernel = KERNEL;
    bhi_list_append(&worker->reflections, &reflection->link);
    for (int again = 0; again < 2; again++) {
        bhi_worker_forget_buffer(worker, 9, 4096);
        bhi_worker_forget_file(worker, 9);
        BHT_EQ(bhi_worker_forget_kernel(worker, KERNEL), !again);
    }
    size_t count = 0;
    BHI_LIST_FOR(const struct bhi_outgoing, outgoing, &worker->outbox, link) {
        BHT_LT(count, BHT_COUNT(told));
        BHT_EQ(outgoing->message.type, told[count++]);
    }
    BHT_EQ(count, BHT_COUNT(told));
    for (size_t i = 0; i < BHT_COUNT(sets); i++) {
        BHT_TRUE(!bhi_idset_has(sets[i], 9));
    }
    BHT_EQ(worker->space.attached, 0);
    BHT_TRUE(bhi_list_empty(&worker->reflections));
    bhi_context_pump_unlock(puppet.context);
}

/* What goes with a descriptor has its number in the descriptor's tag. Each message may cause answers, or
 * at least a wake-up. */
TEST(what_each_message_is_worth) {
    static const struct {
        enum bhi_message_type type;
        uint64_t asked;
    } rows[] = {{BHI_MSG_KERNEL_CREATE, MOST_BINDINGS + 2},
                {BHI_MSG_CACHE_ATTACH, 1},
                {BHI_MSG_BUFFER_IMPORT, 1},
                {BHI_MSG_FILE_ATTACH, 1},
                {BHI_MSG_IMPORT, 1},
                {BHI_MSG_BUFFER_ATTACH, 1},
                {BHI_MSG_LEARN, 2}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        int ends[2], fd = -1;
        struct bhi_worker *worker = puppet_serving();
        struct bhi_outgoing *outgoing = bhi_outgoing_new(rows[i].type);
        struct bhi_message *message = &outgoing->message;
        uint64_t *const ids[] = {[BHI_MSG_KERNEL_CREATE] = &message->kernel_create.kernel,
                                 [BHI_MSG_CACHE_ATTACH] = &message->cache_attach.cache,
                                 [BHI_MSG_BUFFER_IMPORT] = &message->buffer_import.buffer,
                                 [BHI_MSG_FILE_ATTACH] = &message->file_attach.file,
                                 [BHI_MSG_IMPORT] = &message->import.worker,
                                 [BHI_MSG_BUFFER_ATTACH] = &message->buffer_attach.buffer,
                                 [BHI_MSG_LEARN] = &message->learn.kernel};
        *ids[rows[i].type] = 5 + i;
        BHT_EQ(bhi_fdpass_pair(ends), 0);
        worker->fdpass = ends[0];
        const bool attaches = rows[i].type != BHI_MSG_LEARN;
        outgoing->fd = attaches ? fcntl(ends[1], F_DUPFD_CLOEXEC, 0) : -1;
        queue_it(worker, outgoing);
        sending.swallows = true;
        BHT_TRUE(!bhi_control_send(worker));
        sending.swallows = false;
        BHT_EQ(worker->conduct.asked, rows[i].asked);
        struct bhi_fd_tag tag = {0};
        size_t fds = 1;
        const int length = bhi_fdpass_recv(ends[1], &tag, sizeof tag, &fd, &fds, MSG_DONTWAIT);
        BHT_EQ(length, attaches ? (int)sizeof tag : -EAGAIN);
        BHT_TRUE(!attaches || (tag.type == (uint32_t)rows[i].type && tag.id == 5 + i));
        bhi_fd_close(&fd);
        close(ends[1]);
    }
}
