/* A thread that closes files. A close may hang for as long as a mount is dead (FUSE is asked at
 * each one), and who has work to do must not wait for that. What comes after one that hangs stays
 * open. */
#ifndef BHI_WORKER_LOADER_CLOSER_H
#define BHI_WORKER_LOADER_CLOSER_H

struct bhi_closer;

/* NULL with errno set. */
struct bhi_closer *bhi_closer_create(void);
/* Closes what it still has, and waits for that. NULL is fine. */
void bhi_closer_destroy(struct bhi_closer *closer);
/* Never blocks. Without memory to remember it by, |fd| stays open. */
void bhi_closer_give(struct bhi_closer *closer, int fd);

#endif
