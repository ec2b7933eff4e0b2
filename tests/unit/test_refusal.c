/* What a machine says of itself, as files in a folder, and the cause and setting that come of it.
 */
#include "harness.h"
#include "ipc/refusal.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct row {
    const char *name;
    enum bhi_refused refused;
    int error;
    const char *files[8]; /* path, content, path, content, … */
    const char *cause, *setting;
};

#define FILTER "/proc/thread-self/status", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"
#define PODMAN "/run/.containerenv", ""
#define KUBE   "/var/run/secrets/kubernetes.io", ""

#define LINK "-> " /* the content of a link */

#define ROW(name, refused, error, cause, setting, ...)                                             \
    {name, BHI_REFUSED_##refused, error, {__VA_ARGS__}, cause, setting}

static const struct row rows[] = {
    ROW("the limit of user namespaces", NAMESPACES, ENOSPC, "user.max_user_namespaces is 0",
        "sysctl user.max_user_namespaces=15000", "/proc/sys/user/max_user_namespaces", "0\n"),
    ROW("the limit of another kind", NAMESPACES, ENOSPC, "user.max_net_namespaces is 0",
        "sysctl user.max_net_namespaces=15000", "/proc/sys/user/max_user_namespaces", "90\n",
        "/proc/sys/user/max_net_namespaces", "0\n"),
    ROW("too many", NAMESPACES, ENOSPC, "the kernel's limit of namespaces", "larger N",
        "/proc/sys/user/max_user_namespaces", "90\n"),
    ROW("Debian's switch", NAMESPACES, EPERM, "kernel.unprivileged_userns_clone is 0",
        "sysctl kernel.unprivileged_userns_clone=1", "/proc/sys/kernel/unprivileged_userns_clone",
        "0\n"),
    ROW("Docker", NAMESPACES, EPERM, "the container's seccomp filter",
        "--security-opt seccomp=FILE", "/.dockerenv", "", FILTER),
    ROW("Kubernetes", NAMESPACES, EPERM, "the container's seccomp filter",
        "a seccompProfile of type Localhost", KUBE, FILTER),
    ROW("systemd-nspawn", NAMESPACES, EPERM, "the container's seccomp filter",
        "a filter that lets the container make", "/run/systemd/container", "systemd-nspawn\n",
        FILTER),
    ROW("Podman, as systemd calls it", NAMESPACES, EPERM, "the container's seccomp filter",
        "--security-opt seccomp=FILE", "/run/systemd/container", "podman\n", FILTER),
    ROW("a profile of lxc's", MOUNTS, EACCES, "the AppArmor profile lxc-container-default-cgns",
        "a profile with 'userns,' and 'mount,'", "/run/systemd/container", "lxc\n",
        "/proc/thread-self/attr/current", "lxc-container-default-cgns (enforce)\n"),
    ROW("a filter of nobody we know", NAMESPACES, EPERM, "a seccomp filter is on this process",
        "a filter that lets", FILTER),
    ROW("a newer filter", CALL, ENOSYS, "the container's seccomp filter",
        "--security-opt seccomp=FILE", PODMAN, FILTER),
    ROW("an old kernel", CALL, ENOSYS, "this kernel does not have it", "Linux 5.16",
        "/proc/thread-self/status", "Seccomp:\t0\n"),
    ROW("no namespaces in the kernel", NAMESPACES, EINVAL, "does not have all kinds",
        "CONFIG_USER_NS", NULL),
    ROW("Ubuntu's restriction", MOUNTS, EACCES, "kernel.apparmor_restrict_unprivileged_userns is 1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n",
        "/proc/thread-self/attr/apparmor/current", "unconfined\n"),
    ROW("Ubuntu's restriction, set off by a profile of its own", MOUNTS, EPERM,
        "the AppArmor profile unprivileged_userns", "a profile with 'userns,'",
        "/proc/thread-self/attr/current", "unprivileged_userns (enforce)\n"),
    ROW("a container's AppArmor profile", MOUNTS, EACCES, "the AppArmor profile docker-default",
        "--security-opt apparmor=unconfined", "/.dockerenv", "", FILTER,
        "/proc/thread-self/attr/current", "docker-default (enforce)\n"),
    ROW("the same in a pod", MOUNTS, EACCES, "the AppArmor profile cri-containerd.apparmor.d",
        "an appArmorProfile of type Unconfined", KUBE, "/proc/thread-self/attr/current",
        "cri-containerd.apparmor.d (enforce)\n"),
    ROW("mounts that a filter refuses", MOUNTS, EPERM, "a seccomp filter is on this process",
        "a filter that lets", FILTER),
    ROW("a profile with a name to be afraid of", MOUNTS, EPERM, "the AppArmor profile a?[31mb", "",
        "/proc/thread-self/attr/current", "a\033[31mb (enforce)\n"),
    ROW("no more processes", NAMESPACES, EAGAIN, "no more processes may be started", "ulimit -u",
        NULL),
    ROW("no /proc", IDS, ENOENT, "/proc is not mounted", "mount -t proc", NULL),
    ROW("the /proc of another pid namespace", IDS, EPERM, "/proc is that of another pid namespace",
        "unshare --mount-proc", "/proc/self", LINK "1"),
    ROW("a user whom nothing maps", NAMESPACES, EPERM, "this user namespace does not map user ",
        "unshare --map-current-user", "/proc/self/uid_map", "4294967294 0 1\n"),
    ROW("a user who is mapped", NAMESPACES, EPERM, "for an unknown reason", "docs/operating.md",
        "/proc/self/uid_map", "         0          0 4294967295\n"),
    ROW("nothing to be seen", NAMESPACES, EPERM, "for an unknown reason", "docs/operating.md",
        NULL),
};

/* A folder with |files| in it: the next one. */
static const char *make_root(const char *const files[8]) {
    static const char *folder;
    static char root[64];
    static unsigned made;
    folder = folder ? folder : bht_folder();
    snprintf(root, sizeof root, "%s/%u", folder, made++);
    BHT_EQ(mkdir(root, 0700), 0);
    for (size_t i = 0; i < 8 && files[i]; i += 2) {
        if (strncmp(files[i + 1], LINK, strlen(LINK)) != 0) {
            bht_put(files[i + 1], "%s%s", root, files[i]);
            continue;
        }
        char path[128]; /* the only one is /proc/self */
        snprintf(path, sizeof path, "%s/proc", root);
        BHT_EQ(mkdir(path, 0700), 0);
        snprintf(path, sizeof path, "%s%s", root, files[i]);
        BHT_EQ(symlink(files[i + 1] + strlen(LINK), path), 0);
    }
    return root;
}

TEST(test_causes) {
    for (const struct row *row = rows; row < rows + BHT_COUNT(rows); row++) {
        struct bhi_refusal why;
        memset(&why, 'x', sizeof why);
        const char *root = make_root(row->files);
        bhi_refusal_find(row->refused, row->error, root, &why);
        if (!strstr(why.cause, row->cause) || !strstr(why.setting, row->setting)) {
            BHT_FAIL("%s: %s; %s", row->name, why.cause, why.setting);
        }
        /* All of it has to go into a check's text and advice. */
        BHT_LT(strlen(why.cause), sizeof why.cause - 1);
        BHT_LT(strlen(why.setting), sizeof why.setting - 1);
    }
}

#define RESTRICTS "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n"
#define WARDEN    "/usr/libexec/bulkhead/bulkhead-warden"
#define NAME      "usr.libexec.bulkhead.bulkhead-warden"

/* Whether the warden has a profile of AppArmor: what its process says counts, else the list of
 * loaded profiles, which ordinary users cannot read. */
TEST(test_profiles) {
    static const struct {
        const char *files[8];
        int process;
        enum bhi_apparmor found;
        const char *name;
    } cases[] = {
#define CASE(process, found, name, ...) {{__VA_ARGS__}, process, BHI_APPARMOR_##found, name}
        CASE(0, FREE, NAME, NULL),
        CASE(7, FREE, NAME, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0\n"),
        CASE(0, UNKNOWN, NAME, RESTRICTS),
        CASE(0, LOADED, NAME, RESTRICTS, "/sys/kernel/security/apparmor/profiles",
             "a (enforce)\n" NAME " (unconfined)\n"),
        CASE(0, MISSING, NAME, RESTRICTS, "/sys/kernel/security/apparmor/profiles",
             NAME "-2 (unconfined)\n" NAME "//child (enforce)\n"),
        CASE(7, LOADED, "mine", RESTRICTS, "/proc/7/attr/current", "mine (unconfined)\n"),
        CASE(7, MISSING, NAME, RESTRICTS, "/proc/7/attr/apparmor/current", "unconfined\n",
             "/sys/kernel/security/apparmor/profiles", NAME " (unconfined)\n"),
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        char name[BHI_APPARMOR_NAME];
        const char *root = make_root(cases[i].files);
        BHT_EQ(bhi_refusal_apparmor(root, cases[i].process, WARDEN, name), cases[i].found);
        BHT_STR_EQ(name, cases[i].name);
    }
}
