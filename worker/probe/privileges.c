/* Probes of descriptors, capabilities, no_new_privs, dumpable, Landlock and limits. */
#include "worker/probe/victim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <unistd.h>

#define EXTRA_DESCRIPTORS 16
#define EXTRA_FIRST       16 /* with a step of 3 below the lowest limit of a host */
#define LAST_OWN          4  /* 0 to 2, the descriptor socket, the doorbell */
#define LOOK_UP_TO        65536

static void try_descriptors(struct bhi_victim *victim) {
    unsigned own = 0;
    unsigned foreign = 0;
    for (int fd = 0; fd < LOOK_UP_TO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) {
            own += fd <= LAST_OWN;
            foreign += fd > LAST_OWN;
        }
    }
    bhi_victim_says(victim, own == LAST_OWN + 1 && foreign == 0,
                    "own descriptors: %u; foreign ones, of %d left open on purpose: %u", own,
                    EXTRA_DESCRIPTORS, foreign);
}

enum bhi_probe_result bhi_probe_descriptors(const struct bhi_probe_context *context, char *text,
                                            size_t size) {
    for (int i = 0; i < EXTRA_DESCRIPTORS; i++) {
        if (fcntl(STDIN_FILENO, F_DUPFD, EXTRA_FIRST + 3 * i) < 0) {
            snprintf(text, size, "cannot open descriptors to be closed: %s", strerror(errno));
            return BHI_PROBE_BROKEN;
        }
    }
    const struct bhi_victim_plan plan = {.stage = BHI_STAGE_LAYERS, .fn = try_descriptors};
    return bhi_victim_judge(context, &plan, text, size);
}

void bhi_try_capabilities(struct bhi_victim *victim) {
    cap_t now = cap_get_proc();
    cap_t none = cap_init();
    const bool empty = now && none && cap_compare(now, none) == 0;
    unsigned bounding = 0;
    unsigned ambient = 0;
    for (unsigned long cap = 0; cap < 64; cap++) {
        bounding += prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1;
        ambient += prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 1;
    }
    int r = chroot("/");
    bhi_victim_says(victim, empty && bounding == 0 && ambient == 0 && r != 0,
                    "sets %s; bounding %u, ambient %u; chroot: %s", empty ? "empty" : "not empty",
                    bounding, ambient, bhi_victim_saw(r));
}

void bhi_try_no_new_privs(struct bhi_victim *victim) {
    int value = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    int r = prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0);
    bhi_victim_says(victim, value == 1 && r != 0, "no_new_privs is %d; setting it to 0: %s", value,
                    bhi_victim_saw(r));
}

static void sit(struct bhi_victim *victim) {
    (void)victim;
    for (;;) {
        pause(); /* until it gets killed */
    }
}

static void try_trace(struct bhi_victim *victim) {
    const int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    long r = ptrace(PTRACE_ATTACH, (pid_t)victim->argument, NULL, NULL);
    bhi_victim_says(victim, dumpable == 0 && r != 0, "dumpable is %d; tracing a neighbour: %s",
                    dumpable, bhi_victim_saw((int)r));
}

enum bhi_probe_result bhi_probe_not_dumpable(const struct bhi_probe_context *context, char *text,
                                             size_t size) {
    struct bhi_victim_page *page = NULL;
    const struct bhi_victim_plan sitting = {.stage = BHI_STAGE_LAYERS, .fn = sit};
    pid_t neighbour = bhi_victim_start(context, &sitting, &page);
    if (neighbour < 0) {
        snprintf(text, size, "cannot start a neighbour: %s", strerror((int)-neighbour));
        return BHI_PROBE_BROKEN;
    }
    const struct bhi_victim_plan plan = {
        .stage = BHI_STAGE_LAYERS, .fn = try_trace, .argument = (uintptr_t)neighbour};
    enum bhi_probe_result result = bhi_victim_judge(context, &plan, text, size);
    bhi_victim_end(neighbour, page);
    return result;
}

/* The root itself is in no rule of Landlock: it can be opened without Landlock, and not with it.
 * (The runtime folder is no test, because it belongs to the host's user, who may be another.) */
static void try_open(struct bhi_victim *victim) {
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool wanted = victim->argument != 0;
    bhi_victim_says(victim, (fd >= 0) == wanted && (wanted || errno == EACCES), "opening /: %s",
                    bhi_victim_saw(fd));
}

/* Has only the first device's node: the nodes of the others must not open. It does not try its own
 * node, because opening it starts the device. */
static void try_other_nodes(struct bhi_victim *victim) {
    const struct bhi_nodes *nodes = victim->context->nodes;
    const char *own = (const char *)victim->argument;
    unsigned refused = 0;
    for (unsigned i = 0; i < nodes->count; i++) {
        if (strcmp(nodes->paths[i], own) != 0) {
            int fd = open(nodes->paths[i], O_RDWR | O_CLOEXEC);
            refused += fd < 0 && errno == EACCES;
        }
    }
    bhi_victim_says(victim, refused + 1 == nodes->count,
                    "of %u device nodes a worker has its own: %u of the others are refused",
                    nodes->count, refused);
}

/* Tests with the first device whose node is known, if there are several devices. */
static enum bhi_probe_result probe_nodes(const struct bhi_probe_context *context, char *text,
                                         size_t size) {
    const struct bhi_nodes *nodes = context->nodes;
    int n = 0;
    for (unsigned i = 0; i < nodes->devices; i++) {
        const struct bhi_victim_plan plan = {.stage = BHI_STAGE_LAYERS,
                                             .fn = try_other_nodes,
                                             .argument = (uintptr_t)nodes->of[i].path,
                                             .node = nodes->of[i].path};
        if (nodes->of[i].path[0] != '\0') {
            n = snprintf(text, size, "; ");
            if (bhi_victim_judge(context, &plan, text + n, size - (size_t)n) != BHI_PROBE_HOLDS) {
                return BHI_PROBE_BROKEN;
            }
            n = (int)strlen(text);
            break;
        }
    }
    if (nodes->why[0] != '\0' && (size_t)n < size) {
        snprintf(text + n, size - (size_t)n, "; a worker can open all %u device nodes (%s)",
                 nodes->count, nodes->why);
    }
    return BHI_PROBE_HOLDS;
}

enum bhi_probe_result bhi_probe_landlock(const struct bhi_probe_context *context, char *text,
                                         size_t size) {
    if (bhi_sandbox_landlock_abi() == 0) {
        snprintf(text, size, "this kernel has no Landlock");
        return BHI_PROBE_ABSENT;
    }
    const struct bhi_victim_plan before = {
        .stage = BHI_STAGE_FORKED, .fn = try_open, .argument = 1};
    if (bhi_victim_judge(context, &before, text, size) != BHI_PROBE_HOLDS) {
        return BHI_PROBE_BROKEN;
    }
    int n = snprintf(text, size, "ABI %d; without Landlock the root opens; with it, ",
                     bhi_sandbox_landlock_abi());
    const struct bhi_victim_plan after = {.stage = BHI_STAGE_LAYERS, .fn = try_open};
    const enum bhi_probe_result result =
        bhi_victim_judge(context, &after, text + n, size - (size_t)n);
    const size_t used = strlen(text);
    return result != BHI_PROBE_HOLDS || context->nodes->count < 2
               ? result
               : probe_nodes(context, text + used, size - used);
}

void bhi_try_rlimits(struct bhi_victim *victim) {
    const struct bhi_driver_limits *limits = &victim->context->driver->info->limits;
    struct rlimit core = {0};
    struct rlimit files = {0};
    getrlimit(RLIMIT_CORE, &core);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_max += 1;
    int raised = setrlimit(RLIMIT_NOFILE, &files);
    const char *raised_text = bhi_victim_saw(raised);
    signal(SIGXFSZ, SIG_IGN);
    int fd = memfd_create("probe", MFD_CLOEXEC);
    int grown = fd < 0 ? 0 : ftruncate(fd, (off_t)limits->file_bytes + 4096);
    const char *grown_text = bhi_victim_saw(grown);
    unsigned opened = 0;
    while (dup(STDIN_FILENO) >= 0 && opened <= limits->descriptors) {
        opened++;
    }
    bhi_victim_says(victim,
                    core.rlim_max == 0 && raised != 0 && grown != 0 && opened < limits->descriptors,
                    "core %llu; raising a limit: %s; a file too big: %s; %u more descriptors",
                    (unsigned long long)core.rlim_max, raised_text, grown_text, opened);
}
