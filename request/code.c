#include "request/code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/owner.h"
#include "tool/interrupt.h"

enum { MAX_KERNEL = 64 << 20, FIRST = 1 << 16 };

/* Reads to the end into memory that grows with the data. It reads one byte beyond the limit, to see
 * that a file is too long. */
static bool read_code(int fd, uint8_t **out_code, size_t *out_size, int *out_errno,
                      struct bhi_complaint *complaint) {
    BHI_AUTO_FREE uint8_t *code = NULL;
    size_t size = 0, capacity = 0;
    for (;;) {
        /* Always leaves room for a NUL. */
        if (!BHI_ARRAY_RESERVE(code, capacity, size ? size + 2 : FIRST)) {
            *out_errno = ENOMEM;
            return bhi_refuse_memory(complaint);
        }
        const size_t most = MAX_KERNEL + 1 - size, room = capacity - 1 - size;
        ssize_t n = bhi_interrupt_read(fd, code + size, room < most ? room : most);
        if (n < 0 && errno == EINTR && !bhi_interrupt_signal()) {
            continue;
        }
        if (n < 0) {
            *out_errno = errno;
            return bhi_refuse(complaint, "cannot be read: %s", strerror(*out_errno));
        }
        size += (size_t)n;
        if (size > MAX_KERNEL) {
            return bhi_refuse(complaint, "longer than %d MiB, not a kernel", MAX_KERNEL >> 20);
        }
        if (n == 0) {
            break;
        }
    }
    code[size] = '\0';
    *out_code = BHI_STEAL(code);
    *out_size = size;
    return true;
}

static bool open_kernel(const char *path, int *out_fd, int *out_errno,
                        struct bhi_complaint *complaint) {
    struct stat status;
    *out_fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*out_fd < 0) {
        *out_errno = errno;
        return bhi_refuse(complaint, "%s", strerror(*out_errno));
    }
    if (fstat(*out_fd, &status) == 0 && S_ISREG(status.st_mode)) {
        return true;
    }
    close(*out_fd);
    return bhi_refuse(complaint, "not a regular file (use - for a stream)");
}

bool bhi_code_read(const char *path, void **out_code, size_t *out_size, int *out_errno,
                   struct bhi_complaint *complaint) {
    uint8_t *code = NULL;
    bool is_stdin = !strcmp(path, "-");
    int fd = STDIN_FILENO;
    *out_errno = 0;
    if (!is_stdin && !open_kernel(path, &fd, out_errno, complaint)) {
        return false;
    }
    bool good = read_code(fd, &code, out_size, out_errno, complaint);
    if (!is_stdin) {
        close(fd);
    }
    *out_code = code;
    return good;
}
