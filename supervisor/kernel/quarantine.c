#include "supervisor/kernel/quarantine.h"
#include "base/detail.h"
#include "base/format.h"
#include "base/futex.h"
#include "base/owner.h"
#include "base/text.h"
#include "core/worker.h"
#include "supervisor/context/layout.h"
#include "supervisor/kernel/death_records.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/kernel/usage.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/worker_proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000ull

/* Writes "in 12 s", rounded up, or "never". */
static void say_left(char out[32], uint64_t expires_ns, uint64_t now_ns) {
    if (expires_ns == BH_FOREVER) {
        snprintf(out, 32, "never");
    } else {
        snprintf(out, 32, "in %llu s",
                 (unsigned long long)((expires_ns - now_ns + NS_PER_S - 1) / NS_PER_S));
    }
}

/* Writes where a record's last death was: |when| and the event, or that a spare died. */
static void say_where(char out[40], const char *when, uint64_t event) {
    if (event) {
        bhi_format(out, 40, "%s event %llu", when, (unsigned long long)event);
    } else {
        snprintf(out, 40, "in a spare worker");
    }
}

static void say_refusal(struct bh_context *context, bool source, const char *name,
                        const struct bhi_death_record *record, uint64_t now_ns) {
    char left[32], where[40];
    say_left(left, bhi_death_records_expiry(context->death_records, record), now_ns);
    say_where(where, "at", record->origin);
    if (record->uncompilable) {
        bhi_format(
            context->refusal, sizeof context->refusal,
            "%s \"%s\" is not compiled again: %s compiler did not survive it %s (%.240s); this "
            "expires %s; bh_quarantine_release ends it earlier",
            source ? "source" : "kernel", name, source ? "its" : "the driver's", where,
            record->message, left);
    } else if (bhi_death_records_only_late(context->death_records, record)) {
        bhi_format(
            context->refusal, sizeof context->refusal,
            "kernel \"%s\" is quarantined: its last %llu launches have passed their deadline, the "
            "last one %s (%.240s); this expires %s; bh_quarantine_release ends it earlier",
            name, (unsigned long long)record->deadlines, where, record->message, left);
    } else {
        bhi_format(context->refusal, sizeof context->refusal,
                   "kernel \"%s\" is quarantined: it has killed %u worker%s, the last one %s "
                   "(%.240s); this expires %s; bh_quarantine_release ends it earlier",
                   name, record->deaths, record->deaths == 1 ? "" : "s", where, record->message,
                   left);
    }
}

/* Returns false if the kernel, or the source, may run. */
static bool refuse(const struct bh_stream *stream, bool source, const char *name,
                   const uint8_t hash[32], struct bhi_outcome *out) {
    struct bh_context *context = stream->context;
    const uint64_t now_ns = bhi_now_ns();
    const struct bhi_death_record *record =
        bhi_death_records_held(context->death_records, stream->tenant, hash, now_ns);
    if (!record) {
        return false;
    }
    say_refusal(context, source, name, record, now_ns);
    *out = (struct bhi_outcome)BHI_OUTCOME_INIT; /* not executed */
    out->status = record->uncompilable ? BH_COMPILE_FAILED : BH_QUARANTINED;
    out->reason = record->uncompilable ? BH_REASON_NOT_AGAIN : BH_REASON_NONE;
    out->subject = record->uncompilable ? BH_SUBJECT_KERNEL : BH_SUBJECT_NONE;
    out->blame = BH_BLAME_CERTAIN; /* no kernel is held for a suspicion */
    out->origin = record->origin;
    out->ended_ns = now_ns;
    out->message = context->refusal;
    return true;
}

bool bhi_quarantine_refuse(const struct bhi_submission *submission, struct bhi_outcome *out) {
    const struct bhi_payload *payload = bhi_payload_of(submission);
    const struct bh_stream *stream = bhi_stream_of(submission->stream);
    if (!stream->context->death_records->count) {
        return false;
    }
    for (uint32_t i = 0; i < payload->kernel_count; i++) {
        const struct bh_kernel *kernel = payload->kernels[i];
        if (refuse(stream, false, kernel->name, kernel->body->hash, out)) {
            out->command_index = bhi_payload_command(payload, kernel->body->id);
            return true;
        }
    }
    return payload->source &&
           refuse(stream, true, payload->source->name, payload->source->hash, out);
}

/* Returns true if this submission is to blame for the death of its worker. Its status tells: other
 * submissions that were lost with the worker end WORKER_LOST. A protocol violation is no one's
 * fault, because the submission that ran when it was found need not have caused it. */
static bool ended_its_worker(const struct bhi_submission *submission, const bh_verdict *verdict) {
    struct bhi_core_worker *core = submission->worker;
    if (!core) {
        return false;
    }
    if ((verdict->status == BH_DEVICE_LOST || verdict->status == BH_DEVICE_FAULT) &&
        core->life.state != BHI_BURIED) {
        /* A worker whose device is lost reports that as a result before it ends, so it is not dead
         * yet. If several submissions end DEVICE_LOST, the first is the culprit. */
        const bool first = core->life.loss < BHI_LOSS_BLAMED;
        core->life.loss = first ? BHI_LOSS_BLAMED : core->life.loss;
        return first;
    }
    return core->life.state == BHI_BURIED &&
           (verdict->status == BH_WORKER_SIGNAL || verdict->status == BH_WORKER_EXIT ||
            verdict->status == BH_SECCOMP || verdict->status == BH_DEADLINE ||
            verdict->status == BH_OUT_OF_HOST_MEMORY || verdict->status == BH_COMPILE_FAILED);
}

bool bhi_quarantine_tries(const struct bhi_submission *submission) {
    const struct bhi_payload *payload = bhi_payload_of(submission);
    const struct bh_stream *stream = bhi_stream_of(submission->stream);
    struct bh_context *context = stream->context;
    if (!context->death_records->count) {
        return false;
    }
    uint64_t now_ns = bhi_now_ns();
    for (uint32_t i = 0; i < payload->kernel_count; i++) {
        if (bhi_death_records_on_trial(context->death_records, stream->tenant,
                                       payload->kernels[i]->body->hash, now_ns)) {
            return true;
        }
    }
    return false;
}

/* Returns true if the end of the submission ends the trials of its kernels: a worker without other
 * kernels has completed it. What was lost with a device has not ended by itself. */
static bool ends_trial(const struct bhi_submission *submission) {
    const struct bhi_core_worker *core = submission->worker;
    return core && core->life.state != BHI_BURIED && core->life.loss < BHI_LOSS_BLAMED &&
           submission->runs_kernel && bhi_past_clean(&core->past, submission);
}

/* Puts a suspected kernel on trial, or ends its trial. */
static void note_trial(const struct bhi_submission *submission, const bh_verdict *verdict) {
    const struct bh_stream *stream = bhi_stream_of(submission->stream);
    struct bhi_death_records *death_records = stream->context->death_records;
    if (verdict->blame == BH_BLAME_SUSPECTED) {
        bhi_death_records_try(death_records, stream->tenant, verdict, bhi_now_ns());
    } else if (death_records->count && verdict->status != BH_CANCELLED && ends_trial(submission)) {
        bhi_death_records_tried(death_records, stream->tenant, verdict->kernel_hash);
    }
}

/* A submission that is READY has run all its kernels in time. */
static void note_ready(const struct bhi_submission *submission) {
    const struct bhi_payload *payload = bhi_payload_of(submission);
    const struct bh_stream *stream = bhi_stream_of(submission->stream);
    struct bhi_death_records *death_records = stream->context->death_records;
    if (!death_records->count || !submission->runs_kernel) {
        return;
    }
    const bool tried = ends_trial(submission);
    for (uint32_t i = 0; i < payload->kernel_count; i++) {
        const uint8_t *hash = payload->kernels[i]->body->hash;
        bhi_death_records_in_time(death_records, stream->tenant, hash);
        if (tried) {
            bhi_death_records_tried(death_records, stream->tenant, hash);
        }
    }
}

/* The kernel, or the source, is held from now on. */
static void announce(struct bh_context *context, const char *tenant_name, bool source,
                     const bh_verdict *verdict) {
    const uint64_t now_ns = bhi_now_ns();
    char left[32], tenant[BHI_TENANT], where[40];
    const struct bhi_death_record *record =
        bhi_death_records_held(context->death_records, tenant_name, verdict->kernel_hash, now_ns);
    if (!record) {
        return;
    }
    bhi_usages_refuse(context->usages, tenant_name, verdict->kernel_hash);
    say_where(where, "after", verdict->event);
    say_left(left, bhi_death_records_expiry(context->death_records, record), now_ns);
    bhi_text_line(tenant, sizeof tenant, tenant_name, strlen(tenant_name));
    bhi_context_say(context, BH_LOG_WARNING, "%s \"%s\" of tenant \"%s\" is %s %s; this expires %s",
                    source ? "source" : "kernel", verdict->kernel_name, tenant,
                    record->uncompilable ? "not compiled again" : "quarantined", where, left);
}

/* The kernel, or the source, has certainly killed a worker of |tenant|. */
static void count_death(struct bh_context *context, const char *tenant, bool source,
                        const bh_verdict *verdict) {
    const bool compiling = source || verdict->status == BH_COMPILE_FAILED;
    if (bhi_death_records_note(context->death_records, tenant, verdict, compiling, bhi_now_ns())) {
        announce(context, tenant, source, verdict);
    }
}

/* Counts a launch that has passed its deadline. */
static void note_deadline(const struct bhi_submission *submission, const bh_verdict *verdict) {
    const struct bh_stream *stream = bhi_stream_of(submission->stream);
    struct bh_context *context = stream->context;
    if (submission->runs_kernel && verdict->status == BH_DEADLINE &&
        verdict->blame == BH_BLAME_CERTAIN &&
        bhi_death_records_late(context->death_records, stream->tenant, verdict, bhi_now_ns())) {
        announce(context, stream->tenant, false, verdict);
    }
}

void bhi_quarantine_note_spare(struct bh_context *context, const char *tenant,
                               const bh_verdict *verdict) {
    if (verdict->blame == BH_BLAME_CERTAIN) {
        count_death(context, tenant, false, verdict);
    } else {
        bhi_death_records_try(context->death_records, tenant, verdict, bhi_now_ns());
    }
}

void bhi_quarantine_note(const struct bhi_submission *submission, const bh_verdict *verdict) {
    if (verdict->status == BH_OK) {
        note_ready(submission);
        return;
    }
    const struct bh_stream *stream = bhi_stream_of(submission->stream);
    const bool source = bhi_payload_of(submission)->source;
    const bool fatal = ended_its_worker(submission, verdict) && verdict->blame == BH_BLAME_CERTAIN;
    if (source) {
        /* A compiler that is only slow may be so because the machine is. */
        if (fatal && verdict->status != BH_DEADLINE) {
            count_death(stream->context, stream->tenant, true, verdict);
        }
        return;
    }
    note_deadline(submission, verdict);
    if (fatal) {
        count_death(stream->context, stream->tenant, false, verdict);
    } else {
        /* Without certain blame, other code in the worker may have caused the death. So the death
         * is not counted; the kernel is put on trial. */
        note_trial(submission, verdict);
    }
}

/* -- the API ----------------------------------------------------------------------------------- */

BH_API bh_status bh_quarantine_list(bh_context *context, bh_quarantined *out_entries,
                                    size_t capacity, size_t *out_count, bh_detail *detail) {
    BHI_NEED(out_count, "bh_quarantine_list", detail);
    *out_count = 0;
    size_t size;
    BHI_TRY(bhi_context_check(context, "bh_quarantine_list", detail));
    BHI_TRY(bhi_layout_stride(BHI_OURS(bh_quarantined), out_entries, capacity, "bh_quarantine_list",
                              "out_entries", &size, detail));
    if (capacity > BHI_DEATH_RECORDS) {
        capacity = BHI_DEATH_RECORDS;
    }
    BHI_AUTO_FREE bh_quarantined *ours = calloc(capacity + 1, sizeof *ours);
    if (!ours) {
        return BHI_FAIL(detail, "bh_quarantine_list", BH_REASON_MEMORY);
    }
    bhi_context_lock(context);
    *out_count = bhi_death_records_list(context->death_records, ours, capacity, bhi_now_ns());
    bhi_context_unlock(context);
    for (size_t i = 0; i < capacity && i < *out_count; i++) {
        bhi_layout_put(out_entries, i, size, &ours[i], sizeof ours[i]);
    }
    return BH_OK;
}

BH_API bh_status bh_quarantine_release(bh_context *context, const char *tenant,
                                       const uint8_t kernel_hash[32], bh_detail *detail) {
    BHI_TRY(bhi_context_check(context, "bh_quarantine_release", detail));
    bhi_context_lock(context);
    bhi_death_records_forget(context->death_records, tenant ? tenant : "", kernel_hash);
    bhi_context_unlock(context);
    return BH_OK;
}
