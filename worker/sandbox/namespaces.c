/* Namespaces: user, pid, network, System V IPC, host name, mounts, cgroups, all at once. */
#include "worker/sandbox/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The ids that a worker has outside its user namespace.
 *
 *   an ordinary user's host    that user: no other id may be mapped
 *   root's host                an id that owns no files: BULKHEAD_WORKER_ID, else one from our own
 *                              range, else (if our namespace maps few ids) the highest mapped one
 *
 * Root's own id would work inside the sandbox. But a worker that escapes from the mount namespace
 * would then own root's files. */

/* Each warden has its own: 1900000000 plus its pid, which is below 2^22. Neither systemd's list of
 * ids nor the tools that hand out ranges use numbers between 1879048192 and 2147483647. */
#define FIRST_ID 1900000000u

#define NOBODY  65534u /* owns files of unmapped users, and files on network file systems */
#define LAST_ID 4294967294u

/* Reads a uid_map or gid_map. Returns |wanted| if it is mapped, for 0 the highest mapped id, and 0
 * if there is none. */
static unsigned mapped(const char *path, unsigned wanted) {
    FILE *file = fopen(path, "re");
    unsigned inside;
    unsigned outside;
    unsigned count;
    unsigned found = 0;
    while (file && fscanf(file, "%u %u %u", &inside, &outside, &count) == 3) {
        if (wanted != 0 && wanted >= inside && wanted - inside < count) {
            found = wanted;
        } else if (wanted == 0 && count != 0 && inside + (count - 1) > found) {
            found = inside + (count - 1);
        }
    }
    if (file) {
        fclose(file);
    }
    return found;
}

static bool mapped_in_both(unsigned id) {
    return mapped("/proc/self/uid_map", id) != 0 && mapped("/proc/self/gid_map", id) != 0;
}

static bool may_map(void) {
    cap_flag_value_t user = CAP_CLEAR;
    cap_flag_value_t group = CAP_CLEAR;
    cap_t now = cap_get_proc();
    const bool may = now && cap_get_flag(now, CAP_SETUID, CAP_EFFECTIVE, &user) == 0 &&
                     cap_get_flag(now, CAP_SETGID, CAP_EFFECTIVE, &group) == 0 && user == CAP_SET &&
                     group == CAP_SET;
    cap_free(now);
    return may;
}

/* Parses BULKHEAD_WORKER_ID. Returns 0, or -errno with |failure|. */
static int parse(const char *text, unsigned *out, struct bhi_error *failure) {
    char *end = NULL;
    errno = 0;
    const unsigned long id = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || id == 0 || id > LAST_ID) {
        return BHI_ERROR(failure, BH_REASON_WORKER_ID, text, .limit = LAST_ID, .sys_errno = EINVAL);
    }
    if (!mapped_in_both((unsigned)id)) {
        return BHI_ERROR(failure, BH_REASON_WORKER_ID, text, .limit = LAST_ID, .sys_errno = EINVAL);
    }
    *out = (unsigned)id;
    return 0;
}

int bhi_sandbox_ids_choose(struct bhi_sandbox_ids *ids, struct bhi_error *failure) {
    *ids = (struct bhi_sandbox_ids){.user = geteuid(), .group = getegid(), .own = true};
    if (ids->user != 0 || !may_map()) {
        return 0;
    }
    const char *wish = getenv("BULKHEAD_WORKER_ID");
    unsigned id = FIRST_ID + (unsigned)getpid();
    if (wish && wish[0] != '\0') {
        int r = parse(wish, &id, failure);
        if (r != 0) {
            return r;
        }
    } else if (!mapped_in_both(id)) {
        id = mapped("/proc/self/uid_map", 0);
        id -= id == NOBODY ? 1 : 0;
        if (id == 0 || !mapped_in_both(id)) {
            return 0; /* only root is mapped here; outside, it is the user who made the namespace */
        }
    }
    *ids = (struct bhi_sandbox_ids){.user = id, .group = id};
    return 0;
}

int bhi_sandbox_ids_take(const struct bhi_sandbox_ids *ids, struct bhi_error *failure) {
    if (ids->own) {
        return 0;
    }
    /* The capabilities over the namespace stay, because no id changes from 0. */
    if (setgroups(0, NULL) != 0 || setresgid(BHI_SANDBOX_ID, BHI_SANDBOX_ID, BHI_SANDBOX_ID) != 0 ||
        setresuid(BHI_SANDBOX_ID, BHI_SANDBOX_ID, BHI_SANDBOX_ID) != 0) {
        return BHI_ERROR(failure, BH_REASON_STEP, "become another user", .value = ids->user,
                         .sys_errno = errno);
    }
    return 0;
}

static const struct {
    enum bhi_layer layer;
    unsigned long flag;
    const char *file;
} namespaces[BHI_NAMESPACES] = {
    {BHI_LAYER_USERNS, CLONE_NEWUSER, "/proc/self/ns/user"},
    {BHI_LAYER_PIDNS, CLONE_NEWPID, "/proc/self/ns/pid"},
    {BHI_LAYER_NETNS, CLONE_NEWNET, "/proc/self/ns/net"},
    {BHI_LAYER_IPCNS, CLONE_NEWIPC, "/proc/self/ns/ipc"},
    {BHI_LAYER_UTSNS, CLONE_NEWUTS, "/proc/self/ns/uts"},
    {BHI_LAYER_MOUNTNS, CLONE_NEWNS, "/proc/self/ns/mnt"},
    {BHI_LAYER_CGROUPNS, CLONE_NEWCGROUP, "/proc/self/ns/cgroup"},
};

enum bhi_layer bhi_namespace_layer(unsigned index) {
    return namespaces[index].layer;
}

void bhi_namespaces_read(struct bhi_namespaces *out) {
    for (unsigned i = 0; i < BHI_NAMESPACES; i++) {
        struct stat st;
        out->inode[i] = stat(namespaces[i].file, &st) == 0 ? st.st_ino : 0;
    }
}

pid_t bhi_sandbox_clone(int *out_pidfd, uint64_t *out_layers, struct bhi_error *failure) {
    unsigned long flags = CLONE_PIDFD | SIGCHLD;
    uint64_t layers = 0;
    for (unsigned i = 0; i < BHI_NAMESPACES; i++) {
        flags |= namespaces[i].flag;
        layers |= 1ull << namespaces[i].layer;
    }
    /* The raw call, because glibc's fork() cannot make namespaces, and its clone() needs a
     * stack. */
    int pidfd = -1;
    pid_t pid = (pid_t)syscall(SYS_clone, flags, 0, &pidfd, 0, 0);
    if (pid < 0 && errno == EINVAL) {
        flags &= ~(unsigned long)CLONE_NEWCGROUP; /* optional in layers.def */
        layers &= ~BHI_LAYER_BIT(CGROUPNS);
        pid = (pid_t)syscall(SYS_clone, flags, 0, &pidfd, 0, 0);
    }
    if (pid < 0) {
        return bhi_error_refuse(failure, BHI_REFUSED_NAMESPACES, errno, "cannot create namespaces");
    }
    *out_pidfd = pid == 0 ? -1 : pidfd;
    *out_layers = layers;
    return pid;
}

static int write_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    ssize_t n = write(fd, text, strlen(text));
    int r = n == (ssize_t)strlen(text) ? 0 : n < 0 ? -errno : -EIO;
    close(fd);
    return r;
}

int bhi_sandbox_map_ids(pid_t pid, const struct bhi_sandbox_ids *ids, struct bhi_error *failure) {
    /* An ordinary user may map a group only after setgroups is denied. With root's rights setgroups
     * stays allowed, because supplementary groups have to be dropped. */
    const struct {
        const char *file;
        unsigned outer;
    } steps[] = {{"setgroups", 0}, {"uid_map", ids->user}, {"gid_map", ids->group}};
    for (size_t i = ids->own ? 0 : 1; i < sizeof steps / sizeof steps[0]; i++) {
        char path[64];
        char text[64] = "deny";
        snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, steps[i].file);
        if (i != 0) {
            snprintf(text, sizeof text, "%d %u 1", BHI_SANDBOX_ID, steps[i].outer);
        }
        int r = write_file(path, text);
        if (r != 0) {
            char what[128];
            snprintf(what, sizeof what, "cannot write '%s' to %s of the zygote", text,
                     steps[i].file);
            return bhi_error_refuse(failure, BHI_REFUSED_IDS, -r, what);
        }
    }
    return 0;
}

/* An exec leaves a process without root's id the capabilities of its ambient set alone. Those must be
 * in the inheritable set, too. */
int bhi_sandbox_keep_capabilities(void) {
    cap_t sets = cap_get_proc();
    int r = sets && cap_fill(sets, CAP_INHERITABLE, CAP_PERMITTED) == 0 && cap_set_proc(sets) == 0
                ? 0
                : -errno;
    for (cap_value_t cap = 0; cap < cap_max_bits() && r == 0; cap++) {
        cap_flag_value_t has = CAP_CLEAR;
        if (cap_get_flag(sets, cap, CAP_PERMITTED, &has) == 0 && has == CAP_SET &&
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) != 0) {
            r = -errno;
        }
    }
    cap_free(sets);
    return r;
}

int bhi_sandbox_namespaces_fini(struct bhi_error *failure) {
    if (sethostname(BHI_SANDBOX_HOST, strlen(BHI_SANDBOX_HOST)) != 0) {
        return BHI_ERROR(failure, BH_REASON_STEP, "set the host name", .sys_errno = errno);
    }
    /* In a user namespace of its own a worker would have every capability again, if only over
     * itself. That would make a large part of the kernel reachable. The filters forbid it too, so
     * it is no failure if /proc/sys cannot be written. */
    (void)write_file("/proc/sys/user/max_user_namespaces", "0");
    return 0;
}
