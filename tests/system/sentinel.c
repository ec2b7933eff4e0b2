/* A sentinel sets the abort words of workers that die, of all of them when the host does, and is
 * missed by nobody for long (docs/trust.md). The driver is fake_transfer.c: what is in the
 * words can be seen in a memfd, of which the host keeps the descriptor as long as the worker lives.
 */
#include "fake_driver.h"
#include "fixture.h"
#include "tamper.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOT     64u /* words from one abort word to the next */
#define UNUSED   5u  /* a slot in which nothing runs here */
#define MOST     64
#define NAME     "memfd:fake-words"
#define SENTINEL "bh-sentinel"

static void install(void) {
    fake_driver_install(BHT_FAKE_TRANSFER);
}
BHT_AT_START(bht_around(install, NULL))

/* -- what can be seen ------------------------------------------------------------------------- */

/* How many memories of words |pid| has descriptors of, besides |but|; *out_fd (or NULL): of one. */
static size_t count_words_but(pid_t pid, ino_t but, int *out_fd) {
    char path[64];
    char target[64];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    BHT_TRUE(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        const ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        struct stat status;
        if (!strstr(target, NAME) || fstatat(dirfd(dir), entry->d_name, &status, 0) != 0 ||
            status.st_ino == but) {
            continue;
        }
        count++;
        if (out_fd) {
            if (*out_fd >= 0) {
                close(*out_fd);
            }
            *out_fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
        }
    }
    closedir(dir);
    return count;
}

static size_t count_words(pid_t pid) {
    return count_words_but(pid, 0, NULL);
}

struct words {
    const _Atomic uint32_t *at;
    size_t bytes;
    ino_t inode;
};

/* A third mapping of the words of the worker of |host| that does not have |but|. */
static struct words map_words_but(pid_t host, ino_t but) {
    int fd = -1;
    struct stat status;
    WAIT_UNTIL(count_words_but(host, but, &fd) == 1, 20000);
    BHT_EQ(fstat(fd, &status), 0);
    struct words words = {.bytes = (size_t)status.st_size, .inode = status.st_ino};
    void *at = mmap(NULL, words.bytes, PROT_READ, MAP_SHARED, fd, 0);
    BHT_TRUE(at != MAP_FAILED);
    close(fd);
    words.at = at;
    return words;
}

static struct words map_words(pid_t host) {
    return map_words_but(host, 0);
}

static void unmap_words(struct words *words) {
    munmap((void *)(uintptr_t)words->at, words->bytes);
}

/* All of a worker's words: a sentinel sets those of slots that are not used, too. */
static bool all_set(const struct words *words) {
    return atomic_load(&words->at[0]) == 1 && atomic_load(&words->at[UNUSED * SLOT]) == 1;
}

/* How often |pid| has words mapped; 0 also where that cannot be seen. */
static size_t count_mapped(pid_t pid) {
    return bht_proc_lines(pid, "maps", NAME);
}

/* Until |times| sentinels have had the words of |worker|. */
static void await_held(pid_t worker, size_t times) {
    char words[64];
    snprintf(words, sizeof words, "has imported the abort words of worker %d", (int)worker);
    WAIT_UNTIL(fx_logged(words) == times, 20000);
}

static bh_context *listening_context(const char *faults) {
    bh_context_options options = fx_options();
    fx_keep_log(&options);
    return fx_context_with(options, faults);
}

/* -- scenes ----------------------------------------------------------------------------------- */

struct scene {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *gate;
    bh_buffer *data;
    bh_event *event;
    pid_t worker;
};

/* A stream of |context| whose worker runs a guarded kernel that never ends; to stop when it is told to,
 * it has |grace_ns|. */
static struct scene begin_with(bh_context *context, uint64_t grace_ns) {
    struct scene s = {.context = context};
    bh_stream_options options = fx_stream_options();
    options.name = "culprit";
    options.deadline_ns = BH_FOREVER;
    options.grace_ns = grace_ns;
    s.stream = fx_stream_with(context, options);
    s.worker = fx_ready(s.stream);
    await_held(s.worker, 1);
    s.gate = fx_kernel_guarded(context, "gate");
    s.data = fx_words(context, 64, 0);
    s.event = fx_gate(s.stream, s.gate, s.data);
    fx_await_gate(s.data);
    return s;
}

static struct scene begin(bh_context *context) {
    return begin_with(context, fx_stream_options().grace_ns);
}

static pid_t await_sentinel(pid_t host, pid_t but) {
    pid_t pid = 0;
    WAIT_UNTIL((pid = bht_descendant_called(host, SENTINEL)) != 0 && pid != but, 20000);
    return pid;
}

static bool device_has(bh_context *context, const char *feature) {
    static bh_device_info devices[8] = {{.struct_size = sizeof devices[0]}};
    bh_detail detail = {0};
    size_t count = 0;
    BHT_EQ(bh_devices(context, devices, 8, &count, &detail), BH_OK);
    BHT_GE(count, 1);
    bool has = false;
    for (uint32_t i = 0; i < devices[0].feature_count; i++) {
        has |= strcmp(devices[0].features[i], feature) == 0;
    }
    return has;
}

/* -- the tests -------------------------------------------------------------------------------- */

/* What the doctor says. A device without a stream has no sentinel: it makes one. */
TEST(the_doctor_asks_each_device) {
    static bh_check checks[96] = {{.struct_size = sizeof checks[0]}};
    fake_driver_install(BHT_FAKE_TWO_TRANSFERS);
    bh_context *context = fx_context(NULL);
    bh_detail detail = {0};
    size_t count = 0, held = 0;
    BHT_EQ(bh_doctor(context, checks, 96, &count, &detail), BH_OK);
    for (size_t i = 0; i < count && i < 96; i++) {
        if (strcmp(checks[i].name, "sentinel") == 0) {
            BHT_STR_HAS(checks[i].text, "sets the abort words");
            BHT_EQ(checks[i].result, BH_CHECK_HOLDS);
            held++;
        }
    }
    BHT_EQ(held, 2);
}

TEST(a_device_that_can_has_one) {
    bh_context *context = fx_context(NULL);
    BHT_TRUE(device_has(context, "sentinel"));
    const bh_check *check = fx_doctor_says(context, "sentinel");
    BHT_STR_HAS(check->text, "sets the abort words");
    BHT_EQ(check->result, BH_CHECK_HOLDS);
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    fx_ready(stream);
    const pid_t sentinel = await_sentinel(getpid(), 0);
    fx_expect_healthy(context, stream);
    BHT_EQ(bht_descendant_called(getpid(), SENTINEL), sentinel);
    fx_release_all();
    BHT_EQ(count_words(getpid()), 0);
}

/* As it was, without one. */
TEST(lavapipe_has_none) {
    unsetenv("VK_DRIVER_FILES");
    bh_context *context = fx_context(NULL);
    BHT_TRUE(!device_has(context, "sentinel"));
    const bh_check *check = fx_doctor_says(context, "sentinel");
    BHT_EQ(check->result, BH_CHECK_ABSENT);
    BHT_STR_HAS(check->advice, "needs no sentinel");
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    fx_ready(stream);
    fx_expect_healthy(context, stream);
    BHT_EQ(bht_descendant_called(getpid(), SENTINEL), 0);
}

TEST(a_killed_worker_has_its_words_set) {
    struct scene s = begin(listening_context(NULL));
    const pid_t sentinel = await_sentinel(getpid(), 0);
    struct words words = map_words(getpid());
    BHT_EQ(atomic_load(&words.at[0]), 0);
    BHT_EQ(atomic_load(&words.at[UNUSED * SLOT]), 0);
    fx_kill(s.worker, SIGKILL);
    fx_expect(s.event, BH_WORKER_SIGNAL);
    WAIT_UNTIL(all_set(&words), 20000);
    unmap_words(&words);
    fx_expect_healthy(s.context, s.stream);
    BHT_EQ(bht_descendant_called(getpid(), SENTINEL), sentinel);
}

/* Host and sentinel give back what they had of the dead. */
TEST(nothing_is_left_of_the_dead) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    const pid_t first = fx_ready(stream);
    const pid_t sentinel = await_sentinel(getpid(), 0);
    fx_expect_healthy(context, stream);
    for (pid_t worker = first, next; worker == first || worker % 3 != 0; worker = next) {
        fx_kill(worker, SIGKILL);
        WAIT_UNTIL((next = bh_stream_worker_pid(stream)) > 0 && next != worker, 20000);
        fx_expect_healthy(context, stream);
        WAIT_UNTIL(count_words(getpid()) == 1, 20000);
        WAIT_UNTIL(count_mapped(sentinel) <= 1, 20000);
    }
    fx_release_all();
    BHT_EQ(count_words(getpid()), 0);
}

/* The worker's own watchdog has no other way, either: no processor can write these words. */
TEST(a_deadline_is_kept) {
    /* A busy machine may take its time. */
    struct scene s = begin_with(listening_context(NULL), FX_SECONDS);
    BHT_EQ(bh_event_cancel(s.event), BH_OK);
    fx_expect(s.event, BH_CANCELLED);
    BHT_EQ(fx_ready(s.stream), s.worker);
    fx_expect_healthy(s.context, s.stream); /* the word is 0 again */
    BHT_EQ(fx_ready(s.stream), s.worker);
}

/* A cancel that the worker does not answer ends with its death, and with its words set. */
TEST(a_deaf_worker_has_its_words_set) {
    struct scene s = begin(listening_context("*:abort:*=fail"));
    await_sentinel(getpid(), 0);
    struct words words = map_words(getpid());
    BHT_EQ(bh_event_cancel(s.event), BH_OK);
    bh_verdict verdict = fx_expect(s.event, BH_CANCELLED);
    BHT_STR_HAS(verdict.message, "was killed");
    WAIT_UNTIL(all_set(&words), 20000);
    unmap_words(&words);
}

TEST(a_context_ends_what_runs) {
    struct scene s = begin(listening_context(NULL));
    await_sentinel(getpid(), 0);
    struct words words = map_words(getpid());
    bh_context_destroy(s.context);
    fx_expect(s.event, BH_CONTEXT_CLOSED);
    BHT_TRUE(all_set(&words)); /* before the zygote has gone, and with it the sentinel */
    unmap_words(&words);
}

/* -- when the host dies ----------------------------------------------------------------------- */

/* Another process that has a worker run |run|, which returns the worker. */
static pid_t start_host(pid_t (*run)(void), pid_t *out_worker) {
    int say[2];
    BHT_EQ(pipe2(say, O_CLOEXEC), 0);
    const pid_t host = fork();
    if (host == 0) {
        const pid_t worker = run();
        if (write(say[1], &worker, sizeof worker) != (ssize_t)sizeof worker) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    BHT_EQ(read(say[0], out_worker, sizeof *out_worker), (ssize_t)sizeof *out_worker);
    close(say[0]);
    close(say[1]);
    return host;
}

static pid_t run_culprit(void) {
    return begin(listening_context(NULL)).worker;
}

static void host_dies(bool stopped) {
    pid_t worker;
    const pid_t host = start_host(run_culprit, &worker);
    struct words words = map_words(host);
    if (stopped) {
        fx_stop(worker);
    }
    BHT_EQ(atomic_load(&words.at[UNUSED * SLOT]), 0);
    fx_kill(host, SIGKILL);
    BHT_EQ(waitpid(host, NULL, 0), host);
    /* A worker that lives clears the word of what it has ended. */
    WAIT_UNTIL(atomic_load(&words.at[UNUSED * SLOT]) == 1, 20000);
    WAIT_UNTIL(fx_nobody_left(), 20000);
    unmap_words(&words);
}

TEST(a_dead_hosts_words_are_set) {
    host_dies(false);
}
TEST(a_stopped_workers_too) {
    host_dies(true);
}

static pid_t run_early(void) {
    bh_context *context = fx_context("*:farewell:*=fail,sentinel:connect:1=stop");
    bh_stream *stream = fx_stream(context, "culprit", BH_FOREVER);
    const pid_t worker = fx_ready(stream);
    bh_buffer *data = fx_words(context, 64, 0);
    (void)fx_gate(stream, fx_kernel_guarded(context, "gate"), data);
    fx_await_gate(data);
    return worker;
}

/* In the first moments of a context its sentinel is not ready: here it stands still. The worker
 * itself sees that the host has died, and ends what runs. Its zygote gives it 10 s for that. */
TEST(a_host_dies_before_its_sentinel_is_ready) {
    pid_t worker, sentinel = 0;
    const pid_t host = start_host(run_early, &worker);
    WAIT_UNTIL((sentinel = bht_descendant_called(host, SENTINEL)) != 0 &&
                   bht_process_state(sentinel) == 'T',
               20000);
    fx_kill(host, SIGKILL);
    BHT_EQ(waitpid(host, NULL, 0), host);
    WAIT_UNTIL(strchr("ZX", bht_process_state(worker)), 8000);
    fx_kill(sentinel, SIGKILL);
    WAIT_UNTIL(fx_nobody_left(), 20000);
}

/* -- when the sentinel dies ------------------------------------------------------------------- */

TEST(a_dead_sentinel_is_replaced) {
    struct scene s = begin(listening_context(NULL));
    const pid_t first = await_sentinel(getpid(), 0);
    struct words words = map_words(getpid());
    fx_kill(first, SIGKILL);
    await_sentinel(getpid(), first);
    WAIT_UNTIL(fx_logged("a sentinel: worker"), 20000);
    await_held(s.worker, 2);
    BHT_EQ(fx_ready(s.stream), s.worker); /* nobody else has noticed */
    fx_kill(s.worker, SIGKILL);
    fx_expect(s.event, BH_WORKER_SIGNAL);
    WAIT_UNTIL(all_set(&words), 20000);
    unmap_words(&words);
}

/* What it died of it is not given again; others are. The sentinel is the zygote's second process.
 */
TEST(what_kills_a_sentinel_is_left_out) {
    bh_context *context = listening_context("sentinel:import:1=segv");
    bh_stream *bad = fx_stream(context, "bad", BH_FOREVER);
    const pid_t bad_worker = fx_ready(bad);
    struct words left_out = map_words(getpid());
    WAIT_UNTIL(fx_logged("they are not imported again"), 20000);
    fx_expect_healthy(context, bad);
    struct scene s = begin(context);
    const pid_t sentinel = await_sentinel(getpid(), 0);
    await_held(bad_worker, 0); /* its turn would have come before */
    struct words words = map_words_but(getpid(), left_out.inode);
    fx_kill(s.worker, SIGKILL);
    fx_expect(s.event, BH_WORKER_SIGNAL);
    WAIT_UNTIL(all_set(&words), 20000);
    BHT_EQ(bht_descendant_called(getpid(), SENTINEL), sentinel);
    unmap_words(&words);
    unmap_words(&left_out);
}

/* -- workers that lie ------------------------------------------------------------------------- */

TEST(what_is_no_descriptor_of_words) {
    static const char *const faults[] = {"1:words_none:1=fail", "1:words_two:1=fail",
                                         "1:words_other:1=fail", "1:words_size:1=fail"};
    for (size_t i = 0; i < BHT_COUNT(faults); i++) {
        bh_context *context = listening_context(faults[i]);
        bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
        fx_ready(stream); /* another worker's: that one does not lie */
        if (!fx_logged("it announced abort words, but sent no descriptor")) {
            BHT_FAIL("%s: nobody noticed", faults[i]);
        }
        await_sentinel(getpid(), 0);
        fx_expect_healthy(context, stream);
        /* The sentinel closes those of the worker that lied once that is dead. */
        WAIT_UNTIL(count_words(getpid()) == 1, 20000);
        fx_release_all();
        fx_forget_log();
    }
}

/* Its end of the socket is gone, and it lives: nothing of it is set while it may say that all is
 * well, and then it is killed. */
TEST(a_closed_socket) {
    struct scene s = begin(listening_context("1:submitted:1=hang_up"));
    struct words words = map_words(getpid());
    fx_expect(s.event, BH_PROTOCOL);
    WAIT_UNTIL(all_set(&words), 20000);
    unmap_words(&words);
    fx_expect_healthy(s.context, s.stream);
}
