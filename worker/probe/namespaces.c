/* Probes of the namespaces and the root. A namespace is proven in two ways: its identity differs
 * from the host's, and what it hides cannot be reached. */
#include "worker/probe/victim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

enum bhi_probe_result bhi_probe_identity(const struct bhi_probe_context *context,
                                         enum bhi_layer layer, char *text, size_t size) {
    unsigned i = 0;
    while (i < BHI_NAMESPACES && bhi_namespace_layer(i) != layer) {
        i++;
    }
    if (i == BHI_NAMESPACES) {
        return BHI_PROBE_HOLDS;
    }
    const unsigned long long inside = context->inside.inode[i], outside = context->outside.inode[i];
    if ((context->layers & 1ull << layer) == 0) {
        snprintf(text, size, "this kernel has no such namespace");
        return BHI_PROBE_ABSENT;
    }
    if (inside == 0 || inside == outside) {
        snprintf(text, size, "it is the host's namespace (%llu)", inside);
        return BHI_PROBE_BROKEN;
    }
    snprintf(text, size, "not the host's namespace (%llu, %llu); ", inside, outside);
    return BHI_PROBE_HOLDS;
}

void bhi_try_userns(struct bhi_victim *victim) {
    int set = setresuid(0, 0, 0);
    const char *set_text = bhi_victim_saw(set);
    const uid_t user = getuid(); /* read here: in a nested namespace the number would be another */
    int nested = unshare(CLONE_NEWUSER);
    const char *nested_text = bhi_victim_saw(nested);
    /* The filters forbid nested namespaces, too. At this stage only the limit on them is tested. */
    bhi_victim_says(victim, set != 0 && user == BHI_SANDBOX_ID,
                    "uid %d, outside %u; setresuid(0): %s; a user namespace below: %s", (int)user,
                    victim->context->user, set_text, nested_text);
}

void bhi_try_pidns(struct bhi_victim *victim) {
    const pid_t outsider = victim->context->warden;
    int r = kill(outsider, 0);
    /* If the host's number is not above ours, a process in our own namespace may have it. */
    const bool holds = (r != 0 && errno == ESRCH) || outsider <= getpid();
    bhi_victim_says(victim, holds, "pid inside %d; a signal to pid %d outside: %s", (int)getpid(),
                    (int)outsider, bhi_victim_saw(r));
}

void bhi_try_netns(struct bhi_victim *victim) {
    struct if_nameindex *interfaces = if_nameindex();
    unsigned others = 0;
    for (const struct if_nameindex *i = interfaces; i && i->if_index != 0; i++) {
        others += strcmp(i->if_name, "lo") != 0;
    }
    if_freenameindex(interfaces);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(53)};
    address.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, of the documentation range */
    int r = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, sizeof address);
    bhi_victim_says(victim, others == 0 && r != 0, "interfaces other than lo: %u; a route out: %s",
                    others, bhi_victim_saw(r));
}

void bhi_try_ipcns(struct bhi_victim *victim) {
    struct shm_info info = {0};
    int r = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info);
    bhi_victim_says(victim, r < 0 || info.used_ids == 0, "shared memory segments to be seen: %d",
                    r < 0 ? 0 : info.used_ids);
}

void bhi_try_utsns(struct bhi_victim *victim) {
    struct utsname name;
    uname(&name);
    int r = sethostname("x", 1);
    bhi_victim_says(victim, strcmp(name.nodename, BHI_SANDBOX_HOST) == 0 && r != 0,
                    "the host is called '%.64s' in here; sethostname: %s", name.nodename,
                    bhi_victim_saw(r));
}

void bhi_try_mountns(struct bhi_victim *victim) {
    int added = mount("none", BHI_SANDBOX_RUN, "tmpfs", 0, NULL);
    const char *added_text = bhi_victim_saw(added);
    int removed = umount2(BHI_SANDBOX_RUN, MNT_DETACH);
    bhi_victim_says(victim, added != 0 && removed != 0, "mount: %s; umount: %s", added_text,
                    bhi_victim_saw(removed));
}

void bhi_try_cgroupns(struct bhi_victim *victim) {
    int fd = open("/sys/fs/cgroup/cgroup.procs", O_WRONLY | O_CLOEXEC);
    bhi_victim_says(victim, fd < 0, "moving to another cgroup: %s",
                    fd < 0 ? strerrorname_np(errno) : "worked");
}

/* -- the root ------------------------------------------------------------------------------- */

/* Is |name| the first part of a path in the driver's table? */
static bool in_table(const struct bhi_driver *driver, const char *name) {
    if (strcmp(name, &BHI_SANDBOX_RUN[1]) == 0) {
        return true;
    }
    const size_t length = strlen(name);
    for (const struct bhi_driver_path *path = driver->info->paths; path->pattern; path++) {
        const char *pattern = bhi_driver_pattern(driver, path);
        if (strncmp(pattern + 1, name, length) == 0 &&
            (pattern[1 + length] == '\0' || pattern[1 + length] == '/')) {
            return true;
        }
    }
    return false;
}

/* Runs with all capabilities over its namespaces: the root must hold without other layers. */
void bhi_try_root(struct bhi_victim *victim) {
    static const char *const hidden[] = {"/etc/passwd", "/etc/shadow", "/root", "/home", "/var"};
    DIR *root = opendir("/");
    unsigned entries = 0;
    unsigned foreign = 0;
    for (const struct dirent *e; root && (e = readdir(root));) {
        if (e->d_name[0] != '.') {
            entries++;
            foreign += !in_table(victim->context->driver, e->d_name);
        }
    }
    unsigned seen = 0;
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        seen += access(hidden[i], F_OK) == 0;
    }
    int escaped = chdir("/..") == 0 && access("etc/passwd", F_OK) == 0;
    int fd = open("/x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const char *created = fd < 0 ? strerrorname_np(errno) : "worked";
    bhi_victim_says(
        victim, root && entries > 0 && foreign == 0 && seen == 0 && !escaped && fd < 0,
        "entries in /: %u, of them not the driver's: %u; host files seen: %u; creating a "
        "file: %s",
        entries, foreign, seen, created);
}
