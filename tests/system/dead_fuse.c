#include "dead_fuse.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_BYTES (1u << 17)
#define FILE_NODE     2

static struct {
    int fd;
    char folder[64];
    pthread_t thread;
    pid_t guardian;
    _Atomic int at;
    _Atomic bool direct, stop, resting, ready;
    _Atomic unsigned swallowed;
} dead = {.fd = -1};

static void answer(uint64_t unique, int error, const void *body, size_t size) {
    uint8_t out[sizeof(struct fuse_out_header) + DEAD_FILE_BYTES];
    struct fuse_out_header header = {
        .len = (uint32_t)(sizeof header + size), .error = error, .unique = unique};
    memcpy(out, &header, sizeof header);
    if (size) {
        memcpy(out + sizeof header, body, size);
    }
    /* ENOENT: who asked has been killed. */
    ssize_t written = write(dead.fd, out, header.len);
    BHT_TRUE(written == (ssize_t)header.len || errno == ENOENT || errno == ENODEV);
}

static struct fuse_attr attributes(uint64_t node) {
    const bool is_file = node == FILE_NODE;
    return (struct fuse_attr){.ino = node,
                              .size = is_file ? DEAD_FILE_BYTES : 0,
                              .mtime = 1000,
                              .ctime = 1000,
                              .mode = is_file ? S_IFREG | 0644 : S_IFDIR | 0755,
                              .nlink = is_file ? 1 : 2,
                              .blksize = 4096};
}

static bool is_dead_in(int at, uint32_t opcode) {
    return (at == DEAD_IN_LOOKUP && opcode == FUSE_LOOKUP) ||
           (at == DEAD_IN_READ && opcode == FUSE_READ) ||
           (at == DEAD_IN_FLUSH && (opcode == FUSE_FLUSH || opcode == FUSE_RELEASE));
}

#define ANSWER(type, ...) answer(in->unique, 0, &(const type){__VA_ARGS__}, sizeof(type))

static void serve(const struct fuse_in_header *in, const void *body) {
    static const uint8_t content[DEAD_FILE_BYTES] = {[0 ... DEAD_FILE_BYTES - 1] = 7};
    if (is_dead_in(atomic_load(&dead.at), in->opcode)) {
        atomic_fetch_add(&dead.swallowed, 1);
        return;
    }
    switch (in->opcode) {
    case FUSE_INIT: {
        const struct fuse_init_in *init = body;
        /* Lookups beside each other, and reads that can be killed. */
        ANSWER(struct fuse_init_out, .major = 7, .minor = 31, .max_readahead = init->max_readahead,
               .flags = FUSE_PARALLEL_DIROPS | FUSE_ASYNC_READ, .max_write = 4096);
        atomic_store(&dead.ready, true);
        break;
    }
    case FUSE_LOOKUP:
        if (strncmp(body, "file", 4) == 0) {
            ANSWER(struct fuse_entry_out, .nodeid = FILE_NODE, .attr = attributes(FILE_NODE));
        } else {
            answer(in->unique, -ENOENT, NULL, 0);
        }
        break;
    case FUSE_GETATTR:
        ANSWER(struct fuse_attr_out, .attr_valid = 3600, .attr = attributes(in->nodeid));
        break;
    case FUSE_OPEN:
        ANSWER(struct fuse_open_out, .open_flags = atomic_load(&dead.direct) ? FOPEN_DIRECT_IO : 0);
        break;
    case FUSE_READ: {
        const struct fuse_read_in *read = body;
        size_t size = read->offset >= DEAD_FILE_BYTES ? 0 : DEAD_FILE_BYTES - read->offset;
        answer(in->unique, 0, content, size < read->size ? size : read->size);
        break;
    }
    case FUSE_STATFS:
        ANSWER(struct fuse_statfs_out, .st = {.bsize = 4096, .namelen = 255});
        break;
    case FUSE_FLUSH:
    case FUSE_RELEASE:
        answer(in->unique, 0, NULL, 0);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        break; /* want no answer */
    default:
        answer(in->unique, -ENOSYS, NULL, 0);
    }
}

static void *run(void *unused) {
    (void)unused;
    static _Alignas(8) uint8_t bytes[REQUEST_BYTES];
    while (!atomic_load(&dead.stop)) {
        const bool rests = atomic_load(&dead.at) == DEAD_UNREAD;
        atomic_store(&dead.resting, rests);
        struct pollfd ready = {.fd = dead.fd, .events = POLLIN};
        if (rests || poll(&ready, 1, 1) != 1) {
            bht_poll_pause();
            continue;
        }
        if (read(dead.fd, bytes, sizeof bytes) > 0) {
            serve((const void *)bytes, bytes + sizeof(struct fuse_in_header));
        }
    }
    return NULL;
}

/* -- the guardian -------------------------------------------------------------------------------
 *
 * A process that is killed ends with its last thread, and one that waits for an answer cannot end;
 * the daemon, which is a thread of the same process, is gone by then, and its descriptor is not
 * closed before the last thread ends. So another process looks whether the test is dying, and
 * aborts the connection, which ends every wait. */

/* Gone, a zombie but for threads that cannot end, or on its way to that. Async-signal-safe. */
static bool is_dying(const char *path) {
    char text[4096];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        close(fd);
    }
    if (length <= 0) {
        return true;
    }
    text[length] = 0;
    static const char *const pending[] = {"\nSigPnd:\t", "\nShdPnd:\t"};
    for (size_t i = 0; i < BHT_COUNT(pending); i++) {
        const char *mask = strstr(text, pending[i]);
        if (mask && strtoull(mask + strlen(pending[i]), NULL, 16) & 1u << (SIGKILL - 1)) {
            return true;
        }
    }
    const char *state = strstr(text, "\nState:\t");
    return state && strchr("ZX", state[strlen("\nState:\t")]);
}

/* A sibling of the test: the test counts its children. It has none of the test's descriptors. */
static void start_guardian(void) {
    static char path[64];
    const struct timespec pause = {.tv_nsec = 20000000};
    snprintf(path, sizeof path, "/proc/%d/status", (int)getpid());
    const pid_t parent = getppid();
    dead.guardian = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, 0);
    BHT_GE(dead.guardian, 0);
    if (dead.guardian) {
        return;
    }
    close_range(0, ~0u, 0);
    setpgid(0, 0); /* what kills the test's group is what it is there for */
    while (getppid() == parent && !is_dying(path)) {
        nanosleep(&pause, NULL);
    }
    umount2(dead.folder, MNT_FORCE);
    umount2(dead.folder, MNT_DETACH);
    rmdir(dead.folder);
    _exit(0);
}

void dead_mount(void) {
    char options[128];
    BHT_TRUE(bht_own_mounts());
    snprintf(dead.folder, sizeof dead.folder, "/tmp/bulkhead-dead-XXXXXX");
    BHT_TRUE(mkdtemp(dead.folder));
    dead.fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (dead.fd < 0) {
        BHT_FAIL("/dev/fuse cannot be opened: %s", strerror(errno));
    }
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other",
             dead.fd, geteuid(), getegid());
    if (mount("dead", dead.folder, "fuse", MS_NOSUID | MS_NODEV, options) != 0) {
        BHT_FAIL("a FUSE file system cannot be mounted: %s", strerror(errno));
    }
    start_guardian();
    BHT_EQ(pthread_create(&dead.thread, NULL, run, NULL), 0);
    WAIT_UNTIL(atomic_load(&dead.ready), 20000);
}

void dead_set(enum dead_at at, bool direct) {
    atomic_store(&dead.direct, direct);
    atomic_store(&dead.at, at);
    WAIT_UNTIL(atomic_load(&dead.resting) == (at == DEAD_UNREAD), 20000);
}

const char *dead_path(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", dead.folder, name);
    return path;
}

bool dead_pending(void) {
    struct pollfd ready = {.fd = dead.fd, .events = POLLIN};
    return poll(&ready, 1, 0) == 1;
}

unsigned dead_swallowed(void) {
    return atomic_load(&dead.swallowed);
}

void dead_end(void) {
    BHT_EQ(kill(dead.guardian, SIGKILL), 0);
    atomic_store(&dead.stop, true);
    BHT_EQ(pthread_join(dead.thread, NULL), 0);
    BHT_EQ(close(dead.fd), 0);
    BHT_EQ(umount2(dead.folder, MNT_DETACH), 0);
    BHT_EQ(rmdir(dead.folder), 0);
}

void dead_forget(void) {
    BHT_EQ(close(dead.fd), 0);
    dead.fd = -1;
}
