#include "chaos/engine/recovered.h"

bool bhi_fault_ends_workers(enum bhi_fault_kind kind) {
    return kind == BHI_FAULT_KILL || kind == BHI_FAULT_SEGV || kind == BHI_FAULT_GARBAGE ||
           kind == BHI_FAULT_CLOSE || kind == BHI_FAULT_ZYGOTE || kind == BHI_FAULT_DEVICE;
}

void bhi_recovered_struck(struct bhi_recovered *recovered, enum bhi_fault_kind kind,
                          const int32_t *pids, uint32_t count, uint64_t submitted) {
    recovered->struck = submitted;
    for (uint32_t i = 0; i < count && bhi_fault_ends_workers(kind); i++) {
        recovered->hurt[recovered->hurt_at++ % BHI_RECOVERED_HURT] = pids[i];
    }
}

void bhi_recovered_ready(struct bhi_recovered *recovered, uint32_t stream, uint64_t op,
                         int32_t pid) {
    for (uint32_t i = 0; i < BHI_RECOVERED_HURT; i++) {
        if (recovered->hurt[i] == pid) {
            return;
        }
    }
    recovered->ready[stream] = op;
}

bool bhi_recovered_all(const struct bhi_recovered *recovered, uint32_t streams) {
    for (uint32_t i = 0; i < streams; i++) {
        if (recovered->ready[i] <= recovered->struck) {
            return false;
        }
    }
    return true;
}
