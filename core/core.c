#include "core/core.h"
#include "core/stream.h"
#include "core/worker.h"

void bhi_core_init(struct bhi_core *core, const struct bhi_core_ops *ops) {
    *core = (struct bhi_core){.ops = ops};
    bhi_list_init(&core->pumpable);
    bhi_list_init(&core->ripples);
    bhi_list_init(&core->sweeps);
}

void bhi_core_pump(struct bhi_core *core) {
    while (!bhi_list_empty(&core->pumpable)) {
        struct bhi_core_stream *stream =
            BHI_CONTAINER(core->pumpable.next, struct bhi_core_stream, pump_link);
        bhi_list_remove(&stream->pump_link);
        bhi_core_worker_fill(stream);
    }
}
