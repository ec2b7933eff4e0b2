/* Signals as a terminal, a shell's process group and timeout(1) deliver them. */
#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool/interrupt.h"

static bool terminates =
    true; /* a parent has not set SIGTERM to be ignored, as nohup does SIGHUP */

/* A child does what |child| does, then tells what it has heard; or dies by it. */
static int end_of(void (*child)(void)) {
    int status;
    const pid_t pid = fork();
    BHT_GE(pid, 0);
    if (pid == 0) {
        signal(SIGINT, SIG_DFL); /* a background job of a script ignores it */
        signal(SIGTERM, terminates ? SIG_DFL : SIG_IGN);
        bhi_interrupt_watch();
        child();
        _exit(bhi_interrupt_signal() ? bhi_interrupt_exit_status() : 0);
    }
    BHT_EQ(waitpid(pid, &status, 0), pid);
    return status;
}

static void expect_exit(void (*child)(void), int expected) {
    const int status = end_of(child);
    BHT_TRUE(WIFEXITED(status));
    BHT_EQ(WEXITSTATUS(status), expected);
}

/* Both are pending when the first is delivered. */
static void two_at_once(void) {
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    sigprocmask(SIG_BLOCK, &both, NULL);
    raise(SIGINT);
    raise(SIGTERM);
    sigprocmask(SIG_UNBLOCK, &both, NULL);
}

static void one_after_the_other(void) {
    raise(SIGTERM);
    raise(SIGTERM);
    raise(SIGTERM);
}

static void one_much_later(void) {
    const struct timespec time = {.tv_nsec = 510000000};
    raise(SIGTERM);
    nanosleep(&time, NULL); /* what is under test is that time */
    raise(SIGINT);
    raise(SIGTERM);
}

TEST(test_a_second_one_at_once_is_the_first) {
    for (int i = 0; i < 20; i++) {
        const int status = end_of(two_at_once);
        BHT_TRUE(WIFEXITED(status));
        BHT_TRUE(WEXITSTATUS(status) == 130 || WEXITSTATUS(status) == 143);
    }
    expect_exit(one_after_the_other, 143);
}

TEST(test_a_later_one_kills) {
    const int status = end_of(one_much_later);
    BHT_TRUE(WIFSIGNALED(status));
    BHT_EQ(WTERMSIG(status), SIGINT);
}

static void both(void) {
    raise(SIGTERM);
    if (bhi_interrupt_signal()) {
        _exit(9);
    }
    raise(SIGINT);
}

/* A signal that the parent ignores stays ignored, and the other one is heard. */
TEST(test_what_is_ignored_stays_so) {
    terminates = false;
    expect_exit(both, 130);
}

/* It came before the read: there is nothing in the pipe, and never will be. */
static void read_afterwards(void) {
    int ends[2];
    char byte;
    if (pipe(ends) != 0 || write(ends[1], "ab", 2) != 2 ||
        bhi_interrupt_read(ends[0], &byte, 1) != 1 || byte != 'a') {
        _exit(1);
    }
    raise(SIGTERM);
    for (int i = 0; i < 3; i++) {
        if (bhi_interrupt_read(ends[0], &byte, 1) != -1 || errno != EINTR) {
            _exit(2);
        }
    }
}

static const char *fifo; /* nobody writes it */

static void open_afterwards(void) {
    raise(SIGTERM);
    FILE *file = bhi_interrupt_open(fifo);
    if (!file || getc(file) != EOF || !ferror(file) || errno != EINTR) {
        _exit(3);
    }
    fclose(file);
}

/* What is there is read to its end: an output that is sealed may need it. */
static void read_a_file_afterwards(void) {
    char bytes[4];
    FILE *file = tmpfile();
    if (!file || fputs("abc", file) < 0 || fseek(file, 0, SEEK_SET) != 0) {
        _exit(4);
    }
    raise(SIGTERM);
    if (bhi_interrupt_read(fileno(file), bytes, sizeof bytes) != 3) {
        _exit(5);
    }
    fclose(file);
}

TEST(test_none_is_forgotten) {
    char folder[] = "/tmp/bulkhead-interrupt-XXXXXX", path[sizeof folder + 8];
    BHT_NE(mkdtemp(folder), NULL);
    snprintf(path, sizeof path, "%s/fifo", folder);
    BHT_EQ(mkfifo(path, 0600), 0);
    fifo = path;
    expect_exit(read_afterwards, 143);
    expect_exit(open_afterwards, 143);
    expect_exit(read_a_file_afterwards, 143);
    BHT_EQ(unlink(path), 0);
    BHT_EQ(rmdir(folder), 0);
}

enum { HOUR = 3600 };
static pid_t waits; /* the child that pauses */

/* Ends the pause of its parent, once that is in it. */
static void *interrupt_it(void *unused) {
    char path[64];
    int call = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", waits);
    while (call != SYS_ppoll) {
        FILE *file = fopen(path, "r");
        call = file && fscanf(file, "%d", &call) == 1 ? call : 0;
        if (file) {
            fclose(file);
        }
    }
    /* To this thread: the pause is not interrupted by it, but by what it makes readable. */
    pthread_kill(pthread_self(), SIGTERM);
    return unused;
}

static void pause_afterwards(void) {
    raise(SIGTERM);
    if (bhi_interrupt_pause(HOUR * UINT64_C(1000000000))) {
        _exit(6);
    }
}

static void pause_meanwhile(void) {
    pthread_t thread;
    waits = gettid();
    if (pthread_create(&thread, NULL, interrupt_it, NULL) != 0 ||
        bhi_interrupt_pause(HOUR * UINT64_C(1000000000))) {
        _exit(7);
    }
    pthread_join(thread, NULL);
}

static void pause_in_peace(void) {
    if (!bhi_interrupt_pause(1)) {
        _exit(8);
    }
}

/* The test ends, however long the pause would last. */
TEST(test_a_signal_ends_a_pause) {
    expect_exit(pause_afterwards, 143);
    expect_exit(pause_meanwhile, 143);
    expect_exit(pause_in_peace, 0);
}
