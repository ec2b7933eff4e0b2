/* Files on a mount that does not answer: a load fails and says which, a worker dies at worst, and
 * nothing in the host hangs, neither a call nor its end. */
#include "dead_fuse.h"
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHORT_MS (300 * bht_slowness()) /* the file is asked for sooner */
#define SHORT_NS (SHORT_MS * FX_MS)
/* For what may wait for the unkillable to be given up, on a busy machine. */
#define BOUND_MS (6000 * bht_slowness() + 4 * BHT_SECOND_MS)

static bh_context *context;

static bh_file_source raw(const char *path) {
    bh_file_source source = source_of(path, BH_FILE_RAW, NULL);
    source.header_timeout_ns = FX_SECONDS;
    return source;
}

static bh_buffer *load(const char *path) {
    const bh_file_source source = raw(path);
    return fx_load(context, &source);
}

static bh_status open_in(const char *path, bh_file_format format, uint64_t timeout_ns,
                         bh_detail *detail) {
    bh_file_source source = source_of(path, format, NULL);
    source.header_timeout_ns = timeout_ns;
    bh_buffer *buffer = NULL;
    bh_status status = fx_from_file(context, &source, &buffer, detail);
    BHT_EQ(!!buffer, status == BH_OK);
    return status;
}

/* It cannot be opened, of |sys_errno|. */
static void expect_no_file(const char *path, int sys_errno) {
    bh_detail detail;
    BHT_EQ(open_in(path, BH_FILE_RAW, FX_SECONDS, &detail), BH_LOAD_FAILED);
    BHT_EQ(detail.sys_errno, sys_errno);
}

/* Other files, on a mount that lives: more than there are streams for loads, of which one hangs. */
static void expect_service(const char *path) {
    for (int i = 0; i < 6; i++) {
        bh_buffer *buffer = load(path);
        BHT_MEM_EQ(fx_mapped(buffer), "0123456789", 10);
        bh_buffer_release(buffer);
    }
}

static void destroy_soon(void) {
    uint64_t began = bht_now_ns();
    BHT_EQ(bh_context_destroy(context), BH_OK);
    BHT_LT((bht_now_ns() - began) / FX_MS, BOUND_MS);
    context = NULL;
}

/* The one of |host|; 0: it has none. */
static pid_t opener_of(pid_t host) {
    return bht_descendant_called(host, "bh-opener");
}

static size_t threads_of(pid_t pid) {
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        count += entry->d_name[0] != '.';
    }
    if (dir) {
        closedir(dir);
    }
    return count;
}

/* What could not be ended ends with the mount; as a host's children they are the test's to reap. */
static struct {
    pid_t pids[64];
    size_t count;
} before;

static void remember_processes(void) {
    before.count = bht_descendants(getpid(), before.pids, BHT_COUNT(before.pids));
    BHT_LE(before.count, BHT_COUNT(before.pids));
}

static void end_all(void) {
    if (context) {
        remember_processes();
        destroy_soon();
    }
    dead_end();
    WAIT_UNTIL(fx_nobody_left(), 20000);
    for (size_t i = 0; i < before.count; i++) {
        WAIT_UNTIL(strchr("XZ", bht_process_state(before.pids[i])), 20000);
    }
}

static void set_up(void) {
    dead_mount();
    enter_folder();
    fx_write_file("good", "0123456789", 10);
    context = fx_context(NULL);
    fx_end_with(end_all);
}

/* -- opening ---------------------------------------------------------------------------------- */

static void expect_late(void) {
    bh_detail detail;
    uint64_t began = bht_now_ns();
    BHT_EQ(open_in(dead_path("file"), BH_FILE_RAW, SHORT_NS, &detail), BH_TIMEOUT);
    BHT_GE(bht_now_ns() - began, SHORT_NS);
    BHT_LT((bht_now_ns() - began) / FX_MS, 2000 * bht_slowness() + BHT_SECOND_MS);
    BHT_STR_HAS(detail.message, dead_path("file"));
    BHT_EQ(detail.reason, BH_REASON_OPEN_LATE);
}

TEST(a_lookup_that_nobody_reads) {
    set_up();
    dead_set(DEAD_UNREAD, false);
    expect_late();
    WAIT_UNTIL(dead_pending(), 20000); /* the opener may not have come to it yet */
    expect_service("good");
    BHT_EQ(bh_context_synchronize(context, FX_SECONDS, NULL), BH_OK);
    /* Nobody is past killing: nothing is left, though the mount is still there. */
    destroy_soon();
    BHT_EQ(bht_count_children(getpid()), 0);
}

TEST(a_lookup_that_is_never_answered) {
    set_up();
    dead_set(DEAD_IN_LOOKUP, false);
    expect_late();
    WAIT_UNTIL(dead_swallowed() == 1, 20000);
    expect_service("good");
}

/* As many of a tenant hang as may; the next one is told so, and other tenants go on. */
TEST(more_than_can_hang) {
    bh_detail detail;
    set_up();
    dead_set(DEAD_IN_LOOKUP, false);
    for (unsigned i = 0; i < 64; i++) {
        char name[32];
        snprintf(name, sizeof name, "file%u", i);
        BHT_EQ(open_in(dead_path(name), BH_FILE_RAW, 30 * FX_MS, &detail), BH_TIMEOUT);
        WAIT_UNTIL(dead_swallowed() == i + 1, 20000);
    }
    BHT_EQ(open_in(dead_path("file"), BH_FILE_RAW, FX_SECONDS, &detail), BH_LOAD_FAILED);
    BHT_EQ(detail.sys_errno, EAGAIN);
    BHT_STR_HAS(detail.message, "too many files of its tenant are being opened");
    bh_file_source source = raw("good");
    source.tenant = "bob";
    BHT_MEM_EQ(fx_mapped(fx_load(context, &source)), "0123456789", 10);
}

/* -- reading ---------------------------------------------------------------------------------- */

static void expect_deadline(const char *words) {
    bh_file_source source = raw(dead_path("file"));
    source.deadline_ns = SHORT_NS;
    bh_buffer *buffer = fx_load(context, &source);
    bh_event *event = fx_load_event(buffer);
    expect_service("good");
    const bh_verdict verdict = fx_expect(event, BH_DEADLINE);
    BHT_STR_HAS(verdict.message, dead_path("file"));
    char said[64];
    snprintf(said, sizeof said, ": the deadline of %d ms passed; worker ", SHORT_MS);
    BHT_STR_HAS(verdict.message, SHORT_MS < 1000 ? said : ": the deadline of ");
    BHT_STR_HAS(verdict.message, words);
    BHT_EQ(fx_content(buffer), BH_DEADLINE);
    bh_buffer_release(buffer);
    /* Memory that loaders were given is nobody's again: one that was given up may still write. */
    BHT_EQ(fx_stats(context).pool_blocks, 0);
    expect_service("good");
}

TEST(a_read_that_hangs) {
    set_up();
    dead_set(DEAD_IN_READ, false);
    expect_deadline("");
    BHT_GE(dead_swallowed(), 1);
}

TEST(a_read_that_cannot_be_killed) {
    set_up();
    dead_set(DEAD_IN_READ, true);
    expect_deadline("SIGKILL did not end the process: the kernel still holds it");
    expect_deadline("SIGKILL did not end the process: the kernel still holds it");
}

TEST(a_header_that_hangs) {
    bh_detail detail;
    set_up();
    dead_set(DEAD_IN_READ, true);
    BHT_EQ(open_in(dead_path("file"), BH_FILE_NPY, 2000 * FX_MS, &detail), BH_TIMEOUT);
    BHT_STR_HAS(detail.message, dead_path("file"));
    BHT_EQ(detail.reason, BH_REASON_HEADER_LATE);
    expect_service("good");
}

TEST(cancelled_in_a_read) {
    set_up();
    dead_set(DEAD_IN_READ, true);
    bh_event *event = fx_load_event(load(dead_path("file")));
    WAIT_UNTIL(dead_swallowed() == 1, 20000);
    BHT_EQ(bh_event_cancel(event), BH_OK);
    BHT_STR_HAS(fx_expect(event, BH_CANCELLED).message, "the kernel still holds it");
}

/* -- closing ---------------------------------------------------------------------------------- */

TEST(a_close_that_hangs) {
    set_up();
    dead_set(DEAD_IN_FLUSH, false);
    bh_file_source source = raw(dead_path("file"));
    for (int i = 0; i < 6; i++) {
        bh_buffer *buffer = fx_load(context, &source);
        const uint8_t *bytes = fx_mapped(buffer);
        BHT_EQ(bytes[0], 7);
        BHT_EQ(bytes[DEAD_FILE_BYTES - 1], 7);
        bh_buffer_release(buffer);
        expect_service("good");
    }
    WAIT_UNTIL(dead_swallowed() >= 7, 20000); /* of the opener's copies, and of a loader's */
    /* The host's own descriptor, too, is only passed on, never closed. */
    source = raw(NULL);
    dead_set(DEAD_NOWHERE, false);
    source.fd = open(dead_path("file"), O_RDONLY | O_CLOEXEC);
    BHT_GE(source.fd, 0);
    dead_set(DEAD_IN_FLUSH, false);
    BHT_EQ(*(const uint8_t *)fx_mapped(fx_load(context, &source)), 7);
    remember_processes();
    destroy_soon();
    dead_set(DEAD_NOWHERE, false);
    close(source.fd);
}

/* -- ends ------------------------------------------------------------------------------------- */

struct waiter {
    pthread_t thread;
    char path[128];
    bh_status status;
    bh_detail detail;
};

static void *wait_for_file(void *argument) {
    struct waiter *waiter = argument;
    waiter->status = open_in(waiter->path, BH_FILE_RAW, BH_FOREVER, &waiter->detail);
    return NULL;
}

static void start_waiter(struct waiter *waiter, const char *name) {
    snprintf(waiter->path, sizeof waiter->path, "%s", dead_path(name));
    BHT_EQ(pthread_create(&waiter->thread, NULL, wait_for_file, waiter), 0);
}

TEST(destroyed_with_all_of_it_pending) {
    set_up();
    dead_set(DEAD_IN_READ, true);
    bh_event *event = fx_load_event(load(dead_path("file")));
    WAIT_UNTIL(dead_swallowed() == 1, 20000);
    dead_set(DEAD_IN_LOOKUP, true);
    struct waiter waiters[4];
    for (size_t i = 0; i < BHT_COUNT(waiters); i++) {
        char name[32];
        snprintf(name, sizeof name, "file%zu", i);
        start_waiter(&waiters[i], name);
    }
    WAIT_UNTIL(dead_swallowed() == 1 + BHT_COUNT(waiters), 20000);
    remember_processes();
    destroy_soon();
    for (size_t i = 0; i < BHT_COUNT(waiters); i++) {
        BHT_EQ(pthread_join(waiters[i].thread, NULL), 0);
        BHT_EQ(waiters[i].status, BH_CLOSED);
    }
    BHT_EQ(bh_event_wait(event, 0), BH_CONTEXT_CLOSED);
}

/* A child of the host has copies of all its sockets: that they are open says nothing. */
TEST(the_host_is_killed) {
    int say[2];
    pid_t child = 0;
    BHT_EQ(pipe2(say, O_CLOEXEC), 0);
    dead_mount();
    dead_set(DEAD_UNREAD, false);
    pid_t host = fork();
    if (host == 0) {
        dead_forget();
        bh_detail detail;
        context = fx_context(NULL);
        BHT_EQ(open_in(dead_path("file"), BH_FILE_RAW, SHORT_NS, &detail), BH_TIMEOUT);
        if ((child = fork()) == 0) {
            for (;;) {
                pause();
            }
        }
        BHT_EQ(write(say[1], &child, sizeof child), sizeof child);
        _exit((int)open_in(dead_path("file2"), BH_FILE_RAW, BH_FOREVER, &detail));
    }
    BHT_EQ(read(say[0], &child, sizeof child), sizeof child);
    WAIT_UNTIL(dead_pending(), 20000);
    pid_t opener = opener_of(host);
    BHT_GT(opener, 0);
    WAIT_UNTIL(threads_of(opener) == 3, 20000);
    fx_kill(host, SIGKILL);
    WAIT_UNTIL(strchr("XZ", bht_process_state(opener)), 20000);
    fx_kill(child, SIGKILL);
    close(say[0]);
    close(say[1]);
    end_all();
}

TEST(the_opener_is_killed) {
    set_up();
    expect_service("good");
    pid_t first = opener_of(getpid());
    BHT_GT(first, 0);
    fx_kill(first, SIGKILL);
    expect_service("good");
    pid_t second = opener_of(getpid());
    BHT_NE(second, first);
    /* With a request: another one has it, once. */
    dead_set(DEAD_UNREAD, false);
    struct waiter waiter;
    start_waiter(&waiter, "file");
    WAIT_UNTIL(dead_pending() && threads_of(second) == 2, 20000);
    fx_kill(second, SIGKILL);
    pid_t third;
    WAIT_UNTIL((third = opener_of(getpid())) > 0 && third != second && threads_of(third) == 2,
               20000);
    fx_kill(third, SIGKILL);
    BHT_EQ(pthread_join(waiter.thread, NULL), 0);
    BHT_EQ(waiter.status, BH_UNAVAILABLE);
    BHT_STR_HAS(waiter.detail.message, "died while opening it, twice");
    expect_service("good");
}

/* Killed, and kept by the kernel: its sockets stay open, and nobody answers any more. */
TEST(an_opener_that_is_half_dead) {
    set_up();
    dead_set(DEAD_IN_LOOKUP, false);
    expect_late();
    fx_kill(opener_of(getpid()), SIGKILL);
    expect_service("good");
}

/* -- the test itself -------------------------------------------------------------------------- */

static void *open_it(void *path) {
    (void)open(path, O_RDONLY | O_CLOEXEC);
    return NULL;
}

/* It waits for its own daemon, and nothing ends that but the end of the mount. */
TEST(a_test_that_is_killed_leaves_nobody) {
    int say[2];
    char byte = 0;
    BHT_EQ(pipe2(say, O_CLOEXEC), 0);
    const pid_t test = fork();
    if (test == 0) {
        pthread_t waiter;
        dead_mount();
        dead_set(DEAD_IN_LOOKUP, false);
        BHT_EQ(pthread_create(&waiter, NULL, open_it, (void *)(uintptr_t)dead_path("file")), 0);
        WAIT_UNTIL(dead_swallowed() == 1, 20000);
        BHT_EQ(write(say[1], &byte, 1), 1);
        for (;;) {
            pause();
        }
    }
    close(say[1]);
    BHT_EQ(read(say[0], &byte, 1), 1);
    close(say[0]);
    fx_kill(test, SIGKILL);
    WAIT_UNTIL(waitpid(test, NULL, WNOHANG) == test, 20000);
    WAIT_UNTIL(fx_nobody_left(), 20000);
}

/* -- whose path it is ------------------------------------------------------------------------- */

TEST(paths_mean_what_they_mean_to_the_host) {
    set_up();
    expect_service("good");
    BHT_EQ(chdir("/"), 0);
    bh_detail detail;
    expect_no_file("good", ENOENT);
    /* In a folder that is dead now; what is named from the root is there all the same. */
    char path[64];
    snprintf(path, sizeof path, "/tmp/bulkhead-good-%d", (int)getpid());
    fx_write_file(path, "0123456789", 10);
    BHT_EQ(chdir(dead_path(".")), 0);
    dead_set(DEAD_UNREAD, false);
    expect_service(path);
    BHT_EQ(open_in("file", BH_FILE_RAW, SHORT_NS, &detail), BH_TIMEOUT);
    BHT_EQ(chdir("/"), 0);
    /* Descriptors have the host's numbers. */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char own[64];
    snprintf(own, sizeof own, "/dev/fd/%d", fd);
    expect_service(own);
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    expect_service(own);
    close(fd);
    expect_no_file(own, ENOENT);
    if (geteuid() == 0) {
        /* Who asks for somebody else gets what that one may have. */
        BHT_EQ(chmod(path, 0600), 0);
        setfsuid(65534);
        expect_no_file(path, EACCES);
        setfsuid(0);
        expect_service(path);
        BHT_EQ(seteuid(65534), 0);
        BHT_NE(open_in(path, BH_FILE_RAW, FX_SECONDS, &detail), BH_OK);
        BHT_EQ(seteuid(0), 0);
        expect_service(path);
        /* In another root a path is another one. (There is no worker to be started there.) */
        int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        BHT_EQ(chroot("/tmp"), 0);
        BHT_EQ(open_in("/etc/passwd", BH_FILE_RAW, FX_SECONDS, &detail), BH_UNAVAILABLE);
        BHT_EQ(fchdir(root), 0);
        BHT_EQ(chroot("."), 0);
        close(root);
        expect_service(path);
    }
    BHT_EQ(unlink(path), 0);
}
