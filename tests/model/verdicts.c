#include "world.h"

#include <string.h>

#define BIT(n) (1ull << (n))

static const char *rule_of(bh_status status) {
    return status == BH_OK ? "E3" : "E14";
}

static void check_cause(struct world *world, int work, const bh_verdict *verdict) {
    const struct cause *cause = &world->oracle.works[work].cause;
    if (world->oracle.works[work].either) {
        return;
    }
    FAIL_IF(world, verdict->blame != cause->blame, "T2", "#%d: blame %d, not %d", work,
            verdict->blame, cause->blame);
    char kernel[8];
    snprintf(kernel, sizeof kernel, "k%d", cause->kernel);
    FAIL_IF(world,
            strcmp(verdict->kernel_name, kernel) != 0 || verdict->sys_errno != cause->sys_errno,
            "E14", "#%d: kernel %s, errno %d, not %s, %d", work, verdict->kernel_name,
            verdict->sys_errno, kernel, cause->sys_errno);
    FAIL_IF(world,
            verdict->signal != cause->signal || verdict->exit_code != cause->exit_code ||
                verdict->vk_result != cause->vk_result ||
                verdict->worker_pid != cause->worker_pid ||
                verdict->command_index != cause->command_index || verdict->limit != cause->limit,
            "E14",
            "#%d: signal %d, exit code %d, VkResult %d, worker %d, command %d, limit %llu, "
            "not %d, %d, %d, %d, %d, %llu",
            work, verdict->signal, verdict->exit_code, verdict->vk_result, verdict->worker_pid,
            (int)verdict->command_index, (unsigned long long)verdict->limit, cause->signal,
            cause->exit_code, cause->vk_result, cause->worker_pid, (int)cause->command_index,
            (unsigned long long)cause->limit);
}

void verdict_check_doomed(struct world *world, int work, const bh_verdict *verdict) {
    const struct oracle *oracle = &world->oracle;
    const struct opinion *opinion = &oracle->works[work];
    const struct due *due = &opinion->due;
    if (verdict->status == BH_OK) {
        world_fail(world, "E3", "#%d is READY, but needs what #%d poisoned", work, opinion->origin);
        return;
    }
    int origin = verdict->origin && verdict->origin <= world->ids
                     ? world->work_of_id[verdict->origin]
                     : NOBODY;
    if (origin != opinion->origin) {
        world_fail(world, "E7", "#%d names #%d as its origin, not #%d, which was earlier", work,
                   origin, opinion->origin);
    } else if (verdict->hops != opinion->hops) {
        world_fail(world, "E7", "#%d: %u hops, not %u", work, verdict->hops, opinion->hops);
    } else if (!(opinion->statuses & oracle_status_bit(verdict->status))) {
        world_fail(world, "E14", "#%d has status %d, which nothing upstream has", work,
                   verdict->status);
    }
    check_cause(world, work, verdict);
    bh_executed executed = due->set ? due->executed : BH_EXECUTED_NO;
    FAIL_IF(world, verdict->executed != executed, "E13", "#%d: executed %d, not %d", work,
            verdict->executed, executed);

    uint64_t others = 0;
    int partials = 0;
    for (int other = 0; other < work; other++) {
        if (opinion->data >> other & 1 && oracle->works[other].doomed) {
            others |= BIT(oracle->works[other].origin);
            partials++;
        }
    }
    if (due->set && due->status != BH_OK && due->status != BH_CANCELLED) {
        others |= BIT(due->origin == NOBODY ? work : due->origin);
    }
    others &= ~BIT(opinion->origin);
    uint32_t count = (uint32_t)__builtin_popcountll(others);
    tally_if(count, TALLY_OTHER_CAUSES);
    tally_if(opinion->statuses & oracle_status_bit(BH_STREAM_FAILED), TALLY_POISONED_STRICT);
    tally_if(due->set && due->executed != BH_EXECUTED_NO, TALLY_POISONED_RUNNING);
    tally(opinion->hops > 1 ? TALLY_POISONED_FAR : TALLY_POISONED_DIRECT);
    /* Of the poisoned writers of one buffer only so many are remembered. */
    FAIL_IF(world, partials < 8 && verdict->other_causes != count, "E7",
            "#%d: %u other causes, not %u", work, verdict->other_causes, count);
}

void verdict_check_frame(struct world *world, int work, const bh_verdict *verdict) {
    const struct life *life = &world->lives[work];
    char name[8];
    snprintf(name, sizeof name, "s%d", world->program->works[work].stream);
    bool started = verdict->started_ns != 0;
    FAIL_IF(world,
            verdict->submitted_ns != life->submitted_ns ||
                verdict->ended_ns < verdict->submitted_ns || verdict->ended_ns > world->now_ns ||
                (started && (verdict->started_ns < life->published_ns ||
                             verdict->started_ns > verdict->ended_ns)),
            "E14", "#%d: submitted %llu, started %llu, ended %llu, now %llu", work,
            (unsigned long long)verdict->submitted_ns, (unsigned long long)verdict->started_ns,
            (unsigned long long)verdict->ended_ns, (unsigned long long)world->now_ns);
    FAIL_IF(world, verdict->device_ns > (started ? verdict->ended_ns - verdict->started_ns : 0),
            "E14", "#%d: %llu on the device, which is more than it took", work,
            (unsigned long long)verdict->device_ns);
    FAIL_IF(world,
            verdict->status == BH_DEADLINE && !verdict->hops &&
                verdict->ended_ns - verdict->started_ns < verdict->limit,
            "E14", "#%d: its deadline of %llu passed, and it began %llu before its end", work,
            (unsigned long long)verdict->limit,
            (unsigned long long)(verdict->ended_ns - verdict->started_ns));
    FAIL_IF(world, verdict->executed != BH_EXECUTED_NO && !started, "E14",
            "#%d has executed and never started", work);
    FAIL_IF(world, strcmp(verdict->stream_name, name) != 0, "E14", "#%d is of stream %s, it says",
            work, verdict->stream_name);
    FAIL_IF(world, verdict->status != BH_OK && !verdict->message[0], "E14",
            "#%d is POISONED and has no message", work);
}

void verdict_check_own(struct world *world, int work, const bh_verdict *verdict) {
    struct oracle *oracle = &world->oracle;
    struct opinion *opinion = &oracle->works[work];
    const struct due *due = &opinion->due;
    if (verdict->status != due->status) {
        world_fail(world, rule_of(due->status), "#%d has status %d, not %d", work, verdict->status,
                   due->status);
        return;
    }
    FAIL_IF(world, verdict->executed != due->executed, "E13", "#%d: executed %d, not %d", work,
            verdict->executed, due->executed);
    if (due->status == BH_OK) {
        opinion->ready = true;
        tally(TALLY_READY);
        return;
    }
    tally(due->refused            ? TALLY_REFUSED
          : due->origin == NOBODY ? TALLY_POISONED_ALONE
                                  : TALLY_WORKER_LOST);
    opinion->origin = due->origin == NOBODY ? work : due->origin;
    opinion->tick = opinion->fault_tick;
    opinion->hops = 0;
    opinion->statuses = oracle_status_bit(due->status);
    FAIL_IF(world, verdict->origin != world->lives[opinion->origin].id || verdict->hops, "E7",
            "#%d: origin is event %llu, %u hops away, not #%d", work,
            (unsigned long long)verdict->origin, verdict->hops, opinion->origin);
    FAIL_IF(world, verdict->other_causes, "E7", "#%d: other causes, but there is none", work);
    opinion->cause = due->cause;
    opinion->cause.kernel = work;
    check_cause(world, work, verdict);
}
