/* Sealed memfds. Rule: nothing maps a descriptor whose seals and size it has not verified; an
 * unsealed one can be truncated under the mapping, which is a SIGBUS. */
#ifndef BHI_BASE_MEMFD_H
#define BHI_BASE_MEMFD_H

#include <stdint.h>
#include <sys/types.h>

/* A memfd of |bytes| rounded up to pages (at least one), sealed SHRINK|GROW|SEAL unless
 * |leave_open| (the lane adds FUTURE_WRITE first). MFD_CLOEXEC, MFD_NOEXEC_SEAL where the kernel
 * has it. Returns the descriptor or -errno. */
int bhi_memfd_create(const char *name, uint64_t bytes, int leave_open);
int bhi_memfd_seal(int fd, int seals); /* adds them; 0 or -errno */
/* 0 if |fd| is a memfd with at least SHRINK|GROW|SEAL and |extra_seals|, and has |bytes| and no
 * page beyond them; -EPERM for the seals, -EINVAL for the size, -errno otherwise. */
int bhi_memfd_verify(int fd, uint64_t bytes, int extra_seals);
/* Removes the write permission from the memfd. A process with only a read-only descriptor then
 * cannot open it again for writing through /proc, even as its owner. Open descriptors do not
 * change. Returns 0 or -errno. */
int bhi_memfd_protect(int fd);
/* A read-only descriptor of the same memfd: no mapping of it can be written to or be made so. Needs
 * /proc. Returns it or -errno. */
int bhi_memfd_read_only(int fd);
uint64_t bhi_page_round(uint64_t bytes); /* at least one page; 0 on overflow */

/* Reserves the first |bytes| bytes, so that touching them cannot fail for lack of memory. Signals
 * do not stop its progress. Returns 0 or -errno. */
int bhi_memfd_reserve(int fd, uint64_t bytes);

#endif
