/* The root: a small read-only tmpfs in place of the host's file system.
 *
 *   /run      the context's runtime folder, read-only (connecting to a socket needs no more)
 *   …         what the driver's table lists, each at its own path
 *
 * Made in the zygote, once for all workers, after the driver's library has been loaded. */
#include "base/fd.h"
#include "worker/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The folder in which the new root is built: the working folder. */
#define BASE "."

#define PROC_FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY)

/* Makes the folders above |path| (which begins with BASE), and |path| itself if |leaf|. */
static int make_folders(const char *path, bool leaf) {
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = part + sizeof BASE; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST) {
            return -errno;
        }
        *slash = '/';
    }
    return leaf && mkdir(part, 0755) != 0 && errno != EEXIST ? -errno : 0;
}

/* mount_setattr changes only the given attributes. A remount would have to repeat the locked flags
 * of the host's mounts. */
static int restrict_mount(const char *path, bool recursive, uint64_t attributes) {
    struct mount_attr attr = {.attr_set = attributes};
    return mount_setattr(AT_FDCWD, path, recursive ? AT_RECURSIVE : 0, &attr, sizeof attr) == 0
               ? 0
               : -errno;
}

static uint64_t attributes_of(enum bhi_path_kind kind) {
    switch (kind) {
    case BHI_PATH_READ:
    case BHI_PATH_PROC:
    case BHI_PATH_INSIDE:
        return MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    case BHI_PATH_LIBS:
        return MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    case BHI_PATH_DEVICE:
    case BHI_PATH_NODE:
        return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
    }
    return 0;
}

static int add_proc(const char *target) {
    /* A new proc shows only our own processes. The kernel refuses one if parts of the host's proc
     * are covered (in a container). Then the host's proc is bound: its process folders are useless
     * without privileges, and Landlock closes them as far as it can. */
    if (mount("proc", target, "proc", PROC_FLAGS, NULL) == 0) {
        return 0;
    }
    return mount("/proc", target, NULL, MS_BIND | MS_REC, NULL) == 0 ? 0 : -errno;
}

static int add_path(const char *path, enum bhi_path_kind kind, struct bhi_error *failure) {
    char target[PATH_MAX];
    struct stat st;
    if (lstat(path, &st) != 0) {
        return errno == ENOENT
                   ? 0
                   : BHI_ERROR(failure, BH_REASON_STEP, "look at a path for the worker's root",
                               .text = path, .sys_errno = errno);
    }
    if (snprintf(target, sizeof target, BASE "%s", path) >= (int)sizeof target) {
        return BHI_ERROR(failure, BH_REASON_STEP, "bind a path", .text = path,
                         .sys_errno = ENAMETOOLONG);
    }
    int r = make_folders(target, S_ISDIR(st.st_mode));
    if (r == 0 && S_ISLNK(st.st_mode)) {
        /* A link, such as /lib → usr/lib, becomes the same link. Its target has an entry of its
         * own in the table. */
        char link[PATH_MAX];
        ssize_t length = readlink(path, link, sizeof link - 1);
        if (length < 0) {
            r = -errno;
        } else {
            link[length] = '\0';
            r = symlink(link, target) == 0 || errno == EEXIST ? 0 : -errno;
        }
    } else if (r == 0) {
        if (!S_ISDIR(st.st_mode)) {
            r = mknod(target, S_IFREG | 0644, 0) == 0 || errno == EEXIST ? 0 : -errno;
        }
        if (r == 0 && kind == BHI_PATH_PROC) {
            r = add_proc(target);
        } else if (r == 0) {
            r = mount(path, target, NULL, MS_BIND | MS_REC, NULL) == 0 ? 0 : -errno;
        }
        if (r == 0) {
            r = restrict_mount(target, true, attributes_of(kind));
        }
    }
    return r == 0 ? 0
                  : BHI_ERROR(failure, BH_REASON_STEP, "put a path into the worker's root",
                              .text = path, .sys_errno = -r);
}

static int add_paths(const struct bhi_driver *driver, struct bhi_error *failure) {
    int r = 0;
    for (const struct bhi_driver_path *paths = driver->info->paths; paths->pattern && r == 0;
         paths++) {
        glob_t found;
        if (paths->kind == BHI_PATH_INSIDE ||
            glob(bhi_driver_pattern(driver, paths), 0, NULL, &found) != 0) {
            continue;
        }
        for (size_t i = 0; i < found.gl_pathc && r == 0; i++) {
            r = add_path(found.gl_pathv[i], paths->kind, failure);
        }
        globfree(&found);
    }
    return r;
}

/* The tmpfs is mounted over the runtime folder, the one folder that certainly exists and is ours.
 * What it covers was picked up before, as a detached mount. */
int bhi_sandbox_root_begin(const char *runtime_dir, int *out_tree, struct bhi_error *failure) {
    char options[96];
    /* Mounts made here must not show outside, nor the other way round. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        return bhi_error_refuse(failure, BHI_REFUSED_MOUNTS, errno,
                                "cannot make the mounts private");
    }
    BHI_AUTO_FD tree = open_tree(AT_FDCWD, runtime_dir, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0) {
        const int error = errno;
        char what[160];
        snprintf(what, sizeof what, "cannot bind the runtime folder %s", runtime_dir);
        return bhi_error_refuse(failure, BHI_REFUSED_MOUNTS, error, what);
    }
    snprintf(options, sizeof options, "mode=0755,uid=%d,gid=%d,size=256k,nr_inodes=1024",
             BHI_SANDBOX_ID, BHI_SANDBOX_ID);
    if (mount("bulkhead", runtime_dir, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) != 0) {
        return bhi_error_refuse(failure, BHI_REFUSED_MOUNTS, errno,
                                "cannot mount a tmpfs for the worker's root");
    }
    if (chdir(runtime_dir) != 0) {
        return BHI_ERROR(failure, BH_REASON_STEP, "enter the worker's root", .sys_errno = errno);
    }
    *out_tree = bhi_fd_steal(&tree);
    return 0;
}

int bhi_sandbox_proc(int *out_proc, int *out_error, struct bhi_error *failure) {
    static const char place[] = BASE "/proc";
    int proc = -1;
    *out_error =
        mkdir(place, 0755) == 0 && mount("proc", place, "proc", PROC_FLAGS, NULL) == 0 ? 0 : errno;
    if (*out_error == 0) {
        proc = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        *out_error = proc < 0 ? errno : 0;
        (void)umount2(place, MNT_DETACH); /* it lives on behind the descriptor */
    }
    (void)rmdir(place);
    if (proc < 0) {
        proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    *out_proc = proc;
    return proc >= 0 ? 0 : BHI_ERROR(failure, BH_REASON_STEP, "open /proc", .sys_errno = errno);
}

static int build(const struct bhi_driver *driver, int tree, struct bhi_error *failure) {
    static const char run[] = BASE BHI_SANDBOX_RUN;
    int r;
    if (mkdir(run, 0755) != 0 ||
        move_mount(tree, "", AT_FDCWD, run, MOVE_MOUNT_F_EMPTY_PATH) != 0) {
        return bhi_error_refuse(failure, BHI_REFUSED_MOUNTS, errno,
                                "cannot put the runtime folder into the worker's root");
    }
    if ((r = restrict_mount(run, false, attributes_of(BHI_PATH_READ))) != 0) {
        return bhi_error_refuse(failure, BHI_REFUSED_MOUNTS, -r,
                                "cannot make the runtime folder read-only");
    }
    return add_paths(driver, failure);
}

int bhi_sandbox_root(const struct bhi_driver *driver, int tree, struct bhi_error *failure) {
    umask(0);
    int r = build(driver, tree, failure);
    umask(077);
    close(tree);
    if (r != 0) {
        return r;
    }
    /* pivot_root(".", ".") puts the old root on top of the new one; umount2 then takes it off. */
    if (syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0 ||
        chdir("/") != 0) {
        return bhi_error_refuse(failure, BHI_REFUSED_MOUNTS, errno, "cannot change the root");
    }
    r = restrict_mount("/", false, attributes_of(BHI_PATH_READ));
    if (r != 0) {
        return bhi_error_refuse(failure, BHI_REFUSED_MOUNTS, -r, "cannot make the root read-only");
    }
    return 0;
}
