#include "world.h"

#include <string.h>

#define DEPTH   64
#define OPTIONS 24

/* A program, and what may happen besides its workers' going on: an operation, how often at most,
 * and how. Workers are there at once. */
struct small {
    const char *name;
    const char *text;
    struct {
        enum op op;
        int most;
        uint16_t arg;
    } events[4];
};

#define PLAIN "stream plain deadline 10 budget 9 window 50\n"

static const struct small SMALL[] = {
    {"producer and consumer on two streams, one death",
     "buffers 2\nlane 2\n" PLAIN PLAIN
     "submission 0 stream 0 overwrites 0\nsubmission 1 stream 1 reads 0 overwrites 1\n",
     {{OP_DIE, 1, 1}}},
    {"three in one lane, two of them merged, one death",
     "buffers 1\nlane 3\nbatch 2\n" PLAIN
     "submission 0 stream 0 overwrites 0\nsubmission 1 stream 0 updates 0\n"
     "submission 2 stream 0 reads 0\n",
     {{OP_DIE, 1, 1}}},
    {"one waits for a bad one and a good one",
     "buffers 2\nlane 1\n" PLAIN PLAIN
     "submission 0 stream 0 overwrites 0\nsubmission 1 stream 1 overwrites 1\n"
     "submission 2 stream 1 waits 0 waits 1\n",
     {{OP_FAIL, 1, 0}}},
    {"three in one lane, merged, a cancel",
     "buffers 1\nlane 3\nbatch 2\n" PLAIN
     "submission 0 stream 0 overwrites 0\nsubmission 1 stream 0 updates 0\n"
     "submission 2 stream 0 overwrites 0\n",
     {{OP_CANCEL, 1, 0}, {OP_LOOK, 1, 0}}},
    {"two in one lane, merged, two cancels, two looks",
     "buffers 1\nlane 2\nbatch 2\n" PLAIN
     "submission 0 stream 0 overwrites 0\nsubmission 1 stream 0 updates 0\n",
     {{OP_CANCEL, 2, 0}, {OP_LOOK, 2, 0}}},
    {"a strict stream fails, another needs it, reset",
     "buffers 1\nlane 2\n"
     "stream strict deadline 10 budget 9 window 50\n" PLAIN
     "submission 0 stream 0\nsubmission 1 stream 0\nsubmission 2 stream 1 waits 1\n",
     {{OP_FAIL, 1, 0}, {OP_RESET, 1, 0}}},
    {"write after read across streams, a cancel and a death",
     "buffers 1\nlane 2\n" PLAIN PLAIN
     "submission 0 stream 0 reads 0\nsubmission 1 stream 1 overwrites 0\n",
     {{OP_CANCEL, 1, 0}, {OP_DIE, 1, 1}}},
    {"two in one lane, a lie and a death",
     "buffers 1\nlane 2\nbatch 2\n" PLAIN
     "submission 0 stream 0 overwrites 0\nsubmission 1 stream 0 updates 0\n",
     {{OP_LIE, 1, 1}, {OP_DIE, 1, 1}}},
    {"two merged, a hang, the clock and looks",
     "buffers 1\nlane 2\nbatch 2\n" PLAIN "submission 0 stream 0 deadline 20 overwrites 0\n"
     "submission 1 stream 0 deadline 10 updates 0\n",
     {{OP_HANG, 1, 0}, {OP_TIME, 2, 10}, {OP_LOOK, 2, 0}}},
    {"two merged without deadlines, a cancel and a hang",
     "buffers 1\nlane 2\nbatch 2\n" PLAIN
     "submission 0 stream 0 overwrites 0\nsubmission 1 stream 0 updates 0\n",
     {{OP_CANCEL, 1, 0}, {OP_HANG, 1, 0}, {OP_LOOK, 1, 0}}},
    {"two merged, guarded, a hang that is told to end, the clock and looks",
     "buffers 1\nlane 2\nbatch 2\n"
     "stream plain deadline 10 budget 9 window 50 compile 20 grace 5\n"
     "submission 0 stream 0 deadline 10 guarded 1 overwrites 0\n"
     "submission 1 stream 0 deadline 10 guarded 1 updates 0\n",
     {{OP_HANG, 1, 0}, {OP_TIME, 2, 10}, {OP_LOOK, 2, 0}}},
    {"one has to be compiled, a hang, a death, the clock and looks",
     "buffers 1\nlane 2\nbatch 2\n"
     "stream plain deadline 10 budget 9 window 50 compile 20 grace 5\n"
     "submission 0 stream 0 deadline 5 cold 1 guarded 1 overwrites 0\n"
     "submission 1 stream 0 updates 0\n",
     {{OP_HANG, 1, 0}, {OP_DIE, 1, 1}, {OP_TIME, 2, 11}, {OP_LOOK, 2, 0}}},
    {"two lost with their zygote, a third needs both",
     "buffers 1\nlane 2\nbatch 2\n" PLAIN PLAIN
     "submission 0 stream 0\nsubmission 1 stream 0\nsubmission 2 stream 1 waits 0 waits 1\n",
     {{OP_ZYGOTE, 1, 0}}},
    {"overwritten by the host in between, one failure",
     "buffers 1\nlane 1\n" PLAIN PLAIN
     "submission 0 stream 0 overwrites 0\nsubmission 1 stream 1 reads 0\n",
     {{OP_FAIL, 1, 1}, {OP_DISCARD, 1, 0}, {OP_MAP, 1, 0}}},
    {"two in a lane of one, another stream needs both, all of a stream is cancelled",
     "buffers 1\nlane 1\n" PLAIN PLAIN
     "submission 0 stream 0 overwrites 0\nsubmission 1 stream 0 updates 0\n"
     "submission 2 stream 1 waits 0 waits 1\n",
     {{OP_CANCEL_ALL, 1, 0}}},
    {"a kernel is refused and let go, two streams need each other",
     "buffers 1\nlane 1\n" PLAIN PLAIN
     "submission 0 stream 0 overwrites 0\nsubmission 1 stream 1 updates 0\n"
     "submission 2 stream 0 waits 1\n",
     {{OP_HOLD, 1, 1}, {OP_HOLD, 2, 0}}},
    {"three wait for one, one of them gives up, a death",
     "buffers 1\nlane 2\n" PLAIN "submission 0 stream 0 overwrites 0\n",
     {{OP_WAIT, 3, 0}, {OP_LEAVE, 1, 1}, {OP_DIE, 1, 1}}},
};

uint32_t explore_count(void) {
    return sizeof SMALL / sizeof SMALL[0];
}

const char *explore_name(uint32_t index) {
    return SMALL[index].name;
}

/* The way through the tree of choices: at each depth the option that was taken. */
struct path {
    const struct small *small;
    struct program *program; /* its steps are those that were taken */
    int choices[DEPTH], depth, forced;
    struct step taken[DEPTH];
};

static int list_options(const struct path *path, const struct world *world,
                        struct step options[OPTIONS]) {
    int count = 0;
    uint32_t streams = path->program->stream_count;
    if (world->submitted < (int)path->program->work_count) {
        options[count++] = (struct step){.op = OP_SUBMIT, .target = (uint8_t)world->submitted};
    }
    for (uint8_t s = 0; s < streams; s++) {
        options[count++] = (struct step){.op = OP_WORK, .target = s, .arg = 1};
        options[count++] = (struct step){.op = OP_HARVEST, .target = s};
        options[count++] = (struct step){.op = OP_BURY, .target = s};
    }
    for (int e = 0; e < 4 && path->small->events[e].most; e++) {
        enum op op = path->small->events[e].op;
        int most = path->small->events[e].most;
        for (uint32_t i = 0; i < path->program->step_count; i++) {
            most -= path->program->steps[i].op == op;
        }
        uint32_t targets = program_op_targets(op) == WORKS     ? (uint32_t)world->submitted
                           : program_op_targets(op) == STREAMS ? streams
                           : op == OP_HOLD                     ? KINDS
                                                               : 1;
        for (uint8_t target = 0; most > 0 && target < targets; target++) {
            options[count++] = (struct step){
                .op = (uint8_t)op, .target = target, .arg = path->small->events[e].arg};
        }
    }
    return count;
}

static void take(struct path *path, const struct step *step) {
    path->program->steps[path->program->step_count++] = *step;
}

/* Follows the choices that are forced, then takes the first possible one each time. All but the
 * last of the forced ones were taken before, and nothing was wrong up to there. */
static void follow(struct world *world, void *state) {
    struct path *path = state;
    path->program->step_count = 0;
    for (path->depth = 0; path->depth < DEPTH && !world->failed; path->depth++) {
        world->played_before = path->depth + 1 < path->forced;
        for (uint8_t s = 0; s < path->program->stream_count; s++) {
            const struct step staff = {.op = OP_STAFF, .target = s};
            if (world_step(world, &staff)) {
                take(path, &staff);
            }
        }
        if (world->played_before) {
            world_step(world, &path->taken[path->depth]);
            take(path, &path->taken[path->depth]);
            continue;
        }
        struct step options[OPTIONS];
        int count = list_options(path, world, options);
        int choice = path->depth < path->forced ? path->choices[path->depth] : 0;
        while (choice < count && !world->failed && !world_step(world, &options[choice])) {
            choice++;
        }
        path->choices[path->depth] = choice;
        if (choice == count) {
            return;
        }
        path->taken[path->depth] = options[choice];
        take(path, &options[choice]);
    }
}

uint64_t explore_all(uint32_t index, uint64_t limit, struct program *program, char *failure,
                     size_t size, bool *out_complete) {
    static char text[1024];
    snprintf(text, sizeof text, "%s", SMALL[index].text);
    FILE *file = fmemopen(text, strlen(text), "r");
    bool good = file && program_parse(program, file);
    if (file) {
        fclose(file);
    }
    *out_complete = false;
    snprintf(failure, size, "usage: a small program cannot be read");
    if (!good) {
        return 0;
    }
    struct path path = {.small = &SMALL[index], .program = program};
    uint64_t played = 0;
    for (;;) {
        if (!model_drive(program, follow, &path, NULL, failure, size)) {
            return played + 1;
        }
        played++;
        path.forced = path.depth; /* there the options were at an end */
        if (!path.forced) {
            *out_complete = true;
            break;
        }
        path.choices[path.forced - 1]++;
        if (played == limit) {
            break;
        }
    }
    failure[0] = 0;
    return played;
}
