#include "core/core.h"

void bhi_core_init(struct bhi_core *core, const struct bhi_core_ops *ops) {
    *core = (struct bhi_core){.ops = ops};
    bhi_list_init(&core->pumpable);
    bhi_list_init(&core->ripples);
    bhi_list_init(&core->sweeps);
}
