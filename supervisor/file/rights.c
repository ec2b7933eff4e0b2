#include "supervisor/file/rights.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sodium.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_GROUPS 1024

void bhi_rights_read(uint8_t out[BHI_RIGHTS_BYTES]) {
    struct {
        uid_t users[3];
        gid_t groups[3];
        int group_count;
        struct __user_cap_data_struct capabilities[2];
        uint32_t device[2];
        uint64_t root, mount;
    } all;
    memset(&all, 0, sizeof all); /* padding, too, because all bytes are hashed */
    (void)getresuid(&all.users[0], &all.users[1], &all.users[2]);
    (void)getresgid(&all.groups[0], &all.groups[1], &all.groups[2]);
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    (void)syscall(SYS_capget, &header, all.capabilities);
    /* AT_STATX_DONT_SYNC: the root may be on a network file system whose server does not answer. */
    struct statx root;
    if (statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO | STATX_MNT_ID,
              &root) == 0) {
        all.device[0] = root.stx_dev_major;
        all.device[1] = root.stx_dev_minor;
        all.root = root.stx_ino;
        all.mount = root.stx_mnt_id;
    }
    gid_t groups[MOST_GROUPS];
    all.group_count = getgroups(MOST_GROUPS, groups); /* -1: more; then no group is hashed */
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, BHI_RIGHTS_BYTES);
    crypto_generichash_update(&state, (const uint8_t *)&all, sizeof all);
    if (all.group_count > 0) {
        crypto_generichash_update(&state, (const uint8_t *)groups,
                                  (size_t)all.group_count * sizeof *groups);
    }
    crypto_generichash_final(&state, out, BHI_RIGHTS_BYTES);
}

void bhi_rights_of_files(uint32_t *out_user, uint32_t *out_group) {
    /* -1 is not a valid id: the call changes nothing and returns the present one. */
    *out_user = (uint32_t)setfsuid((uid_t)-1);
    *out_group = (uint32_t)setfsgid((gid_t)-1);
}
