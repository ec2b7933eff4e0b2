/* The harness itself: it must fail what is broken. Each test here runs this program again with one
 * of the broken tests and looks at what it says. */
#include "faults.h"
#include "harness.h"
#include "tests/hostile/notes.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void broken_equality(void) {
    BHT_EQ(2 + 2, 5);
}

static void broken_string(void) {
    BHT_STR_EQ("poisoned", "ready");
}

static void broken_memory(void) {
    BHT_MEM_EQ("abc", "abd", 3);
}

static void broken_descriptor(void) {
    BHT_GE(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
}

static void broken_child(void) {
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    BHT_GT(pid, 0);
}

static void broken_block(void) {
    static void *volatile kept; /* not lost, only not freed */
    kept = malloc(1);
    BHT_TRUE(kept);
}

static void broken_mapping(void) {
    int fd = memfd_create("left", MFD_CLOEXEC);
    BHT_EQ(ftruncate(fd, 4096), 0);
    BHT_TRUE(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
    close(fd);
}

static void *sleep_for_ever(void *unused) {
    pause();
    return unused;
}

__attribute__((unused)) static void broken_thread(void) {
    pthread_t thread;
    BHT_EQ(pthread_create(&thread, NULL, sleep_for_ever, NULL), 0);
}

static void broken_crash(void) {
    raise(SIGSEGV);
}

static void broken_exit(void) {
    _exit(0);
}

static void broken_hang(void) {
    for (;;) {
        pause();
    }
}

static void broken_wait(void) {
    volatile bool never = false;
    WAIT_UNTIL(never, 20);
}

static void broken_survivor(void) {}

/* The processes that it is told to write to what they do. */
static void write_notes(const char *list, bool second_fires, const char *refused) {
    char noted[256];
    bht_faults_note(list, noted, sizeof noted);
    const char *path = strstr(noted, ",notes=");
    BHT_TRUE(path);
    struct bhi_fault_notes notes = {.fired = {0, second_fires}};
    strcpy(notes.refused, refused);
    int fd = open(path + strlen(",notes="), O_WRONLY | O_CLOEXEC);
    BHT_EQ(write(fd, &notes, sizeof notes), sizeof notes);
    close(fd);
}

static void broken_fault(void) {
    write_notes("plan=/x,?1:started:1=kill,2:started:1=kill", false, "");
}

/* Noted in a host that is killed. */
static void broken_fault_of_a_host(void) {
    const pid_t host = fork();
    if (host == 0) {
        write_notes("?1:started:1=kill,2:started:1=stop", false, "");
        kill(getpid(), SIGKILL);
    }
    BHT_EQ(waitpid(host, NULL, 0), host);
}

static void broken_fault_name(void) {
    write_notes("1:stared:1=kill", false, "1:stared:1=kill");
}

static const struct {
    struct bht_test test;
    const char *says; /* must be in the output */
} BROKEN[] = {
    {BHT_TEST(broken_equality), "4 and 5"},
    {BHT_TEST(broken_string), "is \"poisoned\", must be \"ready\""},
    {BHT_TEST(broken_memory), "byte 2 of 3: 0x63, must be 0x64"},
    {BHT_TEST(broken_descriptor), "descriptors: "},
    {BHT_TEST(broken_child), "children: 0 before, 1 after"},
    {BHT_TEST(broken_mapping), "mappings: "},
    {BHT_TEST(broken_block), "blocks of memory: "},
#if !BHT_TSAN
    {BHT_TEST(broken_thread), "threads: "},
#endif
    {BHT_TEST(broken_crash), "FAIL broken_crash: "},
    {BHT_TEST(broken_exit), "exit status 0"},
    {BHT_TEST_WITH(broken_hang, 1, 0), NULL}, /* after how long depends on bht_slowness() */
    {BHT_TEST(broken_wait), "still not true after 20 ms: never"},
    {BHT_DEATH_TEST(broken_survivor, SIGKILL), "must die of signal 9"},
    {BHT_TEST(broken_fault), "the fault 2:started:1=kill has never happened"},
    {BHT_TEST(broken_fault_of_a_host), "the fault 2:started:1=stop has never happened"},
    {BHT_TEST(broken_fault_name), "this build knows no fault 1:stared:1=kill"},
};

TEST_WITH(fails_what_is_broken, 60, 0) {
    for (size_t i = 0; i < BHT_COUNT(BROKEN); i++) {
        char output[16384], index[8];
        snprintf(index, sizeof index, "%zu", i);
        const char *argv[] = {"/proc/self/exe", "--broken", index, NULL};
        BHT_EQ(bht_run(argv, output, sizeof output), 1);
        char killed[32];
        snprintf(killed, sizeof killed, "killed after %u s", bht_slowness());
        BHT_STR_HAS(output, BROKEN[i].says ? BROKEN[i].says : killed);
        BHT_STR_HAS(output, "0 passed, 1 failed");
    }
}

TEST(passes_what_is_sound) {
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    BHT_EQ(bht_count_descriptors(getpid()), bht_count_self().descriptors);
    close(fd);
    write_notes("plan=/x,?1:started:1=kill,2:started:1=kill", true, "");
}

DEATH_TEST(dies_as_wanted, SIGKILL) {
    kill(getpid(), SIGKILL);
}

TEST(sees_descendants) {
    int ready[2];
    BHT_EQ(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild > 0) {
            (void)!write(ready[1], &grandchild, sizeof grandchild);
        }
        for (;;) {
            pause();
        }
    }
    pid_t grandchild = 0, found[4] = {0};
    BHT_EQ(read(ready[0], &grandchild, sizeof grandchild), sizeof grandchild);
    BHT_EQ(bht_descendants(getpid(), found, BHT_COUNT(found)), 2);
    BHT_EQ(bht_count_children(getpid()), 1);
    BHT_TRUE((found[0] == child && found[1] == grandchild) ||
             (found[1] == child && found[0] == grandchild));
    kill(child, SIGKILL);
    WAIT_UNTIL(bht_process_state(child) == 'Z', 5000);
    kill(grandchild, SIGKILL); /* ours now: the test is a subreaper */
    WAIT_UNTIL(bht_count_descendants(getpid()) == 0, 5000);
    struct bht_child handle = {.pid = child, .output = open("/dev/null", O_RDWR | O_CLOEXEC)};
    BHT_EQ(bht_finish(&handle, 5000, NULL, 0), 128 + SIGKILL);
    handle.pid = grandchild;
    handle.output = open("/dev/null", O_RDWR | O_CLOEXEC);
    BHT_EQ(bht_finish(&handle, 5000, NULL, 0), 128 + SIGKILL);
    BHT_EQ(bht_process_state(child), 'X');
    close(ready[0]);
    close(ready[1]);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--broken") == 0) {
        size_t index = strtoul(argv[2], NULL, 10);
        return index < BHT_COUNT(BROKEN) ? bht_main(1, argv, &BROKEN[index].test, 1) : 2;
    }
    return bht_main(argc, argv, NULL, 0);
}
