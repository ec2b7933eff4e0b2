/* Any bytes as PTX, of which nobody knows who has written it: no kernel is found, or one within the bounds. */
#include "fuzz.h"
#include "judge/check/ptx.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {NULL, "a", "saxpy"};
    struct bhi_ptx_entry entry;
    char *text = malloc(size + 1); /* of exactly this size */
    FUZZ_CHECK(text);
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!bhi_ptx_find(text, size, names[i], &entry)) {
            continue;
        }
        FUZZ_CHECK(strstr(text, ".entry") && entry.count <= BHI_PTX_PARAMETERS);
        FUZZ_CHECK(strnlen(entry.name, BHI_PTX_NAME) < BHI_PTX_NAME);
        for (uint32_t k = 0; k < entry.count; k++) {
            FUZZ_CHECK(strchr("usfb", entry.parameters[k].kind) && entry.parameters[k].bytes);
        }
    }
    free(text);
    return 0;
}
