#include "files.h"

#include <unistd.h>

void enter_folder(void) {
    BHT_EQ(chdir(bht_folder()), 0);
}

void write_safetensors(const char *path, uint64_t length, const char *header, size_t bytes) {
    const size_t there = strlen(header);
    uint8_t *file = bht_own(calloc(1, 8 + there + bytes + 1));
    for (int i = 0; i < 8; i++) {
        file[i] = (uint8_t)(length >> 8 * i);
    }
    memcpy(file + 8, header, there);
    for (size_t i = 0; i < bytes; i++) {
        file[8 + there + i] = (uint8_t)i;
    }
    fx_write_file(path, file, 8 + there + bytes);
}

bh_file_source source_of(const char *path, bh_file_format format, const char *tensor) {
    bh_file_source source = {.struct_size = sizeof source};
    source.path = path;
    source.format = format;
    source.tensor = tensor;
    return source;
}
