/* Any bytes as what a compiler says of a module: they are refused, or every count of what comes out
 * lies in its array and every text is clean. */
#include "fuzz.h"
#include "supervisor/compile/inspection_take.h"

#include <stdlib.h>
#include <string.h>

/* NUL-terminated, and nothing in it that a terminal would act on. */
static void check_text(const char text[64]) {
    const char *end = memchr(text, '\0', 64);
    FUZZ_CHECK(end);
    for (const char *c = text; c < end; c++) {
        FUZZ_CHECK((unsigned char)*c >= 0x20 || *c == '\n' || *c == '\t');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bhi_inspection *from = calloc(1, sizeof *from);
    bh_inspection *out = malloc(sizeof *out);
    FUZZ_CHECK(from && out);
    memcpy(from, data, size < sizeof *from ? size : sizeof *from);
    /* The rest is what the bytes are, over and over: texts without an end. */
    for (size_t at = size; size && at < sizeof *from; at++) {
        ((uint8_t *)from)[at] = data[at % size];
    }
    if (bhi_inspection_take(from, out)) {
        FUZZ_CHECK(out->entry_count <= 16 && out->binding_count <= 256 && out->member_count <= 64 &&
                   out->constant_count <= 256 && out->capability_count <= 64 &&
                   out->text_bytes <= BHI_INSPECT_MAX_TEXT);
        for (uint32_t i = 0; i < 16; i++) {
            check_text(out->entries[i]);
        }
        for (uint32_t i = 0; i < out->binding_count; i++) {
            FUZZ_CHECK(out->bindings[i].access >= BH_ACCESS_READ &&
                       out->bindings[i].access <= BH_ACCESS_READ_WRITE &&
                       out->bindings[i].count >= 1 && out->bindings[i].count <= 256);
            check_text(out->bindings[i].type);
            check_text(out->bindings[i].name);
        }
        for (uint32_t i = 0; i < 64; i++) {
            check_text(out->members[i].type);
            check_text(out->members[i].name);
            check_text(out->capabilities[i]);
        }
        for (uint32_t i = 0; i < out->constant_count; i++) {
            FUZZ_CHECK(out->constants[i].dtype != BH_DTYPE_NONE);
            check_text(out->constants[i].name);
        }
    }
    free(from);
    free(out);
    return 0;
}
