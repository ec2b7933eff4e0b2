#include "judge/time/batch.h"

void bhi_batches_begin(size_t length, struct bhi_batches *out) {
    out->length = length;
    for (int i = 0; i < BHI_RACERS; i++) {
        out->least[i] = UINT64_MAX;
    }
}

bool bhi_batches_take(struct bhi_batches *batches, struct bhi_series *series, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct bhi_clocked clocked[BHI_RACERS] = {{0}};
        if (!bhi_round_run(&series->race, batches->length, true, 1, clocked, series->outcome)) {
            return false;
        }
        for (int k = 0; k < BHI_RACERS; k++) {
            const uint64_t host_ns = clocked[k].host_ns;
            batches->least[k] = host_ns < batches->least[k] ? host_ns : batches->least[k];
        }
    }
    return true;
}

struct bhi_seen bhi_batches_seen(const struct bhi_batches *batches, enum bhi_racer racer) {
    return (struct bhi_seen){.batch_ns = batches->least[racer],
                             .base_ns = batches->least[BHI_RACER_BASE],
                             .runs = batches->length};
}
