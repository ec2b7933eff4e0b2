/* Any bytes as a .safetensors file: refused with a reason, or the tensor that is found lies in the
 * file and is as long as its shape takes. */
#include "formats/safetensors.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

static uint64_t size_of(bh_dtype dtype) {
    switch (dtype) {
    case BH_DTYPE_F64:
    case BH_DTYPE_I64:
    case BH_DTYPE_U64:
        return 8;
    case BH_DTYPE_F32:
    case BH_DTYPE_I32:
    case BH_DTYPE_U32:
        return 4;
    case BH_DTYPE_F16:
    case BH_DTYPE_BF16:
    case BH_DTYPE_I16:
    case BH_DTYPE_U16:
        return 2;
    case BH_DTYPE_NONE:
        return 0;
    default:
        return 1;
    }
}

struct seen {
    size_t count;
    bool wanted; /* one is called "t" */
    uint64_t rest;
};

static void see(void *user, const char *name, const char *type, const struct bhi_tensor *tensor) {
    struct seen *seen = user;
    seen->count++;
    seen->wanted |= !strcmp(name, "t");
    FUZZ_CHECK(type && tensor->dimensions <= BHI_MAX_DIMENSIONS);
    FUZZ_CHECK(tensor->begin <= seen->rest && tensor->bytes <= seen->rest - tensor->begin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bhi_complaint complaint = {.text = ""};
    struct bhi_tensor tensor;
    uint8_t preamble[BHI_SAFETENSORS_PREAMBLE] = {0};
    size_t length = 0;

    memcpy(preamble, data, size < sizeof preamble ? size : sizeof preamble);
    if (!bhi_safetensors_parse_preamble(preamble, size, &length, &complaint)) {
        FUZZ_CHECK(complaint.text[0] != 0);
        return 0;
    }
    FUZZ_CHECK(length <= size - sizeof preamble && length <= BHI_SAFETENSORS_MAX_HEADER);
    /* A copy of exactly the size, so that a sanitizer sees a read past its end. */
    char *text = malloc(length ? length : 1);
    FUZZ_CHECK(text);
    memcpy(text, data + sizeof preamble, length);
    const uint64_t rest = size - sizeof preamble - length;
    bool found = bhi_safetensors_find(text, length, rest, "t", &tensor, &complaint);
    struct bhi_complaint other = {.text = ""};
    struct seen seen = {.rest = rest};
    const bool listed = bhi_safetensors_list(text, length, rest, see, &seen, &other);
    free(text);
    /* What can be found is in a list; what can be listed is found, unless its dtype is new to us.
     */
    FUZZ_CHECK(!found || (listed && seen.wanted));
    FUZZ_CHECK(listed == (other.text[0] == 0));
    FUZZ_CHECK(found == (complaint.text[0] == 0));
    if (!found) {
        return 0;
    }
    FUZZ_CHECK(tensor.begin <= rest && tensor.bytes <= rest - tensor.begin);
    FUZZ_CHECK(tensor.dimensions <= BHI_MAX_DIMENSIONS && size_of(tensor.dtype) > 0);
    uint64_t bytes = size_of(tensor.dtype);
    bool empty = false;
    for (uint32_t i = 0; i < tensor.dimensions; i++) {
        empty |= tensor.shape[i] == 0;
        FUZZ_CHECK(tensor.shape[i] == 0 || !__builtin_mul_overflow(bytes, tensor.shape[i], &bytes));
    }
    FUZZ_CHECK(tensor.bytes == (empty ? 0 : bytes));
    return 0;
}
