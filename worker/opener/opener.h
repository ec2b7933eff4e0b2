/* The opener: opens files for the host, because the host must not hang when a file does. It has the
 * host's privileges, root and mounts.
 *
 *   host ──open, two descriptors──▶ opener: main thread ──▶ a thread for each request
 *     ▲                                                       │ open, fstat, fstatfs
 *     └── its description and the file, on the same socket ───┘
 *
 * On a dead mount each of these calls may hang, also close() (FUSE sends a FLUSH for each), and in
 * some of them not even SIGKILL ends a thread. Here only a thread of the opener hangs. The main
 * thread makes no call on a file: it goes on taking requests, and exits when the host is gone. */
#ifndef BHI_WORKER_OPENER_OPENER_H
#define BHI_WORKER_OPENER_OPENER_H

/* Returns an exit code (BHI_EXIT_*, exit.h). */
int bhi_opener_run(void);

#endif
