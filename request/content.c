#include "request/content.h"

#include <bulkhead/file.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any wait takes, because at that time nothing else uses these buffers. */
static const uint64_t wait_limit_ns = 10000000000u;
static const uint64_t piece_bytes = 16u << 20;
static const uint64_t copied_bytes = 1u << 20; /* of host memory: fits in caches */

static bool out_of_memory(bh_detail *detail) {
    *detail = (bh_detail){.status = BH_NO_MEMORY, .message = "out of memory"};
    return false;
}

bool bhi_content_fill(struct bhi_run_binding *binding, bh_detail *out_detail,
                      struct bhi_complaint *complaint) {
    const bool mapped = bh_buffer_memory(binding->buffer) == BH_MEMORY_HOST;
    const uint64_t size = binding->array.bytes;
    void *bytes = NULL;
    *out_detail = (bh_detail){.status = BH_OK};
    if (mapped && bh_buffer_map(binding->buffer, BH_MAP_DISCARD, wait_limit_ns, &bytes,
                                out_detail) != BH_OK) {
        return false;
    }
    if (!mapped && !(bytes = malloc(size + 1))) {
        return out_of_memory(out_detail);
    }
    const bool good = bhi_npy_file_read(&binding->in, bytes, complaint) &&
                      (mapped || bh_buffer_write(binding->buffer, 0, bytes, size, wait_limit_ns,
                                                 out_detail) == BH_OK);
    if (!mapped) {
        free(bytes);
    }
    if (good) {
        bhi_npy_file_close(&binding->in);
    }
    return good;
}

/* Streams are written after all outputs are complete; until then the content is kept. Each byte of
 * memory that has a pointer is read once, when it is written. */
static bool save_to_stream(struct bhi_run_binding *binding, bool mapped, bh_detail *detail,
                           struct bhi_complaint *complaint) {
    const uint64_t size = binding->array.bytes;
    void *bytes;
    if (!mapped && !(binding->copy = malloc(size + 1))) {
        return out_of_memory(detail);
    }
    const bh_status status =
        mapped ? bh_buffer_map(binding->buffer, BH_MAP_READ, wait_limit_ns, &bytes, detail)
               : bh_buffer_read(binding->buffer, 0, binding->copy, size, wait_limit_ns, detail);
    return status == BH_OK &&
           bhi_outfile_write(&binding->out, binding->header, binding->header_size,
                             mapped ? bytes : binding->copy, size, complaint);
}

/* The worker that wrote the content still lives, and the memory may be its own. So a file gets bytes
 * that are copied once: what is hashed while it is written is what is written (T8). */
static bool save_in_pieces(struct bhi_run_binding *binding, bool mapped, bh_detail *detail,
                           struct bhi_complaint *complaint) {
    const uint64_t size = binding->array.bytes;
    const uint64_t most = mapped ? copied_bytes : piece_bytes;
    void *piece = malloc(size < most ? size + 1 : most);
    if (!piece) {
        return out_of_memory(detail);
    }
    bool good = bhi_outfile_append(&binding->out, binding->header, binding->header_size, complaint);
    for (uint64_t at = 0; good && at < size; at += most) {
        const uint64_t count = size - at < most ? size - at : most;
        good = bh_buffer_read(binding->buffer, at, piece, count, wait_limit_ns, detail) == BH_OK &&
               bhi_outfile_append(&binding->out, piece, count, complaint);
    }
    free(piece);
    return good;
}

bool bhi_content_save(struct bhi_run_binding *binding, bh_detail *out_detail,
                      struct bhi_complaint *complaint) {
    const bool mapped = bh_buffer_memory(binding->buffer) == BH_MEMORY_HOST;
    *out_detail = (bh_detail){.status = BH_OK};
    const bool good = binding->out.kind == BHI_OUTFILE_STREAM
                          ? save_to_stream(binding, mapped, out_detail, complaint)
                          : save_in_pieces(binding, mapped, out_detail, complaint);
    return good && bhi_outfile_seal(&binding->out, complaint);
}

bool bhi_run_take_array(struct bhi_run_binding *binding, struct bhi_complaint *complaint) {
    bh_array_info info = {.struct_size = sizeof info};
    struct bhi_array *array = &binding->array;
    if (bh_buffer_array(binding->buffer, &info, NULL) != BH_OK) {
        return bhi_refuse(complaint, "no array");
    }
    array->bytes = bh_buffer_size(binding->buffer);
    binding->tensor_dtype = info.dtype;
    array->dtype = info.dtype;
    if (!bhi_dtype_is_known(info.dtype)) {
        if (!binding->tensor) {
            return bhi_refuse(complaint, "its dtype is not one of %s", BHI_DTYPE_NAMES);
        }
        array->dtype = BH_DTYPE_NONE; /* it is only read, so its element type does not matter */
    }
    array->dimensions = info.rank;
    memcpy(array->shape, info.shape, info.rank * sizeof info.shape[0]);
    return true;
}
