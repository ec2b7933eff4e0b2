/* Landlock decides which of the files in the emptied root may be opened, and how. The paths are in
 * the driver's table. The numbers are the kernel's ABI, written out because the headers of the
 * build machine may be older than the kernel that runs this. */
#include "base/fd.h"
#include "worker/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ruleset_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net; /* since ABI 4 */
    uint64_t scoped;             /* since ABI 6 */
};

struct path_beneath_attr {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

#define CREATE_RULESET_VERSION 1u
#define RULE_PATH_BENEATH      1

#define FS_WRITE_FILE (1ull << 1)
#define FS_READ_FILE  (1ull << 2)
#define FS_READ_DIR   (1ull << 3)
#define FS_IOCTL_DEV  (1ull << 15) /* since ABI 5 */

#define NET_ALL   3ull /* bind and connect of TCP */
#define SCOPE_ALL 3ull /* no abstract Unix sockets and no signals outside this worker */

/* Returns the file access rights that |abi| knows. */
static uint64_t fs_rights(int abi) {
    unsigned bits = abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13;
    return (1ull << bits) - 1;
}

int bhi_sandbox_landlock_abi(void) {
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
    return abi < 0 ? 0 : (int)abi;
}

static int add_path(int ruleset, const char *path, uint64_t access, struct bhi_error *failure) {
    BHI_AUTO_FD fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT
                   ? 0
                   : BHI_ERROR(failure, BH_REASON_STEP, "open a path for a Landlock rule",
                               .text = path, .sys_errno = errno);
    }
    struct stat st;
    if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode)) {
        access &= ~FS_READ_DIR; /* the kernel refuses it for a file */
    }
    struct path_beneath_attr attr = {.allowed_access = access, .parent_fd = fd};
    return syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &attr, 0) == 0
               ? 0
               : BHI_ERROR(failure, BH_REASON_STEP, "add a Landlock rule", .text = path,
                           .sys_errno = errno);
}

/* Of the paths of which each device has one, only |node| may be opened; NULL: all. */
static bool is_left(const struct bhi_driver_path *path, const char *found, const char *node) {
    return path->kind != BHI_PATH_NODE || !node || strcmp(found, node) == 0;
}

static int add_rules(int ruleset, const struct bhi_driver *driver, const char *node,
                     uint64_t handled, struct bhi_error *failure) {
    int r = 0;
    for (const struct bhi_driver_path *p = driver->info->paths; p->pattern && r == 0; p++) {
        uint64_t access = FS_READ_FILE | FS_READ_DIR;
        if (p->kind == BHI_PATH_PROC) {
            continue;
        }
        if (p->kind == BHI_PATH_DEVICE || p->kind == BHI_PATH_NODE) {
            access |= FS_WRITE_FILE | FS_IOCTL_DEV;
        }
        glob_t found;
        if (glob(bhi_driver_pattern(driver, p), GLOB_NOSORT, NULL, &found) != 0) {
            continue; /* not on this machine, so not in this root */
        }
        for (size_t i = 0; i < found.gl_pathc && r == 0; i++) {
            if (is_left(p, found.gl_pathv[i], node)) {
                r = add_path(ruleset, found.gl_pathv[i], access & handled, failure);
            }
        }
        globfree(&found);
    }
    return r;
}

int bhi_sandbox_landlock(const struct bhi_driver *driver, const char *node, bool *out_applied,
                         struct bhi_error *failure) {
    *out_applied = false;
    int abi = bhi_sandbox_landlock_abi();
    if (abi < 1) {
        return 0;
    }
    struct ruleset_attr attr = {.handled_access_fs = fs_rights(abi)};
    size_t size = sizeof attr.handled_access_fs;
    if (abi >= 4) {
        attr.handled_access_net = NET_ALL;
        size += sizeof attr.handled_access_net;
    }
    if (abi >= 6) {
        attr.scoped = SCOPE_ALL;
        size += sizeof attr.scoped;
    }
    BHI_AUTO_FD ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    if (ruleset < 0) {
        return BHI_ERROR(failure, BH_REASON_STEP, "create a Landlock ruleset", .sys_errno = errno);
    }
    int r = add_rules(ruleset, driver, node, attr.handled_access_fs, failure);
    if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) {
        r = BHI_ERROR(failure, BH_REASON_STEP, "enter the Landlock ruleset", .sys_errno = errno);
    }
    *out_applied = r == 0;
    return r;
}
