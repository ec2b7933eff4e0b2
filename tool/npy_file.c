#include "tool/npy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/npy.h"
#include "tool/interrupt.h"

/* Reads |size| bytes, or fewer at the end of the file. Returns false after an error. */
static bool read_fully(struct bhi_npy_file *file, void *bytes, uint64_t size, uint64_t *out_got,
                       struct bhi_complaint *complaint) {
    uint8_t *at = bytes;
    uint64_t got = 0;
    while (got < size) {
        uint64_t rest = size - got;
        ssize_t n =
            bhi_interrupt_read(file->fd, at + got, rest > (1u << 30) ? 1u << 30 : (size_t)rest);
        if (n < 0 && errno == EINTR) {
            file->interrupted = bhi_interrupt_signal() != 0;
            if (file->interrupted) {
                return bhi_refuse(complaint, "reading was interrupted");
            }
            continue;
        }
        if (n < 0) {
            return bhi_refuse(complaint, "cannot be read: %s", strerror(errno));
        }
        if (n == 0) {
            break;
        }
        got += (uint64_t)n;
    }
    *out_got = got;
    return true;
}

static bool short_data(const struct bhi_npy_file *file, uint64_t got,
                       struct bhi_complaint *complaint) {
    return bhi_refuse(
        complaint, "truncated: the shape needs %llu bytes of data, but only %llu follow the header",
        (unsigned long long)file->array.bytes, (unsigned long long)got);
}

static bool read_header(struct bhi_npy_file *file, struct bhi_complaint *complaint) {
    uint8_t preamble[BHI_NPY_MAX_PREAMBLE];
    uint64_t got, more = 0;
    size_t start, length;

    /* Reads 10 bytes first: a file of format 1.0 can be shorter than the 12 that later formats
     * need. */
    if (!read_fully(file, preamble, BHI_NPY_MIN_PREAMBLE, &got, complaint)) {
        return false;
    }
    if (got == BHI_NPY_MIN_PREAMBLE && preamble[6] > 1 &&
        !read_fully(file, preamble + got, BHI_NPY_MAX_PREAMBLE - got, &more, complaint)) {
        return false;
    }
    if (!bhi_npy_parse_preamble(preamble, (size_t)(got + more), &start, &length, complaint)) {
        return false;
    }
    char *text = malloc(length + 1);
    if (!text) {
        return bhi_refuse_memory(complaint);
    }
    bool good = read_fully(file, text, length, &got, complaint);
    if (good && got < length) {
        good = bhi_refuse(complaint, "truncated header");
    }
    good = good && bhi_npy_parse_header(text, length, &file->array, complaint);
    free(text);
    return good;
}

/* Checks the size of a regular file against the shape before any data is read. */
static bool check_size(struct bhi_npy_file *file, const struct stat *status,
                       struct bhi_complaint *complaint) {
    off_t at = lseek(file->fd, 0, SEEK_CUR);
    if (at < 0) {
        return bhi_refuse(complaint, "cannot be read: %s", strerror(errno));
    }
    uint64_t rest = status->st_size > at ? (uint64_t)(status->st_size - at) : 0;
    if (rest < file->array.bytes) {
        return short_data(file, rest, complaint);
    }
    if (rest > file->array.bytes) {
        return bhi_refuse(
            complaint, "too long: the shape needs %llu bytes of data, but %llu follow the header",
            (unsigned long long)file->array.bytes, (unsigned long long)rest);
    }
    file->size_checked = true;
    return true;
}

bool bhi_npy_file_open(const char *path, struct bhi_npy_file *out_file,
                       struct bhi_complaint *complaint) {
    struct stat status;

    memset(out_file, 0, sizeof *out_file);
    out_file->is_stdin = !strcmp(path, "-");
    /* O_NONBLOCK: without it, open would wait for the writer of a FIFO, which is refused anyway. */
    out_file->fd =
        out_file->is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (out_file->fd < 0) {
        return bhi_refuse(complaint, "%s", strerror(errno));
    }
    bool good = true;
    if (fstat(out_file->fd, &status) != 0) {
        good = bhi_refuse(complaint, "%s", strerror(errno));
    } else if (!out_file->is_stdin && !S_ISREG(status.st_mode)) {
        good = bhi_refuse(complaint, "not a regular file (use - for a stream)");
    } else if (S_ISDIR(status.st_mode)) {
        good = bhi_refuse(complaint, "standard input is a directory");
    }
    good = good && read_header(out_file, complaint);
    if (good && S_ISREG(status.st_mode)) {
        good = check_size(out_file, &status, complaint);
    }
    if (!good) {
        bhi_npy_file_close(out_file);
    }
    return good;
}

static bool refuse_trailing(struct bhi_npy_file *file, struct bhi_complaint *complaint) {
    uint8_t extra;
    uint64_t got;
    if (!read_fully(file, &extra, 1, &got, complaint)) {
        return false;
    }
    if (got) {
        return bhi_refuse(
            complaint, "too long: the shape needs %llu bytes of data, but more follow the header",
            (unsigned long long)file->array.bytes);
    }
    return true;
}

bool bhi_npy_file_spool(struct bhi_npy_file *file, uint64_t trusted,
                        struct bhi_complaint *complaint) {
    const uint64_t wanted = file->array.bytes;
    uint64_t capacity = 0;

    if (file->size_checked || wanted <= trusted) {
        return true;
    }
    while (file->spooled < wanted) {
        uint64_t got;
        if (file->spooled == capacity) {
            capacity = capacity ? capacity * 2 : 1u << 20;
            if (capacity > wanted) {
                capacity = wanted;
            }
            uint8_t *grown = realloc(file->spool, capacity);
            if (!grown) {
                return bhi_refuse(complaint, "out of memory after %llu bytes of data",
                                  (unsigned long long)file->spooled);
            }
            file->spool = grown;
        }
        uint64_t room = capacity - file->spooled;
        if (!read_fully(file, file->spool + file->spooled, room, &got, complaint)) {
            return false;
        }
        file->spooled += got;
        if (got < room) {
            return short_data(file, file->spooled, complaint);
        }
    }
    return refuse_trailing(file, complaint);
}

/* The bytes as they are in the file. */
static bool read_data(struct bhi_npy_file *file, void *destination,
                      struct bhi_complaint *complaint) {
    uint64_t got;
    if (file->spool) {
        memcpy(destination, file->spool, file->array.bytes);
        free(file->spool);
        file->spool = NULL;
        return true;
    }
    if (!read_fully(file, destination, file->array.bytes, &got, complaint)) {
        return false;
    }
    if (got < file->array.bytes) { /* also if the file was truncated meanwhile */
        return short_data(file, got, complaint);
    }
    return refuse_trailing(file, complaint);
}

bool bhi_npy_file_read(struct bhi_npy_file *file, void *destination,
                       struct bhi_complaint *complaint) {
    const struct bhi_array *array = &file->array;
    if (!array->fortran) {
        return read_data(file, destination, complaint);
    }
    void *const bytes = malloc(array->bytes);
    const bool good = bytes ? read_data(file, bytes, complaint) : bhi_refuse_memory(complaint);
    if (good) {
        bhi_array_transpose(bhi_dtype_size(array->dtype), array->dimensions, array->shape, bytes,
                            destination);
    }
    free(bytes);
    return good;
}

void bhi_npy_file_close(struct bhi_npy_file *file) {
    if (file->fd >= 0 && !file->is_stdin) {
        close(file->fd);
    }
    file->fd = -1;
    free(file->spool);
    file->spool = NULL;
}
