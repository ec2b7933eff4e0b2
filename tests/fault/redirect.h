/* Included in front of each source of the test build of libbulkhead (and of nothing else): the
 * calls below can be told to fail. What libc, libzmq and libsodium do among themselves is not
 * touched. A macro is not expanded again inside its own expansion: the real call stands there. */
#ifndef BHT_REDIRECT_H
#define BHT_REDIRECT_H

#include "supervisor/context/freelist.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#ifndef _PIDFD_H /* glibc 2.43 tests this guard but does not define it */
#define _PIDFD_H 1
#endif
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

enum bht_kind {
    BHT_ALLOCATION, /* memory of the heap */
    BHT_MAPPING,    /* memfds, their sizes and seals, mappings */
    BHT_DESCRIPTOR, /* everything that makes, copies or watches a descriptor; sockets */
    BHT_PROCESS,    /* processes and threads */
    BHT_SEND,       /* messages: to the zygote, to workers */
    BHT_KINDS,
};

/* Is this the call that fails? Sets errno to |error| then. */
bool bht_seam_fails(enum bht_kind kind, int error, const char *call, const char *file, int line);

int bht_pidfd_open(pid_t pid, unsigned flags);
/* See bht_collide() of seam.h (case 31). */
void bht_collided(unsigned char *hash, size_t size);

#define BHT_SEAM(kind, error, failure, name, ...)                                                  \
    (bht_seam_fails(kind, error, #name, __FILE__, __LINE__) ? (failure) : name(__VA_ARGS__))
#define BHT_SEAM_ERROR(kind, error, name, ...)                                                     \
    (bht_seam_fails(kind, error, #name, __FILE__, __LINE__) ? errno : name(__VA_ARGS__))

#define malloc(...)  BHT_SEAM(BHT_ALLOCATION, ENOMEM, NULL, malloc, __VA_ARGS__)
#define calloc(...)  BHT_SEAM(BHT_ALLOCATION, ENOMEM, NULL, calloc, __VA_ARGS__)
#define realloc(...) BHT_SEAM(BHT_ALLOCATION, ENOMEM, NULL, realloc, __VA_ARGS__)
#undef strdup
#define bhi_freelist_take(freelist)                                                                \
    BHT_SEAM(BHT_ALLOCATION, ENOMEM, NULL, bhi_freelist_take, freelist)
#define strdup(...)        BHT_SEAM(BHT_ALLOCATION, ENOMEM, NULL, strdup, __VA_ARGS__)
#define mmap(...)          BHT_SEAM(BHT_MAPPING, ENOMEM, MAP_FAILED, mmap, __VA_ARGS__)
#define memfd_create(...)  BHT_SEAM(BHT_MAPPING, ENFILE, -1, memfd_create, __VA_ARGS__)
#define ftruncate(...)     BHT_SEAM(BHT_MAPPING, ENOSPC, -1, ftruncate, __VA_ARGS__)
#define fallocate(...)     BHT_SEAM(BHT_MAPPING, ENOSPC, -1, fallocate, __VA_ARGS__)
#define fchmod(...)        BHT_SEAM(BHT_MAPPING, EPERM, -1, fchmod, __VA_ARGS__)
#define fstat(...)         BHT_SEAM(BHT_MAPPING, EIO, -1, fstat, __VA_ARGS__)
#define madvise(...)       BHT_SEAM(BHT_MAPPING, ENOMEM, -1, madvise, __VA_ARGS__)
#define pwrite(...)        BHT_SEAM(BHT_MAPPING, ENOSPC, -1, pwrite, __VA_ARGS__)
#define fcntl(...)         BHT_SEAM(BHT_DESCRIPTOR, EMFILE, -1, fcntl, __VA_ARGS__)
#define open(...)          BHT_SEAM(BHT_DESCRIPTOR, EMFILE, -1, open, __VA_ARGS__)
#define open_tree(...)     BHT_SEAM(BHT_DESCRIPTOR, EMFILE, -1, open_tree, __VA_ARGS__)
#define fopen(...)         BHT_SEAM(BHT_DESCRIPTOR, EMFILE, NULL, fopen, __VA_ARGS__)
#define opendir(...)       BHT_SEAM(BHT_DESCRIPTOR, EMFILE, NULL, opendir, __VA_ARGS__)
#define fdopendir(...)     BHT_SEAM(BHT_DESCRIPTOR, ENOMEM, NULL, fdopendir, __VA_ARGS__)
#define openat(...)        BHT_SEAM(BHT_DESCRIPTOR, EMFILE, -1, openat, __VA_ARGS__)
#define mkdir(...)         BHT_SEAM(BHT_DESCRIPTOR, ENOSPC, -1, mkdir, __VA_ARGS__)
#define mkdirat(...)       BHT_SEAM(BHT_DESCRIPTOR, ENOSPC, -1, mkdirat, __VA_ARGS__)
#define eventfd(...)       BHT_SEAM(BHT_DESCRIPTOR, EMFILE, -1, eventfd, __VA_ARGS__)
#define epoll_create1(...) BHT_SEAM(BHT_DESCRIPTOR, EMFILE, -1, epoll_create1, __VA_ARGS__)
#define epoll_ctl(epoll, what, ...)                                                                \
    ((what) == EPOLL_CTL_DEL                                                                       \
         ? epoll_ctl(epoll, what, __VA_ARGS__)                                                     \
         : BHT_SEAM(BHT_DESCRIPTOR, ENOSPC, -1, epoll_ctl, epoll, what, __VA_ARGS__))
#define socket(...)     BHT_SEAM(BHT_DESCRIPTOR, EMFILE, -1, socket, __VA_ARGS__)
#define socketpair(...) BHT_SEAM(BHT_DESCRIPTOR, EMFILE, -1, socketpair, __VA_ARGS__)
/* A name only: glibc's header has no guard, and declares it once more. */
#define pidfd_open          bht_pidfd_open
#define zmq_ctx_new(...)    BHT_SEAM(BHT_DESCRIPTOR, EMFILE, NULL, zmq_ctx_new, __VA_ARGS__)
#define zmq_socket(...)     BHT_SEAM(BHT_DESCRIPTOR, EMFILE, NULL, zmq_socket, __VA_ARGS__)
#define zmq_connect(...)    BHT_SEAM(BHT_DESCRIPTOR, EMFILE, -1, zmq_connect, __VA_ARGS__)
#define zmq_setsockopt(...) BHT_SEAM(BHT_DESCRIPTOR, ENOMEM, -1, zmq_setsockopt, __VA_ARGS__)
#define pthread_create(...) BHT_SEAM_ERROR(BHT_PROCESS, EAGAIN, pthread_create, __VA_ARGS__)
#define posix_spawn(...)    BHT_SEAM_ERROR(BHT_PROCESS, EAGAIN, posix_spawn, __VA_ARGS__)
#define posix_spawn_file_actions_init(...)                                                         \
    BHT_SEAM_ERROR(BHT_PROCESS, ENOMEM, posix_spawn_file_actions_init, __VA_ARGS__)
#define posix_spawnattr_init(...)                                                                  \
    BHT_SEAM_ERROR(BHT_PROCESS, ENOMEM, posix_spawnattr_init, __VA_ARGS__)
#define posix_spawn_file_actions_adddup2(...)                                                      \
    BHT_SEAM_ERROR(BHT_PROCESS, ENOMEM, posix_spawn_file_actions_adddup2, __VA_ARGS__)
#define crypto_generichash_final(state, out, size)                                                 \
    (crypto_generichash_final(state, out, size), bht_collided(out, size))
#define sendmsg(...) BHT_SEAM(BHT_SEND, ENOBUFS, -1, sendmsg, __VA_ARGS__)
/* Only the first part of a message can be refused. */
#define zmq_send(socket, bytes, length, flags)                                                     \
    (((flags) & ZMQ_SNDMORE) == 0                                                                  \
         ? zmq_send(socket, bytes, length, flags)                                                  \
         : BHT_SEAM(BHT_SEND, EAGAIN, -1, zmq_send, socket, bytes, length, flags))

#endif
