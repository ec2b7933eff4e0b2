#include "request/kernel_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "request/code.h"
#include "tool/text.h"

void bhi_kernel_file_name(const char *path, char out[64]) {
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t length = strlen(base) - bhi_language_ending(base);
    if (!strcmp(base, "-")) {
        base = "stdin";
        length = strlen(base);
    }
    char name[256];
    snprintf(name, sizeof name, "%.*s", length > 255 ? 255 : (int)length, base);
    bhi_text_clean(out, 64, name);
}

enum bhi_language bhi_kernel_file_language(const struct bhi_kernel_file *file) {
    const char *name = file->name ? file->name : file->path;
    enum bhi_language language =
        file->code ? bhi_language_of_foreign(file->code, file->size) : BHI_LANGUAGE_UNKNOWN;
    if (!language && file->code && bhi_language_is_spirv(file->code, file->size)) {
        language = BHI_LANGUAGE_SPIRV; /* whatever its name: no source begins like this */
    }
    if (!language && file->code && bhi_language_is_binary_image(file->code, file->size)) {
        language = BHI_LANGUAGE_IMAGE;
    }
    if (!language) {
        language = file->language;
    }
    if (!language) {
        language = bhi_language_of_name(name);
    }
    if (!language && file->code) {
        language = bhi_language_of_code(file->code, file->size);
    }
    if (!language) {
        language = !strcmp(name, "-") ? BHI_LANGUAGE_GLSL : BHI_LANGUAGE_SPIRV;
    }
    return language;
}

bool bhi_kernel_file_is_source(const struct bhi_kernel_file *file) {
    const enum bhi_language language = bhi_kernel_file_language(file);
    return language == BHI_LANGUAGE_GLSL || language == BHI_LANGUAGE_HLSL ||
           language == BHI_LANGUAGE_CUDA;
}

bool bhi_kernel_file_is_cuda(const struct bhi_kernel_file *file) {
    return bhi_language_is_cuda(bhi_kernel_file_language(file));
}

bh_status bhi_kernel_file_read(struct bhi_kernel_file *file, void **out_code, int *out_errno,
                               struct bhi_complaint *complaint) {
    *out_code = NULL;
    if (!file->code) {
        if (!bhi_code_read(file->path, out_code, &file->size, out_errno, complaint)) {
            return *out_errno == ENOMEM ? BH_NO_MEMORY : BH_LOAD_FAILED;
        }
        file->code = *out_code;
    }
    return bhi_language_compiles(bhi_kernel_file_language(file), file->takes_cuda, complaint)
               ? BH_OK
               : BH_INVALID_KERNEL;
}
