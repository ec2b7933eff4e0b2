/* Files that buffers are loaded from: open for reading, but not in this process (opener.h), and
 * what they were like when they were opened. Nothing of their content is looked at here. */
#ifndef BHI_SUPERVISOR_FILE_FILE_H
#define BHI_SUPERVISOR_FILE_FILE_H

#include "ipc/wire.h"
#include "supervisor/context/context.h"
#include <bulkhead/bulkhead.h>

struct bhi_file {
    struct bhi_doomed doomed; /* first */
    _Atomic uint32_t refs;
    bh_context *context;             /* referenced */
    int socket;                      /* where the open file waits */
    struct bhi_msg_file_attach info; /* as workers are told; its id is info.file */
    char name[300];                  /* for messages: path and tensor */
    char tenant[BHI_TENANT];         /* whose loader reads it */
};

/* Has what |source| names opened, by |deadline_ns|. Refuses (LOAD_FAILED) what is no regular file
 * with a content of its own. The detail begins with |call|. */
bh_status bhi_file_open(bh_context *context, const bh_file_source *source, uint64_t deadline_ns,
                        const char *call, struct bhi_file **out_file, bh_detail *detail);
static inline void bhi_file_ref(struct bhi_file *file) {
    atomic_fetch_add_explicit(&file->refs, 1, memory_order_relaxed);
}
void bhi_file_unref_locked(struct bhi_file *file); /* lock held; NULL is fine */
void bhi_file_unref(struct bhi_file *file);        /* no lock; NULL is fine */
/* Puts before |message| which file it is about. */
void bhi_file_name(const struct bhi_file *file, char *message, size_t size);

#endif
