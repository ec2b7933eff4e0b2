/* Each way in which a compromised worker could try to change the bytes of a buffer, with the
 * buffer's descriptor and mapping. Compiled into bulkhead-worker-faulty only. */
#ifndef BHI_WORKER_FAULTS_TAMPER_H
#define BHI_WORKER_FAULTS_TAMPER_H

#include <stddef.h>

struct bhi_tamper_target {
    int fd;
    void *pointer;
    size_t bytes;
};

/* NAME as an action of $BULKHEAD_TEST_FAULTS, and what it does. */
#define BHI_TAMPERS(X)                                                                             \
    X(SCRIBBLE, "scribble")   /* writes through the mapping it has */                              \
    X(MAP_WRITE, "map_write") /* maps the descriptor for writing */                                \
    X(PROTECT, "protect")     /* makes the mapping it has writable */                              \
    X(REMAP, "remap")         /* moves the mapping, then makes it writable */                      \
    X(REOPEN, "reopen")       /* opens it anew through /proc */                                    \
    X(WRITE, "write")                                                                              \
    X(PWRITE, "pwrite")                                                                            \
    X(CUT, "cut")       /* ftruncate */                                                            \
    X(PUNCH, "punch")   /* fallocate with a hole */                                                \
    X(REMOVE, "remove") /* madvise(MADV_REMOVE) */                                                 \
    X(SEAL, "seal")                                                                                \
    X(CHMOD, "chmod") /* gives itself the permission, then opens it anew */

enum bhi_tamper {
#define BHI_TAMPER(NAME, text) BHI_TAMPER_##NAME,
    BHI_TAMPERS(BHI_TAMPER)
#undef BHI_TAMPER
        BHI_TAMPER_COUNT
};

extern const char *const bhi_tamper_names[BHI_TAMPER_COUNT];
/* Changes every byte that it can. It returns, or the process is killed for it. */
void bhi_tamper(enum bhi_tamper how, const struct bhi_tamper_target *target);

#endif
