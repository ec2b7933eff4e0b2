#include "worker/session/session.h"

#include "ipc/commands.h"
#include "worker/session/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A larger record runs alone: merging it would gain nothing. */
#define MERGE_BYTES 4096u
/* Merged records are published together. This limits about how long the first result waits for the
 * last. */
#define MERGE_NS         UINT64_C(2000000)
#define HARVEST_PAUSE_NS UINT64_C(200000)
#define SPIN_NS          50000u /* the highest budget, and the first one */
#define LINES            100u   /* lines for the host's log at once; then one every LINE_NS */
#define LINE_NS          UINT64_C(100000000)

static void ring(struct bhi_session *s) {
    const uint64_t one = 1;
    s->rung_completed = s->completed;
    /* If the counter is full, the doorbell is rung already. */
    ssize_t written = write(s->config.doorbell, &one, sizeof one);
    (void)written;
}

/* Tells the supervisor when a compile begins and ends, because the deadline counts from its end. */
static void compiling(void *user, uint64_t seq, bool over) {
    struct bhi_session *s = user;
    struct bhi_progress_header *header = s->config.progress->header;
    atomic_store_explicit(over ? &header->run_seq : &header->compile_seq, seq,
                          memory_order_release);
    if (over && seq != 0) { /* 0 is the warm-up */
        ring(s);
    }
}

/* The host kills a worker that sends too many lines (supervisor/worker/conduct.h). Lines beyond
 * half of that budget are dropped, and so are lines that do not fit into the channel. */
static void send_line(void *user, uint32_t level, const char *line) {
    struct bhi_session *s = user;
    const uint64_t now = bhi_now_ns();
    s->lines_ns = s->lines_ns > now ? s->lines_ns : now;
    if (s->lines_ns - now >= LINES * LINE_NS) {
        return;
    }
    s->lines_ns += LINE_NS;
    struct bhi_message message = {.type = BHI_MSG_LOG, .log = {.level = level}};
    snprintf(message.log.text, sizeof message.log.text, "%s", line);
    (void)bhi_channel_send(s->config.channel, &message);
}

static struct bhi_backend_config backend_config(struct bhi_session *s) {
    return (struct bhi_backend_config){
        .ops = s->config.ops,
        .entry = s->config.entry,
        .device_index = s->config.device_index,
        .pci = s->config.pci,
        .markers = s->config.progress->markers,
        .calls = {.compiling = compiling,
                  .log = send_line,
                  .meanwhile = bhi_session_look_ahead,
                  .user = s},
    };
}

/* Sends the `device` messages, also if no backend could be created. */
static int send_devices(struct bhi_session *s, const struct bhi_backend_config *config) {
    struct bhi_msg_device *asked = s->config.devices ? NULL : calloc(64, sizeof *asked);
    const struct bhi_msg_device *devices = s->config.devices ? s->config.devices : asked;
    if (!devices) {
        return BHI_EXIT_START_FAILED;
    }
    const size_t count =
        asked ? bhi_backend_devices(config, s->backend, asked, 64) : s->config.device_count;
    int err = 0;
    for (size_t i = 0; i < count && err == 0; i++) {
        struct bhi_message message = {.type = BHI_MSG_DEVICE};
        message.device = devices[i];
        if (!asked) {
            message.device.chosen = s->backend && i == s->config.device_index;
        }
        err = bhi_session_send(s, &message);
    }
    free(asked);
    return err;
}

static struct bhi_session *give_up(struct bhi_session *s, const struct bhi_error *error) {
    const struct bhi_why why = bhi_error_as_why(error);
    bhi_progress_step_failed(s->config.progress, &why);
    bhi_session_destroy(s);
    return NULL;
}

/* Starts a session that runs no kernels. */
static struct bhi_session *start_other(struct bhi_session *s) {
    struct bhi_error error;
    if (s->config.kind == BHI_WORKER_SENTINEL) {
        const struct bhi_backend_config config = backend_config(s);
        s->sentinel = bhi_sentinel_device_create(&config, &error);
        if (s->sentinel && s->config.watchdog) {
            atomic_store(&s->config.watchdog->busy, true);
            atomic_store(&s->config.watchdog->sentinel, s->sentinel);
        }
    } else if (s->config.kind == BHI_WORKER_LOADER) {
        s->loader = bhi_loader_create(s->config.progress, &error);
    } else {
        s->compiler = bhi_compiler_create(s->config.nvrtc, &error);
    }
    if (s->loader || s->compiler || s->sentinel) {
        return s;
    }
    return give_up(s, &error);
}

struct bhi_session *bhi_session_start(const struct bhi_session_config *config) {
    struct bhi_progress *progress = config->progress;
    bhi_progress_step(progress, BHI_STEP_DEVICE);
    struct bhi_session *s = calloc(1, sizeof *s);
    if (!s) {
        bhi_progress_step_failed(progress, &(struct bhi_why){.status = BH_OUT_OF_HOST_MEMORY,
                                                             .text = "no memory for a session"});
        return NULL;
    }
    s->config = *config;
    s->next_seq = 1;
    atomic_init(&s->spin.budget_ns, SPIN_NS);
    if (config->kind != BHI_WORKER_DEVICE) {
        return start_other(s);
    }
    const struct bhi_backend_config backend = backend_config(s);
    struct bhi_error error;
    s->backend = bhi_backend_create(&backend, &error);
    int sent = send_devices(s, &backend);
    if (s->backend && (sent != 0 || bhi_session_announce_words(s) != 0)) {
        BHI_ERROR(&error, BH_REASON_SYSTEM_STEP, "report the devices");
    } else if (s->backend) {
        bhi_progress_step(progress, BHI_STEP_WARM_UP);
        if (bhi_backend_warm_up(s->backend, &error)) {
            if (config->watchdog) {
                atomic_store(&config->watchdog->backend, s->backend);
            }
            return s;
        }
    }
    return give_up(s, &error);
}

void bhi_session_destroy(struct bhi_session *s) {
    if (s) {
        bhi_backend_destroy(s->backend);
        bhi_loader_destroy(s->loader);
        bhi_compiler_destroy(s->compiler);
        bhi_sentinel_device_destroy(s->sentinel);
        free(s);
    }
}

/* Publishes everything up to |seq|, and wakes the threads that wait for it. */
static void publish(struct bhi_session *s, uint64_t seq, bool failed) {
    const struct bhi_lane_header *lane = s->config.lane->header;
    bhi_progress_publish(s->config.progress, seq, s->config.lane->tail);
    s->completed = seq;
    /* Publish first, then check for sleepers. They first announce that they sleep, then check
     * (Dekker). */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&lane->waiters, memory_order_relaxed) != 0) {
        bhi_progress_wake(s->config.progress);
    }
    const uint64_t notify_at = atomic_load_explicit(&lane->notify_at, memory_order_relaxed);
    const bool reached = notify_at != 0 && notify_at <= seq && notify_at != s->notified_at;
    if (reached) {
        s->notified_at = notify_at;
    }
    if (reached || failed) {
        ring(s);
    }
}

/* The error slot of |seq| may hold a text that the supervisor has not read yet. Then this waits
 * until the supervisor has harvested that older submission. The doorbell tells it; it harvests in
 * bounded time or has gone. */
static void wait_for_slot(struct bhi_session *s, uint64_t seq) {
    const struct bhi_lane_header *lane = s->config.lane->header;
    const uint64_t old = s->config.progress->errors[seq % BHI_ERROR_SLOTS].seq;
    bool rung = false;
    while (old != 0 && atomic_load_explicit(&lane->harvested, memory_order_acquire) < old) {
        if (!rung) {
            ring(s);
            rung = true;
        }
        const uint32_t seen = atomic_load_explicit(&lane->doorbell, memory_order_acquire);
        if (atomic_load_explicit(&lane->harvested, memory_order_acquire) >= old) {
            break;
        }
        (void)bhi_futex_wait(&lane->doorbell, seen, true, bhi_deadline_ns(HARVEST_PAUSE_NS));
    }
}

/* Gathers the records, from |first| on, that can run together. */
static int gather(struct bhi_session *s, const struct bhi_lane_record *first, size_t *out_count) {
    struct bhi_lane_view *lane = s->config.lane;
    const bool at_once = s->record_ns == 0;
    uint64_t most = at_once ? BHI_SESSION_BATCH : MERGE_NS / s->record_ns;
    most = most < 1 ? 1 : most > BHI_SESSION_BATCH ? BHI_SESSION_BATCH : most;
    uint64_t offset = 0;
    size_t count = 0;
    for (const struct bhi_lane_record *record = first; record;) {
        if (bhi_record_check(record, record->size, NULL, 0) != 0 ||
            record->seq != s->next_seq + count) {
            return BHI_EXIT_SUPERVISOR;
        }
        const bool merges = record->size <= MERGE_BYTES && most > 1 && s->backend &&
                            !(record->flags & BHI_RECORD_ALONE) &&
                            bhi_backend_warm(s->backend, record) &&
                            !bhi_backend_copies(s->backend, record);
        if (count > 0 && !merges) {
            break;
        }
        s->records[count++] = record;
        offset += record->size;
        if (!merges || count == most) {
            break;
        }
        int err = 0;
        record = bhi_lane_peek(lane, offset, &err);
        if (err != 0) {
            return BHI_EXIT_SUPERVISOR;
        }
        if (record && (int32_t)(record->control_seq - s->control_handled) > 0) {
            break;
        }
    }
    *out_count = count;
    return 0;
}

/* Runs |count| records. Returns false if the device is lost. A worker without a device gets one
 * record at a time. */
static bool run_records(struct bhi_session *s, size_t count) {
    const bool chaos = s->records[0]->flags & BHI_RECORD_CHAOS;
    bool alive = true;
    if (chaos && !bhi_session_chaos_lets(s)) {
        return true;
    }
    if (s->loader) {
        bhi_loader_run(s->loader, s->records[0], &s->results[0], &s->errors[0]);
    } else if (s->compiler) {
        bhi_compiler_run(s->compiler, s->records[0], &s->results[0], &s->errors[0]);
    } else {
        alive = bhi_backend_run(s->backend, s->records, count, s->results, s->errors);
    }
    return chaos ? bhi_session_chaos_answers(s, alive) : alive;
}

/* Runs the next record, unless it was withdrawn. */
static bool run_first(struct bhi_session *s) {
    if (!bhi_lane_withdrawn(s->config.lane, s->records[0]->seq)) {
        return run_records(s, 1);
    }
    const uint64_t now = bhi_now_ns();
    s->results[0] = (struct bhi_result){.seq = s->records[0]->seq,
                                        .started_ns = now,
                                        .ended_ns = now,
                                        .status = BH_CANCELLED,
                                        .command_index = BHI_NO_COMMAND};
    s->errors[0].told.text[0] = '\0';
    return true;
}

/* |error|: NULL unless it is poisoned. */
static void write_result(struct bhi_session *s, const struct bhi_result *result,
                         const struct bhi_error *error) {
    const struct bhi_why why = error ? bhi_error_as_why(error) : (struct bhi_why){.text = NULL};
    bhi_progress_result(s->config.progress, result, error ? &why : NULL);
}

/* Tells the watchdog, which exits when the host has gone and nothing runs. */
static void say_busy(struct bhi_session *s, bool busy) {
    if (s->config.watchdog) {
        atomic_store_explicit(&s->config.watchdog->busy, busy, memory_order_release);
    }
}

static bool is_alone(const struct bhi_session *s) {
    return s->config.watchdog && atomic_load(&s->config.watchdog->host_gone);
}

/* Publishes the results of the first |count| records of the lane; |alive|: the device is not lost.
 * Returns 0 or an exit code. */
static int conclude(struct bhi_session *s, size_t count, bool alive) {
    const uint64_t first = s->next_seq;
    s->next_seq += count;
    if (!alive && s->ahead > 0) {
        /* Copies that have begun are lost with the device. The next worker runs them again. */
        atomic_store_explicit(&s->config.progress->header->started_seq, s->next_seq - 1,
                              memory_order_release);
    }
    bool failed = false;
    for (size_t i = 0; i < count; i++) {
        const bool poisoned = s->results[i].status != BH_OK && s->results[i].status != BH_CANCELLED;
        if (poisoned) {
            const uint64_t old = s->config.progress->errors[(first + i) % BHI_ERROR_SLOTS].seq;
            const uint64_t harvested =
                atomic_load_explicit(&s->config.lane->header->harvested, memory_order_acquire);
            if (old > harvested && i > 0) {
                publish(s, first + i - 1, failed); /* so that finished results do not wait, too */
                failed = false;
            }
            wait_for_slot(s, first + i);
        }
        write_result(s, &s->results[i], poisoned ? &s->errors[i] : NULL);
        s->config.lane->tail += s->records[i]->size;
        s->ahead_bytes -= s->records[i]->size;
        failed |= poisoned;
    }
    publish(s, first + count - 1, failed);
    say_busy(s, s->ahead > 0);
    return alive ? 0 : BHI_EXIT_DEVICE_LOST;
}

/* Waits for the first record of the lane, a copy that has begun, and publishes its result. */
static int end_copy(struct bhi_session *s) {
    int err = 0;
    s->records[0] = bhi_lane_peek(s->config.lane, 0, &err);
    if (!s->records[0]) {
        return BHI_EXIT_SUPERVISOR;
    }
    s->passed_seq = 0;
    const bool alive = bhi_backend_copy_end(s->backend, &s->results[0], &s->errors[0]);
    s->ahead--;
    return conclude(s, 1, alive);
}

static int run_batch(struct bhi_session *s, size_t count) {
    const uint64_t first = s->next_seq;
    bool withdrawn = false;
    for (size_t i = 0; i < count; i++) {
        atomic_store_explicit(&s->config.progress->header->started_seq, first + i,
                              memory_order_release);
    }
    say_busy(s, true);
    (void)bhi_session_announce(s, first + count - 1);
    for (size_t i = 0; i < count; i++) {
        withdrawn |= bhi_lane_withdrawn(s->config.lane, first + i);
    }
    /* If one of them is withdrawn, the batch cannot run merged. Then only the first record runs
     * now, with its own completion, and the others are gathered again. So it is always known which
     * of them ran. */
    if (withdrawn) {
        count = 1;
    } else if (s->backend && count == 1 && bhi_backend_copy_fits(s->backend, s->records[0])) {
        bhi_backend_copy_begin(s->backend, s->records[0]);
        s->ahead = 1;
        s->ahead_bytes = s->records[0]->size;
        return end_copy(s);
    }
    s->batch = (uint32_t)count;
    s->passed_seq = 0;
    s->ahead_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        s->ahead_bytes += s->records[i]->size;
    }
    const bool alive = withdrawn ? run_first(s) : run_records(s, count);
    s->batch = 0;
    const uint64_t took = s->results[count - 1].ended_ns - s->results[0].started_ns;
    s->record_ns = (3 * s->record_ns + took / count) / 4;
    int err = !s->backend || is_alone(s) ? 0 : bhi_session_send_reflections(s);
    if (err != 0) {
        return err;
    }
    if (s->backend) {
        /* This comes before the result is published: after that the supervisor may end this
         * process. */
        bhi_backend_cache_save(s->backend, false);
    }
    return conclude(s, count, alive);
}

/* Sleeps until the doorbell is no longer |seen|. */
static void sleep_on(struct bhi_session *s, uint32_t seen) {
    const struct bhi_lane_header *lane = s->config.lane->header;
    struct bhi_progress_header *header = s->config.progress->header;
    const uint64_t began = bhi_now_ns();
    /* A yield costs less than the wake-up by the host, however busy the processors are. */
    atomic_store_explicit(&s->spin.sleeps, 0, memory_order_relaxed);
    if (bhi_spin_wait(&s->spin, &lane->doorbell, seen)) {
        return;
    }
    if (s->completed > atomic_load_explicit(&lane->harvested, memory_order_acquire) &&
        s->completed != s->rung_completed) {
        ring(s);
    }
    /* We announce that we sleep, then check the doorbell again. They ring, then check whether we
     * sleep (Dekker). */
    atomic_store_explicit(&header->sleeping, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&lane->doorbell, memory_order_acquire) == seen) {
        (void)bhi_futex_wait(&lane->doorbell, seen, true, BHI_FOREVER);
    }
    atomic_store_explicit(&header->sleeping, 0, memory_order_relaxed);
    /* The spin budget is low after several misses, but with a full budget this wait would have been
     * a hit. */
    if (bhi_now_ns() - began < SPIN_NS) {
        atomic_store_explicit(&s->spin.budget_ns, SPIN_NS, memory_order_relaxed);
    }
}

/* One step: a control message, a batch, or sleep. Returns 0 or an exit code. */
static int turn(struct bhi_session *s) {
    const struct bhi_lane_header *lane = s->config.lane->header;
    int err = 0;
    if (s->ahead > 0) {
        return end_copy(s);
    }
    /* The doorbell is read first: whatever is published later changes it. */
    const uint32_t seen = atomic_load_explicit(&lane->doorbell, memory_order_acquire);
    const struct bhi_lane_record *record = bhi_lane_peek(s->config.lane, 0, &err);
    if (err != 0) {
        return BHI_EXIT_SUPERVISOR;
    }
    if (record) {
        while (err == 0 &&
               (s->requests_owed > 0 || (int32_t)(record->control_seq - s->control_handled) > 0)) {
            err = bhi_session_control(s);
        }
        size_t count = 0;
        if (err == 0 && (err = gather(s, record, &count)) == 0) {
            err = run_batch(s, count);
        }
        return err;
    }
    /* A message that a record needs may have been handled before the counter shows it. So the
     * difference may be negative. */
    const uint32_t sent = atomic_load_explicit(&lane->control_sent, memory_order_acquire);
    if ((int32_t)(sent - s->control_handled) > 0) {
        return bhi_session_control(s);
    }
    if (s->backend) {
        bhi_backend_cache_save(s->backend, true);
    }
    sleep_on(s, seen);
    return 0;
}

int bhi_session_run(struct bhi_session *s, uint64_t layers) {
    bhi_progress_step(s->config.progress, BHI_STEP_RUNNING);
    struct bhi_message ready = {.type = BHI_MSG_READY};
    ready.ready.layers = layers;
    ready.ready.aborts = s->config.watchdog && s->backend && bhi_backend_aborts(s->backend);
    int err = bhi_session_send(s, &ready);
    while (err == 0) {
        err = turn(s);
    }
    return err;
}
