#include "supervisor/worker/worker_proc.h"
#include "base/check.h"
#include "base/fd.h"
#include "supervisor/worker/zygote.h"

#include <stdio.h>
#include <stdlib.h>

void bhi_worker_retain(struct bhi_worker *worker) {
    atomic_fetch_add_explicit(&worker->refs, 1, memory_order_relaxed);
}

const struct bhi_msg_device *bhi_worker_chosen_device(const struct bhi_worker *worker) {
    for (uint32_t i = 0; i < worker->device_count; i++) {
        if (worker->devices[i].chosen) {
            return &worker->devices[i];
        }
    }
    return NULL;
}

static void drop_outbox(struct bhi_worker *worker) {
    BHI_LIST_FOR_SAFE(struct bhi_outgoing, outgoing, &worker->outbox, link) {
        bhi_list_remove(&outgoing->link);
        bhi_fd_close(&outgoing->fd);
        free(outgoing);
    }
}

void bhi_worker_release(struct bhi_worker *worker) {
    if (!worker || atomic_fetch_sub_explicit(&worker->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    BHI_CHECK(worker->core.life.state == BHI_BURIED && bhi_list_empty(&worker->pool.exposures));
    bh_context *context = worker->context;
    bhi_room_give(&worker->room);
    drop_outbox(worker);
    BHI_LIST_EACH_SAFE(node, &worker->reflections)
    free(BHI_CONTAINER(node, struct bhi_reflection, link));
    free(worker->reflecting);
    free(worker->devices);
    bhi_idset_fini(&worker->buffers);
    bhi_idset_fini(&worker->written);
    bhi_idset_fini(&worker->constants);
    bhi_worker_kernels_fini(&worker->kernels);
    bhi_idset_fini(&worker->files);
    bhi_core_worker_fini(&worker->core);
    bhi_lane_destroy(&worker->lane);
    bhi_progress_destroy(&worker->progress);
    bhi_fd_close(&worker->fdpass);
    bhi_fd_close(&worker->words.fd);
    bhi_fd_close(&worker->doorbell);
    bhi_fd_close(&worker->pidfd);
    bhi_zygote_release(worker->zygote);
    free(worker);
    bhi_context_unref(context);
}

void bhi_worker_end_words(struct bhi_worker *worker) {
    if (worker->words.state != BHI_WORDS_NONE && !worker->words.set_requested &&
        worker->core.published != worker->core.harvested) {
        worker->words.set_requested = true;
        worker->words.wanted_ns = bhi_now_ns();
        worker->context->wake_reactor = true;
    }
}

void bhi_device_address(const struct bhi_msg_device *device,
                        char out[sizeof((bh_device_info *)NULL)->pci]) {
    out[0] = '\0';
    if (device->pci_known) {
        snprintf(out, sizeof((bh_device_info *)NULL)->pci, "%04x:%02x:%02x.%x", device->pci_domain,
                 device->pci_bus, device->pci_device, device->pci_function);
    }
}

bool bhi_worker_has_cgroup(const struct bhi_worker *worker) {
    return worker->memory_limit && worker->zygote->cgroup.version;
}
