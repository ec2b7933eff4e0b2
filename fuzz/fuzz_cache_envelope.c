/* Any bytes as the file of a pipeline cache: refused with a reason, or exactly what was sealed. So
 * that more than the checksum is seen at work the same bytes are sealed, too, and then damaged. */
#include "fuzz.h"
#include "worker/opener/cache_envelope.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t identity[BHI_ENVELOPE_IDENTITY] = {9}, other[BHI_ENVELOPE_IDENTITY] = {7};

static void any_bytes(const uint8_t *data, size_t size) {
    size_t bytes = 1;
    const char *why = bhi_envelope_check(data, size, identity, &bytes);
    if (why) {
        FUZZ_CHECK(why[0] && bytes == 0);
        return;
    }
    uint8_t header[BHI_ENVELOPE_HEADER];
    FUZZ_CHECK(size == BHI_ENVELOPE_HEADER + bytes);
    bhi_envelope_seal(header, identity, data + BHI_ENVELOPE_HEADER, bytes);
    FUZZ_CHECK(memcmp(header, data, sizeof header) == 0);
}

static void damaged(const uint8_t *data, size_t size) {
    uint8_t *file = malloc(BHI_ENVELOPE_HEADER + size);
    FUZZ_CHECK(file);
    if (size) {
        memcpy(file + BHI_ENVELOPE_HEADER, data, size);
    }
    bhi_envelope_seal(file, identity, file + BHI_ENVELOPE_HEADER, size);
    size_t total = BHI_ENVELOPE_HEADER + size, bytes;
    FUZZ_CHECK(!bhi_envelope_check(file, total, identity, &bytes) && bytes == size);
    size_t at = size >= 4 ? ((size_t)data[0] << 8 | data[1]) % total : size;
    uint8_t flip = (uint8_t)(size >= 4 && data[2] ? data[2] : 1);
    file[at] ^= flip;
    FUZZ_CHECK(bhi_envelope_check(file, total, identity, &bytes) && bytes == 0);
    file[at] ^= flip;
    FUZZ_CHECK(bhi_envelope_check(file, at, identity, &bytes) && bytes == 0);
    FUZZ_CHECK(bhi_envelope_check(file, total, other, &bytes) && bytes == 0);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    any_bytes(data, size);
    damaged(data, size);
    return 0;
}
