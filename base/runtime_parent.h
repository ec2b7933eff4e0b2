/* Where a context makes its folder of sockets, and which owners and modes of that place are safe.
 */
#ifndef BHI_BASE_RUNTIME_PARENT_H
#define BHI_BASE_RUNTIME_PARENT_H

/* Bytes of its path: that of a Unix socket has 108, and we add about 40 of our own. */
#define BHI_RUNTIME_PARENT_MOST 56

/* Opens the folder |path| if nobody but this user and root can replace what is made in it. Returns a
 * descriptor, or -errno; -EPERM: others could. */
int bhi_runtime_parent_open(const char *path);
/* The default: XDG_RUNTIME_DIR if that is usable, else /tmp. */
const char *bhi_runtime_parent(void);

#endif
