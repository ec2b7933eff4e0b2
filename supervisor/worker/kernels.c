#include "supervisor/worker/kernels.h"

#include <stdlib.h>

void bhi_worker_kernels_init(struct bhi_worker_kernels *known) {
    *known = (struct bhi_worker_kernels){0};
    bhi_list_init(&known->order);
}

void bhi_worker_kernels_fini(struct bhi_worker_kernels *known) {
    BHI_LIST_EACH_SAFE(node, &known->order)
    free(BHI_CONTAINER(node, struct bhi_worker_kernel, link));
    bhi_map_fini(&known->map);
}

bool bhi_worker_kernels_has(const struct bhi_worker_kernels *known, uint64_t id) {
    return bhi_map_get(&known->map, id);
}

bool bhi_worker_kernels_use(struct bhi_worker_kernels *known, uint64_t id, uint64_t seq) {
    struct bhi_worker_kernel *kernel = bhi_map_get(&known->map, id);
    if (!kernel) {
        return false;
    }
    kernel->last_seq = seq;
    bhi_list_remove(&kernel->link);
    bhi_list_append(&known->order, &kernel->link);
    return true;
}

bool bhi_worker_kernels_add(struct bhi_worker_kernels *known, uint64_t id, uint64_t bytes,
                            bool image, uint64_t seq) {
    struct bhi_worker_kernel *kernel = malloc(sizeof *kernel);
    if (!kernel) {
        return false;
    }
    if (!bhi_map_put(&known->map, id, kernel)) {
        free(kernel);
        return false;
    }
    *kernel = (struct bhi_worker_kernel){.id = id, .bytes = bytes, .image = image, .last_seq = seq};
    bhi_list_append(&known->order, &kernel->link);
    known->bytes += bytes;
    if (known->map.count > known->most) {
        known->most = (uint32_t)known->map.count;
    }
    return true;
}

void bhi_worker_kernels_prove(struct bhi_worker_kernels *known, uint64_t id) {
    struct bhi_worker_kernel *kernel = bhi_map_get(&known->map, id);
    if (kernel) {
        kernel->proven = true;
    }
}

bool bhi_worker_kernels_proven(const struct bhi_worker_kernels *known, uint64_t id, uint32_t most) {
    const struct bhi_worker_kernel *kernel =
        known->most <= most ? bhi_map_get(&known->map, id) : NULL;
    return kernel && kernel->proven;
}

bool bhi_worker_kernels_remove(struct bhi_worker_kernels *known, uint64_t id) {
    struct bhi_worker_kernel *kernel = bhi_map_remove(&known->map, id);
    if (!kernel) {
        return false;
    }
    bhi_list_remove(&kernel->link);
    known->bytes -= kernel->bytes;
    free(kernel);
    return true;
}

uint64_t bhi_worker_kernels_victim(const struct bhi_worker_kernels *known, uint32_t most,
                                   uint64_t most_bytes, uint64_t done) {
    if ((known->map.count <= most && known->bytes <= most_bytes) || bhi_list_empty(&known->order)) {
        return 0;
    }
    const struct bhi_worker_kernel *oldest =
        BHI_CONTAINER(known->order.next, struct bhi_worker_kernel, link);
    return oldest->last_seq <= done ? oldest->id : 0;
}
