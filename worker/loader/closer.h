/* A thread that closes files. A close may hang for as long as a mount is dead (FUSE sends a request
 * for each close), and a thread with work to do must not wait for it. Files that come after one
 * that hangs stay open. */
#ifndef BHI_WORKER_LOADER_CLOSER_H
#define BHI_WORKER_LOADER_CLOSER_H

struct bhi_closer;

/* Returns NULL with errno set on failure. */
struct bhi_closer *bhi_closer_create(void);
/* Closes the files that it still has, and waits for that. NULL is allowed. */
void bhi_closer_destroy(struct bhi_closer *closer);
/* Never blocks. If there is no memory for the entry, |fd| stays open. */
void bhi_closer_give(struct bhi_closer *closer, int fd);

#endif
