#include "power.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"

/* -- the log ------------------------------------------------------------------------------------ */

enum kind { MADE, WROTE, CUT, NAMED, SYNCED, SAID };
enum { NODES = 1 << 14, STEPS = 1 << 16, ROOT = 1 };
#define TEXT_BYTES ((size_t)256 << 20) /* of address space */

struct change { /* of the names in a folder: |name| is |node|, or is gone with 0 */
    const char *name;
    unsigned node;
};
struct step {
    enum kind kind;
    unsigned node; /* of NAMED the folder */
    struct change changes[2];
    size_t size; /* of |data|; of CUT the file's */
    off_t at;
    const void *data;
    struct timespec modified; /* of SYNCED, if that has made it durable; else 0 */
    bool failed;              /* SYNCED */
    bool joined;              /* one call with the step before */
};
struct node {
    dev_t device;
    ino_t inode;
    mode_t mode;
};

/* One mapping, at the same address in all processes. */
static struct log {
    struct power power;
    bool on;
    char root[PATH_MAX];
    unsigned node_count; /* from 1 */
    long step_count;
    size_t used; /* of |text| */
    struct node nodes[NODES];
    struct step steps[STEPS];
    char text[TEXT_BYTES];
} *all;
struct power *power;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void make_log(void) {
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) {
        abort();
    }
    power = &all->power;
}

static const void *keep(const void *data, size_t size) {
    char *kept = all->text + all->used;
    if (size > sizeof all->text - all->used) {
        abort();
    }
    all->used += size;
    return memcpy(kept, data, size);
}

static struct step *add(enum kind kind, unsigned node) {
    if (all->step_count == STEPS) {
        abort();
    }
    struct step *step = &all->steps[all->step_count++];
    *step = (struct step){.kind = kind, .node = node};
    return step;
}

/* 0: it is not watched. The last one counts: a number is used again when its file is gone. */
static unsigned find(const struct stat *status) {
    for (unsigned i = all->node_count; i > 0; i--) {
        if (all->nodes[i].inode == status->st_ino && all->nodes[i].device == status->st_dev) {
            return i;
        }
    }
    return 0;
}

static unsigned find_fd(int fd) {
    struct stat status;
    return all->on && fstat(fd, &status) == 0 ? find(&status) : 0;
}

static unsigned add_node(const struct stat *status) {
    if (++all->node_count == NODES) {
        abort();
    }
    all->nodes[all->node_count] = (struct node){status->st_dev, status->st_ino, status->st_mode};
    return all->node_count;
}

/* Where |path| is: the folder, watched, and the name in it. */
struct spot {
    unsigned folder;
    const char *name;
};

static struct spot spot_of(int at, const char *path) {
    struct stat status;
    char folder[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    if (!all->on || (slash && slash - path >= PATH_MAX)) {
        return (struct spot){0, path};
    }
    if (slash) {
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    }
    const bool there = fstatat(at, folder, &status, 0) == 0;
    return (struct spot){there ? find(&status) : 0, slash ? slash + 1 : path};
}

static struct step *name(struct spot spot, unsigned node) {
    struct step *step = add(NAMED, spot.folder);
    step->changes[0] = (struct change){keep(spot.name, strlen(spot.name) + 1), node};
    return step;
}

/* Counts a step. Returns whether it fails, with errno. */
static bool refused_as(const char *what, bool syncs) {
    if ((power->name && strcmp(power->name, what) != 0) || (power->only_syncs && !syncs)) {
        return false;
    }
    power->seen++;
    if (power->mode == POWER_GOOD || power->seen < power->at ||
        (power->mode != POWER_FROM && power->seen > power->at)) {
        return false;
    }
    power->hit = true;
    if (power->mode == POWER_KILL) {
        kill(getpid(), SIGKILL);
    }
    errno = power->error;
    return true;
}

static bool refused(const char *what) {
    return refused_as(what, false);
}

static bool refused_fd(int fd, bool syncs) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(path, '/');
    return refused_as(slash ? slash + 1 : path, syncs);
}

/* -- the calls ---------------------------------------------------------------------------------- */

#define EXPORTED __attribute__((visibility("default")))
/* These take the place of libc's, for libraries, too: of those that it declares otherwise, such as
 * open(), only the symbol's name matters. */
#define CALL(type, symbol, ...)                                                                    \
    EXPORTED type power_##symbol(__VA_ARGS__) __asm__(#symbol);                                    \
    EXPORTED type power_##symbol(__VA_ARGS__)

static int open_any(int at, const char *path, int flags, mode_t mode) {
    struct stat status;
    const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
    int fd = -1;
    if (!all->on || !(flags & (O_CREAT | O_TRUNC) || nameless)) {
        return (int)syscall(SYS_openat, at, path, flags, mode);
    }
    pthread_mutex_lock(&mutex);
    struct spot spot = spot_of(at, path);
    if (nameless) {
        spot.folder = fstatat(at, path, &status, 0) == 0 ? find(&status) : 0;
    }
    const bool is_there = !nameless && fstatat(at, path, &status, 0) == 0;
    const bool cuts = is_there && flags & O_TRUNC && status.st_size > 0;
    if (!spot.folder || (is_there && !cuts) || !refused(spot.name)) {
        fd = (int)syscall(SYS_openat, at, path, flags, mode);
        if (fd >= 0 && spot.folder && !is_there && fstat(fd, &status) == 0) {
            const unsigned node = add_node(&status);
            add(MADE, node);
            if (!nameless) {
                name(spot, node)->joined = true;
            }
        } else if (fd >= 0 && spot.folder && cuts) {
            add(CUT, find_fd(fd));
        }
    }
    pthread_mutex_unlock(&mutex);
    return fd;
}

static mode_t mode_of(int flags, va_list *arguments) {
    const bool has = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
    return has ? va_arg(*arguments, mode_t) : 0;
}

#define OPEN(symbol, at, ...)                                                                      \
    CALL(int, symbol, __VA_ARGS__, int flags, ...) {                                               \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        const mode_t mode = mode_of(flags, &arguments);                                            \
        va_end(arguments);                                                                         \
        return open_any(at, path, flags, mode);                                                    \
    }
OPEN(open, AT_FDCWD, const char *path)
OPEN(open64, AT_FDCWD, const char *path)
OPEN(openat, folder, int folder, const char *path)
OPEN(openat64, folder, int folder, const char *path)

/* |at| -1: where the file is. */
static ssize_t write_any(int fd, const void *bytes, size_t size, off_t at) {
    pthread_mutex_lock(&mutex);
    const unsigned node = find_fd(fd);
    ssize_t wrote = -1;
    if (!node || !refused_fd(fd, false)) {
        wrote = at < 0 ? syscall(SYS_write, fd, bytes, size)
                       : syscall(SYS_pwrite64, fd, bytes, size, at);
    }
    if (node && wrote > 0) {
        struct step *step = add(WROTE, node);
        step->at = at < 0 ? lseek(fd, 0, SEEK_CUR) - wrote : at;
        step->size = (size_t)wrote;
        step->data = keep(bytes, (size_t)wrote);
    }
    pthread_mutex_unlock(&mutex);
    return wrote;
}

CALL(ssize_t, write, int fd, const void *bytes, size_t size) {
    return all->on ? write_any(fd, bytes, size, -1) : syscall(SYS_write, fd, bytes, size);
}
CALL(ssize_t, pwrite, int fd, const void *bytes, size_t size, off_t at) {
    return write_any(fd, bytes, size, at);
}
CALL(ssize_t, pwrite64, int fd, const void *bytes, size_t size, off_t at) {
    return write_any(fd, bytes, size, at);
}

static int cut_any(int fd, off_t size) {
    int result = -1;
    pthread_mutex_lock(&mutex);
    const unsigned node = find_fd(fd);
    if (!node || !refused_fd(fd, false)) {
        result = (int)syscall(SYS_ftruncate, fd, size);
        if (node && result == 0) {
            add(CUT, node)->size = (size_t)size;
        }
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

CALL(int, ftruncate, int fd, off_t size) {
    return cut_any(fd, size);
}
CALL(int, ftruncate64, int fd, off_t size) {
    return cut_any(fd, size);
}

/* Nothing is really written to a disk: that would only take time. */
static int sync_any(int fd, bool times) {
    struct stat status;
    int result = 0;
    pthread_mutex_lock(&mutex);
    const unsigned node = find_fd(fd);
    if (!node) {
        result = (int)syscall(times ? SYS_fsync : SYS_fdatasync, fd);
    } else {
        power->syncs++;
        result = refused_fd(fd, true) ? -1 : 0;
        struct step *step = add(SYNCED, node);
        step->failed = result != 0;
        if (times && fstat(fd, &status) == 0) {
            step->modified = status.st_mtim;
        }
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

CALL(int, fsync, int fd) {
    return sync_any(fd, true);
}
CALL(int, fdatasync, int fd) {
    return sync_any(fd, false);
}

static int rename_any(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    struct stat status;
    int result = -1;
    pthread_mutex_lock(&mutex);
    const struct spot old = spot_of(from_at, from), new = spot_of(to_at, to);
    const bool seen = old.folder &&
                      new.folder &&fstatat(from_at, from, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                      !flags;
    if (!seen || !refused(new.name)) {
        result = (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    }
    if (result == 0 && seen) {
        const unsigned node = find(&status);
        struct step *step = name(new, node);
        if (old.folder == new.folder) {
            step->changes[1].name = keep(old.name, strlen(old.name) + 1);
        } else {
            name(old, 0)->joined = true;
        }
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

CALL(int, rename, const char *from, const char *to) {
    return rename_any(AT_FDCWD, from, AT_FDCWD, to, 0);
}
CALL(int, renameat, int from_at, const char *from, int to_at, const char *to) {
    return rename_any(from_at, from, to_at, to, 0);
}
CALL(int, renameat2, int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    return rename_any(from_at, from, to_at, to, flags);
}

CALL(int, linkat, int from_at, const char *from, int to_at, const char *to, int flags) {
    struct stat status;
    int result = -1;
    pthread_mutex_lock(&mutex);
    const struct spot spot = spot_of(to_at, to);
    if (!spot.folder || !refused(spot.name)) {
        result = (int)syscall(SYS_linkat, from_at, from, to_at, to, flags);
    }
    if (result == 0 && spot.folder && fstatat(to_at, to, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        name(spot, find(&status));
    }
    pthread_mutex_unlock(&mutex);
    return result;
}
CALL(int, link, const char *from, const char *to) {
    return power_linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

CALL(int, unlinkat, int at, const char *path, int flags) {
    struct stat status;
    int result = -1;
    pthread_mutex_lock(&mutex);
    const struct spot spot = spot_of(at, path);
    const bool seen = spot.folder && fstatat(at, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (!seen || !refused(spot.name)) {
        result = (int)syscall(SYS_unlinkat, at, path, flags);
    }
    if (result == 0 && seen) {
        name(spot, 0);
    }
    pthread_mutex_unlock(&mutex);
    return result;
}
CALL(int, unlink, const char *path) {
    return power_unlinkat(AT_FDCWD, path, 0);
}
CALL(int, rmdir, const char *path) {
    return power_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

CALL(int, mkdirat, int at, const char *path, mode_t mode) {
    struct stat status;
    int result = -1;
    pthread_mutex_lock(&mutex);
    const struct spot spot = spot_of(at, path);
    const bool seen = spot.folder && fstatat(at, path, &status, AT_SYMLINK_NOFOLLOW) != 0;
    if (!seen || !refused(spot.name)) {
        result = (int)syscall(SYS_mkdirat, at, path, mode);
    }
    if (result == 0 && seen && fstatat(at, path, &status, 0) == 0) {
        const unsigned node = add_node(&status);
        add(MADE, node);
        name(spot, node)->joined = true;
    }
    pthread_mutex_unlock(&mutex);
    return result;
}
CALL(int, mkdir, const char *path, mode_t mode) {
    return power_mkdirat(AT_FDCWD, path, mode);
}

/* -- what is durable ---------------------------------------------------------------------------- */

struct entry {
    const char *name;
    unsigned node; /* 0: it is gone */
};

struct names {
    struct entry *entries;
    size_t count;
};

struct image {
    char *bytes;
    size_t size;
};

/* What is durable of a node, and which steps are not. */
struct state {
    struct names names;
    struct image data;
    struct timespec modified; /* 0: not durable, or not looked at */
    long *pending;
    size_t pending_count,
        doomed; /* data among them: a sync has failed, and no later one makes up */
};

static struct state *states; /* by node */
static long first, replayed; /* the step after what was there; and that comes next */
static uint64_t *seen;
static size_t seen_count;

static void *grown(void *list, size_t count, size_t size) {
    list = realloc(list, (count + 1) * size);
    if (!list) {
        abort();
    }
    return list;
}

static void change(struct names *names, const struct change *to) {
    size_t i = 0;
    while (i < names->count && strcmp(names->entries[i].name, to->name) != 0) {
        i++;
    }
    if (i == names->count) {
        names->entries = grown(names->entries, names->count++, sizeof *names->entries);
    }
    names->entries[i] = (struct entry){to->name, to->node};
}

static void resize(struct image *image, size_t size) {
    if (size > image->size) {
        image->bytes = grown(image->bytes, size, 1);
        memset(image->bytes + image->size, 0, size - image->size);
    }
    image->size = size;
}

/* Of what was written from |from| to |end|. */
static void apply(const struct step *step, size_t from, size_t end, struct names *names,
                  struct image *data) {
    for (int i = 0; step->kind == NAMED && i < 2 && step->changes[i].name; i++) {
        change(names, &step->changes[i]);
    }
    if (step->kind == CUT) {
        resize(data, step->size);
    }
    if (step->kind == WROTE) { /* where nothing was written there are zeros */
        const size_t size = (size_t)step->at + step->size;
        resize(data, size > data->size ? size : data->size);
        if (end > from) {
            memcpy(data->bytes + step->at + from, (const char *)step->data + from, end - from);
        }
    }
}

static void replay(const struct step *step, long number) {
    struct state *state = &states[step->node];
    if (step->kind == SYNCED && step->failed) {
        state->doomed = state->pending_count;
    } else if (step->kind == SYNCED) {
        for (size_t i = 0; i < state->pending_count; i++) {
            const struct step *now = &all->steps[state->pending[i]];
            if (i >= state->doomed || now->kind == NAMED) {
                apply(now, 0, now->size, &state->names, &state->data);
            }
        }
        state->modified = step->modified.tv_sec ? step->modified : state->modified;
        state->pending_count = state->doomed = 0;
    } else if (step->kind != SAID && step->kind != MADE) {
        state->pending = grown(state->pending, state->pending_count, sizeof *state->pending);
        state->pending[state->pending_count++] = number;
    }
}

/* Does the pending step |i| of a node survive, and which part of what it has written? */
static bool survives(unsigned node, size_t i, size_t count, enum power_outcome outcome,
                     size_t *from, size_t *end) {
    const struct step *step = &all->steps[states[node].pending[i]];
    const bool is_name = step->kind == NAMED;
    *from = 0;
    *end = step->size;
    switch (outcome) {
    case POWER_LOST:
        return false;
    case POWER_NAMES:
        return is_name;
    case POWER_DATA:
        return !is_name;
    case POWER_FIRST:
        return !is_name || i + 1 < count;
    case POWER_TORN:
        *end = i + 1 == count ? step->size / 3 : step->size;
        return true;
    case POWER_LATE:
        *from = 2 * i + 1 < count ? step->size : 2 * i + 1 == count ? step->size / 2 : 0;
        return true;
    case POWER_MIXED:
        return node % 2 == 0;
    case POWER_MIXED_OTHERWISE:
        return node % 2 != 0;
    default:
        return true;
    }
}

static uint64_t hash(uint64_t so_far, const void *bytes, size_t size) { /* FNV-1a */
    for (size_t i = 0; i < size; i++) {
        so_far = (so_far ^ ((const unsigned char *)bytes)[i]) * UINT64_C(1099511628211);
    }
    return so_far;
}

/* What a node is after the loss; freed by the caller. */
static void settle(unsigned node, enum power_outcome outcome, struct names *names,
                   struct image *data) {
    const struct state *state = &states[node];
    *names = (struct names){0};
    *data = (struct image){0};
    for (size_t i = 0; i < state->names.count; i++) {
        change(names, &(struct change){state->names.entries[i].name, state->names.entries[i].node});
    }
    resize(data, state->data.size);
    if (data->size > 0) {
        memcpy(data->bytes, state->data.bytes, data->size);
    }
    for (size_t i = 0, from, end; i < state->pending_count; i++) {
        if (survives(node, i, state->pending_count, outcome, &from, &end)) {
            apply(&all->steps[state->pending[i]], from, end, names, data);
        }
    }
}

/* Writes the node |path|, or only hashes it. */
static void put(unsigned node, enum power_outcome outcome, const char *path, bool writes,
                uint64_t *so_far) {
    struct names names;
    struct image data;
    char below[PATH_MAX];
    const struct state *state = &states[node];
    const bool is_folder = S_ISDIR(all->nodes[node].mode);
    settle(node, outcome, &names, &data);
    *so_far = hash(*so_far, path, strlen(path) + 1);
    *so_far = hash(*so_far, data.bytes, data.size);
    *so_far = hash(*so_far, &state->modified, sizeof state->modified);
    if (writes && is_folder && node != ROOT) {
        BHT_TRUE(mkdir(path, 0700) == 0 && chmod(path, all->nodes[node].mode & 07777) == 0);
    } else if (writes && !is_folder) {
        const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        BHT_EQ(write(fd, data.bytes, data.size), data.size);
        BHT_EQ(fchmod(fd, all->nodes[node].mode & 07777), 0);
        if (state->modified.tv_sec) {
            const struct timespec times[2] = {state->modified, state->modified};
            BHT_EQ(futimens(fd, times), 0);
        }
        close(fd);
    }
    for (size_t i = 0; i < names.count; i++) {
        if (names.entries[i].node) {
            BHT_LT(snprintf(below, sizeof below, "%s/%s", path, names.entries[i].name), PATH_MAX);
            put(names.entries[i].node, outcome, below, writes, so_far);
        }
    }
    free(names.entries);
    free(data.bytes);
}

/* -- what tests call ---------------------------------------------------------------------------- */

void power_empty(const char *folder) {
    char path[PATH_MAX];
    DIR *entries = opendir(folder);
    BHT_TRUE(entries);
    for (const struct dirent *entry; (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            BHT_LT(snprintf(path, sizeof path, "%s/%s", folder, entry->d_name), PATH_MAX);
            BHT_TRUE(bht_remove(path));
        }
    }
    closedir(entries);
}

static void forget(void) {
    for (unsigned i = 0; states && i < NODES; i++) {
        free(states[i].names.entries);
        free(states[i].data.bytes);
        free(states[i].pending);
    }
    free(states);
    free(seen);
    states = NULL;
    seen = NULL;
    seen_count = 0;
    replayed = 0;
}

/* What is there already: steps before the first, synced. */
static void take_in(const char *path, unsigned node) {
    DIR *entries = opendir(path);
    BHT_TRUE(entries);
    for (const struct dirent *entry; (entry = readdir(entries));) {
        struct stat status;
        char below[PATH_MAX];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) {
            continue;
        }
        BHT_LT(snprintf(below, sizeof below, "%s/%s", path, entry->d_name), PATH_MAX);
        BHT_EQ(lstat(below, &status), 0);
        const unsigned found = add_node(&status);
        name((struct spot){node, entry->d_name}, found);
        if (S_ISDIR(status.st_mode)) {
            take_in(below, found);
            continue;
        }
        const int fd = open(below, O_RDONLY | O_CLOEXEC);
        struct step *step = add(WROTE, found);
        step->size = (size_t)status.st_size;
        BHT_LE(step->size, sizeof all->text - all->used);
        BHT_EQ(read(fd, all->text + all->used, step->size), step->size);
        step->data = all->text + all->used;
        all->used += step->size;
        close(fd);
        add(SYNCED, found)->modified = status.st_mtim;
    }
    closedir(entries);
    add(SYNCED, node);
}

void power_begin(const char *root) {
    struct stat status;
    power_end();
    forget();
    all->node_count = 0;
    all->step_count = 0;
    all->used = 0;
    BHT_TRUE(realpath(root, all->root));
    BHT_EQ(stat(all->root, &status), 0);
    BHT_EQ(add_node(&status), ROOT);
    take_in(all->root, ROOT);
    states = calloc(NODES, sizeof *states);
    BHT_TRUE(states);
    for (; replayed < all->step_count; replayed++) {
        replay(&all->steps[replayed], replayed);
    }
    first = replayed;
    all->on = true;
}

void power_end(void) {
    all->on = false;
    *power = (struct power){0};
}

void power_say(const char *text) {
    pthread_mutex_lock(&mutex);
    if (all->on) {
        add(SAID, 0)->data = keep(text, strlen(text) + 1);
    }
    pthread_mutex_unlock(&mutex);
}

long power_steps(void) {
    return all->step_count;
}

long power_before_sync(long number) {
    for (long i = first; i < all->step_count; i++) {
        if (all->steps[i].kind == SYNCED && --number == 0) {
            return i;
        }
    }
    return all->step_count;
}

const char *power_said(long steps) {
    while (steps > 0 && all->steps[steps - 1].kind != SAID) {
        steps--;
    }
    return steps > 0 ? all->steps[steps - 1].data : "";
}

bool power_lose(long steps, enum power_outcome outcome) {
    const char *said = power_said(steps);
    uint64_t state = hash(UINT64_C(14695981039346656037), &said, sizeof said);
    BHT_TRUE(!all->on);
    if (steps < replayed || (steps < all->step_count && all->steps[steps].joined)) {
        return false;
    }
    for (; replayed < steps; replayed++) {
        replay(&all->steps[replayed], replayed);
    }
    put(ROOT, outcome, all->root, false, &state);
    for (size_t i = 0; i < seen_count; i++) {
        if (seen[i] == state) {
            return false;
        }
    }
    seen = grown(seen, seen_count, sizeof *seen);
    seen[seen_count++] = state;
    power_empty(all->root);
    put(ROOT, outcome, all->root, true, &state);
    return true;
}

static long now_step = -1;
static enum power_outcome now_outcome;

static void describe(void) {
    if (now_step >= 0) {
        fprintf(stderr, "The power was lost after step %ld of %ld: %s.\n", now_step, power_steps(),
                power_outcome_name(now_outcome));
    }
}

__attribute__((constructor)) static void describe_losses(void) {
    bht_describe_with(describe);
}

/* Does the next step write the same file as the last one? */
static bool goes_on(long steps) {
    const struct step *last = all->steps + steps - 1, *next = last + 1;
    return steps > 0 && steps < all->step_count && last->kind == WROTE && next->kind == WROTE &&
           last->node == next->node;
}

void power_lose_after(long steps, void (*check)(const char *said)) {
    now_step = steps;
    for (now_outcome = 0; now_outcome < POWER_OUTCOMES; now_outcome++) {
        if (power_lose(steps, now_outcome)) {
            check(power_said(steps));
        }
    }
    now_step = -1;
}

void power_lose_everywhere(void (*check)(const char *said)) {
    for (long step = 0; step <= power_steps(); step++) {
        if (!goes_on(step)) {
            power_lose_after(step, check);
        }
    }
}

const char *power_outcome_name(enum power_outcome outcome) {
    static const char *const names[POWER_OUTCOMES] = {"all is lost",
                                                      "data is lost, names are not",
                                                      "names are lost, data is not",
                                                      "the last names are lost",
                                                      "a write is torn",
                                                      "early writes are lost",
                                                      "half is lost",
                                                      "the other half is lost",
                                                      "nothing is lost"};
    return names[outcome];
}
