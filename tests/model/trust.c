#include "trust.h"

uint64_t trust_code(int work) {
    return work % 7 == 0 ? 0 : 1 + (uint64_t)work % (KINDS - 1);
}

/* Not drawn with the rest: a seed's history is what it was. */
static uint64_t draw(const struct program *program, uint64_t what) {
    return model_mix(program->seed * 1000 + what);
}

enum bhi_apart trust_stream(const struct program *program, int stream) {
    static const enum bhi_apart kinds[12] = {BHI_APART_CODE, BHI_APART_ALL};
    return kinds[draw(program, (uint64_t)stream) % 12];
}

enum bhi_apart trust_alone(const struct program *program, int work) {
    return draw(program, 100 + (uint64_t)work) % 64 == 0 ? BHI_APART_ALL : BHI_APART_NOT;
}

bool trust_tried(const struct program *program, int work) {
    return draw(program, 100 + (uint64_t)work) % 64 < 4;
}

static enum bhi_apart apart_of(const struct world *world, int work) {
    enum bhi_apart stream = trust_stream(world->program, world->program->works[work].stream);
    enum bhi_apart alone = trust_alone(world->program, work);
    if (stream == BHI_APART_NOT && trust_tried(world->program, work)) {
        stream = BHI_APART_CODE;
    }
    return alone > stream ? alone : stream;
}

static bool is_idle(const struct world *world, const struct worker *worker) {
    for (uint64_t seq = 1; seq <= worker->published; seq++) {
        const struct life *life = &world->lives[worker->records[seq].work];
        if (!life->ended && life->worker == worker && life->seq == seq) {
            return false;
        }
    }
    return true;
}

/* Was it given code, another one than that of |work|, one that runs? */
static bool was_given(const struct world *world, const struct worker *worker, int work, bool other,
                      bool runs) {
    for (uint64_t seq = 1; seq <= worker->published; seq++) {
        const int earlier = worker->records[seq].work;
        if (trust_code(earlier) && (!other || trust_code(earlier) != trust_code(work)) &&
            (!runs || !world->program->works[earlier].compiles)) {
            return true;
        }
    }
    return false;
}

bool trust_suits(const struct world *world, const struct worker *worker, int work) {
    const enum bhi_apart apart = apart_of(world, work);
    if (apart != BHI_APART_NOT && burial_left(world, world->program->works[work].stream)) {
        return false; /* that one may still do something */
    }
    const bool others = was_given(world, worker, work, true, false);
    if (!is_idle(world, worker)) {
        if (apart == BHI_APART_ALL || worker->kept == BHI_APART_ALL) {
            return false;
        }
        if (worker->kept == BHI_APART_CODE && trust_code(work) && others) {
            return false;
        }
    }
    if (apart == BHI_APART_CODE) {
        return !trust_code(work) || !others;
    }
    if (apart == BHI_APART_ALL) {
        return !others && !was_given(world, worker, work, false, true);
    }
    return true;
}

void trust_given(const struct world *world, struct worker *worker, int work) {
    const enum bhi_apart apart = apart_of(world, work);
    if (is_idle(world, worker) || apart > worker->kept) {
        worker->kept = apart;
    }
}

static bool launched(const struct world *world, int code) {
    for (uint32_t work = 0; work < world->program->work_count; work++) {
        if (trust_code((int)work) == (uint64_t)code) {
            return true;
        }
    }
    return false;
}

bool trust_hold(struct world *world, int code, uint32_t arg) {
    static const bh_status STATUSES[] = {BH_OK, BH_QUARANTINED, BH_COMPILE_FAILED, BH_QUARANTINED};
    struct hold *hold = &world->holds[code];
    const bh_status status = STATUSES[arg % 4];
    if (!code || status == hold->status || !launched(world, code)) {
        return false;
    }
    *hold = (struct hold){.status = status, .origin = NOBODY};
    /* For what one of its launches did, as a rule. */
    for (int work = 0; work < world->submitted && arg % 3; work++) {
        const struct life *life = &world->lives[work];
        if (life->ended && life->verdict.status != BH_OK && life->verdict.origin == life->id &&
            trust_code(work) == (uint64_t)code) {
            hold->origin = work;
        }
    }
    world_trace(world, "  kernel %d is %s", code, status ? "held" : "let go");
    return true;
}

bool trust_refuses(const struct world *world, int work, struct due *out) {
    const uint64_t code = trust_code(work);
    const struct hold *hold = &world->holds[code];
    if (!code || !hold->status) {
        return false;
    }
    *out = (struct due){.status = hold->status,
                        .origin = hold->origin,
                        .refused = true,
                        .anyhow = true,
                        .cause = NO_CAUSE};
    out->cause.blame = BH_BLAME_CERTAIN;
    out->cause.command_index = (uint32_t)work % 3;
    return true;
}

bool trust_replaceable(const struct world *world, const struct worker *worker) {
    return is_idle(world, worker) && was_given(world, worker, 0, false, false);
}

bh_blame trust_blame(const struct worker *worker, int work, bh_status status) {
    if (status == BH_OK || bh_status_classify(status) == BH_STATUS_CLASS_VICTIM) {
        return BH_BLAME_NONE;
    }
    for (uint64_t seq = 1; seq <= worker->published; seq++) {
        const uint64_t code = trust_code(worker->records[seq].work);
        if (code && code != trust_code(work)) {
            return BH_BLAME_SUSPECTED;
        }
    }
    return BH_BLAME_CERTAIN;
}
