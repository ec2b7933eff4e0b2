#include "worker/loader/header.h"

#include "base/format.h"
#include "base/owner.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/safetensors.h"
#include "worker/loader/reads.h"
#include <bulkhead/file.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file as the formats see it. */
struct open_file {
    int fd;
    int *out_error; /* errno of a failed read */
};

/* If the file ends earlier, it has shrunk since its size was taken. */
static bool read_open(void *user, void *out, uint64_t offset, uint64_t bytes,
                      struct bhi_complaint *complaint) {
    const struct open_file *open = user;
    struct bhi_read_failure failure;
    if (bhi_read_at(open->fd, out, offset, bytes, &failure)) {
        return true;
    }
    *open->out_error = failure.error;
    return bhi_refuse(complaint, "offset %llu: %s", (unsigned long long)failure.offset,
                      failure.error != 0 ? strerror(failure.error) : "the file ends here");
}

static void describe(struct bhi_file_answer *answer, bh_dtype dtype, uint32_t dimensions,
                     const uint64_t *shape) {
    answer->dtype = (uint32_t)dtype;
    answer->dimensions = dimensions;
    memcpy(answer->shape, shape, dimensions * sizeof *shape);
}

/* The .npy that is at |begin| and has |bytes|: all of the file, or a member of a .npz. */
static bool read_npy(const struct bhi_readable *source, uint64_t begin, uint64_t bytes,
                     struct bhi_file_answer *answer, struct bhi_complaint *complaint) {
    struct bhi_array array;
    if (!bhi_npy_read(source, begin, bytes, &array, &answer->offset, complaint)) {
        return false;
    }
    answer->bytes = array.bytes;
    answer->fortran = array.fortran;
    describe(answer, array.dtype, array.dimensions, array.shape);
    return true;
}

static bool read_npz(const struct bhi_readable *source, const char *name,
                     struct bhi_file_answer *answer, struct bhi_complaint *complaint) {
    struct bhi_zip_member member;
    return bhi_npz_find(source, name, &member, complaint) &&
           read_npy(source, member.offset, member.bytes, answer, complaint);
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

static bool read_safetensors(const struct bhi_readable *source, const char *name,
                             struct bhi_file_answer *answer, struct bhi_complaint *complaint) {
    BHI_AUTO_FREE char *text = NULL;
    size_t length;
    uint64_t data;
    if (!bhi_safetensors_read(source, &text, &length, &data, complaint)) {
        return false;
    }
    struct bhi_tensor tensor;
    if (!bhi_safetensors_find(text, length, source->size - data, name, &tensor, complaint)) {
        name_once(complaint, name);
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
    struct open_file open = {fd, out_error};
    const struct bhi_readable source = {read_open, &open, file->size};
    *out_error = 0;
    switch (file->format) {
    case BH_FILE_NPY:
        return read_npy(&source, 0, file->size, answer, complaint);
    case BH_FILE_NPZ:
        return read_npz(&source, file->tensor, answer, complaint);
    case BH_FILE_SAFETENSORS:
        return read_safetensors(&source, file->tensor, answer, complaint);
    }
    return bhi_refuse(complaint, "a raw range has no header");
}

/* -- all of them ------------------------------------------------------------------------------ */

struct listing {
    const struct bhi_readable *source;
    const int *read_error; /* errno of a failed read */
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

static bool list_safetensors(const struct bhi_readable *source, struct listing *listing,
                             struct bhi_complaint *complaint) {
    BHI_AUTO_FREE char *text = NULL;
    size_t length = 0;
    return bhi_safetensors_read(source, &text, &length, &listing->data, complaint) &&
           bhi_safetensors_list(text, length, source->size - listing->data, take_tensor, listing,
                                complaint);
}

/* |name| is empty for all of the file. */
static bool list_npy(struct listing *listing, const char *name, uint64_t begin, uint64_t bytes,
                     struct bhi_complaint *complaint) {
    struct bhi_file_answer answer = {0};
    if (!read_npy(listing->source, begin, bytes, &answer, complaint)) {
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
    bhi_format(row.name, sizeof row.name, "%s", name);
    write_row(listing, &row);
    return true;
}

/* An array that cannot be loaded has the place of its member, and no dtype. */
static bool list_member(void *user, const struct bhi_zip_member *member,
                        struct bhi_complaint *complaint) {
    struct listing *listing = user;
    struct bhi_zip_member one = *member;
    if (!bhi_npz_take_name(&one)) {
        return true;
    }
    if (!one.packed && list_npy(listing, one.name, one.offset, one.bytes, complaint)) {
        return true;
    }
    struct bhi_file_row row = {.dtype = BH_DTYPE_NONE, .offset = one.offset, .bytes = one.bytes};
    bhi_format(row.type, sizeof row.type, one.packed ? "compressed" : "other");
    bhi_format(row.name, sizeof row.name, "%s", one.name);
    write_row(listing, &row);
    return *listing->read_error == 0;
}

bool bhi_loader_list(const struct bhi_msg_file_attach *file, int fd, int out, uint64_t room,
                     uint64_t *out_count, int *out_error, struct bhi_complaint *complaint) {
    struct open_file open = {fd, out_error};
    const struct bhi_readable source = {read_open, &open, file->size};
    struct listing listing = {.source = &source, .read_error = out_error, .out = out, .room = room};
    *out_error = 0;
    const bool good =
        file->format == BH_FILE_NPY   ? list_npy(&listing, "", 0, file->size, complaint)
        : file->format == BH_FILE_NPZ ? bhi_zip_walk(&source, list_member, &listing, complaint)
        : file->format == BH_FILE_SAFETENSORS ? list_safetensors(&source, &listing, complaint)
                                              : bhi_refuse(complaint, "a raw range has no header");
    if (good && listing.error != 0) {
        *out_error = listing.error;
        return bhi_refuse(complaint, "the list could not be written: %s", strerror(listing.error));
    }
    *out_count = listing.count;
    return good;
}
