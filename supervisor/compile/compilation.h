/* Compilations: sources that a compiler has, or had. The context keeps the last ones, so equal
 * sources of a tenant are compiled once.
 *
 *   obtained ──▶ COMPILING ──▶ ENDED ──▶ TAKEN: the answer was copied, checked, and freed
 *                                │
 *                                └─────▶ failed: not kept
 *
 * One that others may cancel, because its event was given to a caller, is shared only once it has
 * ended. A source that has errors is kept, too: it has them again. */
#ifndef BHI_SUPERVISOR_COMPILE_COMPILATION_H
#define BHI_SUPERVISOR_COMPILE_COMPILATION_H

#include "base/list.h"
#include "ipc/compile.h"
#include "supervisor/compile/source.h"
#include "supervisor/context/context.h"
#include <pthread.h>

struct bhi_compilation {
    struct bhi_list age; /* table's lock: in table->ages; alone: it is not kept */
    uint32_t refs;       /* table's lock */
    char tenant[BHI_TENANT];
    uint8_t hash[32];
    char *name; /* owned; a clean line */
    uint64_t deadline_ns, memory_limit;
    bool cuda;                /* it becomes PTX */
    bool cancellable;         /* table's lock: a caller has its event */
    struct bh_event *event;   /* referenced */
    struct bh_buffer *answer; /* table's lock; referenced; NULL: it is TAKEN */
    /* Written once, under the table's lock, before it is TAKEN. */
    bool refused; /* the source has errors */
    char *log;    /* owned */
    void *code;   /* owned */
    uint64_t code_bytes;
    char entry[BHI_COMPILE_ENTRY]; /* CUDA: the kernel's name in the PTX */
    uint32_t version;              /* of NVRTC, as in ipc/compile.h */
};

struct bhi_compilations {
    pthread_mutex_t lock; /* guards the table; the context's lock may be taken under it */
    struct bhi_list ages; /* the longest unused first */
    uint32_t count;
    uint64_t bytes; /* of all that are TAKEN */
};

void bhi_compilations_init(struct bhi_compilations *table);
void bhi_compilations_fini(struct bhi_compilations *table);
/* Forgets what is kept. Those in use stay until they are released. */
void bhi_compilations_drop(bh_context *context);

/* Finds the compilation of |source|, or starts it. |out_event|: the caller wants its event, too;
 * NULL: not. *out is referenced. */
bh_status bhi_compilation_obtain(bh_context *context, const struct bhi_compile_source *source,
                                 const char *call, bh_event **out_event,
                                 struct bhi_compilation **out, bh_detail *detail);
/* Takes the answer, if it has ended. Returns BH_OK: it has code; BH_PENDING; or why it has none. */
bh_status bhi_compilation_take(struct bhi_compilation *compilation, const char *call,
                               bh_detail *detail);
/* Copies the compiler's log, as many whole lines as fit into |size| bytes, if the answer was taken.
 * Returns the length of all of it. */
size_t bhi_compilation_log(const struct bhi_compilation *compilation, char *out, size_t size);
/* Makes a kernel of one that is TAKEN. */
bh_status bhi_compilation_kernel(bh_context *context, const struct bhi_compilation *compilation,
                                 const bh_kernel_options *options, bh_kernel **out_kernel,
                                 bh_detail *detail);
/* |context| is its context, which the caller references. NULL is fine. */
void bhi_compilation_unref(bh_context *context, struct bhi_compilation *compilation);

#endif
