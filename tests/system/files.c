#include "files.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static char folder[64];

void enter_folder(void) {
    bht_end_with(leave_folder);
    snprintf(folder, sizeof folder, "/tmp/bulkhead-files-XXXXXX");
    BHT_TRUE(mkdtemp(folder));
    BHT_EQ(chdir(folder), 0);
}

void leave_folder(void) {
    const char *argv[] = {"rm", "-rf", folder, NULL};
    if (folder[0]) {
        BHT_EQ(chdir("/"), 0);
        BHT_EQ(bht_run(argv, NULL, 0), 0);
        folder[0] = '\0';
    }
}

void write_safetensors(const char *path, uint64_t length, const char *header, size_t bytes) {
    const size_t there = strlen(header);
    uint8_t *file = calloc(1, 8 + there + bytes + 1);
    BHT_TRUE(file);
    for (int i = 0; i < 8; i++) {
        file[i] = (uint8_t)(length >> 8 * i);
    }
    memcpy(file + 8, header, there);
    for (size_t i = 0; i < bytes; i++) {
        file[8 + there + i] = (uint8_t)i;
    }
    fx_write_file(path, file, 8 + there + bytes);
    free(file);
}

bh_file_source source_of(const char *path, bh_file_format format, const char *tensor) {
    bh_file_source source = {.struct_size = sizeof source};
    source.path = path;
    source.format = format;
    source.tensor = tensor;
    return source;
}
