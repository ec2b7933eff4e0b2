#include "random_program.h"
#include "tamper.h"

#include <stdio.h>
#include <unistd.h>

uint64_t rp_random(uint64_t *state) {
    /* splitmix64: any seed will do, also 0 and 1 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint32_t rp_below(uint64_t *state, uint32_t limit) {
    return (uint32_t)((rp_random(state) >> 32) * limit >> 32);
}

uint32_t rp_word(uint32_t value, uint32_t i) {
    return (value + i) * 2654435761u ^ value;
}

static uint32_t below(struct rp_group *group, uint32_t limit) {
    return rp_below(&group->random, limit);
}

static bool chance(struct rp_group *group, uint32_t in_1000) {
    return below(group, 1000) < in_1000;
}

/* -- commands ---------------------------------------------------------------------------------- */

/* Each stream has two buffers that it mostly works on; now and then it uses others'. Otherwise one
 * death would poison everything. */
static unsigned some_buffer(struct rp_group *group, unsigned stream) {
    if (chance(group, 800)) {
        return stream * 2 + below(group, 2);
    }
    return below(group, RP_BUFFERS);
}

static struct rp_command make_command(struct rp_group *group, unsigned stream) {
    struct rp_command c = {.dst = some_buffer(group, stream)};
    c.src = some_buffer(group, stream);
    if (c.src == c.dst) {
        c.src = (c.dst + 1) % RP_BUFFERS;
    }
    c.count = RP_WORDS;
    c.value = (uint32_t)rp_random(&group->random);
    c.rounds = 1;
    uint32_t pick = below(group, 100);
    if (pick < 25) {
        c.kind = RP_COPY;
    } else if (pick < 45) {
        c.kind = RP_FILL;
    } else if (pick < 75) {
        c.kind = RP_MIX;
        c.value |= 1; /* odd: no state is ever forgotten */
        if (chance(group, 40)) {
            c.rounds = 1 + below(group, 40000);
        }
    } else {
        c.kind = RP_DERIVE;
        c.value |= 1;
    }
    if (chance(group, 2)) {
        c.kind = RP_MISBOUND;
    }
    if ((c.kind == RP_COPY || c.kind == RP_FILL) && chance(group, 300)) {
        c.count = 1 + below(group, RP_WORDS);
        c.dst_offset = below(group, RP_WORDS - c.count + 1);
        c.src_offset = below(group, RP_WORDS - c.count + 1);
    }
    return c;
}

/* |bindings| and |push| have room for one command's. */
static bh_command encode(const struct rp_group *group, const struct rp_command *c,
                         bh_binding bindings[2], uint32_t push[2]) {
    if (c->kind == RP_COPY) {
        return (bh_command){.type = BH_COMMAND_COPY,
                            .copy = {.src = group->buffers[c->src],
                                     .dst = group->buffers[c->dst],
                                     .src_offset = 4ull * c->src_offset,
                                     .dst_offset = 4ull * c->dst_offset,
                                     .size = 4ull * c->count}};
    }
    if (c->kind == RP_FILL) {
        return (bh_command){.type = BH_COMMAND_FILL,
                            .fill = {.dst = group->buffers[c->dst],
                                     .offset = 4ull * c->dst_offset,
                                     .size = 4ull * c->count,
                                     .value = c->value}};
    }
    bool derive = c->kind == RP_DERIVE;
    bindings[0] = (bh_binding){.binding = 0,
                               .buffer = group->buffers[c->dst],
                               .size = BH_WHOLE_SIZE,
                               .access = derive ? BH_ACCESS_WRITE : BH_ACCESS_READ_WRITE};
    bindings[1] = bh_bind_read(1, group->buffers[c->src]);
    push[0] = c->value;
    push[1] = c->rounds;
    return (bh_command){.type = BH_COMMAND_DISPATCH,
                        .dispatch = {.kernel = derive ? group->derive : group->mix,
                                     .groups = {RP_WORDS / 64, 1, 1},
                                     .bindings = bindings,
                                     .binding_count = c->kind == RP_MISBOUND ? 1 : 2,
                                     .push = push,
                                     .push_size = derive ? 4 : 8}};
}

/* -- steps ------------------------------------------------------------------------------------- */

static struct rp_step *next_step(struct rp_program *program, enum rp_step_kind kind) {
    BHT_LT(program->step_count, RP_STEPS);
    struct rp_step *step = &program->steps[program->step_count++];
    *step = (struct rp_step){.kind = kind};
    return step;
}

/* A submission of the program so far, or NULL. */
static struct rp_step *some_submission(struct rp_group *group, struct rp_program *program) {
    if (!program->step_count) {
        return NULL;
    }
    /* Rather a recent one. */
    uint32_t back = below(group, program->step_count);
    if (chance(group, 700) && program->step_count > 8) {
        back = below(group, 8);
    }
    struct rp_step *step = &program->steps[program->step_count - 1 - back];
    return step->kind == RP_SUBMIT ? step : NULL;
}

static void submit(struct rp_group *group, struct rp_program *program) {
    struct rp_step made = {.kind = RP_SUBMIT, .stream = below(group, program->stream_count)};
    made.command_count = 1 + below(group, 4);
    for (unsigned i = 0; i < made.command_count; i++) {
        made.commands[i] = make_command(group, made.stream);
    }
    bh_event *waits[3];
    for (unsigned tries = below(group, 4); tries > 0 && chance(group, 200); tries--) {
        const struct rp_step *producer = some_submission(group, program);
        if (!producer) {
            continue;
        }
        waits[made.wait_count] = producer->event;
        made.waits[made.wait_count++] = (unsigned)(producer - program->steps);
    }
    made.deadline_ns = group->deadlines_ns[made.stream];
    uint64_t own_deadline_ns = 0;
    if (chance(group, 5)) { /* not to be met by whoever has many rounds to do */
        made.deadline_ns = own_deadline_ns = FX_MS;
    }
    bh_command commands[4];
    bh_binding bindings[4][2];
    uint32_t pushes[4][2];
    for (unsigned i = 0; i < made.command_count; i++) {
        commands[i] = encode(group, &made.commands[i], bindings[i], pushes[i]);
    }
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = commands,
                                 .command_count = made.command_count,
                                 .waits = waits,
                                 .wait_count = made.wait_count,
                                 .deadline_ns = own_deadline_ns};
    made.event = fx_submit(group->streams[made.stream], &info); /* E8 */
    *next_step(program, RP_SUBMIT) = made;
}

static void host_writes(struct rp_group *group, struct rp_program *program, unsigned buffer,
                        bool whole) {
    struct rp_step *step = next_step(program, RP_WRITE);
    step->buffer = buffer;
    step->count = whole ? RP_WORDS : 1 + below(group, RP_WORDS - 1);
    step->offset = below(group, RP_WORDS - step->count + 1);
    step->value = (uint32_t)rp_random(&group->random);
    uint32_t words[RP_WORDS];
    for (uint32_t i = 0; i < step->count; i++) {
        words[i] = rp_word(step->value, i);
    }
    step->status = bh_buffer_write(group->buffers[buffer], 4ull * step->offset, words,
                                   4ull * step->count, FX_SECONDS, NULL);
    BHT_NE(step->status, BH_TIMEOUT);
}

static void host_reads(struct rp_group *group, struct rp_program *program) {
    struct rp_step *step = next_step(program, RP_READ);
    step->buffer = below(group, RP_BUFFERS);
    step->seen = malloc(4 * RP_WORDS);
    step->status =
        bh_buffer_read(group->buffers[step->buffer], 0, step->seen, 4 * RP_WORDS, FX_SECONDS, NULL);
    BHT_NE(step->status, BH_TIMEOUT);
}

static void reset(const struct rp_group *group, struct rp_program *program, unsigned stream) {
    next_step(program, RP_RESET)->stream = stream;
    BHT_EQ(bh_stream_reset(group->streams[stream], NULL), BH_OK);
}

/* -- what goes wrong --------------------------------------------------------------------------- */

static void hit(struct rp_group *group, int32_t pid, int signal) {
    if (pid <= 0) {
        return;
    }
    BHT_LT(group->hit_count, RP_HITS);
    /* Noted before: a verdict that names it may be there at once. */
    group->hits[group->hit_count++] = (struct rp_hit){pid, signal};
    (void)kill(pid, signal); /* it may just have died of something else */
}

static void kill_zygote(struct rp_group *group, int32_t worker) {
    /* The parent of an orphan is somebody else: this one's own parent must be a child of ours. */
    int zygote = fx_parent(worker), warden = fx_parent(zygote);
    if (zygote <= 1 || warden <= 1 || fx_parent(warden) != getpid()) {
        return;
    }
    group->zygote_kills++;
    (void)kill(zygote, SIGKILL);
}

/* Lets the workers get on, for up to 2 ms: so that what comes next meets them elsewhere. */
static void dawdle(struct rp_group *group) {
    uint64_t end = bht_now_ns() + below(group, 2000) * UINT64_C(1000);
    while (bht_now_ns() < end) {
        bht_poll_pause();
    }
}

static void mischief(struct rp_group *group, struct rp_program *program) {
    bh_stream *stream = group->streams[below(group, program->stream_count)];
    struct rp_step *target = some_submission(group, program);
    uint32_t pick = below(group, 1000);
    if (pick < 9) {
        hit(group, bh_stream_worker_pid(stream), SIGKILL);
    } else if (pick < 14) {
        hit(group, bh_stream_worker_pid(stream), SIGSEGV);
    } else if (pick < 15) {
        hit(group, bh_stream_worker_pid(stream), SIGSTOP);
    } else if (pick < 16) {
        kill_zygote(group, bh_stream_worker_pid(stream));
    } else if (pick < 27 && target) {
        target->cancelled = true; /* noted before, as above */
        BHT_EQ(bh_event_cancel(target->event), BH_OK);
    } else if (pick < 80 && target) {
        bh_status status = bh_event_wait(target->event, below(group, 3) * FX_MS);
        BHT_TRUE(status == BH_TIMEOUT || status == BH_OK || status >= 32);
    } else if (pick < 120) {
        dawdle(group);
    } else if (pick < 125) {
        char text[4096];
        BHT_GT(bh_context_describe(group->context, text, sizeof text), 0);
    }
}

/* -- a whole program --------------------------------------------------------------------------- */

/* Bounded, whatever dies (E9). Twice: the answer stays (E2). */
static void await_all(struct rp_program *program) {
    for (unsigned i = 0; i < program->step_count; i++) {
        struct rp_step *step = &program->steps[i];
        if (step->kind != RP_SUBMIT) {
            continue;
        }
        bh_status status = bh_event_wait(step->event, FX_SECONDS);
        if (status == BH_TIMEOUT) {
            BHT_FAIL("step %u: event %llu has not ended", i,
                     (unsigned long long)bh_event_id(step->event));
        }
        step->verdict.struct_size = sizeof step->verdict;
        BHT_EQ(bh_event_verdict(step->event, &step->verdict), BH_OK);
        BHT_EQ(step->verdict.status, status);
        BHT_EQ(bh_event_query(step->event), status == BH_OK ? BH_EVENT_READY : BH_EVENT_POISONED);
        BHT_EQ(bh_event_wait(step->event, 0), status);
    }
}

void rp_run(struct rp_group *group, struct rp_program *program) {
    program->stream_count = 2 + below(group, RP_STREAMS - 1);
    program->step_count = 0;
    unsigned submissions = 0;
    for (unsigned i = 0; i < program->stream_count; i++) {
        submissions += 10 + below(group, 51);
    }
    for (unsigned i = 0; i < RP_BUFFERS; i++) {
        host_writes(group, program, i, true);
    }
    for (unsigned i = 0; i < RP_STREAMS; i++) {
        if (group->strict[i]) {
            reset(group, program, i);
        }
    }
    while (submissions > 0 && program->step_count < RP_STEPS) {
        uint32_t pick = below(group, 1000);
        if (pick < 40) {
            host_writes(group, program, below(group, RP_BUFFERS), chance(group, 800));
        } else if (pick < 55) {
            host_reads(group, program);
        } else if (pick < 75) {
            reset(group, program, below(group, program->stream_count));
        } else {
            submit(group, program);
            submissions--;
        }
        mischief(group, program);
    }
    await_all(program);
    for (unsigned i = 0; i < RP_BUFFERS; i++) {
        program->content[i] = fx_content(group->buffers[i]);
        BHT_NE(program->content[i], BH_TIMEOUT);
    }
}

void rp_release(struct rp_program *program) {
    for (unsigned i = 0; i < program->step_count; i++) {
        bh_event_release(program->steps[i].event);
        free(program->steps[i].seen);
    }
    program->step_count = 0;
}

static void print_command(const struct rp_command *c) {
    switch (c->kind) {
    case RP_COPY:
        fprintf(stderr, " b%u[%u..+%u]=b%u[%u..]", c->dst, c->dst_offset, c->count, c->src,
                c->src_offset);
        break;
    case RP_FILL:
        fprintf(stderr, " b%u[%u..+%u]=%#x", c->dst, c->dst_offset, c->count, c->value);
        break;
    case RP_MIX:
        fprintf(stderr, " b%u=b%u*%#x+b%u", c->dst, c->dst, c->value, c->src);
        if (c->rounds > 1) {
            fprintf(stderr, " %u times", c->rounds);
        }
        break;
    case RP_DERIVE:
        fprintf(stderr, " b%u=b%u*%#x+i", c->dst, c->src, c->value);
        break;
    case RP_MISBOUND:
        fprintf(stderr, " b%u misbound", c->dst);
        break;
    }
}

void rp_print(const struct rp_group *group, const struct rp_program *program) {
    fprintf(stderr, "group %llu, program %u, faults %s, %zu signals, %u zygotes killed\n",
            (unsigned long long)group->seed, program->index, group->faults ? group->faults : "none",
            group->hit_count, group->zygote_kills);
    for (unsigned i = 0; i < program->step_count; i++) {
        const struct rp_step *s = &program->steps[i];
        fprintf(stderr, "%3u: ", i);
        if (s->kind == RP_RESET) {
            fprintf(stderr, "stream %u is reset%s\n", s->stream,
                    group->strict[s->stream] ? " (strict)" : "");
            continue;
        }
        if (s->kind != RP_SUBMIT) {
            fprintf(stderr, "host %s b%u[%u..+%u]: %s\n", s->kind == RP_WRITE ? "writes" : "reads",
                    s->buffer, s->offset, s->kind == RP_WRITE ? s->count : RP_WORDS,
                    bh_status_name(s->status));
            continue;
        }
        fprintf(stderr, "stream %u, event %llu:", s->stream,
                (unsigned long long)bh_event_id(s->event));
        for (unsigned c = 0; c < s->command_count; c++) {
            fputs(c ? ";" : "", stderr);
            print_command(&s->commands[c]);
        }
        for (unsigned w = 0; w < s->wait_count; w++) {
            fprintf(stderr, "%s%u", w ? "," : " after ", s->waits[w]);
        }
        const bh_verdict *v = &s->verdict;
        fprintf(stderr, "%s -> %s", s->cancelled ? " (cancelled)" : "", bh_status_name(v->status));
        if (v->status != BH_OK) {
            fprintf(stderr, ", executed %d, origin %llu, %u hops, pid %d", v->executed,
                    (unsigned long long)v->origin, v->hops, v->worker_pid);
        }
        fputc('\n', stderr);
    }
}
