/* Victims: processes that a prober sends into the sandbox. */
#ifndef BHI_WORKER_PROBE_VICTIM_H
#define BHI_WORKER_PROBE_VICTIM_H

#include "worker/probe/context.h"

#include <errno.h>
#include <string.h>

/* How many layers a victim has before it tries something. Each stage includes the earlier ones. */
enum bhi_stage {
    BHI_STAGE_FORKED, /* namespaces, root, descriptors; it still has all capabilities over them */
    BHI_STAGE_LAYERS, /* bhi_sandbox_enter() */
    BHI_STAGE_START,  /* filter A */
    BHI_STAGE_STEADY, /* filter B */
};

struct bhi_victim_page {
    _Atomic uint32_t entered; /* it has all layers of its stage, and begins to try */
    uint32_t done;            /* it has reported */
    uint32_t holds;
    char text[BHI_PROBE_TEXT];
};

/* A victim, as it sees itself. */
struct bhi_victim {
    const struct bhi_probe_context *context;
    struct bhi_victim_page *page;
    struct bhi_sandbox sandbox;
    uintptr_t argument;
};

/* Tries what the layer forbids, and ends with bhi_victim_says(). The attempt may kill it. */
typedef void (*bhi_victim_fn)(struct bhi_victim *victim);

/* Reports whether the layer holds and what was seen. Call it once. */
void bhi_victim_says(struct bhi_victim *victim, bool holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct bhi_victim_outcome {
    bool entered;
    bool done;
    bool holds;
    bool timed_out;
    int signal; /* the signal that killed it; 0: none */
    char text[BHI_PROBE_TEXT];
};

struct bhi_victim_plan {
    enum bhi_stage stage;
    bhi_victim_fn fn;
    uintptr_t argument;
    uint64_t memory_limit;
    uint64_t address_space; /* how much it may map in addition to what it has; 0: no limit */
    const char *node;       /* the only device node that it may open (nodes.h); NULL: all */
};

/* Runs one victim to its end, for at most 2 s. */
void bhi_victim_run(const struct bhi_probe_context *context, const struct bhi_victim_plan *plan,
                    struct bhi_victim_outcome *out);
/* The same in parts, for several victims at once. start returns the pid (or -errno) once the victim
 * is inside; finish waits for its end until |deadline_ns|; end kills and reaps it. */
pid_t bhi_victim_start(const struct bhi_probe_context *context, const struct bhi_victim_plan *plan,
                       struct bhi_victim_page **out_page);
void bhi_victim_finish(pid_t pid, struct bhi_victim_page *page, uint64_t deadline_ns,
                       struct bhi_victim_outcome *out);
void bhi_victim_end(pid_t pid, struct bhi_victim_page *page);
/* Waits for the end of a child until |deadline_ns|, then kills it. Sets timed_out and signal. */
void bhi_victim_await(pid_t pid, uint64_t deadline_ns, struct bhi_victim_outcome *out);

/* Runs a victim that must survive, and returns what it reports. */
enum bhi_probe_result bhi_victim_judge(const struct bhi_probe_context *context,
                                       const struct bhi_victim_plan *plan, char *text, size_t size);

/* "worked", or the name of the errno of a call that returned |r|. */
static inline const char *bhi_victim_saw(int r) {
    return r >= 0 ? "worked" : strerrorname_np(errno);
}

/* Is the layer, if it is a namespace, another one than the host's? Begins the text then. */
enum bhi_probe_result bhi_probe_identity(const struct bhi_probe_context *context,
                                         enum bhi_layer layer, char *text, size_t size);

/* What is tried: namespaces.c and privileges.c. */
void bhi_try_userns(struct bhi_victim *victim);
void bhi_try_pidns(struct bhi_victim *victim);
void bhi_try_netns(struct bhi_victim *victim);
void bhi_try_ipcns(struct bhi_victim *victim);
void bhi_try_utsns(struct bhi_victim *victim);
void bhi_try_mountns(struct bhi_victim *victim);
void bhi_try_cgroupns(struct bhi_victim *victim);
void bhi_try_root(struct bhi_victim *victim);
void bhi_try_capabilities(struct bhi_victim *victim);
void bhi_try_no_new_privs(struct bhi_victim *victim);
void bhi_try_rlimits(struct bhi_victim *victim);

/* Probes that need more than one attempt fill in a text and return a result: privileges.c, memory.c
 * and seccomp.c. */
typedef enum bhi_probe_result (*bhi_probe_fn)(const struct bhi_probe_context *context, char *text,
                                              size_t size);
enum bhi_probe_result bhi_probe_descriptors(const struct bhi_probe_context *, char *, size_t);
enum bhi_probe_result bhi_probe_not_dumpable(const struct bhi_probe_context *, char *, size_t);
enum bhi_probe_result bhi_probe_landlock(const struct bhi_probe_context *, char *, size_t);
enum bhi_probe_result bhi_probe_memory_rlimit(const struct bhi_probe_context *, char *, size_t);
enum bhi_probe_result bhi_probe_seccomp_start(const struct bhi_probe_context *, char *, size_t);
enum bhi_probe_result bhi_probe_seccomp_steady(const struct bhi_probe_context *, char *, size_t);

#endif
