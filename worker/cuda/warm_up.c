/* The first work: everything that the driver does only once is done here, before filter B. */
#include "worker/cuda/backend.h"

#include "worker/cuda/result.h"

#include <bulkhead/bulkhead.h>
#include <string.h>
#include <unistd.h>

#define MADE   (UINT64_MAX - 1) /* ids that no buffer of the host has */
#define TAKEN  (UINT64_MAX - 2)
#define KERNEL UINT64_MAX

/* It writes a word. */
static const char code[] = ".version 5.0\n"
                           ".target sm_60\n"
                           ".address_size 64\n"
                           ".visible .entry bulkhead_warm_up(.param .u64 word)\n"
                           "{\n"
                           "    .reg .u64 %a;\n"
                           "    .reg .u32 %v;\n"
                           "    ld.param.u64 %a, [word];\n"
                           "    mov.u32 %v, 0x57415231;\n"
                           "    st.u32 [%a], %v;\n"
                           "    ret;\n"
                           "}\n";
#define WORD 0x57415231u

struct job {
    struct bhi_lane_record record;
    struct bhi_cmd_fill fill;
    struct bhi_cmd_dispatch dispatch;
    struct bhi_cmd_binding binding;
};

/* Memory is made, handed out and taken as by another worker. */
static bool share(struct bhi_cuda_backend *b, struct bhi_error *error) {
    int fd = bhi_backend_make(&b->base, MADE, sizeof(uint32_t));
    const struct bhi_cuda_buffer *made = bhi_map_get(&b->buffers, MADE);
    if (fd < 0 || !made) {
        *error = made ? made->error : (struct bhi_error){.status = BH_OUT_OF_HOST_MEMORY};
        return false;
    }
    bhi_backend_import(&b->base, TAKEN, fd, sizeof(uint32_t));
    const struct bhi_cuda_buffer *taken = bhi_map_get(&b->buffers, TAKEN);
    if (!taken || taken->error.status != BH_OK) {
        *error = taken ? taken->error : (struct bhi_error){.status = BH_OUT_OF_HOST_MEMORY};
        return false;
    }
    return true;
}

static bool launch(struct bhi_cuda_backend *b, struct bhi_error *error) {
    const struct job job = {
        .record = {.size = sizeof job, .command_count = 2, .flags = BHI_RECORD_TIMED},
        .fill = {.header = {.type = BHI_CMD_FILL, .size = sizeof job.fill},
                 .dst = MADE,
                 .bytes = sizeof(uint32_t)},
        .dispatch = {.header = {.type = BHI_CMD_DISPATCH,
                                .size = sizeof job.dispatch + sizeof job.binding},
                     .kernel = KERNEL,
                     .groups_x = 1,
                     .groups_y = 1,
                     .groups_z = 1,
                     .block_x = 1,
                     .block_y = 1,
                     .block_z = 1,
                     .binding_count = 1},
        .binding = {.buffer = MADE, .size = sizeof(uint32_t), .access = BH_ACCESS_READ_WRITE},
    };
    struct bhi_msg_kernel_create kernel = {
        .kernel = KERNEL, .format = BHI_KERNEL_IMAGE, .code_bytes = sizeof code};
    memcpy(kernel.entry, "bulkhead_warm_up", sizeof "bulkhead_warm_up");
    memcpy(kernel.name, "warm-up", sizeof "warm-up");
    bhi_backend_kernel_create(&b->base, &kernel, code, NULL, 0);
    struct bhi_error missing;
    if (!bhi_backend_learn(&b->base, KERNEL, &missing) && missing.status == BH_COMPILE_FAILED) {
        return true; /* no compiler for PTX: cubins do */
    }
    const struct bhi_lane_record *record = &job.record;
    struct bhi_result result;
    uint32_t word = 0;
    bool alive = bhi_backend_run(&b->base, &record, 1, &result, error);
    const struct bhi_cuda_buffer *made = bhi_map_get(&b->buffers, MADE);
    if (error->status == BH_OK && alive) {
        const struct bhi_cuda_api *cuda = &b->device.api;
        alive = cuda->cuMemcpyDtoHAsync(&word, made->memory.address, sizeof word,
                                        b->device.stream) == CUDA_SUCCESS &&
                cuda->cuStreamSynchronize(b->device.stream) == CUDA_SUCCESS;
    }
    if (error->status == BH_OK && !alive) {
        BHI_ERROR(error, BH_REASON_LOST, .text = "after its first work");
    } else if (error->status == BH_OK && word != WORD) {
        BHI_ERROR(error, BH_REASON_STEP, "use the device",
                  .text = "it ran a trivial kernel and its result did not appear");
    }
    return error->status == BH_OK;
}

bool bhi_cuda_warm_up(struct bhi_backend *backend, struct bhi_error *error) {
    struct bhi_cuda_backend *b = bhi_cuda_of(backend);
    struct bhi_msg_kernel_info info;
    struct bhi_msg_kernel_binding bindings[BHI_CUDA_PARAMETERS];
    error->status = BH_OK;
    const bool good = share(b, error) && launch(b, error);
    (void)bhi_backend_next_reflection(backend, &info, bindings); /* not for the host */
    bhi_backend_kernel_destroy(backend, KERNEL);
    bhi_backend_detach(backend, MADE);
    bhi_backend_detach(backend, TAKEN);
    b->submits = 0;
    b->has_run = false;
    return good;
}
