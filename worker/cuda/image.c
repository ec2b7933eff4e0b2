#include "worker/cuda/image.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FATBIN_MAGIC 0xba55ed50u

struct fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* after the header */
};

static bool inside(uint64_t offset, uint64_t bytes, size_t size) {
    return offset <= size && bytes <= size - offset;
}

/* A table of an ELF file: where it is, and where in each entry its type, offset and length are. */
struct table {
    uint64_t at;
    uint32_t count, stride, size, type, offset, length;
};

static bool is_cut(const uint8_t *bytes, size_t size, const struct table *table) {
    if (table->count > 0 && (table->stride != table->size ||
                             !inside(table->at, (uint64_t)table->count * table->size, size))) {
        return true;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        const uint8_t *entry = bytes + table->at + (size_t)i * table->size;
        uint64_t offset, length;
        uint32_t type;
        memcpy(&type, entry + table->type, sizeof type);
        memcpy(&offset, entry + table->offset, sizeof offset);
        memcpy(&length, entry + table->length, sizeof length);
        if (type != SHT_NOBITS && !inside(offset, length, size)) {
            return true;
        }
    }
    return false;
}

static const char *check_elf(const uint8_t *bytes, size_t size) {
    Elf64_Ehdr header;
    if (size < sizeof header) {
        return "it is cut short in the header of its ELF file";
    }
    memcpy(&header, bytes, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
        return "it is an ELF file, but not of a GPU";
    }
    const struct table tables[] = {
        {header.e_shoff, header.e_shnum, header.e_shentsize, sizeof(Elf64_Shdr),
         offsetof(Elf64_Shdr, sh_type), offsetof(Elf64_Shdr, sh_offset),
         offsetof(Elf64_Shdr, sh_size)},
        {header.e_phoff, header.e_phnum, header.e_phentsize, sizeof(Elf64_Phdr),
         offsetof(Elf64_Phdr, p_type), offsetof(Elf64_Phdr, p_offset),
         offsetof(Elf64_Phdr, p_filesz)},
    };
    if (is_cut(bytes, size, &tables[0]) || is_cut(bytes, size, &tables[1])) {
        return "its ELF file is cut short";
    }
    return NULL;
}

const char *bhi_cuda_image_check(const void *image, size_t size) {
    struct fatbin fatbin;
    if (size >= SELFMAG && memcmp(image, ELFMAG, SELFMAG) == 0) {
        return check_elf(image, size);
    }
    memcpy(&fatbin, image, size < sizeof fatbin ? size : sizeof fatbin);
    if (size >= sizeof fatbin.magic && fatbin.magic == FATBIN_MAGIC) {
        return size >= sizeof fatbin && fatbin.header_bytes >= sizeof fatbin &&
                       inside(fatbin.header_bytes, fatbin.bytes, size)
                   ? NULL
                   : "its fat binary is cut short";
    }
    const size_t text = strnlen(image, size);
    if (text < size && text + 1 != size) { /* one NUL at its end is usual */
        return "it is neither PTX text, a cubin nor a fat binary";
    }
    return memmem(image, size, ".version", 8) ? NULL
                                              : "it is neither PTX text, a cubin nor a fat binary: "
                                                "there is no .version in it";
}
