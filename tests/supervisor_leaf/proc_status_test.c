/* The check of a new worker's threads, against real processes that are made to lack one thing. */
#include "harness.h"
#include "supervisor/worker/proc_status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum lack {
    LACK_NOTHING,
    LACK_SECCOMP,
    LACK_NO_NEW_PRIVS,
    LACK_BOUNDING, /* one capability is left in the bounding set */
    LACK_EFFECTIVE,
    LACK_AMBIENT,
    LACK_SECOND_THREAD, /* a thread that was there before the filter */
};

static void drop_bounding(int keep) {
    for (int capability = 0; capability <= 63; capability++) {
        if (capability != keep) {
            (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
    }
}

static void drop_capabilities(enum lack lack) {
    /* What is to become inheritable must be in the bounding set. */
    drop_bounding(lack == LACK_BOUNDING || lack == LACK_AMBIENT ? CAP_NET_RAW : -1);
    cap_t capabilities = cap_init();
    if (lack == LACK_EFFECTIVE || lack == LACK_AMBIENT) {
        const cap_value_t kept[] = {CAP_NET_RAW};
        cap_set_flag(capabilities, CAP_EFFECTIVE, 1, kept, CAP_SET);
        cap_set_flag(capabilities, CAP_PERMITTED, 1, kept, CAP_SET);
        if (lack == LACK_AMBIENT) {
            cap_set_flag(capabilities, CAP_INHERITABLE, 1, kept, CAP_SET);
        }
    }
    BHT_EQ(cap_set_proc(capabilities), 0);
    cap_free(capabilities);
    if (lack == LACK_AMBIENT) {
        BHT_EQ(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0), 0);
    }
}

static void filter(bool all_threads) {
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = allow};
    BHT_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                   all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0, &program),
           0);
}

static void *idle(void *unused) {
    for (;;) {
        pause();
    }
    return unused;
}

__attribute__((noreturn)) static void be_worker(enum lack lack, int ready) {
    drop_capabilities(lack);
    if (lack != LACK_NO_NEW_PRIVS) {
        BHT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    }
    pthread_t thread;
    BHT_EQ(pthread_create(&thread, NULL, idle, NULL), 0);
    if (lack == LACK_SECCOMP) {
        filter(false); /* not reached by the other thread either, see below */
    } else if (lack != LACK_NO_NEW_PRIVS) {
        filter(lack != LACK_SECOND_THREAD);
    }
    (void)!write(ready, "r", 1);
    (void)idle(NULL);
    _exit(0);
}

struct subject {
    pid_t pid;
    int pidfd;
};

static struct subject start_worker(enum lack lack) {
    int ready[2];
    char byte;
    BHT_EQ(pipe2(ready, O_CLOEXEC), 0);
    struct subject subject;
    subject.pid = fork();
    if (subject.pid == 0) {
        be_worker(lack, ready[1]);
    }
    close(ready[1]);
    BHT_EQ(read(ready[0], &byte, 1), 1); /* 0: it died on the way */
    close(ready[0]);
    subject.pidfd = (int)syscall(SYS_pidfd_open, subject.pid, 0);
    BHT_GE(subject.pidfd, 0);
    return subject;
}

/* The check of the process |pid|, through the host's own /proc. */
static int check(pid_t pid, int pidfd, char *why, size_t why_size) {
    const struct bhi_proc_place place = {open("/proc", O_RDONLY | O_DIRECTORY), false, pid};
    const int result = bhi_proc_status_check(&place, pidfd, why, why_size);
    close(place.proc);
    return result;
}

static void end_worker(struct subject *subject) {
    int status;
    kill(subject->pid, SIGKILL);
    BHT_EQ(waitpid(subject->pid, &status, 0), subject->pid);
    close(subject->pidfd);
}

static int late_thread; /* of a process, not its first one */

static int other_thread(const char *path, pid_t pid) {
    DIR *tasks = opendir(path);
    int other = 0;
    BHT_NE(tasks, NULL);
    for (const struct dirent *entry; (entry = readdir(tasks));) {
        const int thread = atoi(entry->d_name);
        other = thread > 0 && thread != pid ? thread : other;
    }
    closedir(tasks);
    BHT_GT(other, 0);
    return other;
}

static void check_lack(enum lack lack, const char *field) {
    char why[256] = "untouched";
    struct subject subject = start_worker(lack);
    int result = check(subject.pid, subject.pidfd, why, sizeof why);
    end_worker(&subject);
    if (!field) {
        BHT_STR_EQ(why, "");
        BHT_EQ(result, 0);
    } else {
        BHT_STR_HAS(why, field);
        BHT_STR_HAS(why, "thread ");
        BHT_EQ(result, -EPERM);
    }
}

TEST(accepts_a_sandboxed_worker) {
    check_lack(LACK_NOTHING, NULL);
}

TEST(names_what_is_missing) {
    check_lack(LACK_SECCOMP, "Seccomp: is 0");
    check_lack(LACK_SECOND_THREAD, "Seccomp: is 0"); /* of one thread */
    check_lack(LACK_NO_NEW_PRIVS, "NoNewPrivs: is 0");
}

/* A pass does not see a thread that starts behind it: here none but the first in its first one. */
static bool first_pass;

BHT_WRAP(struct dirent *, readdir, DIR *folder) {
    struct dirent *entry;
    while ((entry = __real_readdir(folder)) && first_pass && late_thread &&
           atoi(entry->d_name) == late_thread) {
    }
    first_pass &= !!entry;
    return entry;
}

TEST(looks_again_for_threads_that_start_meanwhile) {
    char why[256] = "", path[64];
    struct subject subject = start_worker(LACK_SECOND_THREAD);
    snprintf(path, sizeof path, "/proc/%d/task", (int)subject.pid);
    late_thread = other_thread(path, subject.pid);
    first_pass = true;
    const int result = check(subject.pid, subject.pidfd, why, sizeof why);
    end_worker(&subject);
    BHT_EQ(result, -EPERM);
    BHT_STR_HAS(why, "Seccomp");
}

TEST(names_capabilities) {
    if (geteuid() != 0) {
        BHT_FAIL("needs root: it leaves one capability at a time");
    }
    check_lack(LACK_BOUNDING, "CapBnd: is 0000000000002000");
    check_lack(LACK_EFFECTIVE, "CapPrm: is 0000000000002000");
    check_lack(LACK_AMBIENT, "CapInh: is 0000000000002000");
}

TEST(says_when_the_process_is_gone) {
    char why[256];
    struct subject subject = start_worker(LACK_NOTHING);
    kill(subject.pid, SIGKILL);
    /* Not the state of its first thread: the others may still be on their way out. */
    struct pollfd gone = {.fd = subject.pidfd, .events = POLLIN};
    BHT_EQ(poll(&gone, 1, 5000 * (int)bht_slowness()), 1);
    /* A zombie still has a status file, with the right fields in it. */
    BHT_EQ(bhi_pidfd_pid(subject.pidfd), subject.pid);
    BHT_EQ(check(subject.pid, subject.pidfd, why, sizeof why), -ESRCH);
    BHT_EQ(waitpid(subject.pid, NULL, 0), subject.pid);
    BHT_EQ(bhi_pidfd_pid(subject.pidfd), 0);
    BHT_EQ(check(subject.pid, subject.pidfd, why, sizeof why), -ESRCH);
    close(subject.pidfd);
}

TEST(refuses_a_pid_that_is_not_the_pidfds) {
    char why[256];
    struct subject one = start_worker(LACK_NOTHING);
    struct subject other = start_worker(LACK_NOTHING);
    BHT_EQ(check(one.pid, other.pidfd, why, sizeof why), -ESRCH);
    end_worker(&one);
    end_worker(&other);
}

TEST(refuses_what_is_no_pidfd) {
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    BHT_EQ(bhi_pidfd_pid(fd), -EBADF);
    close(fd);
    BHT_EQ(bhi_pidfd_pid(fd), -EBADF);
    BHT_EQ(check(getpid(), fd, NULL, 0), -EBADF);
}

TEST(knows_who_lacks_a_processor) {
    BHT_TRUE(bhi_proc_is_runnable(getpid())); /* this one has one */
    const pid_t pid = fork();
    if (pid == 0) {
        for (;;) {
            pause();
        }
    }
    WAIT_UNTIL(bht_process_state(pid) == 'S', 20000);
    BHT_TRUE(!bhi_proc_is_runnable(pid));
    BHT_EQ(kill(pid, SIGKILL), 0);
    WAIT_UNTIL(bht_process_state(pid) == 'Z', 20000);
    BHT_TRUE(!bhi_proc_is_runnable(pid));
    BHT_EQ(waitpid(pid, NULL, 0), pid);
    BHT_TRUE(!bhi_proc_is_runnable(pid));
}
