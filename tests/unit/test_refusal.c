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

static const struct row rows[] = {
    {"the limit of user namespaces",
     BHI_REFUSED_NAMESPACES,
     ENOSPC,
     {"/proc/sys/user/max_user_namespaces", "0\n"},
     "user.max_user_namespaces is 0",
     "sysctl user.max_user_namespaces=15000"},
    {"the limit of another kind",
     BHI_REFUSED_NAMESPACES,
     ENOSPC,
     {"/proc/sys/user/max_user_namespaces", "90\n", "/proc/sys/user/max_net_namespaces", "0\n"},
     "user.max_net_namespaces is 0",
     "sysctl user.max_net_namespaces=15000"},
    {"too many",
     BHI_REFUSED_NAMESPACES,
     ENOSPC,
     {"/proc/sys/user/max_user_namespaces", "90\n"},
     "the kernel's limit of namespaces",
     "larger N"},
    {"Debian's switch",
     BHI_REFUSED_NAMESPACES,
     EPERM,
     {"/proc/sys/kernel/unprivileged_userns_clone", "0\n"},
     "kernel.unprivileged_userns_clone is 0",
     "sysctl kernel.unprivileged_userns_clone=1"},
    {"Docker",
     BHI_REFUSED_NAMESPACES,
     EPERM,
     {"/.dockerenv", "", FILTER},
     "the container's seccomp filter",
     "--security-opt seccomp=FILE"},
    {"Kubernetes",
     BHI_REFUSED_NAMESPACES,
     EPERM,
     {KUBE, FILTER},
     "the container's seccomp filter",
     "a seccompProfile of type Localhost"},
    {"systemd-nspawn",
     BHI_REFUSED_NAMESPACES,
     EPERM,
     {"/run/systemd/container", "systemd-nspawn\n", FILTER},
     "the container's seccomp filter",
     "a filter that lets the container make"},
    {"Podman, as systemd calls it",
     BHI_REFUSED_NAMESPACES,
     EPERM,
     {"/run/systemd/container", "podman\n", FILTER},
     "the container's seccomp filter",
     "--security-opt seccomp=FILE"},
    {"a profile of lxc's",
     BHI_REFUSED_MOUNTS,
     EACCES,
     {"/run/systemd/container", "lxc\n", "/proc/thread-self/attr/current",
      "lxc-container-default-cgns (enforce)\n"},
     "the AppArmor profile lxc-container-default-cgns",
     "a profile with 'userns,' and 'mount,'"},
    {"a filter of nobody we know",
     BHI_REFUSED_NAMESPACES,
     EPERM,
     {FILTER},
     "a seccomp filter is on this process",
     "a filter that lets"},
    {"a newer filter",
     BHI_REFUSED_CALL,
     ENOSYS,
     {PODMAN, FILTER},
     "the container's seccomp filter",
     "--security-opt seccomp=FILE"},
    {"an old kernel",
     BHI_REFUSED_CALL,
     ENOSYS,
     {"/proc/thread-self/status", "Seccomp:\t0\n"},
     "this kernel does not have it",
     "Linux 5.16"},
    {"no namespaces in the kernel",
     BHI_REFUSED_NAMESPACES,
     EINVAL,
     {NULL},
     "does not have all kinds",
     "CONFIG_USER_NS"},
    {"Ubuntu's restriction",
     BHI_REFUSED_MOUNTS,
     EACCES,
     {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n",
      "/proc/thread-self/attr/apparmor/current", "unconfined\n"},
     "kernel.apparmor_restrict_unprivileged_userns is 1",
     "sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
    {"Ubuntu's restriction, set off by a profile of its own",
     BHI_REFUSED_MOUNTS,
     EPERM,
     {"/proc/thread-self/attr/current", "unprivileged_userns (enforce)\n"},
     "the AppArmor profile unprivileged_userns",
     "a profile with 'userns,'"},
    {"a container's AppArmor profile",
     BHI_REFUSED_MOUNTS,
     EACCES,
     {"/.dockerenv", "", FILTER, "/proc/thread-self/attr/current", "docker-default (enforce)\n"},
     "the AppArmor profile docker-default",
     "--security-opt apparmor=unconfined"},
    {"the same in a pod",
     BHI_REFUSED_MOUNTS,
     EACCES,
     {KUBE, "/proc/thread-self/attr/current", "cri-containerd.apparmor.d (enforce)\n"},
     "the AppArmor profile cri-containerd.apparmor.d",
     "an appArmorProfile of type Unconfined"},
    {"mounts that a filter refuses",
     BHI_REFUSED_MOUNTS,
     EPERM,
     {FILTER},
     "a seccomp filter is on this process",
     "a filter that lets"},
    {"a profile with a name to be afraid of",
     BHI_REFUSED_MOUNTS,
     EPERM,
     {"/proc/thread-self/attr/current", "a\033[31mb (enforce)\n"},
     "the AppArmor profile a?[31mb",
     ""},
    {"no more processes",
     BHI_REFUSED_NAMESPACES,
     EAGAIN,
     {NULL},
     "no more processes may be started",
     "ulimit -u"},
    {"no /proc", BHI_REFUSED_IDS, ENOENT, {NULL}, "/proc is not mounted", "mount -t proc"},
    {"the /proc of another pid namespace",
     BHI_REFUSED_IDS,
     EPERM,
     {"/proc/self", LINK "1"},
     "/proc is that of another pid namespace",
     "unshare --mount-proc"},
    {"a user whom nothing maps",
     BHI_REFUSED_NAMESPACES,
     EPERM,
     {"/proc/self/uid_map", "4294967294 0 1\n"},
     "this user namespace does not map user ",
     "unshare --map-current-user"},
    {"a user who is mapped",
     BHI_REFUSED_NAMESPACES,
     EPERM,
     {"/proc/self/uid_map", "         0          0 4294967295\n"},
     "for an unknown reason",
     "docs/containers.md"},
    {"nothing to be seen",
     BHI_REFUSED_NAMESPACES,
     EPERM,
     {NULL},
     "for an unknown reason",
     "docs/containers.md"},
};

static void put(const char *root, const char *path, const char *text) {
    char full[256];
    int n = snprintf(full, sizeof full, "%s%s", root, path);
    BHT_WITHIN(n, 1, sizeof full - 1);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(full, 0700);
        *slash = '/';
    }
    if (!strncmp(text, LINK, strlen(LINK))) {
        BHT_EQ(symlink(text + strlen(LINK), full), 0);
        return;
    }
    FILE *file = fopen(full, "w");
    BHT_NE(file, NULL);
    BHT_NE(fputs(text, file), EOF);
    BHT_EQ(fclose(file), 0);
}

static void test_row(const struct row *row) {
    char root[] = "/tmp/bulkhead-refusal-XXXXXX", command[80];
    struct bhi_refusal why;
    BHT_NE(mkdtemp(root), NULL);
    for (size_t i = 0; i < 8 && row->files[i]; i += 2) {
        put(root, row->files[i], row->files[i + 1]);
    }
    memset(&why, 'x', sizeof why);
    bhi_refusal_find(row->refused, row->error, root, &why);
    snprintf(command, sizeof command, "rm -r %s", root);
    BHT_EQ(system(command), 0);
    if (!strstr(why.cause, row->cause) || !strstr(why.setting, row->setting)) {
        BHT_FAIL("%s: %s; %s", row->name, why.cause, why.setting);
    }
    /* All of it has to go into a check's text and advice. */
    BHT_LT(strlen(why.cause), sizeof why.cause - 1);
    BHT_LT(strlen(why.setting), sizeof why.setting - 1);
}

TEST(test_causes) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(&rows[i]);
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
        {{NULL}, 0, BHI_APPARMOR_FREE, NAME},
        {{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0\n"},
         7,
         BHI_APPARMOR_FREE,
         NAME},
        {{RESTRICTS}, 0, BHI_APPARMOR_UNKNOWN, NAME},
        {{RESTRICTS, "/sys/kernel/security/apparmor/profiles",
          "a (enforce)\n" NAME " (unconfined)\n"},
         0,
         BHI_APPARMOR_LOADED,
         NAME},
        {{RESTRICTS, "/sys/kernel/security/apparmor/profiles",
          NAME "-2 (unconfined)\n" NAME "//child (enforce)\n"},
         0,
         BHI_APPARMOR_MISSING,
         NAME},
        {{RESTRICTS, "/proc/7/attr/current", "mine (unconfined)\n"},
         7,
         BHI_APPARMOR_LOADED,
         "mine"},
        {{RESTRICTS, "/proc/7/attr/apparmor/current", "unconfined\n",
          "/sys/kernel/security/apparmor/profiles", NAME " (unconfined)\n"},
         7,
         BHI_APPARMOR_MISSING,
         NAME},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        char root[] = "/tmp/bulkhead-refusal-XXXXXX", command[80], name[BHI_APPARMOR_NAME];
        BHT_NE(mkdtemp(root), NULL);
        for (size_t k = 0; k < 8 && cases[i].files[k]; k += 2) {
            put(root, cases[i].files[k], cases[i].files[k + 1]);
        }
        BHT_EQ(bhi_refusal_apparmor(root, cases[i].process, WARDEN, name), cases[i].found);
        BHT_STR_EQ(name, cases[i].name);
        snprintf(command, sizeof command, "rm -r %s", root);
        BHT_EQ(system(command), 0);
    }
}
