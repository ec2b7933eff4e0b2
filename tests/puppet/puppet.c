#include "puppet.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/context.h"
#include "supervisor/event/event.h"
#include "supervisor/file/opener.h"
#include "supervisor/load/loaders.h"
#include "supervisor/reactor/pipeline_cache.h"
#include "supervisor/reactor/reactor.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

void puppet_open(struct puppet *puppet) {
    bh_context_options options = {.struct_size = sizeof options};
    options.worker_path = "/proc/self/exe"; /* never run */
    options.spares = BH_OFF;
    options.quarantine_deaths = BH_OFF;
    bh_detail detail;
    *puppet = (struct puppet){0};
    if (bh_context_create(&options, &puppet->context, &detail) != BH_OK) {
        BHT_FAIL("%s", detail.message);
    }
    bhi_reactor_stop(puppet->context);
    puppet->zygote = puppet_zygote(puppet->context, BHI_ZYGOTE_READY);
    bh_stream_options stream = {.struct_size = sizeof stream};
    stream.name = "one";
    BHT_EQ(bh_stream_create(puppet->context, &stream, &puppet->stream, NULL), BH_OK);
    BHT_EQ(bh_buffer_create(puppet->context, 4096, NULL, &puppet->buffer, NULL), BH_OK);
}

/* As bh_context_destroy does it, whose reactor still runs. */
void puppet_close(struct puppet *puppet) {
    bh_context *context = puppet->context;
    bh_buffer_release(puppet->buffer);
    bh_stream_release(puppet->stream);
    bhi_context_lock(context);
    context->closed = true;
    bhi_context_pump_unlock(context);
    BHI_LIST_EACH_SAFE(node, &context->workers)
    puppet_bury(BHI_CONTAINER(node, struct bhi_worker, link), NULL);
    BHI_LIST_EACH_SAFE(node, &context->zygotes) {
        struct bhi_zygote *zygote = BHI_CONTAINER(node, struct bhi_zygote, link);
        bhi_list_remove(&zygote->link);
        bhi_zygote_release(zygote);
    }
    BHT_EQ(bhi_handle_drop(&context->handle), BHI_DROPPED_LAST);
    bhi_pipeline_cache_stop(context);
    bhi_loaders_stop(context);
    bhi_opener_stop(context);
    bhi_pending_forget(context);
    bhi_context_lock(context);
    bhi_pool_close(context->pool);
    bhi_pool_close(context->device_pool);
    bhi_context_pump_unlock(context);
    bhi_context_unref(context);
}

struct bhi_zygote *puppet_zygote(bh_context *context, enum bhi_zygote_state state) {
    struct bhi_zygote *zygote = calloc(1, sizeof *zygote);
    BHT_TRUE(zygote);
    atomic_init(&zygote->refs, 1);
    zygote->context = context;
    bhi_list_init(&zygote->sentinels);
    bhi_context_retain(context);
    zygote->runtime_lock = zygote->cgroup.lock_fd = -1;
    zygote->socket = zygote->pidfd = zygote->warden_pidfd = zygote->proc = -1;
    zygote->state = state;
    bhi_list_append(&context->zygotes, &zygote->link);
    return zygote;
}

struct bhi_worker *puppet_worker(struct puppet *puppet, enum bhi_life_state state) {
    struct bhi_worker *worker = calloc(1, sizeof *worker);
    BHT_TRUE(worker);
    atomic_init(&worker->refs, 1);
    worker->context = puppet->context;
    bhi_context_retain(puppet->context);
    worker->zygote = puppet->zygote;
    bhi_zygote_retain(puppet->zygote);
    memcpy(worker->device, puppet->stream->device, sizeof worker->device);
    worker->memory_limit = puppet->stream->memory_limit;
    worker->kind = puppet->stream->kind;
    worker->oom_kills = bhi_oom_kills();
    worker->fdpass = worker->doorbell = worker->pidfd = worker->channel.fd = -1;
    worker->cache.area = worker->words.fd = -1;
    bhi_core_worker_init(&worker->core, &puppet->context->core);
    puppet_has_come_to(worker, state);
    worker->core.pid = 4242;
    bhi_list_init(&worker->link);
    bhi_list_init(&worker->outbox);
    bhi_list_init(&worker->makes);
    bhi_list_init(&worker->reflections);
    bhi_pool_user_init(&worker->pool);
    bhi_worker_kernels_init(&worker->kernels);
    BHT_EQ(bhi_lane_create(&worker->lane, BHI_LANE_CAPACITY, BHI_PROGRESS_RESULTS), 0);
    BHT_EQ(bhi_progress_create(&worker->progress, BHI_PROGRESS_RESULTS), 0);
    bhi_context_lock(puppet->context);
    worker->id = bhi_context_new_id(puppet->context);
    bhi_list_append(&puppet->context->workers, &worker->link);
    bhi_context_pump_unlock(puppet->context);
    return worker;
}

void puppet_has_come_to(struct bhi_worker *worker, enum bhi_life_state state) {
    BHT_LE(state, BHI_RUNNING);
    worker->core.life.state = worker->core.life.came_to = state;
}

void puppet_dies(struct bhi_worker *worker) {
    struct bhi_life *life = &worker->core.life;
    (void)bhi_life_step(life, BHI_LIFE_HANG_UP, bhi_now_ns());
    (void)bhi_life_step(life, BHI_LIFE_SEEN, bhi_now_ns());
}

struct bhi_worker *puppet_serving(struct puppet *puppet) {
    struct bhi_worker *worker = puppet_worker(puppet, BHI_RUNNING);
    bhi_context_lock(puppet->context);
    bhi_stream_bind(&puppet->stream->core, &worker->core);
    bhi_worker_retain(worker);
    bhi_stream_served(&puppet->stream->core);
    bhi_context_pump_unlock(puppet->context);
    return worker;
}

bh_event *puppet_submit(struct puppet *puppet) {
    const bh_command command = {.type = BH_COMMAND_FILL,
                                .fill = {.dst = puppet->buffer, .size = BH_WHOLE_SIZE, .value = 7}};
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = &command,
                                 .command_count = 1,
                                 .deadline_ns = BH_FOREVER};
    bh_event *event = NULL;
    bh_detail detail;
    if (bh_submit(puppet->stream, &info, &event, &detail) != BH_OK) {
        BHT_FAIL("%s", detail.message);
    }
    return event;
}

struct bhi_progress puppet_side(const struct bhi_worker *worker) {
    struct bhi_progress side;
    BHT_EQ(bhi_progress_map(&side, worker->progress.fd, worker->progress.bytes), 0);
    return side;
}

void puppet_complete(struct bhi_worker *worker, uint64_t count) {
    struct bhi_progress side = puppet_side(worker);
    const uint64_t done = atomic_load(&side.header->completed_seq);
    BHT_LE(done + count, worker->core.published);
    const uint64_t record = worker->lane.head / worker->core.published; /* all are alike */
    for (uint64_t seq = done + 1; seq <= done + count; seq++) {
        const uint64_t now_ns = bhi_now_ns();
        const struct bhi_result result = {.seq = seq,
                                          .started_ns = now_ns,
                                          .ended_ns = now_ns,
                                          .status = BH_OK,
                                          .command_index = BHI_NO_COMMAND,
                                          .executed = BH_EXECUTED_YES};
        atomic_store(&side.header->started_seq, seq);
        bhi_progress_result(&side, &result, NULL);
        bhi_progress_publish(&side, seq, seq * record);
    }
    bhi_progress_unmap(&side);
}

void puppet_bury(struct bhi_worker *worker, struct bhi_obituary *obituary) {
    bh_context *context = worker->context;
    struct bhi_obituary unread;
    bhi_context_lock(context);
    bhi_worker_died(worker, obituary ? obituary : &unread);
    bhi_context_pump_unlock(context);
    bhi_worker_release(worker);
}

bh_verdict puppet_verdict(bh_event *event) {
    bh_verdict verdict = {.struct_size = sizeof verdict};
    BHT_EQ(bh_event_verdict(event, &verdict), BH_OK);
    return verdict;
}

void puppet_end_process(struct bhi_worker *worker, int code_kind, int status) {
    if (code_kind) {
        bhi_life_status(&worker->core.life, code_kind, status, bhi_now_ns());
    }
}
