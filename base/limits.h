/* Two limits of this process, in words for the messages of calls that fail because of them. */
#ifndef BHI_BASE_LIMITS_H
#define BHI_BASE_LIMITS_H

#include <stdint.h>

enum { BHI_LIMIT_TEXT = 96 };

/* Returns RLIMIT_AS, which workers inherit; UINT64_MAX: none. */
uint64_t bhi_limit_of_address_space(void);
/* Writes "; the address space is limited to N MiB: raise that (ulimit -v)", or "" if it is not
 * limited. Returns |out|. */
const char *bhi_limit_address_space(char out[BHI_LIMIT_TEXT]);
/* The same for the limit that |sys_errno| is about, or "": RLIMIT_FSIZE, which also counts memory
 * that processes share, for EFBIG; RLIMIT_AS for ENOMEM and EAGAIN. */
const char *bhi_limit_named(int sys_errno, char out[BHI_LIMIT_TEXT]);

#endif
