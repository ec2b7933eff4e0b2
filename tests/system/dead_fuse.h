/* A file system whose daemon answers what it is told to, and nothing else: on raw /dev/fuse, in a
 * mount namespace of the test's own. It has one regular file under every name that begins with
 * "file", 4096 bytes of 7. */
#ifndef BHT_DEAD_FUSE_H
#define BHT_DEAD_FUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEAD_FILE_BYTES 4096

/* What the daemon does with a request. */
enum dead_at {
    DEAD_NOWHERE,   /* all is answered */
    DEAD_UNREAD,    /* nothing is even read: who waits can be killed */
    DEAD_IN_LOOKUP, /* read, and not answered: who waits cannot be killed */
    DEAD_IN_READ,
    DEAD_IN_FLUSH, /* nor in RELEASE */
};

/* Fails the test where it cannot be had. Before there are other threads. */
void dead_mount(void);
/* From now on. |direct|: files that are opened from now on are read past the page cache, where
 * nobody who waits can be killed. */
void dead_set(enum dead_at at, bool direct);
/* A path in the mount; overwritten by the next one. */
const char *dead_path(const char *name);
/* Something waits to be read by the daemon. */
bool dead_pending(void);
/* How many requests it has left unanswered. */
unsigned dead_swallowed(void);
/* The daemon is gone: whatever waits gets an error. */
void dead_end(void);
/* In a child: it has no part in the daemon. */
void dead_forget(void);

#endif
