#include "chaos/engine/operation.h"

#include "tool/clock.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct bhi_operation *bhi_operation_new(void) {
    struct bhi_operation *operation = calloc(1, sizeof *operation);
    if (operation) {
        atomic_store(&operation->refs, 1);
    }
    return operation;
}

void bhi_operation_retain(struct bhi_operation *operation) {
    atomic_fetch_add(&operation->refs, 1);
}

void bhi_operation_release(struct bhi_operation *operation) {
    if (!operation || atomic_fetch_sub(&operation->refs, 1) != 1) {
        return;
    }
    bh_event_release(operation->event);
    bh_buffer_release(operation->output);
    free(operation);
}

static uint64_t since(uint64_t start_ns, uint64_t time_ns) {
    return time_ns > start_ns ? time_ns - start_ns : 0;
}

static void digest(struct bhi_operation *operation, const void *bytes) {
    crypto_generichash(operation->result.result.digest, sizeof operation->result.result.digest,
                       bytes, operation->words * sizeof(uint32_t), NULL, 0);
}

static bh_status map_output(struct bhi_operation *operation, uint64_t patience_ns) {
    void *bytes = NULL;
    const bh_status status =
        bh_buffer_map(operation->output, BH_MAP_READ, patience_ns, &bytes, NULL);
    if (status == BH_OK) {
        digest(operation, bytes);
    }
    return status;
}

/* The death of a worker is no reason to read once more: the library copies again. */
static bh_status copy_output(struct bhi_operation *operation, uint64_t patience_ns) {
    const struct timespec pause = {.tv_nsec = 10000000};
    const uint64_t size = operation->words * sizeof(uint32_t);
    const uint64_t end_ns = bhi_clock_ns() + patience_ns / 3;
    uint32_t *words = malloc(size);
    if (!words) {
        return BH_NO_MEMORY;
    }
    bh_status status;
    while ((status = bh_buffer_read(operation->output, 0, words, size, patience_ns, NULL)) !=
               BH_OK &&
           status != BH_TIMEOUT && status != BH_WORKER_SIGNAL &&
           operation->state == BH_EVENT_READY && bhi_clock_ns() < end_ns) {
        nanosleep(&pause, NULL);
    }
    if (status == BH_OK) {
        digest(operation, words);
    }
    free(words);
    return status;
}

void bhi_operation_read(struct bhi_operation *operation, uint64_t patience_ns, uint64_t start_ns) {
    struct bhi_record *record = &operation->result;
    *record = (struct bhi_record){
        .kind = BHI_RECORD_RESULT, .op = operation->number, .stream = operation->stream};
    record->result.status = operation->on_device ? copy_output(operation, patience_ns)
                                                 : map_output(operation, patience_ns);
    record->at_ns = since(start_ns, bhi_clock_ns());
}

void bhi_operation_await(struct bhi_operation *operation, uint64_t patience_ns, uint64_t start_ns) {
    const bh_status status = bh_event_wait(operation->event, patience_ns);
    operation->first_look.struct_size = sizeof operation->first_look;
    operation->lost =
        status == BH_TIMEOUT || bh_event_verdict(operation->event, &operation->first_look) != BH_OK;
    operation->first_look.message[0] = 0;
    operation->seen_ns = since(start_ns, bhi_clock_ns());
    operation->state = bh_event_query(operation->event);
    operation->waited = status;
}

/* Looks again at state, wait and verdict. Returns true if an answer differs. */
static bool looks_different(const struct bhi_operation *operation) {
    const bh_verdict *a = &operation->first_look;
    bh_verdict again = {.struct_size = sizeof again};
    if (bh_event_query(operation->event) != operation->state ||
        bh_event_wait(operation->event, 0) != operation->waited || operation->waited != a->status ||
        bh_event_verdict(operation->event, &again) != BH_OK) {
        return true;
    }
    return again.status != a->status || again.executed != a->executed ||
           again.signal != a->signal || again.exit_code != a->exit_code ||
           again.vk_result != a->vk_result || again.sys_errno != a->sys_errno ||
           again.event != a->event || again.origin != a->origin || again.hops != a->hops ||
           again.other_causes != a->other_causes || again.blame != a->blame ||
           again.worker_pid != a->worker_pid || again.submitted_ns != a->submitted_ns ||
           again.started_ns != a->started_ns || again.ended_ns != a->ended_ns;
}

void bhi_operation_end_record(const struct bhi_operation *operation, uint64_t start_ns,
                              struct bhi_record *out_record) {
    const bh_verdict *verdict = &operation->first_look;
    *out_record = (struct bhi_record){.kind = BHI_RECORD_END,
                                      .at_ns = operation->seen_ns,
                                      .op = operation->number,
                                      .stream = operation->stream,
                                      .end.lost = operation->lost};
    if (operation->lost) {
        return;
    }
    out_record->end.state = operation->state;
    out_record->end.status = verdict->status;
    out_record->end.executed = verdict->executed;
    out_record->end.signal = verdict->signal;
    out_record->end.worker_pid = verdict->worker_pid;
    out_record->end.origin = verdict->origin;
    out_record->end.hops = verdict->hops;
    out_record->end.blame = verdict->blame;
    out_record->end.submitted_ns = since(start_ns, verdict->submitted_ns);
    out_record->end.started_ns = since(start_ns, verdict->started_ns);
    out_record->end.ended_ns = since(start_ns, verdict->ended_ns);
    out_record->end.changed = looks_different(operation);
}
