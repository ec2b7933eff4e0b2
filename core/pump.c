#include "core/core.h"
#include "core/stream.h"
#include "core/worker.h"

void bhi_core_pump(struct bhi_core *core) {
    while (!bhi_list_empty(&core->pumpable)) {
        struct bhi_core_stream *stream =
            BHI_CONTAINER(core->pumpable.next, struct bhi_core_stream, pump_link);
        bhi_list_remove(&stream->pump_link);
        bhi_core_worker_fill(stream);
    }
}
