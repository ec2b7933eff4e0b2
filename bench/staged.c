#include "staged.h"

#include <string.h>

void bench_staged_open(const struct bench_device *device, struct bench_staged *out) {
    *out = (struct bench_staged){.device = device};
    out->pool =
        bench_pool_make(device, device->family, VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT);
    for (uint32_t i = 0; i < BENCH_STAGED_MOST; i++) {
        bench_memory_make(device, BENCH_STAGED_PIECE, false, &out->pieces[i].staging);
        out->pieces[i].commands = bench_commands_make(device, out->pool);
        out->pieces[i].done = bench_fence_make(device);
    }
}

static void finish_piece(struct bench_staged *staged, struct bench_staged_piece *piece) {
    if (piece->busy) {
        bench_fence_finish(staged->device, piece->done);
    }
    if (piece->busy && piece->to) {
        memcpy(piece->to, piece->staging.mapped, piece->bytes);
    }
    piece->busy = false;
    piece->to = NULL;
}

/* The piece that has been under way for longest, which has ended then. */
static struct bench_staged_piece *next_piece(struct bench_staged *staged) {
    struct bench_staged_piece *piece = &staged->pieces[staged->next++ % BENCH_STAGED_MOST];
    finish_piece(staged, piece);
    return piece;
}

static void submit(struct bench_staged *staged, struct bench_staged_piece *piece, VkBuffer source,
                   VkBuffer target, VkBufferCopy region, bool to_host) {
    bench_commands_begin(piece->commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
    vkCmdCopyBuffer(piece->commands, source, target, 1, &region);
    if (to_host) {
        const VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                        .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
        vkCmdPipelineBarrier(piece->commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                             VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0, NULL, 0, NULL);
    }
    BENCH_VK(vkEndCommandBuffer(piece->commands));
    bench_commands_submit(staged->device->queue, piece->commands, piece->done);
    piece->busy = true;
}

static uint64_t piece_of(uint64_t begin, uint64_t bytes) {
    return bytes - begin < BENCH_STAGED_PIECE ? bytes - begin : BENCH_STAGED_PIECE;
}

void bench_staged_upload(struct bench_staged *staged, const struct bench_memory *target,
                         const void *from, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += BENCH_STAGED_PIECE) {
        struct bench_staged_piece *piece = next_piece(staged);
        const VkBufferCopy region = {0, at, piece_of(at, bytes)};
        memcpy(piece->staging.mapped, (const char *)from + at, region.size);
        submit(staged, piece, piece->staging.buffer, target->buffer, region, false);
    }
}

void bench_staged_download(struct bench_staged *staged, const struct bench_memory *source, void *to,
                           uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += BENCH_STAGED_PIECE) {
        struct bench_staged_piece *piece = next_piece(staged);
        piece->to = (char *)to + at;
        piece->bytes = piece_of(at, bytes);
        submit(staged, piece, source->buffer, piece->staging.buffer,
               (VkBufferCopy){at, 0, piece->bytes}, true);
    }
    bench_staged_finish(staged);
}

void bench_staged_finish(struct bench_staged *staged) {
    for (uint32_t i = 0; i < BENCH_STAGED_MOST; i++) {
        (void)next_piece(staged); /* in the order in which they began */
    }
}

void bench_staged_close(struct bench_staged *staged) {
    for (uint32_t i = 0; i < BENCH_STAGED_MOST; i++) {
        bench_memory_free(staged->device, &staged->pieces[i].staging);
        vkDestroyFence(staged->device->device, staged->pieces[i].done, NULL);
    }
    vkDestroyCommandPool(staged->device->device, staged->pool, NULL);
}
