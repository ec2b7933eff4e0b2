#include "world.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIES   20000
#define SECONDS 10 /* for so many histories, each of which takes well under a millisecond: */
#define AT_ONCE 64

static struct world world;
static sigjmp_buf escape;
static volatile sig_atomic_t playing;

/* The core's own checks abort; a broken core may crash, or go round for ever. */
static void caught(int signal) {
    if (playing) {
        siglongjmp(escape, signal);
    }
    _exit(3);
}

static void install(void) {
    static bool done;
    static const int SIGNALS[] = {SIGABRT, SIGSEGV, SIGALRM};
    if (done) {
        return;
    }
    done = true;
    struct sigaction action = {.sa_handler = caught, .sa_flags = SA_NODEFER};
    for (size_t i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++) {
        sigaction(SIGNALS[i], &action, NULL);
    }
}

bool model_drive(const struct program *program, void (*drive)(struct world *world, void *state),
                 void *state, FILE *trace, char *failure, size_t size) {
    install();
    static unsigned played;
    if (played++ % AT_ONCE == 0) {
        const char *slowness = getenv("BULKHEAD_TEST_SLOWNESS");
        alarm(SECONDS * (slowness && atoi(slowness) > 1 ? (unsigned)atoi(slowness) : 1));
    }
    int signal = sigsetjmp(escape, 0); /* its handler blocks none */
    if (signal) {
        playing = 0;
        played = 0;
        alarm(0);
        snprintf(failure, size, "%s%s%.200s",
                 signal == SIGABRT   ? "check: the core has aborted"
                 : signal == SIGALRM ? "E9: the core does not come back"
                                     : "crash: the core has crashed",
                 world.failed ? "; " : "", world.failed ? world.failure : "");
        return false;
    }
    playing = 1;
    world_init(&world, program, trace);
    drive(&world, state);
    world_finish(&world);
    playing = 0;
    snprintf(failure, size, "%s", world.failure);
    return !world.failed;
}

static void all_steps(struct world *played, void *state) {
    (void)state;
    for (uint32_t i = 0; i < played->program->step_count && !played->failed; i++) {
        world_step(played, &played->program->steps[i]);
    }
}

bool model_play(const struct program *program, FILE *trace, char *failure, size_t size) {
    return model_drive(program, all_steps, NULL, trace, failure, size);
}

/* -- smaller -------------------------------------------------------------------------------------
 */

struct shrink {
    struct program *best;
    struct program candidate;
    char rule[24]; /* the part of the failure before the colon */
    int tries;
};

static bool try_it(struct shrink *shrink) {
    char failure[400];
    if (shrink->tries++ > TRIES || model_play(&shrink->candidate, NULL, failure, sizeof failure) ||
        strncmp(failure, shrink->rule, strlen(shrink->rule)) != 0) {
        return false;
    }
    *shrink->best = shrink->candidate;
    return true;
}

static void remove_steps(struct program *program, uint32_t at, uint32_t count) {
    memmove(&program->steps[at], &program->steps[at + count],
            (program->step_count - at - count) * sizeof program->steps[0]);
    program->step_count -= count;
}

static bool fewer_steps(struct shrink *shrink) {
    bool any = false;
    for (uint32_t size = shrink->best->step_count / 2; size; size /= 2) {
        for (uint32_t at = shrink->best->step_count; at > 0;) {
            at = at > size ? at - size : 0;
            uint32_t left = shrink->best->step_count;
            if (at >= left) {
                continue;
            }
            shrink->candidate = *shrink->best;
            remove_steps(&shrink->candidate, at, size < left - at ? size : left - at);
            any |= try_it(shrink);
        }
    }
    return any;
}

static bool simpler_works(struct shrink *shrink) {
    bool any = false;
    for (uint32_t i = 0; i < shrink->best->work_count; i++) {
        for (int part = shrink->best->works[i].use_count - 1; part >= 0; part--) {
            shrink->candidate = *shrink->best;
            struct work *work = &shrink->candidate.works[i];
            work->uses[part] = work->uses[--work->use_count];
            any |= try_it(shrink);
        }
        for (int part = shrink->best->works[i].wait_count - 1; part >= 0; part--) {
            shrink->candidate = *shrink->best;
            struct work *work = &shrink->candidate.works[i];
            work->waits[part] = work->waits[--work->wait_count];
            any |= try_it(shrink);
        }
        if (shrink->best->works[i].deadline_ms != NO_DEADLINE) {
            shrink->candidate = *shrink->best;
            shrink->candidate.works[i].deadline_ms = NO_DEADLINE;
            any |= try_it(shrink);
        }
        if (shrink->best->works[i].compiles || shrink->best->works[i].abandoned) {
            shrink->candidate = *shrink->best;
            shrink->candidate.works[i].compiles = shrink->candidate.works[i].abandoned = false;
            any |= try_it(shrink);
        }
    }
    for (int s = 0; s < shrink->best->stream_count; s++) {
        if (shrink->best->streams[s].strict) {
            shrink->candidate = *shrink->best;
            shrink->candidate.streams[s].strict = false;
            any |= try_it(shrink);
        }
    }
    return any;
}

static bool simpler_steps(struct shrink *shrink) {
    bool any = false;
    for (uint32_t i = 0; i < shrink->best->step_count; i++) {
        uint16_t arg = shrink->best->steps[i].arg;
        for (uint16_t simple = 0; simple < 6 && simple < arg; simple++) {
            shrink->candidate = *shrink->best;
            shrink->candidate.steps[i].arg = simple;
            if (try_it(shrink)) {
                any = true;
                break;
            }
        }
    }
    return any;
}

/* Submissions that are never submitted need not be shown. Those that are keep their order. */
static void renumber(struct program *program) {
    int numbers[WORKS];
    int count = 0;
    for (int i = 0; i < WORKS; i++) {
        numbers[i] = -1;
    }
    for (uint32_t i = 0; i < program->step_count; i++) {
        if (program->steps[i].op == OP_SUBMIT && numbers[program->steps[i].target] < 0) {
            numbers[program->steps[i].target] = count++;
        }
    }
    struct work works[WORKS];
    for (int i = 0; i < WORKS; i++) {
        if (numbers[i] < 0) {
            continue;
        }
        struct work work = program->works[i];
        int waits = 0;
        for (int w = 0; w < work.wait_count; w++) {
            if (numbers[work.waits[w]] >= 0) {
                work.waits[waits++] = (uint8_t)numbers[work.waits[w]];
            }
        }
        work.wait_count = (uint8_t)waits;
        works[numbers[i]] = work;
    }
    uint32_t steps = 0;
    for (uint32_t i = 0; i < program->step_count; i++) {
        struct step step = program->steps[i];
        if (program_op_targets(step.op) == WORKS) {
            if (numbers[step.target] < 0) {
                continue;
            }
            step.target = (uint8_t)numbers[step.target];
        }
        program->steps[steps++] = step;
    }
    program->step_count = steps;
    program->work_count = (uint32_t)count;
    memcpy(program->works, works, (size_t)count * sizeof works[0]);
}

void model_shrink(struct program *program) {
    static struct shrink shrink;
    char failure[400];
    shrink = (struct shrink){.best = program};
    if (model_play(program, NULL, failure, sizeof failure)) {
        return;
    }
    snprintf(shrink.rule, sizeof shrink.rule, "%.*s", (int)strcspn(failure, ":") + 1, failure);
    bool any = true;
    while (any && shrink.tries < TRIES) {
        any = fewer_steps(&shrink);
        any |= simpler_works(&shrink);
        any |= simpler_steps(&shrink);
    }
    shrink.candidate = *program;
    renumber(&shrink.candidate);
    (void)try_it(&shrink);
}
