/* A thread's rights to files, and its root. A process that opens files for the thread must have the
 * same. */
#ifndef BHI_SUPERVISOR_FILE_RIGHTS_H
#define BHI_SUPERVISOR_FILE_RIGHTS_H

#include <stdint.h>
#include <sys/types.h>

#define BHI_RIGHTS_BYTES 32

/* Returns a digest of the calling thread's users, groups and capabilities, and of its root, which
 * differs after a chroot and in another mount namespace. */
void bhi_rights_read(uint8_t out[BHI_RIGHTS_BYTES]);
/* Returns the user and group with which the thread accesses files. A process that it starts has the
 * effective user instead. */
void bhi_rights_of_files(uint32_t *out_user, uint32_t *out_group);

#endif
