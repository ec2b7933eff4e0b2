/* Files from which buffers are loaded. They are open for reading, but not in this process
 * (opener.h). It only keeps what they were like when they were opened, and never reads their
 * content. */
#ifndef BHI_SUPERVISOR_FILE_FILE_H
#define BHI_SUPERVISOR_FILE_FILE_H

#include "ipc/wire.h"
#include "supervisor/context/context.h"
#include <bulkhead/bulkhead.h>
#include <bulkhead/file.h>

struct bhi_file {
    struct bhi_doomed doomed; /* first */
    _Atomic uint32_t refs;
    bh_context *context;             /* referenced */
    int socket;                      /* the open file waits in it (opener.h) */
    struct bhi_msg_file_attach info; /* as sent to workers; the file's id is info.file */
    char name[300];                  /* for messages: path and tensor */
    char tenant[BHI_TENANT];         /* whose loader reads it */
};

/* Opens what |source| names, by |deadline_ns|. Returns BH_LOAD_FAILED if that is no regular file
 * with content of its own. The detail begins with |call|. */
bh_status bhi_file_open(bh_context *context, const bh_file_source *source, uint64_t deadline_ns,
                        const char *call, struct bhi_file **out_file, bh_detail *detail);
static inline void bhi_file_ref(struct bhi_file *file) {
    atomic_fetch_add_explicit(&file->refs, 1, memory_order_relaxed);
}
void bhi_file_unref_locked(struct bhi_file *file); /* lock held; NULL is fine */
void bhi_file_unref(struct bhi_file *file);        /* no lock; NULL is fine */
/* Puts the file's name before |message|. */
void bhi_file_name(const struct bhi_file *file, char *message, size_t size);

#endif
