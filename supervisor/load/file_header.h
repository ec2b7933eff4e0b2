/* Requests to a loader about a file, and its answers about the header, for bh_buffer_create and
 * bh_file_tensors. Each answer is checked before it is used. */
#ifndef BHI_SUPERVISOR_LOAD_FILE_HEADER_H
#define BHI_SUPERVISOR_LOAD_FILE_HEADER_H

#include "supervisor/file/file.h"
#include <bulkhead/bulkhead.h>
#include <bulkhead/file.h>

struct bh_buffer;
struct bh_event;

/* Copies |given|, and checks what all formats have in common; not the tensor. Details begin with
 * |call|, here and below. */
bh_status bhi_file_source_take(const bh_file_source *given, bh_file_source *source,
                               const char *call, bh_detail *detail);

/* What is read by one submission. A caller of the library sees the event of a WHOLE array alone. A
 * HEADER that fails is reported by the call that reads it, and does not count as the stream's
 * failure. */
enum bhi_file_part { BHI_FILE_WHOLE, BHI_FILE_PIECE, BHI_FILE_HEADER };

/* Submits |command|, which is about |file| and fills |buffer|, once |after| (may be NULL) is READY.
 * *out_event is referenced. */
bh_status bhi_file_submit(struct bhi_file *file, struct bh_buffer *buffer, const void *command,
                          size_t size, struct bh_event *after, uint64_t deadline_ns,
                          enum bhi_file_part part, const char *call, struct bh_event **out_event,
                          bh_detail *detail);

/* Makes a loader parse the header, and waits for it. *out_answer, which the caller releases, has a
 * struct bhi_file_answer or, with |room|, a struct bhi_file_list and at most |room| rows. The
 * loader can still write there: copy each part once. */
bh_status bhi_file_inspect(struct bhi_file *file, uint64_t timeout_ns, uint64_t deadline_ns,
                           uint64_t room, const char *call, struct bh_buffer **out_answer,
                           bh_detail *detail);

struct bhi_file_extent {
    uint64_t offset, bytes;
};

/* Returns true if an answer makes sense: the extent lies in the file, and is as long as the array
 * takes. It may still be wrong. */
bool bhi_file_makes_sense(const struct bhi_file *file, uint32_t dtype, uint32_t dimensions,
                          const uint64_t *shape, struct bhi_file_extent extent);
/* Returns BH_PROTOCOL: an answer makes no sense. */
bh_status bhi_file_senseless(const struct bhi_file *file, const char *call, bh_detail *detail);
/* Returns BH_LOAD_FAILED: |text|, of BHI_FILE_TEXT bytes, is the loader's reason, |error| its
 * errno. */
bh_status bhi_file_refused(const struct bhi_file *file, uint32_t refused, int32_t error,
                           const char *text, const char *call, bh_detail *detail);

#endif
