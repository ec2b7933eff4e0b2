/* What a thread may do to files, and where its paths begin: what a process that opens files for it
 * must have in common with it. */
#ifndef BHI_SUPERVISOR_FILE_RIGHTS_H
#define BHI_SUPERVISOR_FILE_RIGHTS_H

#include <stdint.h>
#include <sys/types.h>

#define BHI_RIGHTS_BYTES 32

/* A digest of the calling thread's users, groups, capabilities, and of its root (which is another
 * one after chroot, and in another mount namespace). */
void bhi_rights_read(uint8_t out[BHI_RIGHTS_BYTES]);
/* As whom it looks at files. A process that it starts has its effective user instead. */
void bhi_rights_of_files(uint32_t *out_user, uint32_t *out_group);

#endif
