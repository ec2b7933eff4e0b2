#include "stage.h"

static bh_buffer *zeros(struct stage *s) {
    return fx_words(s->context, STAGE_FLOATS, 0);
}

struct stage stage_open_with(const char *faults, uint64_t deadline_ns) {
    struct stage s = {.context = fx_context(faults)};
    s.a = fx_stream(s.context, "a", deadline_ns);
    s.pid = fx_ready(s.a); /* before b: it is worker 1 */
    s.b = fx_stream(s.context, "b", FX_SECONDS);
    fx_ready(s.b);
    s.hang = fx_kernel(s.context, "gate");
    s.square = fx_kernel(s.context, "square");
    s.gate = zeros(&s);
    s.word = fx_pointer(s.gate);
    s.x = zeros(&s);
    s.y = zeros(&s);
    s.z = zeros(&s);
    s.w = zeros(&s);
    float *x = (float *)(void *)fx_pointer(s.x);
    for (uint32_t i = 0; i < STAGE_FLOATS; i++) {
        x[i] = (float)i;
    }
    return s;
}

void stage_gate(struct stage *s) {
    s->bad = fx_gate(s->a, s->hang, s->gate);
    fx_await_gate(s->gate);
}

struct stage stage_open(void) {
    struct stage s = stage_open_with(NULL, BH_FOREVER);
    stage_gate(&s);
    return s;
}

void stage_close(struct stage *s) {
    bh_event_release(s->bad);
    bh_kernel_release(s->hang);
    bh_kernel_release(s->square);
    bh_buffer *const buffers[] = {s->gate, s->x, s->y, s->z, s->w};
    for (size_t i = 0; i < BHT_COUNT(buffers); i++) {
        bh_buffer_release(buffers[i]);
    }
    bh_stream_release(s->a);
    bh_stream_release(s->b);
    bh_context_destroy(s->context);
}

void stage_fail_unseen(struct stage *s) {
    fx_kill(s->pid, SIGKILL);
    WAIT_UNTIL(bh_stream_worker_pid(s->a) != s->pid, 20000);
}

bh_event *ev_submit(bh_stream *stream, const bh_command *commands, uint32_t count,
                    bh_event *const *waits, uint32_t wait_count) {
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = commands,
                                 .command_count = count,
                                 .waits = waits,
                                 .wait_count = wait_count};
    return fx_submit(stream, &info);
}

bh_event *ev_square(struct stage *s, bh_stream *stream, bh_buffer *in, bh_buffer *out,
                    bh_event *const *waits, uint32_t wait_count) {
    const bh_binding bindings[] = {bh_bind_read(0, in), bh_bind_write(1, out)};
    return fx_command(stream, fx_dispatch(s->square, bindings, 2), waits, wait_count);
}

bh_event *ev_refused(struct stage *s, bh_stream *stream, bh_buffer *out) {
    /* The kernel wants 0.0 as well. */
    const bh_binding one = bh_bind_write(1, out);
    return fx_command(stream, fx_dispatch(s->square, &one, 1), NULL, 0);
}

void ev_same_verdict(const bh_verdict *one, const bh_verdict *other) {
    BHT_EQ(one->status, other->status);
    BHT_EQ(one->executed, other->executed);
    BHT_EQ(one->signal, other->signal);
    BHT_EQ(one->exit_code, other->exit_code);
    BHT_EQ(one->vk_result, other->vk_result);
    BHT_EQ(one->sys_errno, other->sys_errno);
    BHT_EQ(one->event, other->event);
    BHT_EQ(one->origin, other->origin);
    BHT_EQ(one->hops, other->hops);
    BHT_EQ(one->other_causes, other->other_causes);
    BHT_EQ(one->command_index, other->command_index);
    BHT_EQ(one->worker_pid, other->worker_pid);
    BHT_EQ(one->limit, other->limit);
    BHT_EQ(one->submitted_ns, other->submitted_ns);
    BHT_EQ(one->started_ns, other->started_ns);
    BHT_EQ(one->ended_ns, other->ended_ns);
    BHT_STR_EQ(one->kernel_name, other->kernel_name);
    BHT_MEM_EQ(one->kernel_hash, other->kernel_hash, sizeof one->kernel_hash);
    BHT_STR_EQ(one->stream_name, other->stream_name);
    BHT_STR_EQ(one->message, other->message);
}

struct look {
    bh_event *event;
    bh_status status; /* what it must say */
    bh_verdict verdict;
};

static void *look(void *argument) {
    struct look *l = argument;
    for (int i = 0; i < 2; i++) {
        bh_verdict again = {.struct_size = sizeof again};
        l->verdict.struct_size = sizeof l->verdict;
        BHT_EQ(bh_event_wait(l->event, FX_SECONDS), l->status);
        BHT_EQ(bh_event_wait(l->event, 0), l->status);
        BHT_EQ(bh_event_query(l->event), l->status == BH_OK ? BH_EVENT_READY : BH_EVENT_POISONED);
        BHT_EQ(bh_event_verdict(l->event, i ? &again : &l->verdict), BH_OK);
        if (i) {
            ev_same_verdict(&l->verdict, &again);
        }
    }
    size_t index = 1;
    BHT_EQ(bh_event_wait_any(&l->event, 1, 0, &index), BH_OK);
    BHT_EQ(index, 0);
    BHT_EQ(l->verdict.status, l->status);
    BHT_EQ(l->verdict.event, bh_event_id(l->event));
    return NULL;
}

bh_verdict ev_agree(bh_event *event, bh_status status) {
    bh_verdict first = fx_verdict(event);
    if (first.status != status) {
        BHT_FAIL("event %llu is %s, must be %s: %s", (unsigned long long)first.event,
                 bh_status_name(first.status), bh_status_name(status), first.message);
    }
    struct look here = {.event = event, .status = status}, there = here;
    bht_start(look, &there);
    look(&here);
    bht_join();
    ev_same_verdict(&first, &here.verdict);
    ev_same_verdict(&first, &there.verdict);
    return first;
}

bh_verdict ev_poisoned(bh_event *event, bh_status status, const bh_event *origin, uint32_t hops,
                       bh_executed executed) {
    bh_verdict verdict = ev_agree(event, status);
    BHT_NE(verdict.status, BH_OK);
    BHT_EQ(verdict.origin, bh_event_id(origin));
    BHT_EQ(verdict.hops, hops);
    BHT_EQ(verdict.executed, executed);
    BHT_TRUE(verdict.message[0]);
    return verdict;
}

void ev_ready(bh_event *event) {
    bh_verdict verdict = ev_agree(event, BH_OK);
    BHT_EQ(verdict.executed, BH_EXECUTED_YES);
    BHT_EQ(verdict.origin, bh_event_id(event));
    BHT_EQ(verdict.hops, 0);
    BHT_EQ(verdict.other_causes, 0);
    BHT_EQ(verdict.signal, 0);
}

void ev_squares(bh_buffer *buffer, int times) {
    float copy[STAGE_FLOATS];
    const void *mapped = fx_mapped(buffer);
    BHT_EQ(bh_buffer_read(buffer, 0, copy, sizeof copy, FX_SECONDS, NULL), BH_OK);
    BHT_MEM_EQ(mapped, copy, sizeof copy);
    for (uint32_t i = 0; i < STAGE_FLOATS; i++) {
        float want = (float)i;
        for (int n = 0; n < times; n++) {
            want *= want;
        }
        if (copy[i] != want) {
            BHT_FAIL("element %u is %g, must be %g", i, (double)copy[i], (double)want);
        }
    }
}

void ev_content_poisoned(bh_buffer *buffer, bh_status status) {
    for (int i = 0; i < 2; i++) {
        bh_detail detail;
        uint32_t word = 0xABAD1DEA;
        void *mapped = &word;
        BHT_EQ(bh_buffer_map(buffer, BH_MAP_READ, FX_SECONDS, &mapped, &detail), status);
        BHT_TRUE(!mapped);
        BHT_EQ(detail.status, status);
        BHT_STR_HAS(detail.message, "poisoned");
        BHT_EQ(bh_buffer_map(buffer, BH_MAP_READ_WRITE, FX_SECONDS, &mapped, NULL), status);
        BHT_EQ(bh_buffer_read(buffer, 0, &word, sizeof word, FX_SECONDS, NULL), status);
        BHT_EQ(word, 0xABAD1DEA);
        BHT_EQ(bh_buffer_write(buffer, 0, &word, sizeof word, FX_SECONDS, NULL), status);
    }
}

void ev_well(struct stage *s) {
    fx_expect_healthy(s->context, s->a);
    fx_expect_healthy(s->context, s->b);
}
