/* denied PLACE HOW PROGRAM ARGUMENT...: runs it where a system refuses what a sandbox needs.
 * PLACE is what the system shows of itself:
 *   here        as it is
 *   host, docker, podman, kubernetes, lxc   its root again, with the signs of that and no others
 * HOW:
 *   filter      a seccomp filter that allows everything, as in any container
 *   namespaces  one that refuses user namespaces (EPERM), as Docker's does
 *   mounts      one that refuses mounts (EPERM)
 *   unknown     one that answers futex_waitv with ENOSYS, as older containers' filters do
 *   messages    one that answers sendmsg with EPIPE, as if each new process ended at once
 *   limit       in a user namespace where user.max_user_namespaces is 0
 *   apparmor    mounts are refused (EACCES), and a file in place of the kernel's says that AppArmor
 *               restricts namespaces
 *   hidepid     an ordinary user's, in a pid namespace whose /proc hides what that user may not trace;
 *               exits with 77 if the kernel lets nobody mount one
 *   covered     the same, and a part of /proc is covered, so that nobody in there may mount another
 *   switch      namespaces are refused, and kernel.unprivileged_userns_clone is 0: the same */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(const char *what) {
    fprintf(stderr, "denied: %s: %s\n", what, strerror(errno));
    return 125;
}

static int filter(unsigned number, unsigned flag, unsigned error) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flag, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
        return fail("seccomp");
    }
    return 0;
}

static int put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        return fail(path);
    }
    close(fd);
    return 0;
}

/* Another user namespace, in which this process is |user| and |group|. */
static int new_user(int more, unsigned user, unsigned group) {
    char map[64];
    const unsigned outer_user = getuid(), outer_group = getgid();
    if (unshare(CLONE_NEWUSER | more) != 0) {
        return fail("unshare");
    }
    snprintf(map, sizeof map, "%u %u 1", user, outer_user);
    if (put("/proc/self/setgroups", "deny") || put("/proc/self/uid_map", map)) {
        return 125;
    }
    snprintf(map, sizeof map, "%u %u 1", group, outer_group);
    return put("/proc/self/gid_map", map);
}

/* Returns in a child, which is pid 1. Its program will have no rights, as its user is not root. */
static int hide_processes(int covered) {
    /* Nothing is hidden from the group 0 of the machine, which root's processes are in. */
    if ((getuid() == 0 && (setgroups(0, NULL) != 0 || setgid(1000) != 0)) ||
        new_user(CLONE_NEWNS | CLONE_NEWPID, 1000, 1000) ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        return fail("namespaces");
    }
    const pid_t child = fork();
    int status = -1;
    if (child > 0) {
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 124);
    }
    if (child < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return fail("fork");
    }
    if (mount("proc", "/proc", "proc", 0, "hidepid=2") != 0) {
        (void)fail("mount");
        exit(errno == EPERM ? 77 : 125);
    }
    return covered && mount("none", "/proc/irq", "tmpfs", MS_RDONLY, NULL) != 0 ? fail("cover") : 0;
}

static int limit(void) {
    return new_user(0, getuid(), getgid()) || put("/proc/sys/user/max_user_namespaces", "0") ? 125
                                                                                             : 0;
}

/* -- the place ---------------------------------------------------------------------------------
 */

/* Mounts of its own. */
static int apart(void) {
    if (unshare(CLONE_NEWNS) != 0 && new_user(CLONE_NEWNS, getuid(), getgid()) != 0) {
        return 125;
    }
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 ? 0 : fail("private mounts");
}

/* |name| of the root in the new one, which is the current folder. */
static int take_over(const char *name) {
    char path[PATH_MAX], target[PATH_MAX];
    struct stat status;
    snprintf(path, sizeof path, "/%s", name);
    if (lstat(path, &status) != 0) {
        return fail(path);
    }
    if (S_ISLNK(status.st_mode)) {
        const ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        return length > 0 && symlink(target, name) == 0 ? 0 : fail(path);
    }
    if (!S_ISDIR(status.st_mode)) {
        return 0; /* what containers show themselves by */
    }
    return mkdir(name, 0755) == 0 && mount(path, name, NULL, MS_BIND | MS_REC, NULL) == 0
               ? 0
               : fail(path);
}

static int put_signs(const char *place) {
    if (strcmp(place, "docker") == 0) {
        return put(".dockerenv", "");
    }
    if (strcmp(place, "podman") == 0) {
        return put("run/.containerenv", "");
    }
    if (strcmp(place, "kubernetes") == 0) {
        return mkdir("run/secrets", 0755) == 0 && mkdir("run/secrets/kubernetes.io", 0755) == 0
                   ? 0
                   : fail(place);
    }
    if (strcmp(place, "lxc") == 0) {
        return mkdir("run/systemd", 0755) == 0 ? put("run/systemd/container", "lxc\n") : 125;
    }
    return strcmp(place, "host") == 0 ? 0 : 125;
}

/* The root without /run, which is where the new one is made, and without the files in it. */
static int enter(const char *place) {
    char folder[PATH_MAX];
    int failed = 0;
    if (!getcwd(folder, sizeof folder) || apart() != 0 ||
        mount("none", "/run", "tmpfs", 0, "mode=755") != 0 || chdir("/run") != 0) {
        return fail(place);
    }
    DIR *root = opendir("/");
    for (const struct dirent *entry; root && !failed && (entry = readdir(root));) {
        const char *name = entry->d_name;
        failed =
            strcmp(name, ".") && strcmp(name, "..") && strcmp(name, "run") ? take_over(name) : 0;
    }
    if (!root || failed || closedir(root) != 0 || mkdir("run", 0755) != 0 || put_signs(place)) {
        return fail(place);
    }
    if (syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0 ||
        chdir(folder) != 0) {
        return fail("pivot_root");
    }
    return 0;
}

/* As if the kernel said |text| in /proc/sys/kernel/|name|, and nothing else there. */
static int pretend(const char *name, const char *text) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/sys/kernel/%s", name);
    if (apart() != 0 || mount("none", "/proc/sys/kernel", "tmpfs", 0, "mode=755") != 0) {
        return fail(path);
    }
    return put(path, text);
}

int main(int argc, char **argv) {
    const char *how = argc > 3 ? argv[2] : "";
    int failed = -1;
    if (argc > 3 && strcmp(argv[1], "here") != 0 && enter(argv[1]) != 0) {
        return 125;
    }
    if (strcmp(how, "filter") == 0) {
        failed = filter(SYS_clone, 0, EPERM);
    } else if (strcmp(how, "namespaces") == 0) {
        failed = filter(SYS_clone, CLONE_NEWUSER, EPERM);
    } else if (strcmp(how, "mounts") == 0) {
        failed = filter(SYS_mount, ~0u, EPERM);
    } else if (strcmp(how, "unknown") == 0) {
        failed = filter(SYS_futex_waitv, ~0u, ENOSYS);
    } else if (strcmp(how, "messages") == 0) {
        failed = filter(SYS_sendmsg, ~0u, EPIPE);
    } else if (strcmp(how, "limit") == 0) {
        failed = limit();
    } else if (strcmp(how, "hidepid") == 0 || strcmp(how, "covered") == 0) {
        failed = hide_processes(strcmp(how, "covered") == 0);
    } else if (strcmp(how, "apparmor") == 0) {
        failed = pretend("apparmor_restrict_unprivileged_userns", "1\n") ||
                 filter(SYS_mount, ~0u, EACCES);
    } else if (strcmp(how, "switch") == 0) {
        failed =
            pretend("unprivileged_userns_clone", "0\n") || filter(SYS_clone, CLONE_NEWUSER, EPERM);
    }
    if (failed < 0) {
        fprintf(stderr, "usage: denied PLACE HOW PROGRAM...\n");
    }
    if (failed != 0) {
        return 125;
    }
    execv(argv[3], argv + 3);
    return fail(argv[3]);
}
