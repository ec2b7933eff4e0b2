#include "request/content.h"

#include <stdlib.h>
#include <string.h>

/* Longer than any wait takes, because at that time nothing else uses these buffers. */
static const uint64_t wait_limit_ns = 10000000000u;
static const uint64_t piece_bytes = 16u << 20;

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

/* Streams are written after all outputs are complete; until then the content is kept. */
static bool save_to_stream(struct bhi_run_binding *binding, bh_detail *detail,
                           struct bhi_complaint *complaint) {
    const uint64_t size = binding->array.bytes;
    binding->copy = malloc(size + 1);
    if (!binding->copy) {
        return out_of_memory(detail);
    }
    return bh_buffer_read(binding->buffer, 0, binding->copy, size, wait_limit_ns, detail) ==
               BH_OK &&
           bhi_outfile_write(&binding->out, binding->header, binding->header_size, binding->copy,
                             size, complaint);
}

static bool save_in_pieces(struct bhi_run_binding *binding, bh_detail *detail,
                           struct bhi_complaint *complaint) {
    const uint64_t size = binding->array.bytes;
    void *piece = malloc(size < piece_bytes ? size + 1 : piece_bytes);
    if (!piece) {
        return out_of_memory(detail);
    }
    bool good = bhi_outfile_append(&binding->out, binding->header, binding->header_size, complaint);
    for (uint64_t at = 0; good && at < size; at += piece_bytes) {
        const uint64_t count = size - at < piece_bytes ? size - at : piece_bytes;
        good = bh_buffer_read(binding->buffer, at, piece, count, wait_limit_ns, detail) == BH_OK &&
               bhi_outfile_append(&binding->out, piece, count, complaint);
    }
    free(piece);
    return good;
}

bool bhi_content_save(struct bhi_run_binding *binding, bh_detail *out_detail,
                      struct bhi_complaint *complaint) {
    void *bytes;
    *out_detail = (bh_detail){.status = BH_OK};
    bool good;
    if (bh_buffer_memory(binding->buffer) == BH_MEMORY_HOST) {
        good = bh_buffer_map(binding->buffer, BH_MAP_READ, wait_limit_ns, &bytes, out_detail) ==
                   BH_OK &&
               bhi_outfile_write(&binding->out, binding->header, binding->header_size, bytes,
                                 binding->array.bytes, complaint);
    } else if (binding->out.kind == BHI_OUTFILE_STREAM) {
        good = save_to_stream(binding, out_detail, complaint);
    } else {
        good = save_in_pieces(binding, out_detail, complaint);
    }
    return good && bhi_outfile_seal(&binding->out, complaint);
}
