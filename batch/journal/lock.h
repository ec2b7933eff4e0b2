/* The lock of a state folder: one process has the folder.
 *
 * The file is locked (flock) while a process has the folder open; the lock ends with the process,
 * however it ends. The file says who that is: "PID HOST", after the word "used" if the database's
 * file has had jobs. A process that ends in order removes its host. On some network file systems
 * flock knows only the processes of one machine: there, who has the folder touches the file
 * (bhi_lock_beat), and who finds another machine's host in it waits for a while in which nobody
 * does. */
#ifndef BHI_BATCH_JOURNAL_LOCK_H
#define BHI_BATCH_JOURNAL_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "batch/journal/host.h"
#include "formats/complaint.h"

struct bhi_lock {
    int fd;                      /* -1: not held */
    bool made;                   /* it was made by us, and nothing has been accepted yet */
    bool has_signed;             /* we are in it */
    bool busy;                   /* it could not be taken: another process has the folder */
    uint64_t silence_ns;         /* how long nobody on another machine must have touched it */
    int folder;                  /* the state folder; borrowed, as are: */
    const char *path, *database; /* its name and that of the database, for complaints */
};

/* Who signed the lock last. "": nobody; without a host: that process has ended. */
struct bhi_lock_signature {
    char pid[24], host[BHI_HOST_NAME];
};

/* Reads the lock of a state folder, which may be another process's. */
struct bhi_lock_signature bhi_lock_read(int folder);
/* Is |error| what a file system without locks answers? */
bool bhi_lock_is_missing(int error);
/* Says so of |folder|, and what to do. Returns false. */
bool bhi_lock_refuse_missing(const char *folder, int error, struct bhi_complaint *complaint);
/* Takes the lock; makes the file if it is missing. Fails if another process has the folder, and if
 * the file system does not have both kinds of locks: flock, and the records that SQLite locks. */
bool bhi_lock_take(struct bhi_lock *lock, int folder, const char *name, const char *database,
                   struct bhi_complaint *complaint);
/* Is the file of a folder without a database ours? Otherwise it must not be written. */
bool bhi_lock_check(const struct bhi_lock *lock, struct bhi_complaint *complaint);
/* Says that this process has the folder. Call it only when the folder is known to be ours. */
void bhi_lock_sign(struct bhi_lock *lock);
bool bhi_lock_is_used(const struct bhi_lock *lock);
/* Marks the folder as one that has had jobs, durably. */
bool bhi_lock_mark_used(const struct bhi_lock *lock, struct bhi_complaint *complaint);
/* Shows other machines that this process is there. Blocks. */
void bhi_lock_beat(const struct bhi_lock *lock);
/* Removes a file that was made for a refused folder, and unlocks. */
void bhi_lock_release(struct bhi_lock *lock);

#endif
