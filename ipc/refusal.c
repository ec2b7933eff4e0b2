#include "ipc/refusal.h"

#include "base/fd.h"
#include "base/format.h"
#include "base/owner.h"
#include "base/text.h"
#include "ipc/chroot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES = 8192 };

static bool read_file(const char *root, const char *path, char text[FILE_BYTES]) {
    char full[PATH_MAX];
    text[0] = '\0';
    if (snprintf(full, sizeof full, "%s%s", root, path) >= (int)sizeof full) {
        return false;
    }
    BHI_AUTO_FD fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, FILE_BYTES - 1);
    text[n > 0 ? n : 0] = '\0';
    return n >= 0;
}

static bool is_there(const char *root, const char *path) {
    char full[PATH_MAX];
    return snprintf(full, sizeof full, "%s%s", root, path) < (int)sizeof full &&
           access(full, F_OK) == 0;
}

/* Reads a file with one number. Returns |otherwise| if that fails. */
static long number_in(const char *root, const char *path, long otherwise) {
    char text[FILE_BYTES], *end;
    if (!read_file(root, path, text)) {
        return otherwise;
    }
    const long number = strtol(text, &end, 10);
    return end == text ? otherwise : number;
}

const char *bhi_refusal_container(const char *root) {
    char text[FILE_BYTES];
    if (is_there(root, "/var/run/secrets/kubernetes.io") ||
        is_there(root, "/run/secrets/kubernetes.io")) {
        return "kubernetes";
    }
    if (is_there(root, "/run/.containerenv")) {
        return "podman";
    }
    if (is_there(root, "/.dockerenv")) {
        return "docker";
    }
    if (!read_file(root, "/run/systemd/container", text) || !text[0]) {
        return NULL;
    }
    return !strncmp(text, "podman", 6)   ? "podman"
           : !strncmp(text, "docker", 6) ? "docker"
                                         : "a container"; /* lxc, systemd-nspawn, … */
}

/* Returns true if the container manager takes Docker's options. */
static bool takes_options(const char *container) {
    return strcmp(container, "docker") == 0 || strcmp(container, "podman") == 0;
}

static bool filtered(const char *root) {
    char text[FILE_BYTES];
    return read_file(root, "/proc/thread-self/status", text) && strstr(text, "\nSeccomp:\t2");
}

/* Writes the name of the AppArmor profile that confines this process. Returns false if none does.
 */
static bool confined(const char *root, char name[64]) {
    char text[FILE_BYTES];
    if ((!read_file(root, "/proc/thread-self/attr/apparmor/current", text) &&
         !read_file(root, "/proc/thread-self/attr/current", text)) ||
        !strstr(text, "(enforce)")) {
        return false;
    }
    snprintf(name, 64, "%.*s", (int)strcspn(text, " \n"), text);
    for (char *c = name; *c; c++) {
        if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e) {
            *c = '?';
        }
    }
    return true;
}

static void __attribute__((format(printf, 3, 4))) give(struct bhi_refusal *out, const char *setting,
                                                       const char *format, ...) {
    va_list args;
    va_start(args, format);
    bhi_vformat(out->cause, sizeof out->cause, format, args);
    va_end(args);
    snprintf(out->setting, sizeof out->setting, "%s", setting);
}

/* Takes the profile's name out of |label|. Returns false if that names none. */
static bool take_name(const char *label, char name[BHI_APPARMOR_NAME]) {
    if (strncmp(label, "unconfined", strlen("unconfined")) == 0) {
        return false;
    }
    const char *mode = strstr(label, " (");
    const size_t length = mode ? (size_t)(mode - label) : strcspn(label, "\n");
    bhi_text_line(name, BHI_APPARMOR_NAME, label, length);
    return true;
}

/* Looks for |name| in the list of loaded profiles. */
static enum bhi_apparmor find_profile(const char *root, const char *name) {
    char path[512], line[512];
    snprintf(path, sizeof path, "%s/sys/kernel/security/apparmor/profiles", root);
    BHI_AUTO_FILE *file = fopen(path, "re");
    if (!file) {
        return BHI_APPARMOR_UNKNOWN;
    }
    const size_t length = strlen(name);
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) {
        found = strncmp(line, name, length) == 0 && strncmp(line + length, " (", 2) == 0;
    }
    return found ? BHI_APPARMOR_LOADED : BHI_APPARMOR_MISSING;
}

enum bhi_apparmor bhi_refusal_apparmor(const char *root, int process, const char *program,
                                       char name[BHI_APPARMOR_NAME]) {
    char path[64], label[FILE_BYTES];
    snprintf(name, BHI_APPARMOR_NAME, "%s", program + strspn(program, "/"));
    for (char *c = name; *c; c++) {
        *c = *c == '/' ? '.' : *c == ' ' ? '_' : *c;
    }
    if (number_in(root, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) != 1) {
        return BHI_APPARMOR_FREE;
    }
    static const char *const files[] = {"attr/apparmor/current", "attr/current"};
    for (size_t i = 0; process && i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", process, files[i]);
        if (read_file(root, path, label)) {
            return take_name(label, name) ? BHI_APPARMOR_LOADED : BHI_APPARMOR_MISSING;
        }
    }
    return find_profile(root, name);
}

/* ENOSPC: one of the kernel's own limits. */
static bool limited(const char *root, struct bhi_refusal *out) {
    static const char *const kinds[] = {"user", "pid", "net", "ipc", "uts", "mnt", "cgroup"};
    char path[64], setting[80];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kinds[i]);
        const long limit = number_in(root, path, -1);
        if (limit == 0) {
            snprintf(setting, sizeof setting, "sysctl user.max_%s_namespaces=15000", kinds[i]);
            give(out, setting, "user.max_%s_namespaces is 0", kinds[i]);
            return true;
        }
    }
    return false;
}

static void give_filter(struct bhi_refusal *out, const char *container) {
    if (!container) {
        give(out, "a filter that lets this program make namespaces and mounts (docs/operating.md)",
             "a seccomp filter is on this process");
    } else if (strcmp(container, "kubernetes") == 0) {
        give(out,
             "a seccompProfile of type Localhost made by containers/seccomp-profile "
             "(docs/operating.md)",
             "the container's seccomp filter");
    } else if (!takes_options(container)) {
        give(out, "a filter that lets the container make namespaces and mounts (docs/operating.md)",
             "the container's seccomp filter");
    } else {
        give(out,
             "--security-opt seccomp=FILE, made by containers/seccomp-profile "
             "(docs/operating.md)",
             "the container's seccomp filter");
    }
}

/* Returns true if the user namespace does not map our user; then nobody may map it into another. */
static bool is_unmapped(const char *root) {
    char text[FILE_BYTES];
    unsigned inside, outside, count;
    int length = 0;
    if (!read_file(root, "/proc/self/uid_map", text)) {
        return false;
    }
    for (const char *at = text; sscanf(at, "%u %u %u%n", &inside, &outside, &count, &length) == 3;
         at += length) {
        if (geteuid() >= inside && geteuid() - inside < count) {
            return false;
        }
    }
    return true;
}

/* The ids of a zygote are written to its files in /proc. */
static bool misses_proc(const char *root, enum bhi_refused refused, int error,
                        struct bhi_refusal *out) {
    char path[PATH_MAX], self[32];
    if (error == ENOENT && refused == BHI_REFUSED_IDS) {
        give(out, "mount -t proc proc /proc", "/proc is not mounted here");
        return true;
    }
    snprintf(path, sizeof path, "%s/proc/self", root);
    const ssize_t length = readlink(path, self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    if (length > 0 && strtol(self, NULL, 10) != getpid()) {
        give(out, "mount -t proc proc /proc in this namespace (unshare --mount-proc)",
             "/proc is that of another pid namespace");
        return true;
    }
    if (is_unmapped(root)) {
        give(out, "a user namespace that maps this user (unshare --map-current-user, newuidmap)",
             "this user namespace does not map user %u", (unsigned)geteuid());
        return true;
    }
    return false;
}

static const char restrict_setting[] =
    "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with 'userns,' "
    "for bulkhead-warden (docs/operating.md)";

void bhi_refusal_find(enum bhi_refused refused, int error, const char *root,
                      struct bhi_refusal *out) {
    const char *container = bhi_refusal_container(root);
    char profile[64];
    const bool denied = error == EPERM || error == EACCES;
    const bool unknown = error == ENOSYS && filtered(root); /* newer filters return this error */
    if (error == ENOSPC && limited(root, out)) {
        return;
    }
    /* Mounts come later, in the zygote, whose /proc is its parent's until it has mounted its own. */
    if ((refused == BHI_REFUSED_NAMESPACES || refused == BHI_REFUSED_IDS) &&
        misses_proc(root, refused, error, out)) {
        return;
    }
    if (error == EAGAIN) {
        give(out, "a higher limit of processes and threads (ulimit -u, pids.max of the cgroup)",
             "no more processes may be started");
    } else if (error == ENOSPC || error == EUSERS) {
        give(out,
             "nest fewer containers or sandboxes, or sysctl user.max_user_namespaces=N with a "
             "larger N",
             "the kernel's limit of namespaces is reached, or they are nested 32 deep");
    } else if (unknown || (refused == BHI_REFUSED_CALL && filtered(root))) {
        give_filter(out, container);
    } else if (refused == BHI_REFUSED_CALL) {
        give(out, "Linux 5.16 or newer; not valgrind, not gVisor", "this kernel does not have it");
    } else if (error == EINVAL || error == ENOSYS) {
        give(out,
             "a kernel with CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS, "
             "CONFIG_UTS_NS",
             "this kernel does not have all kinds of namespaces");
    } else if (denied && !root[0] && bhi_in_chroot()) {
        give(out, BHI_CHROOT_ADVICE,
             "this process is in a chroot, where the kernel refuses user namespaces");
    } else if (denied && refused == BHI_REFUSED_IDS && geteuid() == 0) {
        give(out, "an ordinary user (--user 1000), or CAP_SETUID, CAP_SETGID and CAP_SETFCAP",
             "root without its capabilities may not map its own id into a user namespace");
    } else if (denied && number_in(root, "/proc/sys/kernel/unprivileged_userns_clone", 1) == 0 &&
               refused == BHI_REFUSED_NAMESPACES) {
        give(out, "sysctl kernel.unprivileged_userns_clone=1",
             "kernel.unprivileged_userns_clone is 0");
    } else if (denied && filtered(root) && refused == BHI_REFUSED_NAMESPACES) {
        give_filter(out, container);
    } else if (denied &&
               number_in(root, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 1 &&
               !confined(root, profile)) {
        give(out, restrict_setting,
             "AppArmor takes all rights in a user namespace away "
             "(kernel.apparmor_restrict_unprivileged_userns is 1)");
    } else if (denied && confined(root, profile)) {
        give(out,
             container && strcmp(container, "kubernetes") == 0
                 ? "an appArmorProfile of type Unconfined (docs/operating.md)"
             : container && takes_options(container)
                 ? "--security-opt apparmor=unconfined (docs/operating.md)"
                 : "a profile with 'userns,' and 'mount,' (docs/operating.md)",
             "the AppArmor profile %s", profile);
    } else if (denied && filtered(root)) {
        give_filter(out, container);
    } else {
        give(out, "docs/operating.md lists what systems forbid; report it, with the system's name",
             "%s, for an unknown reason", strerror(error));
    }
}
