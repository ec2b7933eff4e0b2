/* The opener: opens files for the host, which must not hang where a file does. It has the host's
 * privileges, root and mounts.
 *
 *   host ──open, two descriptors──▶ opener: main thread ──▶ a thread for each request
 *     ▲                                                       │ open, fstat, fstatfs
 *     └── what it is, and at the same socket the file ────────┘
 *
 * On a dead mount each of these calls may hang, close() among them (FUSE sends a FLUSH on each),
 * and not even SIGKILL ends a thread in some of them. Here that costs a thread. The main thread
 * calls nothing of a file's: it goes on taking requests, and exits when the host is gone. */
#ifndef BHI_WORKER_OPENER_OPENER_H
#define BHI_WORKER_OPENER_OPENER_H

/* Returns an exit code (BHI_EXIT_*, exit.h). */
int bhi_opener_run(void);

#endif
