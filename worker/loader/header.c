#include "worker/loader/header.h"

#include "base/format.h"
#include "base/owner.h"
#include "formats/npy.h"
#include "formats/safetensors.h"
#include "worker/loader/reads.h"
#include <bulkhead/file.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads |bytes|. If the file ends earlier, it has shrunk since its size was taken. */
static bool read_header(int fd, void *out, uint64_t offset, uint64_t bytes, int *out_error,
                        struct bhi_complaint *complaint) {
    struct bhi_read_failure failure;
    if (bhi_read_at(fd, out, offset, bytes, &failure)) {
        return true;
    }
    *out_error = failure.error;
    return bhi_refuse(complaint, "offset %llu: %s", (unsigned long long)failure.offset,
                      failure.error != 0 ? strerror(failure.error) : "the file ends here");
}

static void describe(struct bhi_file_answer *answer, bh_dtype dtype, uint32_t dimensions,
                     const uint64_t *shape) {
    answer->dtype = (uint32_t)dtype;
    answer->dimensions = dimensions;
    memcpy(answer->shape, shape, dimensions * sizeof *shape);
}

static bool read_npy(const struct bhi_msg_file_attach *file, int fd, struct bhi_file_answer *answer,
                     int *out_error, struct bhi_complaint *complaint) {
    uint8_t preamble[BHI_NPY_MAX_PREAMBLE];
    size_t start, length;
    const uint64_t head = file->size < sizeof preamble ? file->size : sizeof preamble;
    if (!read_header(fd, preamble, 0, head, out_error, complaint) ||
        !bhi_npy_parse_preamble(preamble, (size_t)head, &start, &length, complaint)) {
        return false;
    }
    if (length > file->size - start) {
        return bhi_refuse(complaint, "truncated header at offset %zu", start);
    }
    BHI_AUTO_FREE char *text = malloc(length + 1);
    if (!text) {
        return bhi_refuse(complaint, "out of memory for a header of %zu bytes", length);
    }
    struct bhi_array array;
    if (!read_header(fd, text, start, length, out_error, complaint) ||
        !bhi_npy_parse_header(text, length, &array, complaint)) {
        return false;
    }
    answer->offset = start + length;
    answer->bytes = array.bytes;
    const uint64_t there = file->size - answer->offset;
    if (there != array.bytes) {
        return bhi_refuse(
            complaint,
            "%s: the shape needs %llu bytes of data, but %llu follow the header of %llu bytes",
            there < array.bytes ? "truncated" : "too long", (unsigned long long)array.bytes,
            (unsigned long long)there, (unsigned long long)answer->offset);
    }
    answer->fortran = array.fortran;
    describe(answer, array.dtype, array.dimensions, array.shape);
    return true;
}

/* Removes the tensor's name from the complaint: the host puts it in front of the text itself. */
static void name_once(struct bhi_complaint *complaint, const char *tensor) {
    char named[sizeof complaint->text];
    bhi_format(named, sizeof named, "tensor '%.200s': ", tensor);
    const size_t length = strlen(named);
    if (strncmp(complaint->text, named, length) == 0) {
        memmove(complaint->text, complaint->text + length, strlen(complaint->text + length) + 1);
    }
}

/* The caller frees *out_text. *out_data is where the text ends and the data begins. */
static bool read_text(const struct bhi_msg_file_attach *file, int fd, char **out_text,
                      size_t *out_length, uint64_t *out_data, int *out_error,
                      struct bhi_complaint *complaint) {
    uint8_t preamble[BHI_SAFETENSORS_PREAMBLE] = {0};
    size_t length;
    const uint64_t head = file->size < sizeof preamble ? file->size : sizeof preamble;
    if (!read_header(fd, preamble, 0, head, out_error, complaint) ||
        !bhi_safetensors_parse_preamble(preamble, file->size, &length, complaint)) {
        return false;
    }
    BHI_AUTO_FREE char *text = malloc(length + 1);
    if (!text) {
        return bhi_refuse(complaint, "out of memory for a header of %zu bytes", length);
    }
    if (!read_header(fd, text, sizeof preamble, length, out_error, complaint)) {
        return false;
    }
    *out_text = BHI_STEAL(text);
    *out_length = length;
    *out_data = sizeof preamble + length;
    return true;
}

static bool read_safetensors(const struct bhi_msg_file_attach *file, int fd,
                             struct bhi_file_answer *answer, int *out_error,
                             struct bhi_complaint *complaint) {
    BHI_AUTO_FREE char *text = NULL;
    size_t length;
    uint64_t data;
    if (!read_text(file, fd, &text, &length, &data, out_error, complaint)) {
        return false;
    }
    struct bhi_tensor tensor;
    if (!bhi_safetensors_find(text, length, file->size - data, file->tensor, &tensor, complaint)) {
        name_once(complaint, file->tensor);
        return false;
    }
    answer->offset = data + tensor.begin;
    answer->bytes = tensor.bytes;
    describe(answer, tensor.dtype, tensor.dimensions, tensor.shape);
    return true;
}

bool bhi_loader_header(const struct bhi_msg_file_attach *file, int fd,
                       struct bhi_file_answer *answer, int *out_error,
                       struct bhi_complaint *complaint) {
    *out_error = 0;
    switch (file->format) {
    case BH_FILE_NPY:
        return read_npy(file, fd, answer, out_error, complaint);
    case BH_FILE_SAFETENSORS:
        return read_safetensors(file, fd, answer, out_error, complaint);
    }
    return bhi_refuse(complaint, "a raw range has no header");
}

/* -- all of them ------------------------------------------------------------------------------ */

struct listing {
    int out;
    uint64_t data; /* what the offsets count from */
    uint64_t room, count;
    int error; /* errno of a failed write */
};

static void write_row(struct listing *listing, const struct bhi_file_row *row) {
    const uint64_t at = bhi_file_list_bytes(listing->count++);
    if (listing->count > listing->room || listing->error != 0) {
        return;
    }
    const ssize_t written = pwrite(listing->out, row, sizeof *row, (off_t)at);
    if (written != (ssize_t)sizeof *row) {
        listing->error = written < 0 ? errno : EIO;
    }
}

static void take_tensor(void *user, const char *name, const char *type,
                        const struct bhi_tensor *tensor) {
    struct listing *listing = user;
    struct bhi_file_row row = {.dtype = (uint32_t)tensor->dtype,
                               .dimensions = tensor->dimensions,
                               .offset = listing->data + tensor->begin,
                               .bytes = tensor->bytes};
    memcpy(row.shape, tensor->shape, tensor->dimensions * sizeof tensor->shape[0]);
    bhi_format(row.type, sizeof row.type, "%s", type);
    bhi_format(row.name, sizeof row.name, "%s", name);
    write_row(listing, &row);
}

static bool list_safetensors(const struct bhi_msg_file_attach *file, int fd,
                             struct listing *listing, int *out_error,
                             struct bhi_complaint *complaint) {
    BHI_AUTO_FREE char *text = NULL;
    size_t length = 0;
    return read_text(file, fd, &text, &length, &listing->data, out_error, complaint) &&
           bhi_safetensors_list(text, length, file->size - listing->data, take_tensor, listing,
                                complaint);
}

/* Lists the one array, which has no name. */
static bool list_npy(const struct bhi_msg_file_attach *file, int fd, struct listing *listing,
                     int *out_error, struct bhi_complaint *complaint) {
    struct bhi_file_answer answer = {0};
    if (!read_npy(file, fd, &answer, out_error, complaint)) {
        return false;
    }
    struct bhi_file_row row = {.dtype = answer.dtype,
                               .dimensions = answer.dimensions,
                               .offset = answer.offset,
                               .bytes = answer.bytes};
    memcpy(row.shape, answer.shape, sizeof row.shape);
    if (bhi_dtype_is_known((bh_dtype)answer.dtype)) {
        bhi_format(row.type, sizeof row.type, "%s", bhi_dtype_npy_code((bh_dtype)answer.dtype));
    }
    write_row(listing, &row);
    return true;
}

bool bhi_loader_list(const struct bhi_msg_file_attach *file, int fd, int out, uint64_t room,
                     uint64_t *out_count, int *out_error, struct bhi_complaint *complaint) {
    struct listing listing = {.out = out, .room = room};
    *out_error = 0;
    const bool good = file->format == BH_FILE_NPY
                          ? list_npy(file, fd, &listing, out_error, complaint)
                      : file->format == BH_FILE_SAFETENSORS
                          ? list_safetensors(file, fd, &listing, out_error, complaint)
                          : bhi_refuse(complaint, "a raw range has no header");
    if (good && listing.error != 0) {
        *out_error = listing.error;
        return bhi_refuse(complaint, "the list could not be written: %s", strerror(listing.error));
    }
    *out_count = listing.count;
    return good;
}
