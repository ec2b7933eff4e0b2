#include "formats/foreign.h"

#include <ctype.h>
#include <string.h>

static const struct {
    const char *magic; /* NULL: more than a comparison tells */
    const char *name;
    const char *remedy; /* with its ": " in front */
} kinds[] = {
    [BHI_FOREIGN_NONE] = {NULL, "", ""},
    [BHI_FOREIGN_LFS] = {"version https://git-lfs", "a Git LFS pointer",
                         ": git lfs pull fetches the file itself"},
    [BHI_FOREIGN_MARKUP] = {NULL, "a web page (HTML or XML)",
                            ": the download failed, and this is what the server said"},
    [BHI_FOREIGN_ZIP] =
        {"PK\3\4", "a ZIP archive, as .npz and PyTorch's files are",
         ": end a .npz's name in .npz; safetensors.torch.save_file writes PyTorch's tensors"},
    [BHI_FOREIGN_GZIP] = {"\x1f\x8b", "compressed with gzip", ": gunzip it"},
    [BHI_FOREIGN_HDF5] = {"\x89HDF", "an HDF5 file", ": save its arrays with numpy.save"},
    [BHI_FOREIGN_GGUF] = {"GGUF", "a GGUF file",
                          ": its Python package gguf has the arrays (GGUFReader, dequantize) for "
                          "numpy.save"},
    [BHI_FOREIGN_PICKLE] = {NULL, "a Python pickle",
                            ": load it in Python, and save its arrays with numpy.save"},
    [BHI_FOREIGN_NPY] = {"\x93NUMPY", "a .npy array", ""},
    [BHI_FOREIGN_SAFETENSORS] = {NULL, "a .safetensors file of arrays", ""},
};

/* Neither a kernel nor an array begins with a tag. */
static bool is_markup(const uint8_t *bytes, size_t size) {
    size_t at = 0;
    while (at < size && isspace(bytes[at])) {
        at++;
    }
    return at + 1 < size && bytes[at] == '<' &&
           (isalpha(bytes[at + 1]) || bytes[at + 1] == '!' || bytes[at + 1] == '?');
}

/* The length of the header, in 8 bytes, then the header itself. */
static bool is_safetensors(const uint8_t *bytes, size_t size) {
    static const uint8_t zeros[4];
    return size > 8 && !memcmp(bytes + 4, zeros, sizeof zeros) && bytes[8] == '{';
}

/* The second byte is the protocol. No other byte of a short pickle is certain. */
static bool is_pickle(const uint8_t *bytes, size_t size) {
    return size > 1 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5;
}

enum bhi_foreign bhi_foreign_find(const void *bytes, size_t size) {
    if (is_safetensors(bytes, size)) {
        return BHI_FOREIGN_SAFETENSORS;
    }
    if (is_markup(bytes, size)) {
        return BHI_FOREIGN_MARKUP;
    }
    if (is_pickle(bytes, size)) {
        return BHI_FOREIGN_PICKLE;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const size_t length = kinds[i].magic ? strlen(kinds[i].magic) : 0;
        const size_t enough = length < 8 ? length : 8;
        if (length > 0 && size >= enough &&
            !memcmp(bytes, kinds[i].magic, size < length ? size : length)) {
            return (enum bhi_foreign)i;
        }
    }
    return BHI_FOREIGN_NONE;
}

bool bhi_foreign_refuse(enum bhi_foreign foreign, const char *wanted,
                        struct bhi_complaint *complaint) {
    return bhi_refuse(complaint, "it is %s, not a %s%s", kinds[foreign].name, wanted,
                      kinds[foreign].remedy);
}
