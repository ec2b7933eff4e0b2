#include "memory_worker.h"
#include "base/fd.h"
#include "base/memfd.h"
#include "ipc/attach.h"
#include "ipc/commands.h"
#include "ipc/fdpass.h"
#include "ipc/layers.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/event/harvest.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const struct memory_owner memory_owners[MEMORY_STREAMS] = {
    {"a", "red", 0, 1}, {"a2", "red", 0, 1}, {"b", "blue", 1, 1}, {"c", "red", 0, 2}};
struct memory memory;

enum { WORKERS = MEMORY_STREAMS + MEMORY_DEPARTED };

void memory_worker_begin(int stream) {
    struct memory_worker *w = &memory.workers[stream];
    int pair[2];
    *w = (struct memory_worker){.stream = memory.streams[stream], .owner = &memory_owners[stream]};
    w->worker = puppet_worker(BHI_RUNNING);
    puppet_bind(w->worker, w->stream);
    bhi_worker_retain(w->worker);
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    w->worker->fdpass = pair[0];
    w->socket = pair[1];
    w->progress = puppet_side(w->worker);
}

static void begin_all(void) {
    memory = (struct memory){0};
    for (int i = 0; i < MEMORY_STREAMS; i++) {
        const struct memory_owner *owner = &memory_owners[i];
        bh_stream *stream = memory.streams[i] = puppet_stream(owner->name, owner->tenant);
        bhi_context_lock(puppet.context);
        stream->runs_on = (struct bhi_stream_device){
            .known = true, .is_discrete = true, .features = BHI_FEATURE_MEMORY_EXPORT};
        stream->runs_on.uuid[0] = (uint8_t)owner->device;
        snprintf(stream->runs_on.name, sizeof stream->runs_on.name, "device %u", owner->device);
        bhi_context_unlock(puppet.context);
        memory_worker_begin(i);
    }
}

static void end_all(void) {
    for (int i = 0; i < WORKERS; i++) {
        if (memory.workers[i].worker) {
            memory_worker_die(&memory.workers[i]);
            memory_worker_bury(&memory.workers[i]);
        }
    }
}

BHT_AT_START(puppet_around(begin_all, end_all))

bh_buffer *memory_create(int stream, uint64_t size) {
    return fx_buffer_with(
        puppet.context, size,
        (bh_buffer_options){.stream = memory.streams[stream], .memory = BH_MEMORY_DEVICE});
}

/* -- what it can reach ------------------------------------------------------------------------ */

static struct memory_hold *find(struct memory_worker *w, uint64_t buffer) {
    for (uint32_t i = 0; i < w->hold_count; i++) {
        if (w->holds[i].buffer == buffer) {
            return &w->holds[i];
        }
    }
    return NULL;
}

static void drop(struct memory_worker *w, uint64_t buffer) {
    struct memory_hold *hold = find(w, buffer);
    if (hold) {
        close(hold->fd);
        *hold = w->holds[--w->hold_count];
    }
}

static bool is_same_tenants(const struct memory_worker *a, const struct memory_worker *b) {
    return a->owner->tenant_number == b->owner->tenant_number;
}

/* Is it a block of a pool? */
static bool is_pooled(const struct memory_worker *w, uint64_t buffer) {
    BHI_LIST_FOR(const struct bhi_exposure, exposure, &w->worker->pool.exposures, of_worker) {
        if (exposure->block->id == buffer) {
            return true;
        }
    }
    return false;
}

/* Nobody of another tenant may reach what this one can write, nor write what this one reads but for
 * the host memory through which a replica passes, which is no pool's: that is written by one tenant
 * and read by one other, and never the other way round. A worker counts until its death is
 * confirmed. */
static void check_exposure(const struct memory_worker *w, const struct memory_hold *hold) {
    const bool pooled = is_pooled(w, hold->buffer);
    for (uint32_t i = 0; i < WORKERS; i++) {
        const struct memory_worker *other = &memory.workers[i];
        if (!other->worker || is_same_tenants(other, w)) {
            continue;
        }
        for (uint32_t k = 0; k < other->hold_count; k++) {
            const bool writes = other->holds[k].writes;
            if (other->holds[k].memory == hold->memory &&
                (pooled ? hold->writes || writes : hold->writes && writes)) {
                BHT_FAIL("D4: tenant %u %s memory of buffer %llu, which tenant %u %s",
                         w->owner->tenant_number, hold->writes ? "can write" : "reads",
                         (unsigned long long)hold->buffer, other->owner->tenant_number,
                         writes ? "can write" : "has");
            }
        }
    }
}

static struct memory_hold *hold(struct memory_worker *w, uint64_t buffer, int fd, bool writes) {
    struct stat info;
    drop(w, buffer);
    BHT_LT(w->hold_count, MEMORY_HOLDS);
    BHT_EQ(fstat(fd, &info), 0);
    BHT_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, writes ? O_RDWR : O_RDONLY); /* B5 */
    struct memory_hold *hold = &w->holds[w->hold_count++];
    *hold =
        (struct memory_hold){.buffer = buffer, .memory = info.st_ino, .fd = fd, .writes = writes};
    check_exposure(w, hold);
    return hold;
}

static bool has_had(const struct memory_worker *w, ino_t made) {
    for (uint32_t i = 0; i < w->had_count; i++) {
        if (w->had[i] == made) {
            return true;
        }
    }
    return false;
}

static void hold_device(struct memory_worker *w, uint64_t buffer, int fd) {
    const ino_t made = hold(w, buffer, fd, true)->memory;
    if (!has_had(w, made)) {
        BHT_LT(w->had_count, MEMORY_MADE);
        w->had[w->had_count++] = made;
    }
}

/* Device memory stays with its tenant and its device. */
static void check_past(const struct memory_worker *w, uint64_t buffer, ino_t made) {
    for (uint32_t i = 0; i < memory.made_count; i++) {
        const struct memory_owner *owner = memory.made[i].owner;
        if (memory.made[i].memory == made && (owner->tenant_number != w->owner->tenant_number ||
                                              owner->device != w->owner->device)) {
            BHT_FAIL("B3: stream %s is given memory of stream %s, as buffer %llu", w->owner->name,
                     owner->name, (unsigned long long)buffer);
        }
    }
}

/* -- what it is told -------------------------------------------------------------------------- */

static void answer(struct memory_worker *w, enum bhi_message_type type, uint64_t buffer, int fd) {
    const struct bhi_fd_tag tag = {.magic = BHI_WIRE_MAGIC, .type = type, .id = buffer};
    BHT_EQ(bhi_fdpass_send(w->socket, &tag, sizeof tag, &fd, fd >= 0), 0);
}

/* There is no memory for |buffer|: it is to be asked again. */
static void want(struct memory_worker *w, uint64_t buffer, uint64_t bytes) {
    BHT_LT(w->want_count, MEMORY_HOLDS);
    w->wants[w->want_count++] = (struct memory_want){buffer, bytes};
}

/* It is asked again. Returns the buffer's size. */
static uint64_t take_want(struct memory_worker *w, uint64_t buffer) {
    uint32_t i = 0;
    while (i < w->want_count && w->wants[i].buffer != buffer) {
        i++;
    }
    BHT_LT(i, w->want_count);
    const uint64_t bytes = w->wants[i].bytes;
    w->wants[i] = w->wants[--w->want_count];
    return bytes;
}

static void make(struct memory_worker *w, const struct bhi_msg_buffer_make *message) {
    int fd = -1;
    if (message->last) {
        BHT_GT(message->size, 0);
        BHT_EQ(bhi_page_round(message->size), take_want(w, message->buffer));
        w->patience_ms = message->patience_ms;
    }
    if (!w->device_full) {
        fd = memfd_create("device", MFD_CLOEXEC);
        BHT_GE(fd, 0);
        BHT_EQ(ftruncate(fd, (off_t)bhi_page_round(message->size)), 0);
        hold_device(w, message->buffer, fd);
        BHT_LT(memory.made_count, MEMORY_MADE);
        const uint32_t number = memory.made_count++;
        memory.made[number].memory = find(w, message->buffer)->memory;
        memory.made[number].owner = w->owner;
    } else if (message->last) {
        BHT_LT(w->lack_count, MEMORY_HOLDS);
        w->lacks[w->lack_count++] = (struct memory_lack){message->buffer, UINT64_MAX};
        w->device_full--;
    } else {
        want(w, message->buffer, bhi_page_round(message->size));
        w->device_full--;
    }
    answer(w, BHI_MSG_BUFFER_MAKE, message->buffer, fd);
}

/* What another buffer has left behind becomes a buffer: nobody else may be able to write it but the
 * worker of the stream that the buffer is for. */
static void check_reuse(struct memory_worker *w, uint64_t buffer, ino_t made) {
    const bh_stream *home = NULL;
    BHI_LIST_FOR(const struct bhi_make, make, &w->worker->makes, link) {
        home = make->buffer == buffer && make->memory ? make->memory->stream : home;
    }
    for (uint32_t i = 0; home && i < WORKERS; i++) {
        const struct memory_worker *other = &memory.workers[i];
        if (other != w && other->worker && other->stream != home && has_had(other, made)) {
            BHT_FAIL("D3: buffer %llu of stream %s gets memory that a living worker of stream %s "
                     "can write",
                     (unsigned long long)buffer, home->core.name, other->stream->core.name);
        }
    }
}

/* Returns false if it dies in it. */
static bool clear(struct memory_worker *w, uint64_t buffer, bool dies) {
    struct stat info;
    const struct memory_hold *held = find(w, buffer);
    BHT_TRUE(held && fstat(held->fd, &info) == 0);
    if (w->cannot_clear) {
        w->cannot_clear = false;
        drop(w, buffer);
        want(w, buffer, (uint64_t)info.st_size);
        answer(w, BHI_MSG_BUFFER_MAKE, buffer, -1);
        return true;
    }
    check_past(w, buffer, held->memory);
    check_reuse(w, buffer, held->memory);
    BHT_EQ(fallocate(held->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                     dies ? MEMORY_BYTES / 2 : info.st_size),
           0);
    if (!dies) {
        answer(w, BHI_MSG_BUFFER_CLEAR, buffer, -1);
    }
    return !dies;
}

/* Takes the message's descriptor. Returns false if it dies in it. */
static bool handle(struct memory_worker *w, struct bhi_outgoing *outgoing, enum memory_end end) {
    const struct bhi_message *message = &outgoing->message;
    const uint32_t wants = w->want_count;
    bool lives = true;
    switch (message->type) {
    case BHI_MSG_BUFFER_MAKE:
        make(w, &message->buffer_make);
        break;
    case BHI_MSG_BUFFER_CLEAR:
        lives = clear(w, message->buffer_clear.buffer, end == MEMORY_DIES_CLEARING);
        break;
    case BHI_MSG_BUFFER_IMPORT:
        hold_device(w, message->buffer_import.buffer, bhi_fd_steal(&outgoing->fd));
        check_past(w, message->buffer_import.buffer,
                   find(w, message->buffer_import.buffer)->memory);
        break;
    case BHI_MSG_BUFFER_ATTACH:
        hold(w, message->buffer_attach.buffer, bhi_fd_steal(&outgoing->fd),
             message->buffer_attach.access == BHI_ATTACH_WRITE);
        break;
    case BHI_MSG_BUFFER_DETACH:
        if (message->buffer_detach.instead) {
            (void)take_want(w, message->buffer_detach.buffer);
        }
        drop(w, message->buffer_detach.buffer);
        break;
    default:
        break;
    }
    bhi_fd_close(&outgoing->fd);
    return lives && !(end == MEMORY_DIES_DENYING && w->want_count > wants);
}

/* Handles messages up to |control|, and those that it has to wait for. *out_made: it was told to
 * make memory. Returns false if it dies in one of them. */
static bool handle_until(struct memory_worker *w, uint32_t control, enum memory_end end,
                         bool *out_made) {
    bool lives = true;
    while (lives &&
           ((int32_t)(control - w->handled) > 0 || (w->want_count && end != MEMORY_DIES_TELLING))) {
        if (bhi_list_empty(&w->worker->outbox)) {
            BHT_GT(w->want_count, 0);
            memory_worker_harvest(w);
        }
        BHT_TRUE(!bhi_list_empty(&w->worker->outbox));
        struct bhi_outgoing *outgoing =
            BHI_CONTAINER(w->worker->outbox.next, struct bhi_outgoing, link);
        bhi_list_remove(&outgoing->link);
        *out_made |= outgoing->message.type == BHI_MSG_BUFFER_MAKE;
        lives = handle(w, outgoing, end);
        free(outgoing);
        w->handled++;
    }
    return lives;
}

void memory_worker_listen(struct memory_worker *w) {
    bool made = false;
    (void)handle_until(w, w->worker->control_sent, MEMORY_LIVES, &made);
}

/* -- what it runs ----------------------------------------------------------------------------- */

static const struct bhi_lane_record *next(const struct memory_worker *w) {
    return (
        const struct bhi_lane_record *)(const void *)(w->worker->lane.ring +
                                                      (w->tail & (w->worker->lane.capacity - 1)));
}

bool memory_worker_has_work(const struct memory_worker *w) {
    return w->worker && !w->dead && w->tail < w->worker->lane.head;
}

static struct memory_hold *need(struct memory_worker *w, uint64_t buffer, bool writes) {
    struct memory_hold *found = find(w, buffer);
    if (!found || (writes && !found->writes)) {
        BHT_FAIL("a worker of stream %s %s buffer %llu, which its record needs", w->owner->name,
                 found ? "cannot write" : "has not got", (unsigned long long)buffer);
    }
    return found;
}

static void move(struct memory_worker *w, const struct bhi_cmd_header *command, bool half) {
    uint8_t bytes[4096];
    const bool fills = command->type == BHI_CMD_FILL;
    const struct bhi_cmd_fill *fill = (const void *)command;
    const struct bhi_cmd_copy *copy = (const void *)command;
    BHT_TRUE(fills || command->type == BHI_CMD_COPY);
    const uint64_t all = fills ? fill->bytes : copy->bytes, size = half ? all / 2 : all;
    BHT_LE(all, sizeof bytes);
    for (uint64_t i = 0; fills && i < size; i += sizeof fill->value) {
        memcpy(bytes + i, &fill->value, sizeof fill->value);
    }
    BHT_TRUE(fills || pread(need(w, copy->src, false)->fd, bytes, size, (off_t)copy->src_offset) ==
                          (ssize_t)size);
    BHT_EQ(pwrite(need(w, fills ? fill->dst : copy->dst, true)->fd, bytes, size,
                  (off_t)(fills ? fill->dst_offset : copy->dst_offset)),
           (ssize_t)size);
}

/* Was there no memory for |buffer|, and could the record not know that? */
static bool lacks(struct memory_worker *w, uint64_t buffer, uint64_t seq) {
    for (uint32_t i = w->lack_count; i > 0 && !find(w, buffer); i--) {
        if (w->lacks[i - 1].buffer == buffer && seq <= w->lacks[i - 1].last) {
            return true;
        }
    }
    return false;
}

/* It does not have what the record needs, whatever it was told. */
static void lose(struct memory_worker *w, const struct bhi_lane_record *record) {
    const struct bhi_cmd_header *command = bhi_record_first(record);
    if (command->type == BHI_CMD_FILL) {
        drop(w, ((const struct bhi_cmd_fill *)(const void *)command)->dst);
    } else {
        drop(w, ((const struct bhi_cmd_copy *)(const void *)command)->src);
        drop(w, ((const struct bhi_cmd_copy *)(const void *)command)->dst);
    }
}

/* It dies while its device writes this. */
static void note_writing(struct memory_worker *w, const struct bhi_cmd_header *command) {
    const bool fills = command->type == BHI_CMD_FILL;
    const struct bhi_cmd_fill *fill = (const void *)command;
    const struct bhi_cmd_copy *copy = (const void *)command;
    const struct memory_hold *found = find(w, fills ? fill->dst : copy->dst);
    if (found && has_had(w, found->memory)) {
        w->writing = dup(found->fd);
        BHT_GT(w->writing, 0);
        w->writes_at = (off_t)(fills ? fill->dst_offset : copy->dst_offset);
        w->writes_bytes = fills ? fill->bytes : copy->bytes;
    }
}

/* Does it have all that the record needs? Without device memory for it the record fails. */
static bool has_all(struct memory_worker *w, const struct bhi_lane_record *record) {
    const struct bhi_cmd_header *command = bhi_record_first(record);
    if (!command) {
        return true;
    }
    if (command->type == BHI_CMD_FILL) {
        return !lacks(w, ((const struct bhi_cmd_fill *)(const void *)command)->dst, record->seq);
    }
    const struct bhi_cmd_copy *copy = (const void *)command;
    return !lacks(w, copy->src, record->seq) && !lacks(w, copy->dst, record->seq);
}

static bool uses(const struct bhi_lane_record *record, uint64_t buffer) {
    const struct bhi_cmd_header *command = bhi_record_first(record);
    const struct bhi_cmd_copy *copy = (const void *)command;
    return command && command->type == BHI_CMD_COPY && copy->src == buffer;
}

/* |bad|: the buffer whose memory it could not import; 0: none. */
static void publish(struct memory_worker *w, uint64_t seq, uint64_t size, bh_status status,
                    uint64_t bad) {
    const uint64_t now_ns = bhi_now_ns();
    const bool unstarted = status == BH_CANCELLED || status == BH_OUT_OF_DEVICE_MEMORY || bad;
    const struct bhi_result result = {.seq = seq,
                                      .started_ns = unstarted ? 0 : now_ns,
                                      .ended_ns = unstarted ? 0 : now_ns,
                                      .status = status,
                                      .vk_result = status == BH_DEVICE_LOST ? -4 : 0,
                                      .command_index = BHI_NO_COMMAND,
                                      .bad_memory = bad,
                                      .executed = status == BH_OK ? BH_EXECUTED_YES
                                                  : unstarted     ? BH_EXECUTED_NO
                                                                  : BH_EXECUTED_UNKNOWN};
    const struct bhi_why why = {.text = "as the test says"};
    bhi_progress_result(w->progress, &result, status == BH_OK ? NULL : &why);
    w->tail += size;
    w->done = seq;
    bhi_progress_publish(w->progress, seq, w->tail);
}

static uint64_t event_of(const struct memory_worker *w, uint64_t seq) {
    BHI_LIST_FOR(const struct bhi_submission, s, &w->worker->core.inflight, link) {
        if (s->seq == seq) {
            return s->event->id;
        }
    }
    return 0;
}

static bool is_withdrawn(const struct memory_worker *w, uint64_t seq) {
    const uint64_t bit = seq % BHI_LANE_WITHDRAWN;
    return atomic_load(&w->worker->lane.header->withdrawn[bit / 64]) >> bit % 64 & 1;
}

struct memory_done memory_worker_run(struct memory_worker *w, enum memory_end end) {
    const struct bhi_lane_record *record = next(w);
    const uint64_t seq = record->seq, size = record->size;
    struct memory_done done = {.event = event_of(w, seq)};
    if (end == MEMORY_DIES_UNTOLD) {
        memory_worker_die(w);
        return done;
    }
    const uint32_t rest = record->control_seq - w->handled;
    const bool half = end == MEMORY_DIES_TELLING && (int32_t)rest > 0;
    if (!handle_until(w, record->control_seq - (half ? (rest + 1) / 2 : 0), end, &done.made) ||
        (end >= MEMORY_DIES_TELLING && end <= MEMORY_DIES_MADE)) {
        memory_worker_die(w);
        return done;
    }
    atomic_store(&w->progress->header->started_seq, seq);
    if (is_withdrawn(w, seq)) {
        publish(w, seq, size, BH_CANCELLED, 0);
        done.skipped = done.ended = true;
        return done;
    }
    if (w->cannot_import && uses(record, w->cannot_import)) {
        publish(w, seq, size, BH_VULKAN, w->cannot_import);
        w->cannot_import = 0;
        done.ended = true;
        return done;
    }
    done.begun = true;
    if (w->fails_as != BH_OK) {
        lose(w, record);
        publish(w, seq, size, w->fails_as, 0);
        w->fails_as = BH_OK;
        done.ended = true;
        return done;
    }
    const bool able = has_all(w, record);
    const struct bhi_cmd_header *first = bhi_record_first(record);
    const bool fails = first && first->type == BHI_CMD_COPY && ++w->copies == w->fails_at;
    const bool in_part = fails || end == MEMORY_DIES_HALF || end == MEMORY_LOSES_DEVICE;
    for (const struct bhi_cmd_header *command = first;
         command && able && end != MEMORY_DIES_STARTED;
         command = bhi_record_next(record, command)) {
        move(w, command, in_part);
    }
    if (end == MEMORY_LIVES || end == MEMORY_DIES_RECORDED || end == MEMORY_LOSES_DEVICE) {
        publish(w, seq, size,
                end == MEMORY_LOSES_DEVICE ? BH_DEVICE_LOST
                : fails                    ? BH_OUT_OF_HOST_MEMORY
                : able                     ? BH_OK
                                           : BH_OUT_OF_DEVICE_MEMORY,
                0);
        done.ended = true;
        done.good = able && !fails && end != MEMORY_LOSES_DEVICE;
    }
    if (end != MEMORY_LIVES) { /* one whose device is lost ends by itself */
        if (first && !done.ended) {
            note_writing(w, first);
        }
        memory_worker_die(w);
    }
    return done;
}

void memory_run_all(void) {
    for (bool worked = true; worked;) {
        worked = false;
        for (int i = 0; i < MEMORY_STREAMS; i++) {
            while (memory_worker_has_work(&memory.workers[i])) {
                (void)memory_worker_run(&memory.workers[i], MEMORY_LIVES);
                memory_worker_harvest(&memory.workers[i]);
                worked = true;
            }
        }
    }
}

/* -- its end ---------------------------------------------------------------------------------- */

void memory_worker_die(struct memory_worker *w) {
    w->dead = true;
    bhi_fd_close(&w->socket);
}

void memory_worker_harvest(struct memory_worker *w) {
    bhi_context_lock(puppet.context);
    bhi_worker_harvest(w->worker);
    /* Only the pump publishes more: the supervisor knows by now what there was no memory for. */
    for (uint32_t i = 0; i < w->lack_count; i++) {
        if (w->lacks[i].last == UINT64_MAX) {
            w->lacks[i].last = w->worker->core.published;
        }
    }
    bhi_context_pump_unlock(puppet.context);
    puppet_check();
}

bool memory_worker_depart(struct memory_worker *w) {
    struct bhi_life *life = &w->worker->core.life;
    struct memory_worker *place = &memory.workers[MEMORY_STREAMS];
    while (place < &memory.workers[WORKERS] && place->worker) {
        place++;
    }
    if (place == &memory.workers[WORKERS]) {
        return false;
    }
    w->worker->core.confined = true;
    if (bhi_life_is_alive(life)) {
        life->holds = true;
        bhi_life_exit(life, 0, bhi_now_ns());
        bhi_life_ended(life, CLD_KILLED, SIGKILL);
    }
    (void)bhi_leave_turn(puppet.context);
    if (w->worker->core.stream) {
        return false;
    }
    *place = *w;
    w->worker = NULL;
    puppet_check();
    return true;
}

void memory_departed_write(void) {
    static const uint32_t noise[1024] = {[0 ... 1023] = 0xdddddddd};
    for (int i = MEMORY_STREAMS; i < WORKERS; i++) {
        const struct memory_worker *w = &memory.workers[i];
        if (w->worker && w->writing) {
            BHT_EQ(pwrite(w->writing, noise, w->writes_bytes, w->writes_at),
                   (ssize_t)w->writes_bytes);
        }
    }
}

void memory_worker_bury(struct memory_worker *w) {
    puppet_killed(w->worker, SIGKILL);
    if (w->writing) {
        bhi_fd_close(&w->writing);
    }
    w->writing = 0;
    while (w->hold_count) {
        drop(w, w->holds[0].buffer);
    }
    bhi_fd_close(&w->socket);
    bhi_worker_release(w->worker);
    w->worker = NULL;
}
