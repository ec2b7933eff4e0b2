#include "request/kernel_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/interrupt.h"
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
    const bool is_stdin = !strcmp(file->path, "-");
    enum bhi_language language =
        file->code ? bhi_language_of_foreign(file->code, file->size) : BHI_LANGUAGE_UNKNOWN;
    if (!language && file->code && bhi_language_is_spirv(file->code, file->size)) {
        language = BHI_LANGUAGE_SPIRV; /* whatever its name: no source begins like this */
    }
    if (!language) {
        language = file->language;
    }
    if (!language) {
        language = bhi_language_of_name(file->path);
    }
    if (!language && file->code) {
        language = bhi_language_of_code(file->code, file->size);
    }
    if (!language) {
        language = is_stdin ? BHI_LANGUAGE_GLSL : BHI_LANGUAGE_SPIRV;
    }
    return language;
}
