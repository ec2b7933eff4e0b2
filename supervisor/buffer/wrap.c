/* Makes a buffer of the caller's memfd (bh_buffer_options.memfd). */
#include "base/detail.h"
#include "base/memfd.h"
#include "supervisor/buffer/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALL  "bh_buffer_create"
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static bh_status refuse(bh_detail *detail, int error, const char *why) {
    return BHI_FAIL(detail, CALL, BH_REASON_ARGUMENT, "options.memfd", .sys_errno = error,
                    .text = why);
}

/* A call that inspects fd has failed with |error|. If that is |caller| or EBADF, the caller passed
 * a wrong fd, and |why| says what is wrong with it. */
static bh_status look_failed(bh_detail *detail, int error, int caller, const char *why) {
    if (error == caller || error == EBADF) {
        return refuse(detail, error == EBADF ? error : 0, why);
    }
    return BHI_FAIL(detail, CALL, BH_REASON_SYSTEM_CALL, "fcntl of options.memfd",
                    .sys_errno = error);
}

/* Returns true if fd is a file of a tmpfs, not a memfd. F_GET_SEALS succeeds on both, but a file of
 * a tmpfs cannot be sealed. */
static bool has_a_path(int fd) {
    char link[64], target[64] = "";
    snprintf(link, sizeof link, "/proc/thread-self/fd/%d", fd);
    return readlink(link, target, sizeof target - 1) > 0 &&
           strncmp(target, "/memfd:", sizeof "/memfd:" - 1) != 0;
}

static bh_status check_descriptor(int fd, int *out_seals, bh_detail *detail) {
    static const char not_a_memfd[] = "is not a memfd (memfd_create): other files "
                                      "can be truncated while they are mapped";
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0) {
        return look_failed(detail, errno, EBADF, "is not an open descriptor");
    }
    *out_seals = fcntl(fd, F_GET_SEALS);
    if (*out_seals < 0) {
        return look_failed(detail, errno, EINVAL, not_a_memfd);
    }
    if ((flags & O_ACCMODE) != O_RDWR) {
        return refuse(detail, 0, "is not open for reading and writing");
    }
    if (*out_seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) {
        return refuse(detail, 0, "is sealed against writing");
    }
    if ((*out_seals & F_SEAL_SEAL) && (*out_seals & SEALS) != SEALS && has_a_path(fd)) {
        return refuse(detail, 0,
                      "is POSIX shared memory (shm_open) or another file of a tmpfs, which can "
                      "be truncated while it is mapped: share a memfd (memfd_create with "
                      "MFD_ALLOW_SEALING) instead, or copy with bh_buffer_write");
    }
    if ((*out_seals & F_SEAL_SEAL) && (*out_seals & SEALS) != SEALS) {
        return refuse(detail, 0,
                      "can be truncated and extended, and does not accept the seals that "
                      "forbid it: create it with MFD_ALLOW_SEALING");
    }
    return BH_OK;
}

/* |*size| 0: all of it. */
static bh_status check_size(int fd, uint64_t *size, bh_detail *detail) {
    struct stat st;
    int error = fstat(fd, &st) == 0 ? 0 : errno;
    if (!error && !*size) {
        *size = (uint64_t)st.st_size;
    }
    if (!error && !*size) {
        return refuse(detail, 0, "is empty: it cannot be mapped");
    }
    if (*size > BHI_MAX_BUFFER) {
        return BHI_FAIL(detail, CALL, BH_REASON_TOO_LARGE, "size", .value = *size,
                        .limit = UINT64_C(1) << 40);
    }
    error = error ? error : -bhi_memfd_verify(fd, *size, 0);
    if (error == EINVAL) {
        return BHI_FAIL(detail, CALL, BH_REASON_ARGUMENT, "size", .value = *size,
                        .limit = (uint64_t)st.st_size,
                        .text = "does not fit the memfd: it must be at most the memfd's, and end "
                                "in its last page");
    }
    return error ? BHI_FAIL(detail, CALL, BH_REASON_SYSTEM_CALL, "fstat of the memfd",
                            .sys_errno = error)
                 : BH_OK;
}

/* Checks and seals the memfd, and allocates its missing pages. After this its size is fixed, so the
 * library can map it. */
static bh_status prepare(int fd, uint64_t *size, bh_detail *detail) {
    int seals = 0;
    BHI_TRY(check_descriptor(fd, &seals, detail));
    /* The seals come first, because without them the size could change after the check. */
    if ((seals & SEALS) != SEALS) {
        int error = bhi_memfd_seal(fd, SEALS & ~seals);
        if (error == -EPERM && (fcntl(fd, F_GET_SEALS) & SEALS) == SEALS) {
            error = 0; /* another thread wraps the same memfd and was faster */
        }
        if (error) {
            return BHI_FAIL(detail, CALL, BH_REASON_SYSTEM_CALL, "sealing the memfd",
                            .sys_errno = -error);
        }
    }
    BHI_TRY(check_size(fd, size, detail));
    int error = -bhi_memfd_protect(fd);
    if (error) {
        return BHI_FAIL(detail, CALL, BH_REASON_SYSTEM_CALL,
                        "the memfd's write permission cannot be taken away", .sys_errno = error);
    }
    struct stat st;
    uint64_t there = fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
    if (there < *size && !bhi_memory_available(*size - there)) {
        return BHI_FAIL(detail, CALL, BH_REASON_NO_ROOM, .place = "the memfd's holes",
                        .value = *size - there);
    }
    error = -bhi_memfd_reserve(fd, *size); /* fills holes */
    if (error) {
        return BHI_FAIL(detail, CALL, BH_REASON_BYTES,
                        .status = error == ENOMEM || error == ENOSPC ? BH_NO_MEMORY : BH_SYSTEM,
                        .sys_errno = error, .value = *size);
    }
    int reader = bhi_memfd_read_only(fd);
    if (reader < 0) {
        return BHI_FAIL(detail, CALL, BH_REASON_SYSTEM_CALL,
                        "the memfd cannot be opened for reading, as workers need it",
                        .sys_errno = -reader);
    }
    close(reader);
    return BH_OK;
}

bh_status bhi_buffer_wrap(bh_context *context, int fd, uint64_t size, struct bh_buffer **out_buffer,
                          bh_detail *detail) {
    BHI_TRY(prepare(fd, &size, detail));
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
        return BHI_FAIL(detail, CALL, BH_REASON_SYSTEM_CALL, "fcntl", .sys_errno = errno);
    }
    uint64_t bytes = bhi_page_round(size);
    void *pointer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0);
    int error = errno;
    struct bh_buffer *buffer =
        pointer == MAP_FAILED ? NULL : bhi_buffer_adopt(context, copy, size, pointer);
    if (!buffer) {
        const bool mapped = pointer != MAP_FAILED;
        if (mapped) {
            munmap(pointer, bytes);
        }
        close(copy);
        return BHI_FAIL(detail, CALL, BH_REASON_BYTES,
                        .status = mapped || error == ENOMEM ? BH_NO_MEMORY : BH_SYSTEM,
                        .sys_errno = error, .value = size);
    }
    buffer->wrapped = true;
    *out_buffer = buffer;
    return BH_OK;
}
