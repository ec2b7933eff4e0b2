/* denied HOW PROGRAM ARGUMENT...: runs it where a system refuses what a sandbox needs.
 *   filter      a seccomp filter that allows everything, as in any container
 *   namespaces  one that refuses user namespaces (EPERM), as Docker's does
 *   mounts      one that refuses mounts (EPERM)
 *   unknown     one that answers futex_waitv with ENOSYS, as older containers' filters do
 *   limit       in a user namespace where user.max_user_namespaces is 0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        return fail(path);
    }
    close(fd);
    return 0;
}

static int limit(void) {
    char map[64];
    const unsigned user = getuid(), group = getgid();
    if (unshare(CLONE_NEWUSER) != 0) {
        return fail("unshare");
    }
    snprintf(map, sizeof map, "0 %u 1", user);
    if (put("/proc/self/setgroups", "deny") || put("/proc/self/uid_map", map)) {
        return 125;
    }
    snprintf(map, sizeof map, "0 %u 1", group);
    if (put("/proc/self/gid_map", map)) {
        return 125;
    }
    return put("/proc/sys/user/max_user_namespaces", "0");
}

int main(int argc, char **argv) {
    const char *how = argc > 2 ? argv[1] : "";
    int failed = -1;
    if (strcmp(how, "filter") == 0) {
        failed = filter(SYS_clone, 0, EPERM);
    } else if (strcmp(how, "namespaces") == 0) {
        failed = filter(SYS_clone, CLONE_NEWUSER, EPERM);
    } else if (strcmp(how, "mounts") == 0) {
        failed = filter(SYS_mount, ~0u, EPERM);
    } else if (strcmp(how, "unknown") == 0) {
        failed = filter(SYS_futex_waitv, ~0u, ENOSYS);
    } else if (strcmp(how, "limit") == 0) {
        failed = limit();
    }
    if (failed < 0) {
        fprintf(stderr, "usage: denied filter|namespaces|mounts|unknown|limit PROGRAM...\n");
    }
    if (failed != 0) {
        return 125;
    }
    execv(argv[2], argv + 2);
    return fail(argv[2]);
}
