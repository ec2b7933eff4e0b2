#include "request/kernel_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/interrupt.h"
#include "tool/text.h"

enum { MAX_KERNEL = 64 << 20 };

/* -- reading it ---------------------------------------------------------------------------------
 */

/* Reads to the end, growing as data arrives; one byte over the limit tells that it is too long. */
static bool read_code(int fd, uint8_t **out_code, size_t *out_size, int *out_errno,
                      struct bhi_complaint *complaint) {
    uint8_t *code = NULL;
    size_t size = 0, capacity = 0;
    for (;;) {
        if (size + 1 >= capacity) { /* there is room for a NUL, always */
            capacity = capacity ? capacity * 2 : 1 << 16;
            if (capacity > MAX_KERNEL + 2)
                capacity = MAX_KERNEL + 2;
            uint8_t *grown = realloc(code, capacity);
            if (!grown) {
                free(code);
                *out_errno = ENOMEM;
                return bhi_refuse(complaint, "out of memory");
            }
            code = grown;
        }
        ssize_t n = bhi_interrupt_read(fd, code + size, capacity - 1 - size);
        if (n < 0 && errno == EINTR && !bhi_interrupt_signal())
            continue;
        if (n < 0) {
            *out_errno = errno;
            free(code);
            return bhi_refuse(complaint, "cannot be read: %s", strerror(*out_errno));
        }
        size += (size_t)n;
        if (size > MAX_KERNEL) {
            free(code);
            return bhi_refuse(complaint, "longer than %d MiB, not a kernel", MAX_KERNEL >> 20);
        }
        if (n == 0)
            break;
    }
    code[size] = '\0';
    *out_code = code;
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
    if (fstat(*out_fd, &status) == 0 && S_ISREG(status.st_mode))
        return true;
    close(*out_fd);
    return bhi_refuse(complaint, "not a regular file (use - for a stream)");
}

bool bhi_kernel_file_read(const char *path, void **out_code, size_t *out_size, int *out_errno,
                          struct bhi_complaint *complaint) {
    uint8_t *code = NULL;
    bool is_stdin = !strcmp(path, "-");
    int fd = STDIN_FILENO;
    *out_errno = 0;
    if (!is_stdin && !open_kernel(path, &fd, out_errno, complaint))
        return false;
    bool good = read_code(fd, &code, out_size, out_errno, complaint);
    if (!is_stdin)
        close(fd);
    *out_code = code;
    return good;
}

void bhi_kernel_file_name(const char *path, char out[64]) {
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t length = strlen(base) - bhi_language_ending(base);
    if (!strcmp(base, "-")) {
        base = "stdin";
        length = strlen(base);
    }
    char name[256];
    snprintf(name, sizeof name, "%.*s", length > 255 ? 255 : (int)length, base);
    bhi_text_clean(out, 64, name);
}

enum bhi_language bhi_kernel_file_language(const struct bhi_kernel_file *file) {
    const bool is_stdin = !strcmp(file->path, "-");
    enum bhi_language language =
        file->code ? bhi_language_of_array(file->code, file->size) : BHI_LANGUAGE_UNKNOWN;
    if (!language)
        language = file->language;
    if (!language)
        language = bhi_language_of_name(file->path);
    if (!language && file->code)
        language = bhi_language_of_code(file->code, file->size);
    if (!language)
        language = is_stdin ? BHI_LANGUAGE_GLSL : BHI_LANGUAGE_SPIRV;
    return language;
}
