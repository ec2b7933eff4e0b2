/* What a loader is asked about a file, and what it says of its header: bh_buffer_from_file and
 * bh_file_tensors. Nothing that it says is believed before it makes sense. */
#ifndef BHI_SUPERVISOR_LOAD_FILE_HEADER_H
#define BHI_SUPERVISOR_LOAD_FILE_HEADER_H

#include "supervisor/file/file.h"
#include <bulkhead/bulkhead.h>

struct bh_buffer;
struct bh_event;

/* Copies |given|, and checks what all formats have in common; not the tensor. Details begin with
 * |call|, here and below. */
bh_status bhi_file_source_take(const bh_file_source *given, bh_file_source *source,
                               const char *call, bh_detail *detail);

/* |command| is about |file| and fills |buffer|, once |after| (NULL is fine) is READY. *out_event is
 * referenced. |quiet|: how it ends is the caller's to tell, and counts as nobody's failure. */
bh_status bhi_file_submit(struct bhi_file *file, struct bh_buffer *buffer, const void *command,
                          size_t size, struct bh_event *after, uint64_t deadline_ns, bool quiet,
                          const char *call, struct bh_event **out_event, bh_detail *detail);

/* Has the header parsed, and waits for that. *out_answer, to be released, has a struct
 * bhi_file_answer, or with |room| a struct bhi_file_list and so many rows at most. The loader can
 * still write there: it is copied once. */
bh_status bhi_file_inspect(struct bhi_file *file, uint64_t timeout_ns, uint64_t deadline_ns,
                           uint64_t room, const char *call, struct bh_buffer **out_answer,
                           bh_detail *detail);

struct bhi_file_extent {
    uint64_t offset, bytes;
};

/* It need not be true, but it has to make sense: the extent lies in the file, and is as long as the
 * array takes. */
bool bhi_file_makes_sense(const struct bhi_file *file, uint32_t dtype, uint32_t dimensions,
                          const uint64_t *shape, struct bhi_file_extent extent);
/* BH_PROTOCOL: it makes none. */
bh_status bhi_file_senseless(const struct bhi_file *file, const char *call, bh_detail *detail);
/* BH_LOAD_FAILED: the loader's |text|, of BHI_FILE_TEXT bytes, says why, |error| is its errno. */
bh_status bhi_file_refused(const struct bhi_file *file, int32_t error, const char *text,
                           const char *call, bh_detail *detail);

#endif
