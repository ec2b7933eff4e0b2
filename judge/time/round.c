#include "judge/time/round.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/format.h"
#include "judge/data/draw.h"
#include "tool/clock.h"

enum { LATE_SLICES = 100 }; /* of 10 ms: so long a wrong output may change */

/* Some bytes of an output, as they were when the run was reported to be complete. */
struct glimpse {
    size_t lap;
    uint32_t array;
    uint64_t offset, size;
    uint8_t bytes[4];
};

/* What one round makes. */
struct round {
    struct bhi_race *race;
    size_t count;
    bool with_base;
    size_t slot;                         /* of the first run */
    struct bhi_material *material;       /* what it reads; borrowed */
    struct bhi_setup **laps[BHI_RACERS]; /* |count| each; owned */
    bh_command *commands;                /* those of all laps of a racer; owned */
    uint32_t command_count;
    struct glimpse glimpses[BHI_RACERS];
};

/* A random number, other ones in each round. No worker may know its inputs beforehand, or which
 * runs are checked: the key is derived from that of the noise, which no worker has. */
static uint64_t draw(const struct bhi_race *race, uint32_t which) {
    const struct bhi_philox bits = bhi_philox(
        ~race->court->noise_seed,
        (struct bhi_philox){{(uint32_t)race->court->runs, (uint32_t)race->rounds, which}});
    return (uint64_t)bits.words[1] << 32 | bits.words[0];
}

/* A rehearsal reads what the one before read. */
static bool make_material(struct round *round, struct bhi_judge_outcome *outcome) {
    const struct bhi_race *race = round->race;
    const bool rehearses = race->rehearsal && round->count == 1;
    round->material = rehearses ? race->rehearsal : race->material;
    if (rehearses && round->material->count) {
        return true;
    }
    uint64_t *seeds = calloc(round->count, sizeof *seeds);
    if (!seeds) {
        return bhi_judge_outcome_memory(outcome);
    }
    for (size_t i = 0; i < round->count; i++) {
        seeds[i] = draw(race, (uint32_t)i);
    }
    const bool good = bhi_material_make(round->material, seeds, round->count, outcome);
    free(seeds);
    return good;
}

static bool allocate(struct round *round, struct bhi_judge_outcome *outcome) {
    bool good =
        (round->commands = calloc(round->count * BHI_PLAN_KERNELS, sizeof *round->commands));
    for (int i = 0; i < BHI_RACERS && good; i++) {
        good = (round->laps[i] = calloc(round->count, sizeof *round->laps[i]));
    }
    return good ? make_material(round, outcome) : bhi_judge_outcome_memory(outcome);
}

static void release_laps(struct round *round, enum bhi_racer racer) {
    for (size_t i = 0; i < round->count && round->laps[racer]; i++) {
        bhi_setup_free(round->laps[racer][i]);
        round->laps[racer][i] = NULL;
    }
}

static void release(struct round *round) {
    for (int i = 0; i < BHI_RACERS; i++) {
        release_laps(round, i);
        free(round->laps[i]);
    }
    free(round->commands);
    if (round->material == round->race->material) {
        bhi_material_drop(round->material); /* no other round reads it */
    }
}

static bool takes_part(const struct round *round, enum bhi_racer racer) {
    return racer == BHI_RACER_BASE ? round->with_base : !!round->race->contenders[racer];
}

/* Appends those of a lap, or as many of empty kernels. */
static bool add_commands(struct round *round, const struct bhi_setup *lap, bool is_base,
                         struct bhi_judge_outcome *outcome) {
    const struct bhi_race *race = round->race;
    uint32_t count;
    const bh_command *const of = bhi_setup_commands(lap, &count);
    bool good = true;
    for (uint32_t i = 0; i < count && good; i++) {
        bh_command *const command = &round->commands[round->command_count++];
        *command = of[i];
        good = !is_base || bhi_base_command(race->base, race->court, i, &of[i], command, outcome);
    }
    return good;
}

static bool has_inout(const struct bhi_task *task) {
    bool found = false;
    for (size_t i = 0; i < task->array_count; i++) {
        found |= task->arrays[i].role == BHI_TASK_INOUT;
    }
    return found;
}

static bool make_laps(struct round *round, enum bhi_racer racer,
                      struct bhi_judge_outcome *outcome) {
    struct bhi_race *race = round->race;
    struct bhi_court *court = race->court;
    const bool is_base = racer == BHI_RACER_BASE;
    struct bhi_contender *contender = race->contenders[is_base ? BHI_RACER_CANDIDATE : racer];
    struct bhi_tray *tray = is_base ? &race->base->tray : &contender->tray;
    const struct bhi_program program = bhi_contender_program(contender);
    const uint32_t word = (uint32_t)draw(race, UINT32_MAX - 2 - BHI_RACERS - (uint32_t)racer);
    uint64_t stride;
    if (has_inout(court->task)) {
        bhi_tray_close(tray); /* no worker has what it is to read before its submission */
    }
    bool good = bhi_setup_stride(court, &program, race->trial, &stride, outcome) &&
                bhi_tray_fit(tray, court, race->slots, stride, outcome) &&
                bhi_tray_fill(tray, court, round->slot, round->count, word, outcome);
    round->command_count = 0;
    for (size_t i = 0; i < round->count && good; i++) {
        struct bhi_setup **lap = &round->laps[racer][i];
        struct bhi_lap_place slot = {
            .outputs = tray->buffer, .outputs_begin = (round->slot + i) * stride, .word = word};
        /* No candidate can reach the worker of the empty kernel, or the reference's. */
        good = bhi_material_give(round->material, is_base ? BHI_RACER_REFERENCE : racer, i, &slot,
                                 outcome) &&
               bhi_setup_make(court, &program, &round->material->trials[i], &slot, lap, outcome) &&
               add_commands(round, *lap, is_base, outcome);
    }
    return good;
}

/* Reads some bytes of an output that is drawn now. They have to be there: until they are in the
 * host, its clock goes on. So work that is put off past its completion record counts, or is
 * seen. */
static bool glance(struct round *round, enum bhi_racer racer, struct bhi_clocked *clocked,
                   struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = round->race->court->task;
    struct glimpse *glimpse = &round->glimpses[racer];
    const uint64_t random = draw(round->race, UINT32_MAX - 2 - (uint32_t)racer);
    uint32_t first = 0;
    while (task->arrays[first].role == BHI_TASK_IN) { /* outputs come last */
        first++;
    }
    glimpse->lap = random % round->count;
    glimpse->array = first + (uint32_t)(random / round->count % (task->array_count - first));
    const uint64_t bytes = round->race->trial->arrays[glimpse->array].form.bytes;
    glimpse->size = bytes < sizeof glimpse->bytes ? bytes : sizeof glimpse->bytes;
    glimpse->offset = (random >> 16) % (bytes - glimpse->size + 1);
    const uint64_t began = bhi_clock_ns();
    const bool good = bhi_setup_peek(round->laps[racer][glimpse->lap], glimpse->array,
                                     glimpse->offset, glimpse->bytes, glimpse->size, outcome);
    clocked->host_ns += bhi_clock_ns() - began;
    return good;
}

/* Has the candidate's output changed since its run was reported to be complete? */
static bool find_late(struct round *round, bool *out_late, struct bhi_judge_outcome *outcome) {
    struct bhi_race *race = round->race;
    const struct glimpse *glimpse = &round->glimpses[BHI_RACER_CANDIDATE];
    uint8_t bytes[sizeof glimpse->bytes];
    char size[BHI_SIZE_TEXT];
    race->running = BHI_RACER_CANDIDATE;
    if (!bhi_setup_peek(round->laps[BHI_RACER_CANDIDATE][glimpse->lap], glimpse->array,
                        glimpse->offset, bytes, glimpse->size, outcome)) {
        return false;
    }
    *out_late = memcmp(bytes, glimpse->bytes, glimpse->size) != 0;
    if (*out_late) {
        bhi_judgement_end(race->court->task, race->trial, BH_JUDGE_TIMING_FORGED, race->judgement);
        bhi_format(race->judgement->message, sizeof race->judgement->message,
                   "its output %.60s has changed after its run was reported to be complete (%s)",
                   race->court->task->arrays[glimpse->array].place,
                   bhi_task_size_text(race->court->task, race->trial->size, size));
    }
    return true;
}

/* What the worker of a stream has worked so far. */
static struct bhi_worked worked_of(bh_stream *stream) {
    struct bhi_worked worked = {.pid = bh_stream_worker_pid(stream)};
    struct timespec time;
    clockid_t clock;
    if (worked.pid <= 0 || clock_getcpuclockid(worked.pid, &clock) != 0 ||
        clock_gettime(clock, &time) != 0) {
        return (struct bhi_worked){0};
    }
    worked.ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    return worked;
}

/* What the worker has worked since its last run was complete, so also before this one was submitted:
 * nothing that it prepares is for nothing. A worker's first run is not known. */
static uint64_t take_work(struct bhi_worked *last, bh_stream *stream) {
    const struct bhi_worked before = *last;
    *last = worked_of(stream);
    return before.pid && last->pid == before.pid ? last->ns - before.ns : 0;
}

static bool run(struct round *round, enum bhi_racer racer, struct bhi_clocked *out,
                struct bhi_judge_outcome *outcome) {
    struct bhi_race *race = round->race;
    const bool is_base = racer == BHI_RACER_BASE;
    bh_stream *stream = is_base ? race->base->stream : race->contenders[racer]->stream;
    race->running = racer;
    if (!make_laps(round, racer, outcome)) {
        return false;
    }
    if (race->flush && round->count == 1 && !bhi_flush_run(race->flush, outcome)) {
        race->running = BHI_RACER_BASE; /* it is not a contender's failure */
        return false;
    }
    if (!bhi_court_submit(stream, round->commands, round->command_count, out, outcome) ||
        !glance(round, racer, out, outcome)) {
        return false;
    }
    if (race->court->processor) {
        out->work_ns =
            take_work(is_base ? &race->base->worked : &race->contenders[racer]->worked, stream);
    }
    if (is_base || racer == BHI_RACER_TRUSTED) {
        release_laps(round, racer);
    }
    if (is_base && race->on_processor) {
        bhi_tray_close(&race->base->tray); /* it runs seldom, and has no result */
    }
    return true;
}

/* Compares one of the candidate's runs, with what the reference has computed from the same
 * inputs. */
static bool check(struct round *round, struct bhi_judge_outcome *outcome) {
    struct bhi_race *race = round->race;
    const struct bhi_task *task = race->court->task;
    const size_t which = draw(race, UINT32_MAX) % round->count;
    struct bhi_trial *trial = &round->material->trials[which];
    struct bhi_launched expected, got;
    race->running = BHI_RACER_REFERENCE;
    if (!(race->reference
              ? bhi_reference_compute(race->reference, trial, &expected, outcome)
              : bhi_setup_take(round->laps[BHI_RACER_REFERENCE][which], &expected, outcome))) {
        return false;
    }
    for (uint32_t i = 0; i < task->array_count; i++) {
        trial->arrays[i].expected = bhi_launched_compared(&expected, i);
    }
    race->running = BHI_RACER_CANDIDATE;
    bool good = bhi_setup_take(round->laps[BHI_RACER_CANDIDATE][which], &got, outcome);
    if (good) {
        const bool right =
            bhi_candidate_check(race->court, trial, race->trial, &got, race->judgement, outcome);
        race->wrong = !right && !outcome->called;
        good = !outcome->called;
        bhi_launched_free(&got);
    }
    for (uint32_t i = 0; i < task->array_count; i++) {
        trial->arrays[i].expected = NULL; /* a rehearsal has other outputs next time */
    }
    bhi_launched_free(&expected);
    return good && !race->wrong;
}

/* A wrong output may be one that is not there yet: it has some time to change, and then the verdict
 * is another. */
static void wait_for_late(struct round *round) {
    const struct timespec slice = {.tv_nsec = 10000000};
    struct bhi_judge_outcome unused = {.status = BH_OK};
    bool good = true, late = false;
    for (int i = 0; i < LATE_SLICES && good && !late; i++) {
        (void)nanosleep(&slice, NULL);
        good = find_late(round, &late, &unused);
    }
}

bool bhi_round_run(struct bhi_race *race, size_t count, bool with_base, unsigned one_of,
                   struct bhi_clocked out[BHI_RACERS], struct bhi_judge_outcome *outcome) {
    struct round round = {.race = race, .count = count, .with_base = with_base};
    race->running = BHI_RACER_BASE;
    race->rounds++;
    /* What earlier rounds had no living worker may get. On a GPU, where memory takes long to make, it is
     * kept. */
    if (race->on_processor) {
        (void)!bh_context_trim(race->court->context, 0, NULL);
    }
    /* Single runs meet the memory that a batch meets. */
    round.slot = count == 1 ? race->rounds % race->slots : 0;
    bool good = allocate(&round, outcome);
    for (size_t i = 0; i < BHI_RACERS && good; i++) {
        const enum bhi_racer racer = (enum bhi_racer)bhi_turn_of(race->rounds - 1, i, BHI_RACERS);
        good = !takes_part(&round, racer) || run(&round, racer, &out[racer], outcome);
    }
    if (good) {
        race->judgement->runs += count;
    }
    good = good && find_late(&round, &race->wrong, outcome) && !race->wrong;
    if (good && draw(race, UINT32_MAX - 1) % one_of == 0) {
        good = check(&round, outcome);
        if (race->wrong) {
            wait_for_late(&round);
        }
    }
    release(&round);
    return good;
}
