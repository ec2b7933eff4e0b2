#include "program.h"

#include <stddef.h>
#include <string.h>

static const char *const ACCESS_NAMES[] = {"reads", "overwrites", "patches", "updates"};
static const char *const OP_NAMES[] = {
#define X(op, name, targets) name,
    MODEL_OPS(X)
#undef X
};
static const uint8_t OP_TARGETS[] = {
#define X(op, name, targets) targets,
    MODEL_OPS(X)
#undef X
};

const char *program_op_name(enum op op) {
    return OP_NAMES[op];
}

uint32_t program_op_targets(enum op op) {
    return OP_TARGETS[op];
}

/* -- drawing one from a seed ---------------------------------------------------------------------
 */

struct draw {
    uint64_t state;
};

static uint32_t below(struct draw *draw, uint32_t n) {
    draw->state += 0x9e3779b97f4a7c15ull;
    return (uint32_t)(((model_mix(draw->state) >> 32) * n) >> 32);
}

static bool chance(struct draw *draw, uint32_t percent) {
    return below(draw, 100) < percent;
}

/* What a history is mainly about, so that rare things meet each other in some of them. */
struct mood {
    uint16_t weights[OP_COUNT];
    uint32_t percent_waits, percent_uses, percent_strict, percent_forever;
};

static struct mood draw_mood(struct draw *draw) {
    struct mood mood = {
        .weights = {[OP_WORK] = 40,
                    [OP_HARVEST] = 14,
                    [OP_BURY] = 6,
                    [OP_STAFF] = 8,
                    [OP_READY] = 8,
                    [OP_LOOK] = 3,
                    [OP_TIME] = 4,
                    [OP_MAP] = 2},
        .percent_waits = below(draw, 60),
        .percent_uses = 20 + below(draw, 80),
        .percent_strict = chance(draw, 30) ? 60 : 0,
        .percent_forever = below(draw, 40),
    };
    static const struct {
        enum op op;
        uint8_t percent, weight;
    } SPICE[] = {
        {OP_DIE, 60, 4},     {OP_CANCEL, 40, 8}, {OP_FAIL, 40, 8},      {OP_HANG, 30, 4},
        {OP_LIE, 15, 2},     {OP_ZYGOTE, 15, 2}, {OP_RESET, 25, 3},     {OP_RELEASE, 20, 2},
        {OP_DISCARD, 30, 4}, {OP_PATCH, 20, 3},  {OP_NO_MEMORY, 10, 2}, {OP_LOOK, 30, 8},
        {OP_TIME, 30, 8},    {OP_DIE, 10, 12},
    };
    for (size_t i = 0; i < sizeof SPICE / sizeof SPICE[0]; i++) {
        if (chance(draw, SPICE[i].percent)) {
            mood.weights[SPICE[i].op] += SPICE[i].weight;
        }
    }
    return mood;
}

static uint8_t draw_access(struct draw *draw) {
    uint32_t r = below(draw, 100);
    return r < 45 ? READ : r < 70 ? OVERWRITE : r < 85 ? PARTIAL : INOUT;
}

static void draw_work(struct draw *draw, const struct mood *mood, const struct program *program,
                      uint32_t number, struct work *work) {
    static const uint32_t DEADLINES[] = {3, 10, 10, 50};
    *work = (struct work){
        .stream = (uint8_t)below(draw, program->stream_count),
        .deadline_ms = chance(draw, mood->percent_forever) ? NO_DEADLINE
                       : chance(draw, 50)                  ? program->streams[0].deadline_ms
                                                           : DEADLINES[below(draw, 4)],
        .compiles = chance(draw, 5),
        .abandoned = chance(draw, 2),
    };
    const uint64_t kind = model_mix(program->seed * WORKS + number);
    work->cold = kind % 6 == 0;
    work->guarded = kind / 6 % 4 != 0;
    for (uint32_t i = 0; i < USES - 1 && !work->compiles; i++) {
        if (chance(draw, mood->percent_uses)) {
            work->uses[work->use_count].buffer = (uint8_t)below(draw, program->buffer_count);
            work->uses[work->use_count++].access = draw_access(draw);
        }
    }
    for (uint32_t i = 0; i < WAITS && number; i++) {
        if (chance(draw, mood->percent_waits)) {
            uint32_t back = below(draw, number < 8 ? number : 8);
            work->waits[work->wait_count++] = (uint8_t)(number - 1 - back);
        }
    }
}

static enum op draw_op(struct draw *draw, const struct mood *mood) {
    uint32_t sum = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        sum += mood->weights[op];
    }
    uint32_t r = below(draw, sum);
    int op = 0;
    while (r >= mood->weights[op]) {
        r -= mood->weights[op++];
    }
    return (enum op)op;
}

static uint8_t draw_target(struct draw *draw, const struct program *program, enum op op,
                           uint32_t submitted) {
    switch (OP_TARGETS[op]) {
    case WORKS:
        return submitted ? (uint8_t)(submitted - 1 - below(draw, submitted < 8 ? submitted : 8))
                         : 0;
    case STREAMS:
        return (uint8_t)below(draw, program->stream_count);
    case BUFFERS:
        return (uint8_t)below(draw, program->buffer_count);
    default:
        return 0;
    }
}

/* In half of all histories some steps are others. Not drawn with the rest: the other half is what
 * it would be without. */
static void mix_in(struct program *program) {
    static const struct {
        enum op op;
        uint32_t one_in;
    } MORE[] = {{OP_CANCEL_ALL, 24}, {OP_HOLD, 12}, {OP_WAIT, 4}};
    const uint32_t count = sizeof MORE / sizeof MORE[0];
    const uint64_t kind = model_mix(program->seed ^ 0x3057) % (2 * (count + 1));
    uint64_t submitted = 0;
    for (uint32_t i = 0; i < program->step_count && kind <= count; i++) {
        struct step *step = &program->steps[i];
        const uint64_t r = model_mix(program->seed * STEPS + i);
        const uint64_t which = kind < count ? kind : r % count; /* one of them, or all */
        submitted += step->op == OP_SUBMIT;
        if (step->op == OP_SUBMIT || step->op == OP_STAFF || r / 8 % MORE[which].one_in) {
            continue;
        }
        const uint64_t drawn = r / 4096;
        step->op = (uint8_t)MORE[which].op;
        if (step->op == OP_WAIT) {
            if (r / 512 % 5 == 0) {
                step->op = OP_LEAVE;
            }
            const uint64_t few = submitted < 3 ? submitted : 3; /* so that several meet */
            step->target = (uint8_t)(submitted ? submitted - 1 - drawn % few : 0);
        } else {
            step->target = (uint8_t)(drawn % (step->op == OP_HOLD ? KINDS : program->stream_count));
        }
    }
}

void program_generate(struct program *program, uint64_t seed) {
    struct draw draw = {seed};
    memset(program, 0, offsetof(struct program, works));
    program->seed = seed;
    program->stream_count = (uint8_t)(chance(&draw, 25) ? 1 : 1 + below(&draw, STREAMS));
    program->buffer_count = (uint8_t)(1 + below(&draw, BUFFERS));
    program->lane = (uint8_t)(1 + below(&draw, 6));
    program->batch = (uint8_t)(1 + below(&draw, 5));
    struct mood mood = draw_mood(&draw);
    for (uint32_t s = 0; s < program->stream_count; s++) {
        program->streams[s].strict = chance(&draw, mood.percent_strict);
        program->streams[s].deadline_ms = 5 + below(&draw, 20);
        program->streams[s].budget = (uint8_t)(1 + below(&draw, chance(&draw, 30) ? 3 : 16));
        program->streams[s].window_ms = chance(&draw, 50) ? 60000 : 50;
        static const uint32_t COMPILE[] = {4, 12, 40, NO_DEADLINE}, GRACE[] = {0, 2, 2, 8};
        const uint64_t patience = model_mix(seed ^ (s + 1));
        program->streams[s].compile_ms = COMPILE[patience % 4];
        program->streams[s].grace_ms = GRACE[patience / 4 % 4];
    }
    uint32_t works = 1 + below(&draw, chance(&draw, 15) ? WORKS : 12);
    bool closes = chance(&draw, 15);
    /* Mostly the workers are there before anything is submitted. */
    for (uint8_t s = 0; s < program->stream_count && chance(&draw, 80); s++) {
        program->steps[program->step_count++] =
            (struct step){.op = OP_STAFF, .target = s, .arg = (uint16_t)below(&draw, 1u << 16)};
    }
    /* Submissions come in bursts: sometimes all at first, sometimes one by one. */
    uint32_t burst = 1 + below(&draw, 10);
    uint32_t between = 1 + below(&draw, 6 + 4u * program->stream_count);
    for (uint32_t done = 0; done < works;) {
        for (uint32_t i = 0; i < burst && done < works; i++) {
            draw_work(&draw, &mood, program, done, &program->works[done]);
            program->steps[program->step_count++] =
                (struct step){.op = OP_SUBMIT, .target = (uint8_t)done++};
        }
        uint32_t steps = done < works ? between * burst : 4 * works + 4;
        for (uint32_t i = 0; i < steps && program->step_count < STEPS - WORKS - 1; i++) {
            enum op op = draw_op(&draw, &mood);
            program->steps[program->step_count++] =
                (struct step){.op = (uint8_t)op,
                              .target = draw_target(&draw, program, op, done),
                              .arg = (uint16_t)below(&draw, 1u << 16)};
        }
    }
    program->work_count = works;
    mix_in(program);
    if (closes) {
        program->steps[program->step_count++] = (struct step){.op = OP_CLOSE};
    }
}

/* -- as text --------------------------------------------------------------------------------- */

void program_print(const struct program *program, FILE *file) {
    fprintf(file, "history %llu\nbuffers %u\nlane %u\nbatch %u\n",
            (unsigned long long)program->seed, program->buffer_count, program->lane,
            program->batch);
    for (uint32_t s = 0; s < program->stream_count; s++) {
        fprintf(file, "stream %s deadline %u budget %u window %u compile %u grace %u\n",
                program->streams[s].strict ? "strict" : "plain", program->streams[s].deadline_ms,
                program->streams[s].budget, program->streams[s].window_ms,
                program->streams[s].compile_ms, program->streams[s].grace_ms);
    }
    for (uint32_t i = 0; i < program->work_count; i++) {
        const struct work *work = &program->works[i];
        fprintf(file, "submission %u stream %u deadline %u", i, work->stream, work->deadline_ms);
        for (uint32_t u = 0; u < work->use_count; u++) {
            fprintf(file, " %s %u", ACCESS_NAMES[work->uses[u].access], work->uses[u].buffer);
        }
        for (uint32_t w = 0; w < work->wait_count; w++) {
            fprintf(file, " waits %u", work->waits[w]);
        }
        fprintf(file, "%s%s%s%s\n", work->compiles ? " compiles 1" : "",
                work->cold ? " cold 1" : "", work->guarded ? " guarded 1" : "",
                work->abandoned ? " abandoned 1" : "");
    }
    for (uint32_t i = 0; i < program->step_count; i++) {
        fprintf(file, "%s %u %u\n", OP_NAMES[program->steps[i].op], program->steps[i].target,
                program->steps[i].arg);
    }
}

static bool parse_work(struct program *program, char *words) {
    unsigned number, value;
    int used = 0;
    char word[24];
    if (sscanf(words, " %u%n", &number, &used) != 1 || number >= WORKS) {
        return false;
    }
    struct work *work = &program->works[number];
    *work = (struct work){.deadline_ms = NO_DEADLINE};
    if (program->work_count <= number) {
        program->work_count = number + 1;
    }
    for (words += used; sscanf(words, " %23s %u%n", word, &value, &used) == 2; words += used) {
        int access = 0;
        while (access < ACCESS_COUNT && strcmp(word, ACCESS_NAMES[access]) != 0) {
            access++;
        }
        if (access < ACCESS_COUNT && work->use_count < USES && value < BUFFERS) {
            work->uses[work->use_count].buffer = (uint8_t)value;
            work->uses[work->use_count++].access = (uint8_t)access;
        } else if (strcmp(word, "waits") == 0 && work->wait_count < WAITS && value < number) {
            work->waits[work->wait_count++] = (uint8_t)value;
        } else if (strcmp(word, "stream") == 0 && value < STREAMS) {
            work->stream = (uint8_t)value;
        } else if (strcmp(word, "deadline") == 0) {
            work->deadline_ms = value;
        } else {
            bool *flag = strcmp(word, "compiles") == 0    ? &work->compiles /* and uses nothing */
                         : strcmp(word, "cold") == 0      ? &work->cold
                         : strcmp(word, "guarded") == 0   ? &work->guarded
                         : strcmp(word, "abandoned") == 0 ? &work->abandoned
                                                          : NULL;
            if (!flag) {
                return false;
            }
            *flag = value != 0;
        }
    }
    return !work->compiles || !work->use_count;
}

static bool parse_line(struct program *program, char *line) {
    char word[24], kind[24];
    unsigned a = 0, b = 0, c = 0;
    int used = 0;
    unsigned long long seed;
    if (sscanf(line, " %23s%n", word, &used) != 1) {
        return true;
    }
    char *rest = line + used;
    if (strcmp(word, "history") == 0 && sscanf(rest, "%llu", &seed) == 1) {
        return program->seed = seed, true;
    }
    if (strcmp(word, "submission") == 0) {
        return parse_work(program, rest);
    }
    if (strcmp(word, "stream") == 0) {
        uint32_t s = program->stream_count;
        unsigned compile = NO_DEADLINE, grace = 0; /* may be left out */
        if (s == STREAMS ||
            sscanf(rest, " %23s deadline %u budget %u window %u compile %u grace %u", kind, &a, &b,
                   &c, &compile, &grace) < 4 ||
            b < 1 || b > 255) {
            return false;
        }
        program->streams[s].compile_ms = compile;
        program->streams[s].grace_ms = grace;
        program->streams[s].strict = strcmp(kind, "strict") == 0;
        program->streams[s].deadline_ms = a;
        program->streams[s].budget = (uint8_t)b;
        program->streams[s].window_ms = c;
        program->stream_count++;
        return true;
    }
    if (sscanf(rest, "%u %u", &a, &b) < 1 || a > 255 || b > UINT16_MAX) {
        return false;
    }
    if (strcmp(word, "buffers") == 0 && a >= 1 && a <= BUFFERS) {
        return program->buffer_count = (uint8_t)a, true;
    }
    if (strcmp(word, "lane") == 0 && a >= 1) {
        return program->lane = (uint8_t)a, true;
    }
    if (strcmp(word, "batch") == 0 && a >= 1) {
        return program->batch = (uint8_t)a, true;
    }
    for (int op = 0; op < OP_COUNT; op++) {
        if (strcmp(word, OP_NAMES[op]) != 0) {
            continue;
        }
        if (program->step_count == STEPS || a >= OP_TARGETS[op]) {
            return false;
        }
        program->steps[program->step_count++] =
            (struct step){.op = (uint8_t)op, .target = (uint8_t)a, .arg = (uint16_t)b};
        return true;
    }
    return false;
}

bool program_parse(struct program *program, FILE *file) {
    char line[512];
    *program = (struct program){.lane = 4, .batch = 1, .buffer_count = 1};
    while (fgets(line, sizeof line, file) && line[0] != '#') {
        if (!parse_line(program, line)) {
            fprintf(stderr, "model_check: cannot read: %s", line);
            return false;
        }
    }
    return program->stream_count > 0;
}
