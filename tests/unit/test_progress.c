#include "base/futex.h"
#include "base/memfd.h"
#include "base/status.h"
#include "ipc/progress.h"
#include "support.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define RESULTS 16u

static struct {
    struct bhi_progress_view view; /* the supervisor's */
    struct bhi_progress worker;
} f;

static void set_up(void) {
    BHT_EQ(bhi_progress_create(&f.view, RESULTS), 0);
    BHT_EQ(bhi_progress_map(&f.worker, f.view.fd, f.view.bytes), 0);
}

static void tear_down(void) {
    bhi_progress_unmap(&f.worker);
    bhi_progress_destroy(&f.view);
}

/* The result that was read last. */
static struct bhi_result got;
static struct bhi_told told;
static char text[BHI_ERROR_TEXT];

static int read_result(uint64_t seq) {
    return bhi_progress_read(&f.view, seq, &got, &told, text);
}

static void write_word(void *word) {
    *(volatile uint32_t *)word = 1;
}

TEST(test_mappings) {
    BHT_EQ(bhi_memfd_verify(f.view.fd, f.view.bytes, 0), 0);
    BHT_EQ(f.view.mask, RESULTS - 1);
    BHT_EQ(f.worker.mask, RESULTS - 1);
    /* Not in children of the host, and not writable in the host. */
    BHT_TRUE(dies(write_word, (void *)(uintptr_t)f.view.header));
    struct bhi_progress again;
    BHT_EQ(bhi_progress_map(&again, f.view.fd, f.view.bytes), 0);
    BHT_TRUE(!dies(write_word, again.header));
    bhi_progress_unmap(&again);
    f.worker.markers->started = 7;
    f.worker.results[RESULTS - 1].seq = 15;
    f.worker.errors[BHI_ERROR_SLOTS - 1].seq = 63;
    BHT_EQ(f.view.markers->started, 7);
    BHT_EQ(f.view.results[RESULTS - 1].seq, 15);
    BHT_EQ(f.view.errors[BHI_ERROR_SLOTS - 1].seq, 63);
    /* The markers have a page of their own: the device writes to it. */
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    BHT_EQ((const uint8_t *)f.view.markers - (const uint8_t *)f.view.header, page);
    BHT_GE((const uint8_t *)f.view.results, (const uint8_t *)f.view.markers + page);
    BHT_LE((const uint8_t *)(f.view.errors + BHI_ERROR_SLOTS),
           (const uint8_t *)f.view.header + f.view.bytes);
}

TEST(test_map_refuses) {
    struct bhi_progress p;
    struct bhi_progress_view view;
    int before = count_fds();
    BHT_EQ(bhi_progress_create(&view, 0), -EINVAL);
    BHT_EQ(bhi_progress_create(&view, 12), -EINVAL);
    BHT_EQ(bhi_progress_create(&view, UINT32_MAX), -EINVAL);
    BHT_EQ(bhi_progress_create(&view, 1u << 21), -EINVAL);
    bhi_progress_destroy(&view);
    bhi_progress_destroy(NULL);
    BHT_EQ(bhi_progress_map(&p, f.view.fd, 0), -EINVAL);
    BHT_EQ(bhi_progress_map(&p, f.view.fd, f.view.bytes + 4096), -EINVAL);
    BHT_EQ(bhi_progress_map(&p, f.view.fd, bhi_progress_bytes(4096)), -EINVAL);
    BHT_EQ(bhi_progress_map(&p, -1, f.view.bytes), -EBADF);
    int fd = bhi_memfd_create("progress", f.view.bytes, 1);
    BHT_EQ(bhi_progress_map(&p, fd, f.view.bytes), -EPERM);
    BHT_EQ(bhi_memfd_seal(fd, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    BHT_EQ(bhi_progress_map(&p, fd, f.view.bytes), -EPROTO);
    close(fd);
    /* A count that does not go with the size, or is none. */
    static const uint32_t counts[] = {0, 3, 2 * RESULTS * 64, UINT32_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        f.worker.header->results = counts[i];
        BHT_EQ(bhi_progress_map(&p, f.view.fd, f.view.bytes), -EPROTO);
    }
    bhi_progress_unmap(&p);
    bhi_progress_unmap(NULL);
    BHT_EQ(count_fds(), before);
}

/* Both sides must come to the same number of results from the size alone. */
TEST(test_every_size) {
    for (uint32_t results = 1; results <= 1u << 14; results *= 2) {
        struct bhi_progress_view view;
        struct bhi_progress p;
        BHT_EQ(bhi_progress_create(&view, results), 0);
        BHT_EQ(bhi_progress_map(&p, view.fd, view.bytes), 0);
        BHT_EQ((uint8_t *)p.errors - (uint8_t *)p.header,
               (const uint8_t *)view.errors - (const uint8_t *)view.header);
        BHT_EQ(p.mask, view.mask);
        bhi_progress_unmap(&p);
        bhi_progress_destroy(&view);
    }
}

static struct bhi_result good(uint64_t seq) {
    uint64_t now = bhi_now_ns();
    return (struct bhi_result){.seq = seq,
                               .started_ns = now - 10,
                               .ended_ns = now,
                               .status = BH_OK,
                               .command_index = BHI_NO_COMMAND,
                               .executed = 2};
}

TEST(test_publish_and_poll) {
    uint64_t completed = 9, tail = 9;
    BHT_EQ(bhi_progress_poll(&f.view, 0, 0, &completed, &tail), 0);
    BHT_EQ(completed, 0);
    BHT_EQ(tail, 0);
    for (uint64_t seq = 1; seq <= 3 * RESULTS; seq++) {
        struct bhi_result r = good(seq);
        bhi_progress_result(&f.worker, &r, NULL);
        bhi_progress_publish(&f.worker, seq, seq * 24);
        BHT_EQ(f.view.header->completed_word, (uint32_t)seq);
        BHT_EQ(bhi_progress_poll(&f.view, seq, seq * 24, &completed, &tail), 0);
        BHT_EQ(completed, seq);
        BHT_EQ(tail, seq * 24);
        BHT_EQ(read_result(seq), 0);
        BHT_MEM_EQ(&got, &r, sizeof r);
        BHT_STR_EQ(text, "");
    }
    bhi_progress_publish(&f.worker, (1ull << 32) + 5, 5000);
    BHT_EQ(f.view.header->completed_word, 5);
}

/* Publishes |seq| in a child, one instruction after the other, and returns how many there were. The
 * supervisor looks after each: it must never find a completion without the tail that belongs to it.
 */
static unsigned publish_step_by_step(uint64_t seq) {
    const struct bhi_progress_header *h = f.view.header;
    pid_t pid = fork();
    BHT_GE(pid, 0);
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            _exit(1);
        }
        raise(SIGSTOP);
        bhi_progress_publish(&f.worker, seq, seq * 24);
        kill(getpid(), SIGKILL);
    }
    int status;
    unsigned steps = 0;
    bool tail = false, completed = false;
    while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
        const bool done = atomic_load(&h->completed_seq) == seq;
        const bool word = atomic_load(&h->completed_word) == (uint32_t)seq;
        tail = tail || atomic_load(&h->tail) == seq * 24;
        BHT_TRUE(!done || tail); /* or it has completed what it has not taken from its lane */
        BHT_TRUE(!word || done); /* or who was woken finds nothing, and sleeps again */
        completed = completed || word;
        steps++;
        BHT_EQ(ptrace(completed ? PTRACE_CONT : PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
    }
    BHT_TRUE(completed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return steps;
}

TEST(test_published_in_order) {
    for (uint64_t seq = 1; seq <= 2; seq++) {
        BHT_GT(publish_step_by_step(seq), 3);
    }
}

TEST(test_poll_refuses_lies) {
    uint64_t completed, tail;
    struct bhi_progress_header *h = f.worker.header;
    bhi_progress_publish(&f.worker, 5, 500);
    BHT_EQ(bhi_progress_poll(&f.view, 10, 1000, &completed, &tail), 0);
    static const struct {
        uint64_t completed, tail;
        int expected;
    } cases[] = {
        {5, 500, 0},
        {11, 500, -EPROTO},
        {4, 500, -EPROTO},
        {5, 1001, -EPROTO},
        {5, 499, -EPROTO},
        {0, 500, -EPROTO},
        {UINT64_MAX, 500, -EPROTO},
        {5, 0, -EPROTO},
        {5, UINT64_MAX, -EPROTO},
        {10, 1000, 0},
        {9, 1000, -EPROTO},
        {10, 999, -EPROTO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t seen = f.view.seen_completed, seen_tail = f.view.seen_tail;
        completed = tail = 77;
        atomic_store(&h->completed_seq, cases[i].completed);
        atomic_store(&h->tail, cases[i].tail);
        BHT_EQ(bhi_progress_poll(&f.view, 10, 1000, &completed, &tail), cases[i].expected);
        if (cases[i].expected) { /* nothing of a lie is taken over */
            BHT_EQ(completed, 77);
            BHT_EQ(tail, 77);
            BHT_EQ(f.view.seen_completed, seen);
            BHT_EQ(f.view.seen_tail, seen_tail);
        }
    }
}

#define SAY(words) (&(struct bhi_why){.text = (words)})

static void expect_read(struct bhi_result r, int expected) {
    f.worker.results[3] = r;
    BHT_EQ(read_result(3), expected);
}

TEST(test_read_refuses_lies) {
    static const uint64_t seqs[] = {4, 3 + RESULTS /* a later user of the same entry */, 0};
    static const uint32_t executed[] = {3, UINT32_MAX};
    struct bhi_result r = good(3);
    expect_read(r, 0);
    for (size_t i = 0; i < BHT_COUNT(seqs); i++) {
        expect_read(good(seqs[i]), -EPROTO);
    }
    for (size_t i = 0; i < BHT_COUNT(executed); i++) {
        r.executed = executed[i];
        expect_read(r, -EPROTO);
    }
    for (uint32_t status = 1; status < 300; status++) {
        r = good(3);
        r.status = status;
        r.executed = 1;
        expect_read(r, bhi_status_from_worker(status) ? 0 : -EPROTO);
        r.bad_memory = 7; /* only a call of the driver tells that memory cannot be imported */
        expect_read(r, status == BH_VULKAN || status == BH_CUDA ? 0 : -EPROTO);
    }
    r = good(3);
    r.bad_memory = 7;
    expect_read(r, -EPROTO);
    r.status = UINT32_MAX;
    expect_read(r, -EPROTO);
}

/* Each word of a slot that a worker may have filled with anything is checked, and each text made fit
 * to be shown. */
TEST(test_reads_a_reason) {
    struct bhi_result r = good(3);
    struct bhi_told *theirs = &f.worker.errors[3].told;
    r.status = BH_LIMIT_EXCEEDED;
    r.executed = 0;
    bhi_progress_result(&f.worker, &r,
                        &(struct bhi_why){.reason = BH_REASON_WORKGROUPS,
                                          .name = "x\x1b",
                                          .value = 7,
                                          .limit = 5,
                                          .text = "so the device says"});
    BHT_EQ(read_result(3), 0);
    BHT_STR_EQ(text, "7 workgroups in x?, the device allows 5 (so the device says)");
    BHT_EQ(told.reason, BH_REASON_WORKGROUPS);
    BHT_EQ(told.subject, BH_SUBJECT_DEVICE);
    BHT_STR_EQ(told.name, "x?");
    BHT_TRUE(told.value == 7 && told.limit == 5);
    memset(theirs->name, 0x07, sizeof theirs->name);
    memset(theirs->advice, 0x07, sizeof theirs->advice);
    BHT_EQ(read_result(3), 0);
    BHT_EQ(strlen(told.name), sizeof told.name - 1);
    BHT_EQ(strspn(told.advice, "?"), sizeof told.advice - 1);
    for (uint32_t subject = 0; subject < 300; subject++) {
        theirs->subject = subject;
        expect_read(r, subject <= BH_SUBJECT_PROCESS ? 0 : -EPROTO);
    }
    theirs->subject = 0;
    for (uint32_t reason = 0; reason < 300; reason++) {
        theirs->reason = reason;
        expect_read(r, bhi_reason_from_worker(reason, BH_LIMIT_EXCEEDED) ? 0 : -EPROTO);
    }
    theirs->reason = 0;
    theirs->sys_errno = -1;
    expect_read(r, -EPROTO);
    theirs->sys_errno = 4096;
    expect_read(r, -EPROTO);
    *theirs = (struct bhi_told){.reason = UINT32_MAX};
    expect_read(good(3), 0); /* one that is READY has no reason */
    *theirs = (struct bhi_told){0};
}

TEST(test_read_clamps_times) {
    struct bhi_result r = good(3);
    for (int soon = 0; soon < 2; soon++) {
        r.started_ns = UINT64_MAX;
        r.ended_ns = soon ? bhi_now_ns() + 500000000u : UINT64_MAX;
        f.worker.results[3] = r;
        BHT_EQ(read_result(3), 0);
        BHT_LE(got.ended_ns, bhi_now_ns());
        BHT_LE(got.started_ns, got.ended_ns);
    }
    r.ended_ns = 5; /* ended before it started */
    f.worker.results[3] = r;
    BHT_EQ(read_result(3), 0);
    BHT_EQ(got.started_ns, 5);
    BHT_EQ(got.ended_ns, 5);
}

TEST(test_fault_text) {
    struct bhi_result r = good(70);
    r.status = BH_INVALID_KERNEL;
    bhi_progress_result(&f.worker, &r, SAY("line 3: \x1b[2Jbad"));
    BHT_EQ(read_result(70), 0);
    BHT_STR_EQ(text, "line 3: ?[2Jbad");
    /* What a worker writes past us into the slot is made fit to be shown, and ended. */
    struct bhi_error_slot *slot = &f.worker.errors[70 % BHI_ERROR_SLOTS];
    memset(slot->told.text, 0x07, sizeof slot->told.text);
    BHT_EQ(read_result(70), 0);
    BHT_EQ(strlen(text), BHI_ERROR_TEXT - 1);
    BHT_EQ(strspn(text, "?"), BHI_ERROR_TEXT - 1);
    /* Another submission's text is not this one's, and success has none. */
    slot->seq = 70 - BHI_ERROR_SLOTS;
    BHT_EQ(read_result(70), 0);
    BHT_STR_EQ(text, "");
    slot->seq = 70;
    r.status = BH_OK;
    f.worker.results[70 % RESULTS] = r;
    BHT_EQ(read_result(70), 0);
    BHT_STR_EQ(text, "");
    /* A text that is too long is cut. */
    char big[2 * BHI_ERROR_TEXT];
    memset(big, 'b', sizeof big);
    big[sizeof big - 1] = '\0';
    r.status = BH_VULKAN;
    bhi_progress_result(&f.worker, &r, SAY(big));
    BHT_EQ(read_result(70), 0);
    BHT_EQ(strlen(text), BHI_ERROR_TEXT - 1);
}

TEST(test_started) {
    static const struct {
        uint64_t completed, published, handed;
        uint32_t marker;
        uint64_t expected;
    } cases[] = {
        {5, 9, 5, 0, 5},          /* nothing handed to the device */
        {5, 9, 0, 0, 5},          /* a lie: behind what it completed */
        {5, 9, 7, 0, 7},          /* handed, the device says nothing new */
        {5, 9, 8, 6, 6},          /* the device got as far as 6 */
        {5, 9, 8, 8, 8},          /* all of them */
        {5, 9, 8, 9, 8},          /* a lie: past what was handed */
        {5, 9, 8, 5, 8},          /* an old marker says nothing */
        {5, 9, UINT64_MAX, 0, 9}, /* a lie: past what was published */
        {5, 9, UINT64_MAX, 7, 7},
        {0, 0, 3, 1, 0}, /* nothing published at all */
        {(1ull << 32) - 2, (1ull << 32) + 4, (1ull << 32) + 3, 1, (1ull << 32) + 1},
        {(1ull << 32) - 2, (1ull << 32) + 4, (1ull << 32) + 3, UINT32_MAX, (1ull << 32) - 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        atomic_store(&f.worker.header->started_seq, cases[i].handed);
        atomic_store(&f.worker.markers->started, cases[i].marker);
        BHT_EQ(bhi_progress_started(&f.view, cases[i].completed, cases[i].published),
               cases[i].expected);
    }
}

TEST(test_steps) {
    for (uint32_t i = 0; i < BHI_STEP_COUNT; i++) {
        bhi_progress_step(&f.worker, (enum bhi_step)i);
        BHT_EQ(f.view.header->step, i);
        for (uint32_t j = 0; j < i; j++) {
            BHT_NE(strcmp(bhi_step_name(i), bhi_step_name(j)), 0);
        }
        BHT_NE(strcmp(bhi_step_name(i), "unknown"), 0);
    }
    BHT_STR_EQ(bhi_step_name(BHI_STEP_COUNT), "unknown");
    BHT_STR_EQ(bhi_step_name(UINT32_MAX), "unknown");
    bhi_progress_step_failed(&f.worker, &(struct bhi_why){.status = BH_UNSUPPORTED,
                                                          .sys_errno = ENOSYS,
                                                          .text = "landlock:\x07 no"});
    BHT_EQ(f.view.header->step_status, BH_UNSUPPORTED);
    BHT_EQ(f.view.header->step_told.sys_errno, ENOSYS);
    BHT_STR_EQ(f.view.header->step_told.text, "landlock:? no");
}

struct overwriter {
    struct bhi_progress *worker;
    _Atomic bool stop;
};

/* A worker that changes what it wrote while it is being read. */
static void *overwrite(void *argument) {
    struct overwriter *l = argument;
    uint64_t *words = (uint64_t *)&l->worker->results[3];
    struct bhi_result truth = good(3), lies = good(3);
    truth.status = BH_VULKAN;
    lies.seq = 99;
    lies.status = UINT32_MAX;
    lies.executed = UINT32_MAX;
    lies.ended_ns = UINT64_MAX;
    uint64_t from[2][sizeof truth / 8];
    memcpy(from[0], &truth, sizeof truth);
    memcpy(from[1], &lies, sizeof lies);
    for (unsigned i = 0; !atomic_load(&l->stop); i++) {
        for (size_t w = 0; w < sizeof truth / 8; w++) {
            __atomic_store_n(&words[w], from[i % 2][w], __ATOMIC_RELAXED);
        }
        uint64_t *wrong = (uint64_t *)l->worker->errors[3].told.text;
        __atomic_store_n(&wrong[i % 64], i % 3 ? 0x4141414141414141ull : 0x0707070707070707ull,
                         __ATOMIC_RELAXED);
    }
    return NULL;
}

TEST(test_copied_once) {
    struct overwriter l = {&f.worker, false};
    pthread_t thread;
    f.worker.errors[3].seq = 3;
    BHT_EQ(pthread_create(&thread, NULL, overwrite, &l), 0);
    unsigned accepted = 0, refused = 0;
    uint64_t end = bhi_deadline_ns(10000000000ull * bht_slowness());
    while ((accepted < 2000 || refused < 2000) && bhi_now_ns() < end) {
        if (read_result(3)) {
            refused++;
            continue;
        }
        accepted++;
        BHT_EQ(got.seq, 3);
        BHT_LE(got.executed, 2);
        BHT_TRUE(got.status == BH_OK || bhi_status_from_worker(got.status));
        BHT_TRUE(got.started_ns <= got.ended_ns && got.ended_ns <= bhi_now_ns());
        BHT_LT(strnlen(text, sizeof text), sizeof text);
        BHT_EQ(strchr(text, 7), NULL);
    }
    atomic_store(&l.stop, true);
    pthread_join(thread, NULL);
    BHT_TRUE(accepted > 0 && refused > 0);
}

BHT_AT_START(bht_around(set_up, tear_down))
