#include "request/language.h"

#include <stdint.h>
#include <string.h>

#include "formats/foreign.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct {
    const char *name;
    const char *instead; /* of a refused language: what to do */
} languages[] = {
    [BHI_LANGUAGE_SPIRV] = {"SPIR-V", NULL},
    [BHI_LANGUAGE_GLSL] = {"GLSL", NULL},
    [BHI_LANGUAGE_HLSL] = {"HLSL", NULL},
    [BHI_LANGUAGE_CUDA] = {"CUDA", "bulkhead run compiles and runs it on a CUDA device"},
    [BHI_LANGUAGE_WGSL] = {"WGSL", "make SPIR-V of it: naga k.wgsl k.spv, or tint --format spirv"},
    [BHI_LANGUAGE_IMAGE] = {"an image for CUDA", "bulkhead run runs it on a CUDA device"},
    [BHI_LANGUAGE_HIP] = {"HIP", "port it to GLSL, HLSL, or OpenCL C (for clspv); SPIR-V from "
                                 "chipStar is for OpenCL, and Vulkan does not accept it"},
    [BHI_LANGUAGE_OPENCL] = {"OpenCL C", "make SPIR-V for Vulkan of it: clspv k.cl -o k.spv"},
    [BHI_LANGUAGE_METAL] = {"Metal",
                            "port it to GLSL, HLSL or Slang: no tool makes SPIR-V from it"},
    [BHI_LANGUAGE_SLANG] = {"Slang", "make SPIR-V of it: slangc k.slang -target spirv -stage "
                                     "compute -entry main -o k.spv"},
    [BHI_LANGUAGE_PYTHON] = {"Python", "write the kernel in GLSL or HLSL, or as an expression for "
                                       "bulkhead eval"},
};

static const struct {
    const char *text;
    enum bhi_language language;
} endings[] = {
    {".spv", BHI_LANGUAGE_SPIRV},    {".comp", BHI_LANGUAGE_GLSL},
    {".glsl", BHI_LANGUAGE_GLSL},    {".hlsl", BHI_LANGUAGE_HLSL},
    {".wgsl", BHI_LANGUAGE_WGSL},    {".cu", BHI_LANGUAGE_CUDA},
    {".cuh", BHI_LANGUAGE_CUDA},     {".hip", BHI_LANGUAGE_HIP},
    {".cl", BHI_LANGUAGE_OPENCL},    {".clcpp", BHI_LANGUAGE_OPENCL},
    {".metal", BHI_LANGUAGE_METAL},  {".slang", BHI_LANGUAGE_SLANG},
    {".ptx", BHI_LANGUAGE_IMAGE},    {".cubin", BHI_LANGUAGE_IMAGE},
    {".fatbin", BHI_LANGUAGE_IMAGE}, {".py", BHI_LANGUAGE_PYTHON},
};

/* Words that only one language has. The order matters, and the first match counts: HIP also has
 * CUDA's words, and Slang has HLSL's. */
static const struct {
    const char *word;
    enum bhi_language language;
} words[] = {
    {"#version", BHI_LANGUAGE_GLSL},
    {"@workgroup_size", BHI_LANGUAGE_WGSL},
    {"hip/hip_runtime.h", BHI_LANGUAGE_HIP},
    {"__global__", BHI_LANGUAGE_CUDA},
    {"metal_stdlib", BHI_LANGUAGE_METAL},
    {"[[thread_position_in_grid]]", BHI_LANGUAGE_METAL},
    {"__kernel", BHI_LANGUAGE_OPENCL},
    {"get_global_id(", BHI_LANGUAGE_OPENCL},
    {"[shader(\"compute\")]", BHI_LANGUAGE_SLANG},
    {"[numthreads(", BHI_LANGUAGE_HLSL},
    {".target sm_", BHI_LANGUAGE_IMAGE},
};

const char *bhi_language_word(size_t index) {
    static const char *const names[] = {"spirv", "glsl", "hlsl", "cuda"}; /* from SPIRV on */
    return index < COUNT(names) ? names[index] : NULL;
}

bool bhi_language_parse(const char *value, enum bhi_language *out,
                        struct bhi_complaint *complaint) {
    for (size_t i = 0; bhi_language_word(i); i++) {
        if (!strcmp(value, bhi_language_word(i))) {
            *out = (enum bhi_language)(BHI_LANGUAGE_SPIRV + i);
            return true;
        }
    }
    return bhi_refuse(complaint, "it is spirv, glsl, hlsl or cuda");
}

static int find_ending(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    for (size_t i = 0; dot && dot > base && i < COUNT(endings); i++) {
        if (!strcmp(dot, endings[i].text)) {
            return (int)i;
        }
    }
    return -1;
}

enum bhi_language bhi_language_of_name(const char *path) {
    const int ending = find_ending(path);
    return ending < 0 ? BHI_LANGUAGE_UNKNOWN : endings[ending].language;
}

size_t bhi_language_ending(const char *path) {
    const int ending = find_ending(path);
    return ending < 0 ? 0 : strlen(endings[ending].text);
}

/* Returns the end of the comment that begins at |at|, or |at| if none does. */
static const char *skip_comment(const char *at) {
    if (at[0] != '/' || (at[1] != '/' && at[1] != '*')) {
        return at;
    }
    const char *end = at[1] == '/' ? strchr(at, '\n') : strstr(at + 2, "*/");
    return !end ? at + strlen(at) : at[1] == '/' ? end : end + 2;
}

/* Returns true if |word| is at |at|. A directive may have blanks after its #. */
static bool is_at(const char *at, const char *word) {
    if (*at != *word) {
        return false;
    }
    if (*word == '#') {
        at += 1 + strspn(at + 1, " \t");
        word++;
    }
    return !strncmp(at, word, strlen(word));
}

/* Returns true if |code| has |word| outside of comments. Comments may name the language that a
 * kernel was ported from. */
static bool says(const char *code, const char *word) {
    for (const char *at = code; *at;) {
        const char *behind = skip_comment(at);
        if (behind == at && is_at(at, word)) {
            return true;
        }
        at = behind > at ? behind : at + 1;
    }
    return false;
}

enum bhi_language bhi_language_of_foreign(const void *code, size_t size) {
    const enum bhi_foreign foreign = bhi_foreign_find(code, size);
    return foreign ? (enum bhi_language)(BHI_LANGUAGE_FOREIGN + foreign) : BHI_LANGUAGE_UNKNOWN;
}

bool bhi_language_is_spirv(const void *code, size_t size) {
    static const uint8_t magics[2][4] = {{3, 2, 0x23, 7}, {7, 0x23, 2, 3}};
    return size >= 4 && (!memcmp(code, magics[0], 4) || !memcmp(code, magics[1], 4));
}

static const char elf_magic[] = {0x7f, 'E', 'L', 'F'};
static const char fatbin_magic[] = {0x50, (char)0xed, 0x55, (char)0xba};

static bool begins(const void *code, size_t size, const char magic[4]) {
    return size >= 4 && !memcmp(code, magic, 4);
}

bool bhi_language_is_binary_image(const void *code, size_t size) {
    return begins(code, size, elf_magic) || begins(code, size, fatbin_magic);
}

const char *bhi_language_image_kind(const void *code, size_t size) {
    return begins(code, size, elf_magic)      ? "cubin"
           : begins(code, size, fatbin_magic) ? "fatbin"
                                              : "PTX";
}

enum bhi_language bhi_language_of_code(const void *code, size_t size) {
    if (bhi_language_is_spirv(code, size)) {
        return BHI_LANGUAGE_SPIRV;
    }
    for (size_t i = 0; i < COUNT(words); i++) {
        if (says(code, words[i].word)) {
            return words[i].language;
        }
    }
    return BHI_LANGUAGE_UNKNOWN;
}

bool bhi_language_compiles(enum bhi_language language, bool takes_cuda,
                           struct bhi_complaint *complaint) {
    if (language > BHI_LANGUAGE_FOREIGN) {
        return bhi_foreign_refuse((enum bhi_foreign)(language - BHI_LANGUAGE_FOREIGN), "kernel",
                                  complaint);
    }
    return !languages[language].instead || (takes_cuda && bhi_language_is_cuda(language)) ||
           bhi_refuse(complaint, "it is %s, which is not supported; %s", languages[language].name,
                      languages[language].instead);
}
