#include "base/limits.h"
#include "base/owner.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MANY 1024u /* processes and threads: more than a few workers have */

_Static_assert(RLIM_INFINITY == UINT64_MAX, "no limit");

static struct rlimit limits_of(int resource) {
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    (void)getrlimit((__rlimit_resource_t)resource, &limit);
    return limit;
}

uint64_t bhi_limit_of_workers(int resource) {
    return limits_of(resource).rlim_max;
}

uint64_t bhi_limit_of_address_space(void) {
    return limits_of(RLIMIT_AS).rlim_cur;
}

const char *bhi_limit_address_space(char out[BHI_LIMIT_TEXT]) {
    const uint64_t limit = bhi_limit_of_address_space();
    out[0] = 0;
    if (limit != UINT64_MAX) {
        snprintf(out, BHI_LIMIT_TEXT,
                 "; the address space is limited to %llu MiB: raise that (ulimit -v)",
                 (unsigned long long)(limit >> 20));
    }
    return out;
}

/* -- processes and threads --------------------------------------------------------------------- */

/* Returns the number in the file FOLDER/pids.max; UINT64_MAX: there is none. */
static uint64_t most_in(const char *folder) {
    char path[PATH_MAX], text[32] = "";
    if (snprintf(path, sizeof path, "%s/pids.max", folder) >= (int)sizeof path) {
        return UINT64_MAX;
    }
    BHI_AUTO_FILE *file = fopen(path, "re");
    const bool read = file && fgets(text, sizeof text, file);
    return read && text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* Returns the lowest limit of the group |group| below |mount| and of the groups above it. */
static uint64_t most_of_group(const char *mount, const char *group) {
    char folder[PATH_MAX];
    uint64_t least = UINT64_MAX;
    const size_t root = strlen(mount);
    if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= (int)sizeof folder) {
        return least;
    }
    for (;;) {
        const uint64_t most = most_in(folder);
        least = most < least ? most : least;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < root) {
            return least;
        }
        *slash = 0;
    }
}

/* Returns the limit of the pids cgroup, v1 or v2; UINT64_MAX: none is known. */
static uint64_t most_of_cgroups(const char *cgroup, const char *mount) {
    char line[PATH_MAX + 64], controller[PATH_MAX];
    uint64_t least = UINT64_MAX;
    BHI_AUTO_FILE *file = fopen(cgroup, "re");
    snprintf(controller, sizeof controller, "%s/pids", mount);
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        const char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (!group) {
            continue;
        }
        const bool all = group == names + 1, pids = strncmp(names, ":pids:", 6) == 0;
        const uint64_t most =
            all || pids ? most_of_group(all ? mount : controller, group + 1) : UINT64_MAX;
        least = most < least ? most : least;
    }
    return least;
}

const char *bhi_limit_processes_from(const char *cgroup, const char *mount,
                                     char out[BHI_LIMIT_TEXT]) {
    const uint64_t user = bhi_limit_of_workers(RLIMIT_NPROC);
    const uint64_t group = most_of_cgroups(cgroup, mount);
    out[0] = 0;
    if (user != UINT64_MAX || group != UINT64_MAX) {
        snprintf(out, BHI_LIMIT_TEXT,
                 "; processes and threads are limited to %" PRIu64 ": raise that (%s)",
                 user < group ? user : group, user < group ? "ulimit -u" : "pids.max of cgroup");
    }
    return out;
}

const char *bhi_limit_processes(char out[BHI_LIMIT_TEXT]) {
    return bhi_limit_processes_from("/proc/self/cgroup", "/sys/fs/cgroup", out);
}

/* -- all of them ------------------------------------------------------------------------------- */

const char *bhi_limit_named(int sys_errno, char out[BHI_LIMIT_TEXT]) {
    const uint64_t files = limits_of(RLIMIT_FSIZE).rlim_cur;
    out[0] = 0;
    if (sys_errno == EAGAIN && bhi_limit_processes(out)[0]) {
        return out;
    }
    if (sys_errno == ENOMEM || sys_errno == EAGAIN) {
        return bhi_limit_address_space(out);
    }
    if (sys_errno == EMFILE) {
        snprintf(out, BHI_LIMIT_TEXT, "; open files are limited to %llu: raise that (ulimit -n)",
                 (unsigned long long)limits_of(RLIMIT_NOFILE).rlim_cur);
    }
    if (sys_errno == EFBIG && files != UINT64_MAX) {
        snprintf(out, BHI_LIMIT_TEXT,
                 "; files and shared memory are limited to %llu KiB: raise that (ulimit -f)",
                 (unsigned long long)(files >> 10));
    }
    return out;
}

int bhi_limits_list(char *out, size_t size) {
    static const struct {
        int resource;
        uint64_t enough; /* so much disturbs no worker */
        uint64_t unit;
        const char *text;
    } limits[] = {
        {RLIMIT_CPU, UINT64_MAX, 1, "processor time of a worker %" PRIu64 " s (ulimit -t)"},
        {RLIMIT_AS, UINT64_MAX, 1 << 20, "address space %" PRIu64 " MiB (ulimit -v)"},
        {RLIMIT_DATA, UINT64_MAX, 1 << 20, "private memory %" PRIu64 " MiB (ulimit -d)"},
        {RLIMIT_FSIZE, UINT64_MAX, 1 << 10, "files and shared memory %" PRIu64 " KiB (ulimit -f)"},
        {RLIMIT_STACK, 8 << 20, 1 << 10, "stack %" PRIu64 " KiB (ulimit -s)"},
        {RLIMIT_NPROC, MANY, 1, "processes and threads %" PRIu64 " (ulimit -u)"},
        {RLIMIT_SIGPENDING, 64, 1, "pending signals %" PRIu64 " (ulimit -i)"},
    };
    int count = 0;
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        const uint64_t limit = bhi_limit_of_workers(limits[i].resource);
        if (limit == UINT64_MAX || limit >= limits[i].enough) {
            continue;
        }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        char text[BHI_LIMIT_TEXT];
        snprintf(text, sizeof text, limits[i].text, limit / limits[i].unit);
#pragma GCC diagnostic pop
        used += (size_t)snprintf(out + used, size - used, "%s%s", count++ ? ", " : "", text);
        used = used < size ? used : size - 1;
    }
    const uint64_t group = most_of_cgroups("/proc/self/cgroup", "/sys/fs/cgroup");
    if (group < MANY) {
        (void)snprintf(out + used, size - used,
                       "%sprocesses and threads %" PRIu64 " (pids.max of the cgroup)",
                       count++ ? ", " : "", group);
    }
    return count;
}
