#include "supervisor/worker/cgroup.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/owner.h"
#include "base/read_text.h"
#include "base/text.h"
#include "supervisor/worker/directory_lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* There are two layouts.
 *
 * v1: the memory controller has a tree of its own, and a group may have both processes and
 * children. The parent group of the workers is made below the host's own group.
 *
 * v2: there is one tree, and a group that has processes cannot give its children a controller,
 * unless it is the root. So the parent group is made beside the host's group, if the group above
 * gives its children the memory controller and can be written. The host is not moved: a library
 * does not change the group of its process. */

#define NAME_TRIES 16
#define NEARLY     (2ull << 20) /* what a group may lack to its limit when it has reached it */

/* -- small files ---------------------------------------------------------------------------- */

static int make_path(char *out, size_t capacity, const char *dir, const char *name) {
    int length = snprintf(out, capacity, "%s/%s", dir, name);
    return length < 0 || (size_t)length >= capacity ? -ENAMETOOLONG : 0;
}

static int write_file(const char *dir, const char *name, const char *text) {
    char path[PATH_MAX];
    const int result = make_path(path, sizeof path, dir, name);
    if (result) {
        return result;
    }
    BHI_AUTO_FD fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t written = -1;
    while (fd >= 0 && (written = write(fd, text, strlen(text))) < 0 && errno == EINTR)
        ;
    return written < 0 ? -errno : 0;
}

static bool read_file(const char *dir, const char *name, char *out, size_t capacity) {
    char path[PATH_MAX];
    return make_path(path, sizeof path, dir, name) == 0 &&
           bhi_read_text(AT_FDCWD, path, out, capacity) >= 0;
}

/* Returns true if |word| is one of the words of |text|, which |separators| separate. */
static bool has_word(const char *text, const char *separators, const char *word) {
    size_t length = strlen(word);
    while (*text != '\0') {
        size_t run = strcspn(text, separators);
        if (run == length && strncmp(text, word, length) == 0) {
            return true;
        }
        text += run;
        text += strspn(text, separators);
    }
    return false;
}

static bool lists_memory(const char *dir, const char *name) {
    char text[512];
    return read_file(dir, name, text, sizeof text) && has_word(text, " \n", "memory");
}

/* -- the host's own group ---------------------------------------------------------------------- */

struct place {
    int version;         /* 1 or 2; 0: there is no memory controller */
    char path[PATH_MAX]; /* the host's own group, as /proc/thread-self/cgroup names it */
};

/* /proc/thread-self/cgroup: lines of ID:CONTROLLERS:PATH, v2 is 0::PATH. */
static int find_place(const char *proc_cgroup, struct place *out) {
    out->version = 0;
    BHI_AUTO_FILE *file = fopen(proc_cgroup, "re");
    if (!file) {
        return -errno;
    }
    BHI_AUTO_FREE char *line = NULL;
    size_t capacity = 0;
    while (out->version != 1 && getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) {
            continue;
        }
        *controllers++ = '\0';
        *path++ = '\0';
        int version = 0;
        if (has_word(controllers, ",", "memory")) {
            version = 1;
        } else if (strcmp(line, "0") == 0 && controllers[0] == '\0') {
            version = 2;
        }
        if (version != 0 && strlen(path) < sizeof out->path) {
            out->version = version;
            snprintf(out->path, sizeof out->path, "%s", path);
        }
    }
    return 0;
}

/* mountinfo writes space, tab, newline and backslash as three octal digits. */
static void unescape(char *text) {
    char *out = text;
    for (const char *in = text; *in != '\0'; out++) {
        if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' &&
            in[3] >= '0' && in[3] <= '7') {
            *out = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
            in += 4;
        } else {
            *out = *in++;
        }
    }
    *out = '\0';
}

/* One line of mountinfo: ID PARENT MAJ:MIN ROOT POINT OPTIONS [TAG]... - TYPE SOURCE SUPER. */
static bool parse_mount(char *line, int version, char **out_root, char **out_point) {
    char *rest = strstr(line, " - ");
    if (!rest) {
        return false;
    }
    *rest = '\0';
    char *save = NULL;
    char *type = strtok_r(rest + 3, " \n", &save);
    (void)strtok_r(NULL, " \n", &save);
    char *super = strtok_r(NULL, " \n", &save);
    bool wanted = type && (version == 2 ? strcmp(type, "cgroup2") == 0
                                        : strcmp(type, "cgroup") == 0 && super &&
                                              has_word(super, ",", "memory"));
    if (!wanted) {
        return false;
    }
    char *field = strtok_r(line, " ", &save);
    for (int i = 0; i < 3 && field; i++) {
        field = strtok_r(NULL, " ", &save);
    }
    *out_root = field;
    *out_point = strtok_r(NULL, " ", &save);
    if (!*out_root || !*out_point) {
        return false;
    }
    unescape(*out_root);
    unescape(*out_point);
    return true;
}

/* Finds the host's own group as a folder: the mount point, and the part of its path below the
 * mount's root. |*out_top| is the length of the mount point: nothing above it is visible. */
static int find_dir(const char *mountinfo, const struct place *place, char *out, size_t capacity,
                    size_t *out_top) {
    BHI_AUTO_FILE *file = fopen(mountinfo, "re");
    if (!file) {
        return -errno;
    }
    BHI_AUTO_FREE char *line = NULL;
    size_t line_capacity = 0;
    int result = -ENOENT;
    while (result != 0 && getline(&line, &line_capacity, file) > 0) {
        char *root, *point;
        if (!parse_mount(line, place->version, &root, &point)) {
            continue;
        }
        size_t root_length = strcmp(root, "/") == 0 ? 0 : strlen(root);
        const char *below = place->path;
        if (strncmp(below, root, root_length) != 0 ||
            (below[root_length] != '/' && below[root_length] != '\0')) {
            continue; /* the mount shows some other part of the tree */
        }
        below += root_length;
        int length = snprintf(out, capacity, "%s%s", point, strcmp(below, "/") == 0 ? "" : below);
        struct stat status;
        if (length > 0 && (size_t)length < capacity && stat(out, &status) == 0 &&
            S_ISDIR(status.st_mode)) {
            *out_top = strlen(point);
            result = 0;
        }
    }
    return result;
}

/* -- available memory -------------------------------------------------------------------------- */

static uint64_t read_number(const char *dir, const char *name) {
    char text[32];
    if (!read_file(dir, name, text, sizeof text) || text[0] < '0' || text[0] > '9') {
        return UINT64_MAX; /* "max", or the file is missing */
    }
    return strtoull(text, NULL, 10);
}

/* Returns the bytes of cached file pages, which the kernel drops before it is out of memory. */
static uint64_t reclaimable(const char *dir, int version) {
    static const char *const keys[2][2] = {{"\ntotal_inactive_file ", "\ntotal_active_file "},
                                           {"\ninactive_file ", "\nactive_file "}};
    char text[8192];
    uint64_t bytes = 0;
    if (!read_file(dir, "memory.stat", text, sizeof text)) {
        return 0;
    }
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(text, keys[version - 1][i]);
        bytes += at ? strtoull(at + strlen(keys[version - 1][i]), NULL, 10) : 0;
    }
    return bytes;
}

static uint64_t headroom_of(const char *dir, int version) {
    uint64_t limit = read_number(dir, version == 1 ? "memory.limit_in_bytes" : "memory.max");
    if (limit >= INT64_MAX / 2) {
        return UINT64_MAX;
    }
    uint64_t used = read_number(dir, version == 1 ? "memory.usage_in_bytes" : "memory.current");
    uint64_t cached = reclaimable(dir, version);
    used = used > cached ? used - cached : 0;
    return used < limit ? limit - used : 0;
}

uint64_t bhi_cgroup_headroom(void) {
    return bhi_cgroup_headroom_from("/proc/thread-self/cgroup", "/proc/thread-self/mountinfo");
}

uint64_t bhi_cgroup_headroom_from(const char *proc_cgroup, const char *mountinfo) {
    struct place place;
    char dir[PATH_MAX];
    size_t top = 0;
    if (find_place(proc_cgroup, &place) != 0 || place.version == 0 ||
        find_dir(mountinfo, &place, dir, sizeof dir, &top) != 0) {
        return UINT64_MAX;
    }
    uint64_t least = headroom_of(dir, place.version);
    while (strlen(dir) > top) {
        *strrchr(dir, '/') = '\0';
        uint64_t rest = headroom_of(dir, place.version);
        least = rest < least ? rest : least;
    }
    return least;
}

/* -- the context's parent ------------------------------------------------------------------- */

static int make_parent(struct bhi_cgroup *cgroup, const char *in, uint64_t serial) {
    BHI_AUTO_FD parent = open(in, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0) {
        return -errno;
    }
    for (int try = 0; try < NAME_TRIES; try++) {
        /* A process in another pid namespace may have the same number. A group is never shared. */
        char suffix[16] = "";
        if (try > 0) {
            snprintf(suffix, sizeof suffix, ".%d", try);
        }
        int length = snprintf(cgroup->dir, sizeof cgroup->dir, "%s/bulkhead.%d.%llu%s", in,
                              (int)getpid(), (unsigned long long)serial, suffix);
        if (length < 0 || (size_t)length >= sizeof cgroup->dir) {
            return -ENAMETOOLONG;
        }
        int lock_fd = bhi_directory_lock_make(parent, cgroup->dir + strlen(in) + 1, 0755);
        if (lock_fd >= 0) {
            cgroup->lock_fd = lock_fd;
            return 0;
        }
        if (lock_fd != -EEXIST) {
            return lock_fd;
        }
    }
    return -EEXIST;
}

static const char *advice(int error) {
    switch (error) {
    case -EACCES:
    case -EPERM:
        return "run as root, or have a memory cgroup delegated to this user";
    case -EROFS:
        return "mount the cgroup file system read-write";
    default:
        return "see the error";
    }
}

static int open_v1(struct bhi_cgroup *cgroup, uint64_t serial, const char *own, char *why,
                   size_t why_size) {
    int result = make_parent(cgroup, own, serial);
    if (result != 0) {
        bhi_format(why, why_size, "cannot make a memory cgroup (v1) in %s: %s; %s", own,
                   strerror(-result), advice(result));
        return result;
    }
    cgroup->version = 1;
    return 0;
}

/* Returns the folder in which a v2 parent can be made: the host's own group if its children may
 * have the controller, otherwise the group above. */
static int choose_v2(const char *own, size_t top, char *out, size_t capacity, char *why,
                     size_t why_size) {
    if (!lists_memory(own, "cgroup.controllers")) {
        bhi_format(
            why, why_size,
            "the memory controller is not available in %s; write +memory to cgroup.subtree_control "
            "of the group above it (systemd: Delegate=memory)",
            own);
        return -EOPNOTSUPP;
    }
    int result = 0;
    if (!lists_memory(own, "cgroup.subtree_control")) {
        result = write_file(own, "cgroup.subtree_control", "+memory");
    }
    if (result == 0) {
        snprintf(out, capacity, "%s", own);
        return 0;
    }
    char above[PATH_MAX];
    snprintf(above, sizeof above, "%s", own);
    char *slash = strrchr(above, '/');
    if (!slash || (size_t)(slash - above) < top) {
        bhi_format(why, why_size,
                   "%s holds processes and is the top of what can be seen here, so it can have no "
                   "children "
                   "with a memory limit (%s); start the host in a group below a delegated one",
                   own, strerror(-result));
        return result;
    }
    *slash = '\0';
    if (!lists_memory(above, "cgroup.subtree_control")) {
        bhi_format(why, why_size,
                   "%s does not give the memory controller to the groups in it; write "
                   "+memory to its cgroup.subtree_control",
                   above);
        return -EOPNOTSUPP;
    }
    /* A limit of the host's group does not hold for a group beside it, so the workers would escape
     * the limit. */
    char limit[64];
    if (!read_file(own, "memory.max", limit, sizeof limit) || strncmp(limit, "max", 3) != 0) {
        bhi_format(
            why, why_size,
            "%s has a memory limit that workers beside it would escape; run the host as a leaf "
            "below "
            "the group that carries the limit",
            own);
        return -EBUSY;
    }
    snprintf(out, capacity, "%s", above);
    return 0;
}

static int open_v2(struct bhi_cgroup *cgroup, uint64_t serial, const char *own, size_t top,
                   char *why, size_t why_size) {
    char in[PATH_MAX];
    int result = choose_v2(own, top, in, sizeof in, why, why_size);
    if (result != 0) {
        return result;
    }
    /* Moving a process needs write access to this file of the common ancestor. */
    char procs[PATH_MAX];
    result = make_path(procs, sizeof procs, in, "cgroup.procs");
    if (result == 0 && faccessat(AT_FDCWD, procs, W_OK, AT_EACCESS) != 0) {
        result = -errno;
    }
    if (result == 0) {
        result = make_parent(cgroup, in, serial);
    }
    if (result == 0) {
        result = write_file(cgroup->dir, "cgroup.subtree_control", "+memory");
        if (result != 0) {
            rmdir(cgroup->dir);
            close(cgroup->lock_fd);
        }
    }
    if (result != 0) {
        bhi_format(why, why_size, "cannot make a memory cgroup (v2) in %s: %s; %s", in,
                   strerror(-result), advice(result));
        return result;
    }
    cgroup->version = 2;
    return 0;
}

int bhi_cgroup_open_from(struct bhi_cgroup *cgroup, uint64_t serial, const char *proc_cgroup,
                         const char *mountinfo, char *why, size_t why_size) {
    memset(cgroup, 0, sizeof *cgroup);
    bhi_format(why, why_size, "%s", "");
    struct place place;
    int result = find_place(proc_cgroup, &place);
    if (result == 0 && place.version == 0) {
        result = -EOPNOTSUPP;
    }
    if (result != 0) {
        bhi_format(why, why_size,
                   "%s names no memory cgroup (%s); a kernel with CONFIG_MEMCG is needed",
                   proc_cgroup, strerror(-result));
        return result;
    }
    char own[PATH_MAX];
    size_t top = 0;
    result = find_dir(mountinfo, &place, own, sizeof own, &top);
    if (result != 0) {
        bhi_format(why, why_size,
                   "the cgroup file system (v%d) is not mounted where group %s can be seen",
                   place.version, place.path);
        return result;
    }
    if (!bhi_text_is_line(own)) { /* no message can carry it to the warden, which removes groups */
        bhi_format(
            why, why_size,
            "the name of this process's own memory cgroup is not UTF-8, or has control characters: "
            "rename it");
        return -EILSEQ;
    }
    result = place.version == 1 ? open_v1(cgroup, serial, own, why, why_size)
                                : open_v2(cgroup, serial, own, top, why, why_size);
    if (result != 0) {
        memset(cgroup, 0, sizeof *cgroup);
    }
    return result;
}

int bhi_cgroup_open(struct bhi_cgroup *cgroup, uint64_t serial, char *why, size_t why_size) {
    return bhi_cgroup_open_from(cgroup, serial, "/proc/thread-self/cgroup",
                                "/proc/thread-self/mountinfo", why, why_size);
}

/* Tries once to remove the group, children first. Returns 0 when nothing is left. */
static int remove_tree(const char *dir) {
    DIR *entries = opendir(dir);
    if (!entries) {
        return errno == ENOENT ? 0 : -errno;
    }
    struct dirent *entry;
    while ((entry = readdir(entries))) {
        if (entry->d_name[0] == 'w' && entry->d_type == DT_DIR) {
            /* If a child is still in use, the last rmdir fails, and that error is returned. */
            (void)unlinkat(dirfd(entries), entry->d_name, AT_REMOVEDIR);
        }
    }
    closedir(entries);
    return rmdir(dir) == 0 || errno == ENOENT ? 0 : -errno;
}

void bhi_cgroup_close(struct bhi_cgroup *cgroup) {
    if (cgroup->version != 0) {
        /* The kernel answers EBUSY until the last process of a child has gone. On v1 nothing
         * signals that, so this looks again. */
        const struct timespec pause = {.tv_nsec = 2 * 1000 * 1000};
        for (int i = 0; i < 500 && remove_tree(cgroup->dir) != 0; i++) {
            nanosleep(&pause, NULL);
        }
        close(cgroup->lock_fd);
    }
    memset(cgroup, 0, sizeof *cgroup);
}

/* -- the workers' children ------------------------------------------------------------------ */

static int child_dir(const struct bhi_cgroup *cgroup, uint64_t id, char *out, size_t capacity) {
    if (cgroup->version == 0) {
        return -EOPNOTSUPP;
    }
    char name[32];
    snprintf(name, sizeof name, "w%llu", (unsigned long long)id);
    return make_path(out, capacity, cgroup->dir, name);
}

static int set_limit(int version, const char *dir, uint64_t limit) {
    char text[32];
    /* The v1 file is a signed number of bytes. */
    snprintf(text, sizeof text, "%llu",
             (unsigned long long)(limit > INT64_MAX ? (uint64_t)INT64_MAX : limit));
    int result = write_file(dir, version == 1 ? "memory.limit_in_bytes" : "memory.max", text);
    if (result != 0) {
        return result;
    }
    result = version == 1 ? write_file(dir, "memory.memsw.limit_in_bytes", text)
                          : write_file(dir, "memory.swap.max", "0");
    return result == -ENOENT ? 0 : result; /* swap is not accounted on this kernel */
}

int bhi_cgroup_add(const struct bhi_cgroup *cgroup, uint64_t id, uint64_t limit) {
    char dir[PATH_MAX];
    int result = child_dir(cgroup, id, dir, sizeof dir);
    if (result != 0) {
        return result;
    }
    if (mkdir(dir, 0755) != 0) {
        return -errno;
    }
    if (limit != 0 && (result = set_limit(cgroup->version, dir, limit)) != 0) {
        rmdir(dir);
    }
    return result;
}

int bhi_cgroup_enter(const struct bhi_cgroup *cgroup, uint64_t id, pid_t pid) {
    char dir[PATH_MAX], text[32];
    int result = child_dir(cgroup, id, dir, sizeof dir);
    if (result != 0) {
        return result;
    }
    if (pid <= 0) {
        return -EINVAL; /* 0 would move the caller itself */
    }
    snprintf(text, sizeof text, "%d", (int)pid);
    return write_file(dir, "cgroup.procs", text);
}

/* Returns the number after |name| and a space in |text|, which consists of such lines; |none|: there
 * is none. */
static uint64_t find_count(const char *text, const char *name, uint64_t none) {
    const size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == ' ') {
            return strtoull(line + length + 1, NULL, 10);
        }
    }
    return none;
}

static uint64_t read_count(const char *dir, const char *file, const char *name) {
    char text[1024];
    return read_file(dir, file, text, sizeof text) ? find_count(text, name, 0) : 0;
}

uint64_t bhi_oom_kills(void) {
    char text[16384];
    return read_file("/proc", "vmstat", text, sizeof text)
               ? find_count(text, "oom_kill", UINT64_MAX)
               : UINT64_MAX;
}

/* Has the child reached its own limit? Version 1 does not count that, but remembers the most that
 * was used, with swap and without. */
static bool was_full(const char *dir, int version) {
    if (version == 2) {
        return read_count(dir, "memory.events", "oom") > 0;
    }
    const uint64_t limit = read_number(dir, "memory.limit_in_bytes");
    const uint64_t used = read_number(dir, "memory.max_usage_in_bytes");
    const uint64_t with_swap = read_number(dir, "memory.memsw.max_usage_in_bytes");
    const uint64_t most = with_swap != UINT64_MAX && with_swap > used ? with_swap : used;
    return limit == UINT64_MAX || most == UINT64_MAX || limit < most || limit - most <= NEARLY;
}

enum bhi_oom bhi_cgroup_oom(const struct bhi_cgroup *cgroup, uint64_t id) {
    char dir[PATH_MAX];
    if (child_dir(cgroup, id, dir, sizeof dir) != 0 ||
        read_count(dir, cgroup->version == 1 ? "memory.oom_control" : "memory.events",
                   "oom_kill") == 0) {
        return BHI_OOM_NONE;
    }
    return was_full(dir, cgroup->version) ? BHI_OOM_LIMIT : BHI_OOM_OTHERS;
}

int bhi_cgroup_remove(const struct bhi_cgroup *cgroup, uint64_t id) {
    char dir[PATH_MAX];
    int result = child_dir(cgroup, id, dir, sizeof dir);
    if (result != 0) {
        return result;
    }
    return rmdir(dir) == 0 || errno == ENOENT ? 0 : -errno;
}
