/* Any bytes as a .npz, and as a .npy file: the parser refuses them with a reason, or gives an array whose header,
 * written again, parses to the same array. */
#include "formats/npy.h"
#include "formats/npz.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TRANSPOSED = 1 << 12 };

/* Back is the same in the reverse order of the dimensions. */
static void transpose(const struct bhi_array *array) {
    const uint32_t size = bhi_dtype_size(array->dtype);
    uint8_t *const all = malloc(3 * array->bytes);
    uint64_t back[BHI_MAX_DIMENSIONS];
    FUZZ_CHECK(all && array->bytes > 0 && array->dimensions > 1);
    uint8_t *const there = all + array->bytes, *const again = there + array->bytes;
    for (uint64_t i = 0; i < array->bytes; i++) {
        all[i] = (uint8_t)(i * 2654435761u >> 9);
    }
    for (uint32_t i = 0; i < array->dimensions; i++) {
        back[i] = array->shape[array->dimensions - 1 - i];
    }
    bhi_array_transpose(size, array->dimensions, array->shape, all, there);
    bhi_array_transpose(size, array->dimensions, back, there, again);
    FUZZ_CHECK(!memcmp(all, again, array->bytes));
    free(all);
}

struct input {
    const uint8_t *bytes;
    size_t size;
};

static bool read_input(void *user, void *out, uint64_t offset, uint64_t bytes,
                       struct bhi_complaint *complaint) {
    const struct input *input = user;
    (void)complaint;
    FUZZ_CHECK(offset <= input->size && bytes <= input->size - offset);
    memcpy(out, input->bytes + offset, bytes);
    return true;
}

static bool take_member(void *user, const struct bhi_zip_member *member,
                        struct bhi_complaint *complaint) {
    const struct bhi_readable *file = user;
    struct bhi_zip_member one = *member;
    struct bhi_array array;
    uint64_t data;
    FUZZ_CHECK(one.offset <= file->size && one.bytes <= file->size - one.offset);
    if (bhi_npz_take_name(&one) &&
        bhi_npy_read(file, one.offset, one.bytes, &array, &data, complaint)) {
        FUZZ_CHECK(data + array.bytes == one.offset + one.bytes);
    }
    return true;
}

static void read_archive(const uint8_t *data, size_t size) {
    struct bhi_complaint complaint = {.text = ""};
    struct bhi_readable file = {read_input, &(struct input){data, size}, size};
    const bool good = bhi_zip_walk(&file, take_member, &file, &complaint);
    FUZZ_CHECK(good || complaint.text[0] != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bhi_complaint complaint = {.text = ""};
    struct bhi_array array, again;
    uint8_t written[BHI_NPY_WRITE_CAPACITY];
    size_t start = 0, length = 0;

    read_archive(data, size);
    /* A copy of exactly the size, so that a sanitizer sees a read past its end. */
    size_t head = size < BHI_NPY_MAX_PREAMBLE ? size : BHI_NPY_MAX_PREAMBLE;
    uint8_t *preamble = malloc(head ? head : 1);
    FUZZ_CHECK(preamble);
    memcpy(preamble, data, head);
    int good = bhi_npy_parse_preamble(preamble, head, &start, &length, &complaint);
    free(preamble);
    if (!good) {
        FUZZ_CHECK(complaint.text[0] != 0);
        return 0;
    }
    FUZZ_CHECK(length <= BHI_NPY_MAX_HEADER && start <= size);
    if (length > size - start) {
        length = size - start;
    }
    char *text = malloc(length ? length : 1);
    FUZZ_CHECK(text);
    memcpy(text, data + start, length);
    good = bhi_npy_parse_header(text, length, &array, &complaint);
    free(text);
    if (!good) {
        FUZZ_CHECK(complaint.text[0] != 0);
        return 0;
    }
    FUZZ_CHECK(array.dimensions <= BHI_MAX_DIMENSIONS);
    if (array.fortran && array.bytes <= MOST_TRANSPOSED) {
        transpose(&array);
    }
    size_t wrote = bhi_npy_write_header(&array, written, sizeof written);
    FUZZ_CHECK(wrote != 0 && wrote % 64 == 0);
    FUZZ_CHECK(bhi_npy_parse_preamble(written, BHI_NPY_MAX_PREAMBLE, &start, &length, &complaint));
    FUZZ_CHECK(start + length == wrote);
    FUZZ_CHECK(bhi_npy_parse_header((const char *)written + start, length, &again, &complaint));
    FUZZ_CHECK(again.dtype == array.dtype && again.dimensions == array.dimensions &&
               again.bytes == array.bytes);
    FUZZ_CHECK(!memcmp(again.shape, array.shape, array.dimensions * sizeof array.shape[0]));
    return 0;
}
