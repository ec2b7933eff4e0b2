#include "base/status.h"

#include <stddef.h>

static const char unknown[] = "UNKNOWN";

static const struct status {
    const char *name, *text, *advice; /* no name: unknown */
    bh_status_class class;
} statuses[] = {
#define BH_STATUS(NAME, value, CLASS, text, advice)                                                \
    [value] = {#NAME, text, advice, BH_STATUS_CLASS_##CLASS},
#include "base/status.def"
#undef BH_STATUS
};

static const struct status *row_of(bh_status status) {
    static const struct status other = {unknown, "unknown status",
                                        "an unknown status: the library is newer than the program",
                                        BH_STATUS_CLASS_NONE};
    return (size_t)status < sizeof statuses / sizeof statuses[0] && statuses[status].name
               ? &statuses[status]
               : &other;
}

const char *bh_status_name(bh_status status) {
    return row_of(status)->name;
}

const char *bh_status_text(bh_status status) {
    return row_of(status)->text;
}

const char *bh_status_advice(bh_status status) {
    return row_of(status)->advice;
}

bh_status_class bh_status_classify(bh_status status) {
    return row_of(status)->class;
}

static const struct bhi_reason_info reasons[] = {
#define FROM_HOST(STATUS)   BH_OK
#define FROM_WORKER(STATUS) BH_##STATUS
#define BH_REASON(NAME, value, STATUS, FROM, SUBJECT, sentence, advice)                            \
    [value] = {#NAME, sentence, advice, BH_##STATUS, FROM_##FROM(STATUS), BH_SUBJECT_##SUBJECT},
#include "base/reason.def"
#undef BH_REASON
};
#define REASONS (sizeof reasons / sizeof reasons[0])
_Static_assert(REASONS <= 256, "a reason on the wire is at most 255");

static const char *const subjects[] = {
#define BH_SUBJECT(NAME, value, text) [value] = #NAME,
#include "base/subject.def"
#undef BH_SUBJECT
};
#define SUBJECTS (sizeof subjects / sizeof subjects[0])

const struct bhi_reason_info *bhi_reason_info(uint32_t reason) {
    static const struct bhi_reason_info other = {
        .name = unknown,
        .text = "an unknown reason: the library is newer than the program",
        .advice = ""};
    return reason < REASONS ? &reasons[reason] : &other;
}

const char *bh_reason_name(bh_reason reason) {
    return bhi_reason_info(reason)->name;
}

const char *bh_reason_text(bh_reason reason) {
    return bhi_reason_info(reason)->text;
}

const char *bh_reason_advice(bh_reason reason) {
    return bhi_reason_info(reason)->advice;
}

const char *bh_subject_name(bh_subject subject) {
    return bhi_subject_exists(subject) ? subjects[subject] : unknown;
}

bool bhi_subject_exists(uint32_t subject) {
    return subject < SUBJECTS;
}

bool bhi_reason_from_worker(uint32_t code, uint32_t status) {
    const bh_status from = bhi_reason_info(code)->from;
    return code == BH_REASON_NONE || (from != BH_OK && from == status);
}

/* A worker may not report how a worker died, a cancellation, or the loss of other submissions: the
 * supervisor sees these itself. A passed deadline is the answer to an abort (lane.h); without an
 * abort it is a lie (core/worker.c). */
bool bhi_status_from_worker(uint32_t code) {
    switch (code) {
    case BH_OUT_OF_HOST_MEMORY:
    case BH_OUT_OF_DEVICE_MEMORY:
    case BH_DEVICE_LOST:
    case BH_VULKAN:
    case BH_DEVICE_FAULT:
    case BH_CUDA:
    case BH_LOAD_FAILED:
    case BH_INVALID_KERNEL:
    case BH_COMPILE_FAILED:
    case BH_BINDING_MISMATCH:
    case BH_LIMIT_EXCEEDED:
    case BH_LOOP_LIMIT:
    case BH_DEADLINE:
    case BH_CANCELLED: /* the lane told the worker to skip it */
        return true;
    default:
        return false;
    }
}

bool bhi_status_from_kind(uint32_t code, enum bhi_worker_kind kind) {
    if (!bhi_status_from_worker(code)) {
        return false;
    }
    if (code == BH_CANCELLED || code == BH_OUT_OF_HOST_MEMORY) {
        return true;
    }
    switch (kind) {
    case BHI_WORKER_LOADER:
        return code == BH_LOAD_FAILED;
    case BHI_WORKER_COMPILER:
        return code == BH_COMPILE_FAILED || code == BH_INVALID_KERNEL || code == BH_LIMIT_EXCEEDED;
    default:
        return code != BH_LOAD_FAILED;
    }
}
