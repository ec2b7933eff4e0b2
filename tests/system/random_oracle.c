/* Judges a program by walking over it in order, once, with its own idea of what each buffer holds
 * and of who decides that. It believes two things of a verdict, and checks all others: whether the
 * submission ran (no, unknown, yes), and when. */
#include "random_program.h"

#include <stdarg.h>
#include <stdio.h>

#define NONE UINT32_MAX

/* Who a buffer's content hangs on: the steps whose failure would be its. */
struct deciders {
    unsigned steps[RP_STEPS];
    unsigned count;
};

struct walk {
    struct rp_group *group;
    const struct rp_program *program;
    unsigned at; /* the step that is being judged */
    uint32_t value[RP_BUFFERS][RP_WORDS];
    bool known[RP_BUFFERS]; /* false: somebody may have written half of something */
    struct deciders deciders[RP_BUFFERS];
};

__attribute__((noreturn, format(printf, 2, 3))) static void wrong(const struct walk *walk,
                                                                  const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    rp_print(walk->group, walk->program);
    if (walk->at < walk->program->step_count && walk->program->steps[walk->at].kind == RP_SUBMIT) {
        fprintf(stderr, "verdict: %s\n", walk->program->steps[walk->at].verdict.message);
    }
    BHT_FAIL("BULKHEAD_SEED=%llu, program %u, step %u: %s", (unsigned long long)walk->group->seed,
             walk->program->index, walk->at, text);
}

static const struct bh_verdict *verdict_of(const struct walk *walk, unsigned step) {
    return &walk->program->steps[step].verdict;
}

static bool poisoned(const struct walk *walk, unsigned step) {
    return verdict_of(walk, step)->status != BH_OK;
}

static unsigned step_of_event(const struct walk *walk, uint64_t event) {
    for (unsigned i = 0; i < walk->program->step_count; i++) {
        if (walk->program->steps[i].kind == RP_SUBMIT && verdict_of(walk, i)->event == event) {
            return i;
        }
    }
    return NONE;
}

/* -- what a submission declares ---------------------------------------------------------------- */

struct declared {
    bool reads[RP_BUFFERS]; /* what was there before the submission */
    bool writes[RP_BUFFERS];
    bool whole[RP_BUFFERS]; /* overwrites all of it */
};

static void declare_read(struct declared *d, unsigned buffer) {
    if (!d->whole[buffer]) {
        d->reads[buffer] = true;
    }
}

static void declare_write(struct declared *d, unsigned buffer, bool whole) {
    d->writes[buffer] = true;
    if (whole && !d->reads[buffer]) {
        d->whole[buffer] = true;
    }
}

static struct declared declarations(const struct rp_step *step) {
    struct declared d = {0};
    for (unsigned i = 0; i < step->command_count; i++) {
        const struct rp_command *c = &step->commands[i];
        if (c->kind == RP_COPY || c->kind == RP_MIX || c->kind == RP_DERIVE) {
            declare_read(&d, c->src);
        }
        if (c->kind == RP_MIX || c->kind == RP_MISBOUND) {
            declare_read(&d, c->dst);
            d.writes[c->dst] = true; /* it keeps what it reads: nothing is overwritten */
        } else {
            declare_write(&d, c->dst, c->count == RP_WORDS);
        }
    }
    return d;
}

static bool is_misbound(const struct rp_step *step) {
    for (unsigned i = 0; i < step->command_count; i++) {
        if (step->commands[i].kind == RP_MISBOUND) {
            return true;
        }
    }
    return false;
}

/* -- why it was poisoned ----------------------------------------------------------------------- */

static bool was_hit(const struct walk *walk, int32_t pid, int signal) {
    for (size_t i = 0; i < walk->group->hit_count; i++) {
        if (walk->group->hits[i].pid == pid && walk->group->hits[i].signal == signal) {
            return true;
        }
    }
    return false;
}

static bool injects(const struct walk *walk, const char *action) {
    const char *faults = walk->group->faults;
    size_t length = strlen(action);
    for (const char *at = faults; at && (at = strstr(at, action)); at += length) {
        if (at > faults && at[-1] == '=' && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* It took its worker with it. */
static bool is_death(const struct bh_verdict *v) {
    switch ((int)v->status) {
    case BH_WORKER_SIGNAL:
    case BH_WORKER_EXIT:
    case BH_SECCOMP:
    case BH_PROTOCOL:
        return true;
    case BH_COMPILE_FAILED:
    case BH_CANCELLED:
    case BH_DEADLINE: /* it may have been ended, and its worker goes on */
        return v->signal != 0 || v->exit_code >= 0;
    default:
        return false;
    }
}

static bool is_from_us(const struct walk *walk, const struct bh_verdict *v) {
    return v->signal ? was_hit(walk, v->worker_pid, v->signal) ||
                           (v->signal == SIGKILL && injects(walk, "kill")) ||
                           (v->signal == SIGSEGV && injects(walk, "segv")) ||
                           (v->signal == SIGABRT && injects(walk, "abort"))
                     : (v->exit_code == 0 && injects(walk, "exit0")) ||
                           (v->exit_code == 7 && injects(walk, "exit7"));
}

/* A worker dies of one thing. */
static void check_only_culprit(const struct walk *walk, const struct bh_verdict *v) {
    for (unsigned i = 0; i < walk->program->step_count; i++) {
        const struct rp_step *other = &walk->program->steps[i];
        const struct bh_verdict *o = &other->verdict;
        if (other->kind == RP_SUBMIT && o->event != v->event && o->status != BH_OK && !o->hops &&
            o->origin == o->event && is_death(o) && o->worker_pid == v->worker_pid) {
            wrong(walk, "worker %d died of event %llu, too", v->worker_pid,
                  (unsigned long long)o->event);
        }
    }
}

static void check_lost(const struct walk *walk, const struct rp_step *step) {
    const struct bh_verdict *v = &step->verdict;
    if (v->origin == v->event) {
        /* Killed for one that ended in time: then that one was to be cancelled, or late. */
        for (unsigned i = 0; i < walk->program->step_count; i++) {
            const struct rp_step *other = &walk->program->steps[i];
            if (other->kind == RP_SUBMIT && other->stream == step->stream && other != step &&
                (other->cancelled || other->deadline_ns < FX_SECONDS)) {
                return;
            }
        }
        wrong(walk, "lost, and nobody's fault");
    }
    unsigned culprit = step_of_event(walk, v->origin);
    if (culprit == NONE) {
        wrong(walk, "lost to an event that is none of the program's");
    }
    const struct bh_verdict *o = verdict_of(walk, culprit);
    if (walk->program->steps[culprit].stream != step->stream || o->worker_pid != v->worker_pid) {
        wrong(walk, "lost to an event on another worker");
    }
    /* The culprit may have been poisoned before it did it, by somebody else. */
    bool inherited = o->hops && o->origin != o->event && o->executed == BH_EXECUTED_UNKNOWN;
    bool killed = is_death(o) || walk->group->zygote_kills > 0;
    if (!inherited && (o->hops || o->origin != o->event || !killed)) {
        wrong(walk, "lost to an event that killed nobody");
    }
}

/* The fault is the submission's own. Was there one? */
static void check_own_cause(const struct walk *walk, const struct rp_step *step) {
    const struct bh_verdict *v = &step->verdict;
    bool just = false;
    switch ((int)v->status) {
    case BH_CANCELLED:
        just = step->cancelled;
        break;
    case BH_DEADLINE: /* a busy machine makes honest work late; then it must really be late */
        just = v->limit == step->deadline_ns && v->ended_ns - v->started_ns + FX_MS >= v->limit;
        break;
    case BH_COMPILE_FAILED: /* it died in that phase */
        just = v->executed == BH_EXECUTED_NO && is_from_us(walk, v);
        break;
    case BH_WORKER_SIGNAL:
    case BH_WORKER_EXIT:
        just = is_from_us(walk, v);
        break;
    case BH_SECCOMP:
        just = injects(walk, "sigsys");
        break;
    case BH_PROTOCOL:
        just = injects(walk, "garbage");
        break;
    case BH_ZYGOTE_LOST:
        just = walk->group->zygote_kills > 0;
        break;
    case BH_BINDING_MISMATCH:
        just = is_misbound(step);
        break;
    }
    if (!just) {
        wrong(walk, "poisoned by itself, without a reason: %s", bh_status_name(v->status));
    }
    if (is_death(v)) {
        check_only_culprit(walk, v);
    }
}

/* On a strict stream: earlier ones that were poisoned, since the last reset. *out_explained: one of
 * them explains the verdict; so may one from before the reset that ended after it. */
static unsigned failures_before(const struct walk *walk, const struct rp_step *step,
                                bool *out_explained) {
    const struct bh_verdict *v = &step->verdict;
    unsigned count = 0;
    for (unsigned i = 0; walk->group->strict[step->stream] && i < walk->at; i++) {
        const struct rp_step *earlier = &walk->program->steps[i];
        const struct bh_verdict *e = &earlier->verdict;
        if (earlier->stream != step->stream) {
            continue;
        }
        if (earlier->kind == RP_RESET) {
            count = 0;
        }
        if (earlier->kind != RP_SUBMIT || e->status == BH_OK) {
            continue;
        }
        count++;
        *out_explained |=
            v->status == BH_STREAM_FAILED && e->origin == v->origin && e->hops + 1 == v->hops;
    }
    return count;
}

/* What was pending at a reset is forgiven, and fails nobody after it. */
static bool reset_later(const struct walk *walk, unsigned stream) {
    for (unsigned i = walk->at; i < walk->program->step_count; i++) {
        if (walk->program->steps[i].kind == RP_RESET && walk->program->steps[i].stream == stream) {
            return true;
        }
    }
    return false;
}

/* |producers|: what it declares to depend on. */
static void check_verdict(struct walk *walk, const struct rp_step *step, const bool *producers) {
    struct rp_group *group = walk->group;
    const struct bh_verdict *v = &step->verdict;
    unsigned bad = 0;
    bool explained = false;
    for (unsigned i = 0; i < walk->at; i++) {
        if (!producers[i] || !poisoned(walk, i)) {
            continue;
        }
        const struct bh_verdict *p = verdict_of(walk, i);
        bad++;
        explained |= p->origin == v->origin && p->hops + 1 == v->hops && p->status == v->status;
    }
    unsigned failed = failures_before(walk, step, &explained);
    group->submissions++;
    group->by_status[v->status < BHT_COUNT(group->by_status) ? v->status : 1]++;
    if (v->event != bh_event_id(step->event)) {
        wrong(walk, "the verdict is another event's");
    }
    if (v->status == BH_OK) {
        group->ready++;
        if (bad) {
            wrong(walk, "READY, though it depends on %u poisoned ones", bad);
        }
        if (failed && !reset_later(walk, step->stream)) {
            wrong(walk, "READY, though its strict stream had failed");
        }
        if (is_misbound(step)) {
            wrong(walk, "READY, though a binding is missing");
        }
        if (v->executed != BH_EXECUTED_YES || v->hops || v->origin != v->event) {
            wrong(walk, "READY with a strange verdict");
        }
        return;
    }
    if (v->hops) {
        group->inherited++;
        if (!explained) {
            wrong(walk, "no dependency explains origin %llu, %u hops away",
                  (unsigned long long)v->origin, v->hops);
        }
        /* Its own failure, where it ran all the same, is one more. */
        if (v->other_causes + (v->executed == BH_EXECUTED_NO && !is_misbound(step)) >
            bad + failed) {
            wrong(walk, "%u other causes, but %u poisoned dependencies", v->other_causes, bad);
        }
        return;
    }
    if (v->status == BH_WORKER_LOST) {
        group->lost++;
        check_lost(walk, step);
        return;
    }
    group->own_causes++;
    group->misbound += v->status == BH_BINDING_MISMATCH;
    if (v->origin != v->event) {
        wrong(walk, "no hops, but another's origin");
    }
    check_own_cause(walk, step);
}

/* -- what it did to the buffers -----------------------------------------------------------------
 */

/* x = x * k + c, |rounds| times. */
static void affine_power(uint32_t k, uint32_t rounds, uint32_t *out_factor, uint32_t *out_sum) {
    uint32_t factor = 1, sum = 0;  /* of what is done so far */
    uint32_t square = k, step = 1; /* 2^n rounds: x * square + c * step */
    for (uint32_t n = rounds; n > 0; n >>= 1) {
        if (n & 1) {
            sum = sum * square + step;
            factor *= square;
        }
        step = step * square + step;
        square *= square;
    }
    *out_factor = factor;
    *out_sum = sum;
}

static void run_command(struct walk *walk, const struct rp_command *c) {
    uint32_t *dst = walk->value[c->dst];
    const uint32_t *src = walk->value[c->src];
    bool whole = c->count == RP_WORDS;
    bool needs_src = c->kind != RP_FILL, needs_dst = c->kind == RP_MIX || !whole;
    if ((needs_src && !walk->known[c->src]) || (needs_dst && !walk->known[c->dst])) {
        walk->known[c->dst] = false;
        return;
    }
    uint32_t factor, sum;
    switch (c->kind) {
    case RP_COPY:
        memcpy(dst + c->dst_offset, src + c->src_offset, 4 * c->count);
        break;
    case RP_FILL:
        for (uint32_t i = 0; i < c->count; i++) {
            dst[c->dst_offset + i] = c->value;
        }
        break;
    case RP_MIX:
        affine_power(c->value, c->rounds, &factor, &sum);
        for (uint32_t i = 0; i < RP_WORDS; i++) {
            dst[i] = dst[i] * factor + src[i] * sum;
        }
        break;
    case RP_DERIVE:
        for (uint32_t i = 0; i < RP_WORDS; i++) {
            dst[i] = src[i] * c->value + i;
        }
        break;
    case RP_MISBOUND:
        walk->known[c->dst] = false;
        return;
    }
    walk->known[c->dst] = true;
}

static void apply(struct walk *walk, const struct rp_step *step, const struct declared *d) {
    switch (step->verdict.executed) {
    case BH_EXECUTED_NO:
        break; /* no side effects: the bytes are compared at the end */
    case BH_EXECUTED_UNKNOWN:
        for (unsigned b = 0; b < RP_BUFFERS; b++) {
            walk->known[b] &= !d->writes[b];
        }
        break;
    case BH_EXECUTED_YES:
        for (unsigned i = 0; i < step->command_count; i++) {
            run_command(walk, &step->commands[i]);
        }
        break;
    }
    for (unsigned b = 0; b < RP_BUFFERS; b++) {
        if (!d->writes[b]) {
            continue;
        }
        struct deciders *deciders = &walk->deciders[b];
        if (d->whole[b] || d->reads[b]) {
            deciders->count = 0;
        }
        deciders->steps[deciders->count++] = walk->at;
    }
}

static void judge_submission(struct walk *walk, const struct rp_step *step) {
    bool producers[RP_STEPS] = {false};
    struct declared d = declarations(step);
    for (unsigned i = 0; i < step->wait_count; i++) {
        producers[step->waits[i]] = true;
    }
    for (unsigned b = 0; b < RP_BUFFERS; b++) {
        for (unsigned i = 0; d.reads[b] && i < walk->deciders[b].count; i++) {
            producers[walk->deciders[b].steps[i]] = true;
        }
    }
    check_verdict(walk, step, producers);
    for (unsigned b = 0; b < RP_BUFFERS; b++) {
        if (step->verdict.status == BH_OK && d.reads[b] && !walk->known[b]) {
            wrong(walk, "READY, though b%u was never known to be whole", b);
        }
    }
    apply(walk, step, &d);
}

/* -- what the host saw --------------------------------------------------------------------------
 */

/* BH_OK where the content is clean; else |status| must be the code of one of those that it hangs
 * on. */
static void check_content(const struct walk *walk, unsigned buffer, bh_status status) {
    const struct deciders *deciders = &walk->deciders[buffer];
    bool bad = false, named = false;
    for (unsigned i = 0; i < deciders->count; i++) {
        if (!poisoned(walk, deciders->steps[i])) {
            continue;
        }
        bad = true;
        named |= verdict_of(walk, deciders->steps[i])->status == status;
    }
    if (bad && status == BH_OK) {
        wrong(walk, "b%u is called clean, though it is poisoned", buffer);
    }
    if (bad && !named) {
        wrong(walk, "b%u is called %s, which nobody is that it hangs on", buffer,
              bh_status_name(status));
    }
    if (!bad && status != BH_OK) {
        wrong(walk, "b%u is called %s, though it is clean", buffer, bh_status_name(status));
    }
}

static void check_bytes(const struct walk *walk, unsigned buffer, const uint32_t *bytes,
                        const char *what) {
    for (uint32_t i = 0; i < RP_WORDS; i++) {
        if (bytes[i] != walk->value[buffer][i]) {
            wrong(walk, "%s b%u[%u]: %#x, must be %#x", what, buffer, i, bytes[i],
                  walk->value[buffer][i]);
        }
    }
}

static void judge_write(struct walk *walk, const struct rp_step *step) {
    unsigned b = step->buffer;
    bool whole = step->count == RP_WORDS;
    if (!whole) {
        check_content(walk, b, step->status);
    } else if (step->status != BH_OK) {
        wrong(walk, "overwriting b%u: %s", b, bh_status_name(step->status));
    }
    if (step->status != BH_OK) {
        return;
    }
    for (uint32_t i = 0; i < step->count; i++) {
        walk->value[b][step->offset + i] = rp_word(step->value, i);
    }
    if (whole) {
        walk->known[b] = true;
        walk->deciders[b].count = 0;
    }
}

static void judge_read(struct walk *walk, const struct rp_step *step) {
    check_content(walk, step->buffer, step->status);
    if (step->status != BH_OK) {
        return;
    }
    walk->group->reads++;
    if (!walk->known[step->buffer]) {
        wrong(walk, "b%u is called clean, and nobody can know what it holds", step->buffer);
    }
    check_bytes(walk, step->buffer, step->seen, "the host read");
}

void rp_judge(struct rp_group *group, const struct rp_program *program) {
    struct walk *walk = calloc(1, sizeof *walk);
    walk->group = group;
    walk->program = program;
    for (walk->at = 0; walk->at < program->step_count; walk->at++) {
        const struct rp_step *step = &program->steps[walk->at];
        switch (step->kind) {
        case RP_SUBMIT:
            judge_submission(walk, step);
            break;
        case RP_WRITE:
            judge_write(walk, step);
            break;
        case RP_READ:
            judge_read(walk, step);
            break;
        case RP_RESET:
            break;
        }
    }
    for (unsigned b = 0; b < RP_BUFFERS; b++) {
        check_content(walk, b, program->content[b]);
        if (program->content[b] == BH_OK && !walk->known[b]) {
            wrong(walk, "b%u is called clean, and nobody can know what it holds", b);
        }
        if (!walk->known[b]) {
            continue;
        }
        /* Also what is poisoned, where nobody ran half: nothing ran that says it did not, and
         * nothing ran twice. */
        group->raw_checks++;
        check_bytes(walk, b, group->raw[b], "in the end");
    }
    free(walk);
}
