/* Any bytes as a CUDA kernel's image: refused with a reason, or all that its headers speak of is there. */
#include "fuzz.h"
#include "worker/cuda/image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define FATBIN_MAGIC 0xba55ed50u

/* Where the last of its parts ends. */
static uint64_t end_of_elf(const uint8_t *data) {
    Elf64_Ehdr header;
    memcpy(&header, data, sizeof header);
    uint64_t end = sizeof header;
    for (uint32_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, data + header.e_shoff + i * sizeof section, sizeof section);
        const uint64_t table = header.e_shoff + (i + 1) * sizeof section;
        const uint64_t content =
            section.sh_type == SHT_NOBITS ? 0 : section.sh_offset + section.sh_size;
        end = table > end ? table : end;
        end = content > end ? content : end;
    }
    return end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *image = malloc(size ? size : 1); /* of exactly this size */
    FUZZ_CHECK(image);
    if (size > 0) {
        memcpy(image, data, size);
    }
    const char *why = bhi_cuda_image_check(image, size);
    uint32_t magic = 0;
    memcpy(&magic, image, size < sizeof magic ? size : sizeof magic);
    if (why) {
        FUZZ_CHECK(why[0]);
    } else if (size >= sizeof(Elf64_Ehdr) && memcmp(image, ELFMAG, SELFMAG) == 0) {
        const uint64_t end = end_of_elf(image);
        FUZZ_CHECK(end <= size);
        FUZZ_CHECK(end == sizeof(Elf64_Ehdr) || bhi_cuda_image_check(image, (size_t)end - 1));
    } else if (magic == FATBIN_MAGIC) {
        uint64_t bytes;
        FUZZ_CHECK(size >= 16);
        memcpy(&bytes, image + 8, sizeof bytes);
        FUZZ_CHECK(bytes <= size - 16);
    } else {
        FUZZ_CHECK(memmem(image, size, ".version", 8));
    }
    free(image);
    return 0;
}
