#include "base/status.h"

static const char unknown[] = "UNKNOWN";

const char *bh_status_name(bh_status status) {
    switch (status) {
#define BH_STATUS(NAME, value, CLASS, text, advice)                                                \
    case BH_##NAME:                                                                                \
        return #NAME;
#include "base/status.def"
#undef BH_STATUS
    }
    return unknown;
}

const char *bh_status_text(bh_status status) {
    switch (status) {
#define BH_STATUS(NAME, value, CLASS, text, advice)                                                \
    case BH_##NAME:                                                                                \
        return text;
#include "base/status.def"
#undef BH_STATUS
    }
    return "unknown status";
}

const char *bh_status_advice(bh_status status) {
    switch (status) {
#define BH_STATUS(NAME, value, CLASS, text, advice)                                                \
    case BH_##NAME:                                                                                \
        return advice;
#include "base/status.def"
#undef BH_STATUS
    }
    return "an unknown status: the library is newer than the program";
}

bh_status_class bh_status_classify(bh_status status) {
    switch (status) {
#define BH_STATUS(NAME, value, CLASS, text, advice)                                                \
    case BH_##NAME:                                                                                \
        return BH_STATUS_CLASS_##CLASS;
#include "base/status.def"
#undef BH_STATUS
    }
    return BH_STATUS_CLASS_NONE;
}

const char *bh_reason_name(bh_reason reason) {
    switch (reason) {
#define BH_REASON(NAME, value, text)                                                               \
    case BH_REASON_##NAME:                                                                         \
        return #NAME;
#include "base/reason.def"
#undef BH_REASON
    }
    return unknown;
}

const char *bh_reason_text(bh_reason reason) {
    switch (reason) {
#define BH_REASON(NAME, value, text)                                                               \
    case BH_REASON_##NAME:                                                                         \
        return text;
#include "base/reason.def"
#undef BH_REASON
    }
    return "an unknown reason: the library is newer than the program";
}

bool bhi_reason_from_worker(uint32_t code, uint32_t status) {
    return code == BH_REASON_NONE ||
           (code == BH_REASON_ENTRY_POINT && status == BH_INVALID_KERNEL) ||
           (code == BH_REASON_WORKGROUPS && status == BH_LIMIT_EXCEEDED);
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
