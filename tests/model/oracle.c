#include "oracle.h"
#include "world.h"

#include <stddef.h>
#include <string.h>

#define BIT(n) (1ull << (n))

void oracle_init(struct world *world) {
    struct oracle *oracle = &world->oracle;
    memset(oracle, 0, offsetof(struct oracle, works));
    memset(oracle->works, 0, world->program->work_count * sizeof oracle->works[0]);
    for (int s = 0; s < STREAMS; s++) {
        oracle->failure[s] = NOBODY;
    }
}

static int stream_of(const struct world *world, int work) {
    return world->program->works[work].stream;
}

/* -- who needs whom ------------------------------------------------------------------------------
 */

/* What all uses of a buffer together do with it. */
static void sum_up(const struct work *work, struct opinion *opinion) {
    for (int i = 0; i < work->use_count; i++) {
        uint64_t buffer = BIT(work->uses[i].buffer);
        enum access access = work->uses[i].access;
        if ((access == READ || access == INOUT) && !(opinion->whole & buffer)) {
            opinion->read |= buffer;
        }
        if (access == OVERWRITE && !(opinion->read & buffer)) {
            opinion->whole |= buffer;
        }
        if (access != READ) {
            opinion->written |= buffer;
        }
    }
}

uint64_t oracle_writers(const struct world *world, int buffer, uint64_t *out_users) {
    const struct oracle *oracle = &world->oracle;
    uint64_t deciding = 0, users = 0;
    for (uint32_t i = 0; i < oracle->log_count; i++) {
        int work = oracle->log[i].work;
        if (oracle->log[i].kind == LOG_DISCARD && oracle->log[i].buffer == buffer) {
            deciding = 0;
        }
        if (oracle->log[i].kind != LOG_WORK) {
            continue;
        }
        const struct opinion *opinion = &oracle->works[work];
        if ((opinion->read | opinion->written) >> buffer & 1) {
            users |= BIT(work);
        }
        if (!(opinion->written >> buffer & 1)) {
            continue;
        }
        if ((opinion->whole | opinion->read) >> buffer & 1) {
            deciding = 0;
        }
        deciding |= BIT(work);
    }
    if (out_users) {
        *out_users = users;
    }
    return deciding;
}

static bool find_cause(const struct world *world, int work, struct opinion *out);
static void poison(struct opinion *opinion, const struct opinion *cause);
static void spread(struct world *world, int first);

void oracle_submit(struct world *world, int number) {
    struct oracle *oracle = &world->oracle;
    const struct work *work = &world->program->works[number];
    struct opinion *opinion = &oracle->works[number];
    memset(opinion, 0, sizeof *opinion);
    opinion->origin = NOBODY;
    sum_up(work, opinion);
    for (int i = 0; i < work->wait_count; i++) {
        if (world->lives[work->waits[i]].submitted) {
            opinion->data |= BIT(work->waits[i]);
        }
    }
    for (int b = 0; b < BUFFERS; b++) {
        if (!((opinion->read | opinion->written) >> b & 1)) {
            continue;
        }
        uint64_t users, deciding = oracle_writers(world, b, &users);
        if (opinion->read >> b & 1) {
            opinion->data |= deciding;
        }
        for (int other = 0; other < number; other++) {
            if (users >> other & 1 && world_is_pending(world, other) &&
                (opinion->written >> b & 1 || oracle->works[other].written >> b & 1)) {
                opinion->order |= BIT(other);
            }
        }
    }
    oracle->log[oracle->log_count].kind = LOG_WORK;
    oracle->log[oracle->log_count++].work = number;
    struct opinion cause;
    bool doomed = find_cause(world, number, &cause);
    if (doomed) {
        poison(opinion, &cause);
    }
    oracle->sweep_due[work->stream] = ++oracle->sweeps;
    spread(world, doomed ? number : NOBODY);
}

void oracle_host_wrote(struct world *world, int buffer, uint64_t value, bool whole) {
    struct oracle *oracle = &world->oracle;
    oracle->log[oracle->log_count].kind = whole ? LOG_DISCARD : LOG_PATCH;
    oracle->log[oracle->log_count].buffer = buffer;
    oracle->log[oracle->log_count++].value = value;
}

bool oracle_may_release(const struct world *world, int work, int *out_obstacle) {
    const struct opinion *opinion = &world->oracle.works[work];
    for (int other = 0; other < work; other++) {
        if (!((opinion->data | opinion->order) >> other & 1) ||
            stream_of(world, other) == stream_of(world, work)) {
            continue;
        }
        bool good = world->lives[other].ended &&
                    (world->oracle.works[other].ready || !(opinion->data >> other & 1));
        if (!good) {
            *out_obstacle = other;
            return false;
        }
    }
    return true;
}

/* -- what memory should hold ---------------------------------------------------------------------
 */

uint64_t oracle_result(int work, int buffer, uint64_t inputs, uint64_t old, bool keeps_old) {
    uint64_t hash = model_mix(inputs + (uint64_t)work * 64 + (uint64_t)buffer);
    return keeps_old ? model_mix(hash ^ old) : hash;
}

/* All that was submitted, one after the other, without those that are not READY. Where |check|,
 * what each left is compared with what it should have left. */
static void replay(struct world *world, uint64_t values[BUFFERS], uint64_t *out_known, bool check) {
    const struct oracle *oracle = &world->oracle;
    uint64_t known = BIT(BUFFERS) - 1;
    for (int b = 0; b < BUFFERS; b++) {
        values[b] = (uint64_t)b;
    }
    for (uint32_t i = 0; i < oracle->log_count; i++) {
        int work = oracle->log[i].work, host = oracle->log[i].buffer;
        if (oracle->log[i].kind == LOG_DISCARD) {
            known |= BIT(host);
            values[host] = oracle->log[i].value;
        } else if (oracle->log[i].kind == LOG_PATCH) {
            values[host] = model_mix(values[host] ^ oracle->log[i].value);
        }
        if (oracle->log[i].kind != LOG_WORK) {
            continue;
        }
        const struct opinion *opinion = &oracle->works[work];
        if (!opinion->ready) {
            known &= ~opinion->written;
            continue;
        }
        if (world->program->works[work].compiles) {
            continue;
        }
        bool inputs_known = (opinion->read & ~known) == 0;
        uint64_t inputs = 1, before[BUFFERS];
        memcpy(before, values, sizeof before);
        for (int b = 0; b < BUFFERS; b++) {
            if (opinion->read >> b & 1) {
                inputs = model_mix(inputs ^ before[b]) + (uint64_t)b;
            }
        }
        for (int b = 0; b < BUFFERS; b++) {
            if (!(opinion->written >> b & 1)) {
                continue;
            }
            bool whole = opinion->whole >> b & 1;
            values[b] = oracle_result(work, b, inputs, before[b], !whole);
            if (!inputs_known) {
                known &= ~BIT(b);
            } else if (whole) {
                known |= BIT(b);
            }
            FAIL_IF(world, check && known >> b & 1 && world->lives[work].out[b] != values[b], "E13",
                    "#%d is READY but has not left in buffer %d what it should", work, b);
        }
        FAIL_IF(world, !inputs_known && check, "B5", "#%d is READY but has read what was not CLEAN",
                work);
    }
    *out_known = known;
}

uint64_t oracle_value(struct world *world, int buffer, bool *out_known) {
    uint64_t values[BUFFERS], known;
    replay(world, values, &known, false);
    *out_known = known >> buffer & 1;
    return values[buffer];
}

/* -- poison --------------------------------------------------------------------------------------
 */

/* What dooms |work|: among those it needs the one with the earliest origin, then with the shortest
 * way to it. */
static bool find_cause(const struct world *world, int work, struct opinion *out) {
    const struct oracle *oracle = &world->oracle;
    bool found = false;
    for (int other = 0; other < work; other++) {
        if (!(oracle->works[work].data >> other & 1) || !oracle->works[other].doomed) {
            continue;
        }
        const struct opinion *cause = &oracle->works[other];
        bool earlier = !found || cause->tick < out->tick ||
                       (cause->tick == out->tick && cause->hops < out->hops);
        bool tied = found && cause->tick == out->tick && cause->hops == out->hops;
        if (earlier) {
            *out = *cause;
        }
        out->statuses |= tied ? cause->statuses : 0;
        out->either |= tied;
        found = true;
    }
    return found;
}

static void note_failure(struct world *world, int work) {
    struct oracle *oracle = &world->oracle;
    int stream = stream_of(world, work);
    if (work < oracle->forgiven[stream] ||
        (oracle->failure[stream] != NOBODY && oracle->failure[stream] <= work)) {
        return;
    }
    oracle->failure[stream] = work;
    if (!oracle->sweep_due[stream]) {
        oracle->sweep_due[stream] = ++oracle->sweeps;
    }
}

/* Whom the poison has reached, and has not been followed on from. */
struct wave {
    int works[WORKS];
    int count;
};

static void poison(struct opinion *opinion, const struct opinion *cause) {
    opinion->tick = cause->tick;
    opinion->hops = cause->hops + 1;
    opinion->origin = cause->origin;
    opinion->statuses = cause->statuses;
    opinion->cause = cause->cause;
    opinion->either = cause->either;
    opinion->doomed = true;
}

static void doom(struct world *world, int work, const struct opinion *cause, struct wave *wave) {
    poison(&world->oracle.works[work], cause);
    wave->works[wave->count++] = work;
}

/* What is left on a strict stream after a failure goes with it, once nothing more is poisoned by
 * what it needs; the stream that failed first is looked at first. */
static bool sweep(struct world *world, struct wave *wave) {
    struct oracle *oracle = &world->oracle;
    int next = NOBODY;
    for (int s = 0; s < STREAMS; s++) {
        if (oracle->sweep_due[s] &&
            (next == NOBODY || oracle->sweep_due[s] < oracle->sweep_due[next])) {
            next = s;
        }
    }
    if (next == NOBODY) {
        return false;
    }
    oracle->sweep_due[next] = 0;
    int failure = oracle->failure[next];
    if (!world->program->streams[next].strict || failure == NOBODY) {
        return true;
    }
    struct opinion cause = oracle->works[failure];
    cause.statuses = oracle_status_bit(BH_STREAM_FAILED);
    for (int work = failure + 1; work < world->submitted; work++) {
        if (world_is_pending(world, work) && stream_of(world, work) == next &&
            !oracle->works[work].doomed) {
            doom(world, work, &cause, wave);
        }
    }
    return true;
}

/* From |first|, which is doomed, to all who need it, and on, the nearest first; NOBODY: only what
 * the streams are due. */
static void spread(struct world *world, int first) {
    struct oracle *oracle = &world->oracle;
    struct wave wave = {.count = 0};
    if (first != NOBODY) {
        wave.works[wave.count++] = first;
    }
    int next = 0;
    do {
        for (; next < wave.count; next++) {
            int from = wave.works[next];
            note_failure(world, from);
            for (int work = from + 1; work < world->submitted; work++) {
                if (world_is_pending(world, work) && !oracle->works[work].doomed &&
                    oracle->works[work].data >> from & 1) {
                    doom(world, work, &oracle->works[from], &wave);
                }
            }
        }
    } while (sweep(world, &wave));
}

void oracle_reset(struct world *world, int stream) {
    world->oracle.failure[stream] = NOBODY;
    world->oracle.forgiven[stream] = world->submitted;
}

/* -- ends ----------------------------------------------------------------------------------------
 */

void oracle_expect(struct world *world, int work, const struct due *due) {
    world->oracle.works[work].due = *due;
    world->oracle.works[work].due.set = true;
}

void oracle_ended(struct world *world, int work, const bh_verdict *verdict) {
    struct oracle *oracle = &world->oracle;
    struct opinion *opinion = &oracle->works[work];
    const struct due *due = &opinion->due;
    int stream = stream_of(world, work);
    if (!due->set && !opinion->doomed) {
        /* Only a stream without a worker ends what nobody has a reason to end. */
        bool gives_up = oracle->gives_up[stream] & oracle_status_bit(verdict->status);
        if (gives_up && !world->lives[work].worker) {
            oracle_expect(
                world, work,
                &(struct due){.status = verdict->status, .origin = NOBODY, .cause = NO_CAUSE});
        } else {
            world_fail(world, "E5", "#%d has ended with status %d for no reason", work,
                       verdict->status);
            return;
        }
    }
    if (due->status != BH_OK && due->set) {
        /* One lost with a culprit that has ended before it shares its fault. */
        const bool shared = due->origin != NOBODY && !due->refused;
        opinion->fault_tick = shared ? oracle->works[due->origin].fault_tick : ++oracle->ticks;
    }
    FAIL_IF(world, verdict->event != world->lives[work].id, "E1",
            "#%d has the verdict of event %llu", work, (unsigned long long)verdict->event);
    verdict_check_frame(world, work, verdict);
    if (opinion->doomed) { /* its stream has been told, and all that need it */
        verdict_check_doomed(world, work, verdict);
        return;
    }
    verdict_check_own(world, work, verdict);
    if (opinion->ready) {
        return;
    }
    opinion->doomed = true;
    spread(world, work);
}

static void check_left(struct world *world, int work) {
    const struct opinion *opinion = &world->oracle.works[work];
    const struct life *life = &world->lives[work];
    const struct worker *worker = life->worker;
    FAIL_IF(world, opinion->due.anyhow, "E9", "#%d must have ended", work);
    if (!opinion->doomed && !opinion->end_requested) {
        return;
    }
    const char *why = opinion->doomed ? "doomed" : "cancelled";
    if (!worker) {
        world_fail(world, "E9", "#%d is %s and queued, and has not ended", work, why);
    } else if (worker->core.life.kill == BHI_KILL_NONE && life->seq > worker->started &&
               !worker->records[life->seq].withdrawn) {
        world_fail(world, "E9", "#%d is %s and not started, and is left in its lane", work, why);
    }
}

void oracle_settled(struct world *world) {
    struct oracle *oracle = &world->oracle;
    for (int work = 0; work < world->submitted; work++) {
        if (!world_is_pending(world, work)) {
            continue;
        }
        check_left(world, work);
        oracle->works[work].due.set = oracle->works[work].due.anyhow = false;
    }
}

/* -- giving up a stream (case 50) ----------------------------------------------------------------
 */

void oracle_lost_worker(struct world *world, int stream, uint64_t now_ns) {
    struct oracle *oracle = &world->oracle;
    uint32_t *count = &oracle->death_count[stream];
    if (*count < DEATHS) {
        oracle->deaths[stream][(*count)++] = now_ns;
    }
}

void oracle_healed(struct world *world, int stream) {
    world->oracle.death_count[stream] = 0;
    world->oracle.gives_up[stream] = 0;
}

uint32_t oracle_deaths_since(const struct world *world, int stream, uint64_t since_ns) {
    const struct oracle *oracle = &world->oracle;
    uint32_t count = 0;
    for (uint32_t i = 0; i < oracle->death_count[stream]; i++) {
        count += oracle->deaths[stream][i] > since_ns;
    }
    return count;
}

/* -- at the end ----------------------------------------------------------------------------------
 */

void oracle_final(struct world *world) {
    struct oracle *oracle = &world->oracle;
    for (int work = 0; work < world->submitted; work++) {
        const struct life *life = &world->lives[work];
        if (!life->submitted) {
            continue;
        }
        if (!life->ended) {
            world_fail(world, "E9", "#%d has never ended", work);
            continue;
        }
        /* READY if and only if its result was taken, and was good, and all that it needs is READY;
         * E11, E5 and E3 once more, from the end. */
        bool good = life->recorded_ok;
        for (int other = 0; other < work; other++) {
            if (oracle->works[work].data >> other & 1 &&
                world->lives[other].verdict.status != BH_OK) {
                good = false;
            }
        }
        int stream = stream_of(world, work);
        FAIL_IF(world,
                good && life->verdict.status != BH_OK && !world->program->streams[stream].strict,
                "E11", "#%d was recorded, and is not READY", work);
        FAIL_IF(world, !good && life->verdict.status == BH_OK, "E11",
                "#%d is READY without a record, or on poison", work);
    }
    uint64_t values[BUFFERS], known;
    replay(world, values, &known, true);
    for (int b = 0; b < BUFFERS; b++) {
        uint64_t deciding = oracle_writers(world, b, NULL);
        bool clean = true;
        for (int work = 0; work < world->submitted; work++) {
            if (deciding >> work & 1 && !oracle->works[work].ready) {
                clean = false;
            }
        }
        FAIL_IF(world, clean && known >> b & 1 && world->buffers[b].value != values[b], "B5",
                "buffer %d is CLEAN and does not hold what it should", b);
    }
}
