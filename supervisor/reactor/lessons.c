#include "supervisor/reactor/lessons.h"
#include "base/format.h"
#include "supervisor/kernel/body.h"
#include "supervisor/kernel/death_records.h"
#include "supervisor/kernel/quarantine.h"
#include "supervisor/stream/stream.h"
#include "supervisor/submit/introduce.h"
#include "supervisor/worker/outbox.h"
#include "supervisor/worker/proc_status.h"
#include "supervisor/worker/zygote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUIET_NS      (1000ull * 1000000)   /* after a spare has died while it compiled */
#define MOST_LEARN_NS (600ull * 1000000000) /* for a stream without a compile deadline, too */
#define WORTH_ANOTHER 2u                    /* times the uses of a kernel that gives way */

static bool is_refused(bh_context *context, const struct bhi_usage *usage,
                       const struct bhi_used_kernel *kernel, uint64_t now_ns) {
    struct bhi_death_records *records = context->death_records;
    return bhi_death_records_held(records, usage->tenant, kernel->hash, now_ns) ||
           bhi_death_records_on_trial(records, usage->tenant, kernel->hash, now_ns);
}

const struct bhi_used_kernel *bhi_lesson_find(bh_context *context, const struct bhi_worker *worker,
                                              const struct bhi_usage *usage, uint64_t now_ns) {
    const struct bhi_used_kernel *best = NULL;
    for (uint32_t i = 0; i < usage->count; i++) {
        const struct bhi_used_kernel *kernel = &usage->kernels[i];
        const bool worth_it = !kernel->barred && kernel->uses >= BHI_USAGE_LEAST &&
                              kernel->body->code_size <= context->settings.kernel_limit_bytes;
        if (worth_it && (!best || kernel->uses > best->uses) &&
            !bhi_worker_kernels_has(&worker->kernels, kernel->id) &&
            !is_refused(context, usage, kernel, now_ns)) {
            best = kernel;
        }
    }
    return best;
}

/* Makes room for |lesson| in what the spare knows. Returns false if that is all used more. */
static bool make_room(struct bhi_worker *worker, struct bhi_usage *usage,
                      const struct bhi_used_kernel *lesson) {
    const struct bhi_context_settings *settings = &worker->context->settings;
    const struct bhi_worker_kernels *known = &worker->kernels;
    const uint32_t most = settings->spare_kernels < settings->kernel_limit ? settings->spare_kernels
                                                                           : settings->kernel_limit;
    while (known->map.count >= most ||
           known->bytes + lesson->body->code_size > settings->kernel_limit_bytes) {
        uint64_t coldest = 0;
        uint32_t least = UINT32_MAX;
        BHI_LIST_EACH(node, &known->order) {
            const uint64_t id = BHI_CONTAINER(node, struct bhi_worker_kernel, link)->id;
            const struct bhi_used_kernel *used = bhi_usage_kernel(usage, id);
            const uint32_t uses = used ? used->uses : 0;
            if (uses < least) {
                least = uses;
                coldest = id;
            }
        }
        if (!coldest || lesson->uses / WORTH_ANOTHER <= least ||
            !bhi_worker_forget_kernel(worker, coldest)) {
            return false;
        }
    }
    return true;
}

/* Tells the spare to compile |lesson|. Out of memory or descriptors: later. */
static void tell(struct bhi_worker *worker, const struct bhi_used_kernel *lesson, uint64_t now_ns) {
    struct bhi_lessons *lessons = &worker->lessons;
    struct bhi_outgoing *learn = bhi_outgoing_new(BHI_MSG_LEARN);
    if (!learn || bhi_introduce_kernel(worker, lesson->body, lesson->name, 0) != 0) {
        free(learn);
        return;
    }
    learn->message.learn.kernel = lesson->id;
    bhi_outbox_add(worker, learn);
    worker->context->kernels->told++;
    lessons->kernel = lesson->id;
    lessons->code = bhi_kernel_body_code(lesson->body);
    memcpy(lessons->hash, lesson->hash, sizeof lessons->hash);
    memcpy(lessons->name, lesson->name, sizeof lessons->name);
    lessons->since_ns = now_ns;
    lessons->until_ns =
        now_ns + (lesson->compile_ns < MOST_LEARN_NS ? lesson->compile_ns : MOST_LEARN_NS);
    bhi_compile_begin(&worker->core.compile, bhi_proc_cpu_ns(worker->core.pid));
    bhi_past_compiles(&worker->core.past, lessons->code);
}

void bhi_lesson_give(struct bhi_worker *worker, struct bhi_usage *usage,
                     const struct bhi_used_kernel *lesson, uint64_t now_ns) {
    if (make_room(worker, usage, lesson)) {
        tell(worker, lesson, now_ns);
    }
}

/* -- what becomes of a lesson ------------------------------------------------------------------ */

static void end_lesson(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    worker->lessons.kernel = 0;
    worker->conduct.idle_known = false; /* what it used until now was work */
    context->spares_due = context->wake_reactor = true;
}

const char *bhi_lesson_learned(struct bhi_worker *worker, const struct bhi_msg_learned *answer) {
    struct bhi_lessons *lessons = &worker->lessons;
    if (!lessons->kernel || lessons->kernel != answer->kernel) {
        return "it claims to have compiled a kernel that it was not asked to compile";
    }
    if (answer->status != BH_OK) {
        /* What failed there may succeed elsewhere: a launch introduces it anew. */
        struct bhi_usage *usage =
            bhi_usage_find(worker->context->usages, worker->device, lessons->tenant);
        if (usage) {
            bhi_usage_ended_spare(usage, lessons->kernel, true);
        }
        (void)bhi_worker_forget_kernel(worker, lessons->kernel);
    }
    end_lesson(worker);
    return NULL;
}

uint64_t bhi_lesson_check_deadline(struct bhi_worker *worker, uint64_t now_ns) {
    const struct bhi_lessons *lessons = &worker->lessons;
    if (!lessons->kernel || worker->core.life.kill != BHI_KILL_NONE) {
        return BH_FOREVER;
    }
    struct bhi_core_worker *core = &worker->core;
    const uint64_t limit_ns = lessons->until_ns - lessons->since_ns;
    const uint64_t due_ns = bhi_compile_due(&core->compile, lessons->since_ns, limit_ns,
                                            bhi_proc_cpu_ns(core->pid), now_ns);
    if (due_ns > now_ns) {
        return due_ns;
    }
    char used[BHI_COMPILE_TEXT];
    core->life.kill_stopped = bhi_proc_is_stopped(&worker->place);
    bhi_core_worker_kill(core, BHI_KILL_COMPILE, 0,
                         "compiling kernel \"%s\" before it is needed did not end within %llu ms%s",
                         lessons->name, (unsigned long long)(limit_ns / 1000000),
                         bhi_compile_say(&core->compile, limit_ns, used));
    return BH_FOREVER;
}

bool bhi_lesson_died(struct bhi_worker *worker, const struct bhi_outcome *outcome) {
    const struct bhi_lessons *lessons = &worker->lessons;
    bh_context *context = worker->context;
    const uint64_t id = lessons->kernel;
    if (!id) {
        return false;
    }
    end_lesson(worker);
    const bool nobodys = worker->core.life.kill == BHI_KILL_RETIRED || context->closed ||
                         !worker->core.life.exit_kind || worker->zygote->state == BHI_ZYGOTE_LOST;
    if (nobodys) {
        return true;
    }
    const bool late = outcome->status == BH_COMPILE_FAILED && !worker->core.life.kill_stopped &&
                      lessons->until_ns - lessons->since_ns < MOST_LEARN_NS;
    const bool crash = late || bhi_outcome_is_crash(outcome);
    /* A kill from outside proves nothing, and neither does a broken protocol. */
    const bool guilty = crash || outcome->status == BH_SECCOMP;
    struct bhi_usage *usage = bhi_usage_find(context->usages, worker->device, lessons->tenant);
    if (usage) {
        bhi_usage_ended_spare(usage, id, guilty);
        usage->quiet_until_ns = bhi_now_ns() + QUIET_NS;
    }
    if (guilty) {
        bh_verdict verdict = {.status = crash ? BH_COMPILE_FAILED : outcome->status,
                              .signal = outcome->signal,
                              .blame = late || worker->core.past.mixed ? BH_BLAME_SUSPECTED
                                                                       : BH_BLAME_CERTAIN};
        memcpy(verdict.kernel_name, lessons->name, sizeof verdict.kernel_name);
        memcpy(verdict.kernel_hash, lessons->hash, sizeof verdict.kernel_hash);
        bhi_format(verdict.message, sizeof verdict.message,
                   "a spare worker died while compiling it: %.400s", outcome->message);
        bhi_quarantine_note_spare(context, lessons->tenant, &verdict);
    }
    return true;
}

size_t bhi_lessons_known(const struct bhi_worker *worker) {
    const struct bhi_lessons *lessons = &worker->lessons;
    const bool learning =
        lessons->kernel && bhi_worker_kernels_has(&worker->kernels, lessons->kernel);
    return worker->kernels.map.count - learning;
}
