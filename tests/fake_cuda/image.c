/* ELF objects in memory: loading one without files, and its symbols. Nothing in it is trusted but its
 * code. */
#include "fake_cuda.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES    ((size_t)4096)
#define MOST_BYTES    ((size_t)16 << 20)
#define MOST_SEGMENTS 16
#define MOST_SYMBOLS  4096

#if defined(__x86_64__)
#define MACHINE  EM_X86_64
#define RELATIVE R_X86_64_RELATIVE
#elif defined(__aarch64__)
#define MACHINE  EM_AARCH64
#define RELATIVE R_AARCH64_RELATIVE
#endif

struct load {
    struct fake_image *image;
    const unsigned char *elf;
    Elf64_Ehdr header;
    Elf64_Phdr segments[MOST_SEGMENTS];
    size_t dynamic, dynamic_bytes;
    size_t relocations, relocation_bytes, hash;
    volatile CUresult result;
};

CUresult fake_code_init(struct fake_code *code) {
    const size_t bytes = FAKE_CODE_PAGES * PAGE_BYTES;
    void *runs = MAP_FAILED, *writes = MAP_FAILED;
    int fd = memfd_create("fake-cuda-code", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0) {
        runs = mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
        writes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (fd >= 0) {
        close(fd);
    }
    code->runs = runs != MAP_FAILED ? runs : NULL;
    code->writes = writes != MAP_FAILED ? writes : NULL;
    return code->runs && code->writes ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void fake_code_fini(struct fake_code *code) {
    if (code->runs) {
        munmap(code->runs, FAKE_CODE_PAGES * PAGE_BYTES);
    }
    if (code->writes) {
        munmap(code->writes, FAKE_CODE_PAGES * PAGE_BYTES);
    }
}

static bool is_within(size_t at, size_t bytes, size_t all) {
    return at <= all && bytes <= all - at;
}

static bool is_in(const struct load *load, size_t at, size_t bytes) {
    return is_within(at, bytes, load->image->bytes);
}

static size_t page_end(size_t at) {
    return (at + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
}

static CUresult read_header(struct load *load) {
    static const unsigned char expected[] = {0x7f,       'E',         'L',       'F',
                                             ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
    Elf64_Ehdr *header = &load->header;
    fake_move(header, load->elf, sizeof *header);
    FAKE_REQUIRE(memcmp(header->e_ident, expected, sizeof expected) == 0 &&
                     header->e_type == ET_DYN && header->e_phentsize == sizeof(Elf64_Phdr) &&
                     header->e_phnum <= MOST_SEGMENTS && header->e_phoff <= MOST_BYTES,
                 INVALID_IMAGE);
    fake_move(load->segments, load->elf + header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr));
    return header->e_machine == MACHINE ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* In ascending order, none on a page of another, none writable and executable. */
static CUresult measure(struct load *load) {
    size_t end = 0;
    for (unsigned i = 0; i < load->header.e_phnum; i++) {
        const Elf64_Phdr *segment = &load->segments[i];
        if (segment->p_type == PT_DYNAMIC) {
            load->dynamic = segment->p_vaddr;
            load->dynamic_bytes = segment->p_memsz;
        }
        if (segment->p_type != PT_LOAD) {
            continue;
        }
        FAKE_REQUIRE(segment->p_vaddr >= end &&
                         is_within(segment->p_vaddr, segment->p_memsz, MOST_BYTES) &&
                         segment->p_filesz <= segment->p_memsz &&
                         is_within(segment->p_offset, segment->p_filesz, MOST_BYTES),
                     INVALID_IMAGE);
        FAKE_REQUIRE((segment->p_flags & PF_R) &&
                         (segment->p_flags & (PF_W | PF_X)) != (PF_W | PF_X),
                     INVALID_IMAGE);
        end = page_end(segment->p_vaddr + segment->p_memsz);
    }
    load->image->bytes = end;
    FAKE_REQUIRE(end > 0 && is_in(load, load->dynamic, load->dynamic_bytes), INVALID_IMAGE);
    return CUDA_SUCCESS;
}

/* The first free place. */
static CUresult find_place(struct load *load) {
    struct fake_image *image = load->image;
    const size_t pages = image->bytes / PAGE_BYTES;
    for (size_t first = 0, i = 0; i < FAKE_CODE_PAGES; i++) {
        first = image->code->used[i] ? i + 1 : first;
        if (i + 1 - first == pages) {
            memset(&image->code->used[first], true, pages);
            image->at = image->code->runs + first * PAGE_BYTES;
            image->writes = image->code->writes + first * PAGE_BYTES;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult copy_segments(struct load *load) {
    memset(load->image->writes, 0, load->image->bytes);
    for (unsigned i = 0; i < load->header.e_phnum; i++) {
        const Elf64_Phdr *segment = &load->segments[i];
        if (segment->p_type == PT_LOAD) {
            fake_move(load->image->writes + segment->p_vaddr, load->elf + segment->p_offset,
                      segment->p_filesz);
        }
    }
    return CUDA_SUCCESS;
}

static CUresult read_dynamic(struct load *load) {
    struct fake_image *image = load->image;
    size_t *const places[] = {
        [DT_HASH] = &load->hash,           [DT_STRTAB] = &image->strings,
        [DT_STRSZ] = &image->string_bytes, [DT_SYMTAB] = &image->symbols,
        [DT_RELA] = &load->relocations,    [DT_RELASZ] = &load->relocation_bytes,
    };
    Elf64_Dyn entry;
    for (size_t at = 0; at + sizeof entry <= load->dynamic_bytes; at += sizeof entry) {
        memcpy(&entry, image->at + load->dynamic + at, sizeof entry);
        switch (entry.d_tag) {
        case DT_NULL:
            at = load->dynamic_bytes - sizeof entry;
            break;
        case DT_HASH:
        case DT_STRTAB:
        case DT_STRSZ:
        case DT_SYMTAB:
        case DT_RELA:
        case DT_RELASZ:
            *places[entry.d_tag] = entry.d_un.d_val;
            break;
        case DT_NEEDED:
        case DT_JMPREL:
        case DT_PLTRELSZ:
        case DT_REL:
        case DT_INIT:
        case DT_INIT_ARRAY:
        case DT_TEXTREL:
            return CUDA_ERROR_INVALID_IMAGE;
        default:
            break;
        }
    }
    uint32_t hash[2]; /* the counts of buckets and of symbols */
    FAKE_REQUIRE(load->hash > 0 && is_in(load, load->hash, sizeof hash), INVALID_IMAGE);
    memcpy(hash, image->at + load->hash, sizeof hash);
    image->symbol_count = hash[1];
    FAKE_REQUIRE(image->symbol_count <= MOST_SYMBOLS &&
                     is_in(load, image->symbols, image->symbol_count * sizeof(Elf64_Sym)),
                 INVALID_IMAGE);
    FAKE_REQUIRE(image->string_bytes > 0 && is_in(load, image->strings, image->string_bytes) &&
                     image->at[image->strings + image->string_bytes - 1] == '\0',
                 INVALID_IMAGE);
    return CUDA_SUCCESS;
}

static CUresult relocate(struct load *load) {
    unsigned char *base = load->image->at;
    Elf64_Rela entry;
    Elf64_Sym symbol;
    FAKE_REQUIRE(is_in(load, load->relocations, load->relocation_bytes), INVALID_IMAGE);
    for (size_t at = 0; at + sizeof entry <= load->relocation_bytes; at += sizeof entry) {
        memcpy(&entry, base + load->relocations + at, sizeof entry);
        FAKE_REQUIRE(entry.r_info == ELF64_R_INFO(0, RELATIVE) &&
                         is_in(load, entry.r_offset, sizeof(uint64_t)) &&
                         is_in(load, (size_t)entry.r_addend, 0),
                     INVALID_IMAGE);
        const uint64_t value = (uintptr_t)base + (uint64_t)entry.r_addend;
        memcpy(load->image->writes + entry.r_offset, &value, sizeof value);
    }
    /* Nobody would define what it lacks. */
    for (size_t i = 1; i < load->image->symbol_count; i++) {
        memcpy(&symbol, base + load->image->symbols + i * sizeof symbol, sizeof symbol);
        FAKE_REQUIRE(symbol.st_shndx != SHN_UNDEF, INVALID_IMAGE);
    }
    return CUDA_SUCCESS;
}

static CUresult check_arch(struct load *load) {
    const int *arch = fake_image_find(load->image, "fake_arch", sizeof *arch);
    FAKE_REQUIRE(arch && *arch == FAKE_CUDA_ARCH, NO_BINARY_FOR_GPU);
    return CUDA_SUCCESS;
}

static void run_load(void *argument) {
    static CUresult (*const steps[])(struct load *) = {
        read_header, measure, find_place, copy_segments, read_dynamic, relocate, check_arch,
    };
    struct load *load = argument;
    load->result = CUDA_SUCCESS;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && load->result == CUDA_SUCCESS; i++) {
        load->result = steps[i](load);
    }
}

CUresult fake_image_load(struct fake_code *code, struct fake_image *image, const void *elf) {
    struct load load = {.image = image, .elf = elf};
    *image = (struct fake_image){.code = code};
    if (fake_guard(run_load, &load) != CUDA_SUCCESS) {
        load.result = CUDA_ERROR_INVALID_IMAGE;
    }
    if (load.result == CUDA_SUCCESS) {
        __builtin___clear_cache((char *)image->at, (char *)image->at + image->bytes);
    } else {
        fake_image_unload(image);
    }
    return load.result;
}

void fake_image_unload(struct fake_image *image) {
    if (image->at) {
        memset(&image->code->used[(size_t)(image->at - image->code->runs) / PAGE_BYTES], false,
               image->bytes / PAGE_BYTES);
        image->at = NULL;
    }
}

const void *fake_image_find(const struct fake_image *image, const char *name, size_t bytes) {
    Elf64_Sym symbol;
    for (size_t i = 1; i < image->symbol_count; i++) {
        memcpy(&symbol, image->at + image->symbols + i * sizeof symbol, sizeof symbol);
        if (symbol.st_name < image->string_bytes &&
            strcmp((const char *)image->at + image->strings + symbol.st_name, name) == 0 &&
            ELF64_ST_TYPE(symbol.st_info) == (bytes > 0 ? STT_OBJECT : STT_FUNC) &&
            (bytes == 0 || symbol.st_value % sizeof(uint32_t) == 0) && bytes <= symbol.st_size &&
            is_within(symbol.st_value, symbol.st_size, image->bytes)) {
            return image->at + symbol.st_value;
        }
    }
    return NULL;
}
