#include "loader_header.h"

#include "loader_reads.h"
#include "npy.h"
#include "safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of each bhi_dtype, in its order. */
static const bh_dtype public_dtypes[] = {
    BH_DTYPE_F16, BH_DTYPE_F32, BH_DTYPE_F64, BH_DTYPE_I8,  BH_DTYPE_U8,  BH_DTYPE_I16,
    BH_DTYPE_U16, BH_DTYPE_I32, BH_DTYPE_U32, BH_DTYPE_I64, BH_DTYPE_U64, BH_DTYPE_BOOL,
};
_Static_assert(sizeof public_dtypes / sizeof public_dtypes[0] == BHI_DTYPE_COUNT, "one for each");

/* Reads |bytes|; where the file ends before, it has shrunk since its size was taken. */
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
    char *text = malloc(length + 1);
    if (text == NULL) {
        return bhi_refuse(complaint, "out of memory for a header of %zu bytes", length);
    }
    struct bhi_array array;
    const bool good = read_header(fd, text, start, length, out_error, complaint) &&
                      bhi_npy_parse_header(text, length, &array, complaint);
    free(text);
    if (!good) {
        return false;
    }
    answer->offset = start + length;
    answer->bytes = array.bytes;
    const uint64_t there = file->size - answer->offset;
    if (there != array.bytes) {
        return bhi_refuse(
            complaint, "%sthe shape wants %llu bytes of data, there are %llu from offset %llu on",
            there < array.bytes ? "truncated: " : "", (unsigned long long)array.bytes,
            (unsigned long long)there, (unsigned long long)answer->offset);
    }
    describe(answer, public_dtypes[array.dtype], array.dimensions, array.shape);
    return true;
}

/* The host names the tensor that was asked for before what it is told. */
static void name_once(struct bhi_complaint *complaint, const char *tensor) {
    char named[sizeof complaint->text];
    snprintf(named, sizeof named, "tensor '%.200s': ", tensor);
    const size_t length = strlen(named);
    if (strncmp(complaint->text, named, length) == 0) {
        memmove(complaint->text, complaint->text + length, strlen(complaint->text + length) + 1);
    }
}

static bool read_safetensors(const struct bhi_msg_file_attach *file, int fd,
                             struct bhi_file_answer *answer, int *out_error,
                             struct bhi_complaint *complaint) {
    uint8_t preamble[BHI_SAFETENSORS_PREAMBLE] = {0};
    size_t length;
    const uint64_t head = file->size < sizeof preamble ? file->size : sizeof preamble;
    if (!read_header(fd, preamble, 0, head, out_error, complaint) ||
        !bhi_safetensors_parse_preamble(preamble, file->size, &length, complaint)) {
        return false;
    }
    char *text = malloc(length + 1);
    if (text == NULL) {
        return bhi_refuse(complaint, "out of memory for a header of %zu bytes", length);
    }
    struct bhi_tensor tensor;
    const uint64_t data = sizeof preamble + length;
    const bool good =
        read_header(fd, text, sizeof preamble, length, out_error, complaint) &&
        bhi_safetensors_find(text, length, file->size - data, file->tensor, &tensor, complaint);
    free(text);
    if (!good) {
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
