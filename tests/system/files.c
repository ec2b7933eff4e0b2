#include "files.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static char folder[64];

void enter_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/bulkhead-files-XXXXXX");
    BHT_TRUE(mkdtemp(folder));
    BHT_EQ(chdir(folder), 0);
}

void leave_folder(void) {
    const char *argv[] = {"rm", "-rf", folder, NULL};
    char out[256];
    BHT_EQ(chdir("/"), 0);
    BHT_EQ(bht_run(argv, out, sizeof out), 0);
}

void write_file(const char *path, const void *bytes, size_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    BHT_GE(fd, 0);
    BHT_EQ(write(fd, bytes, size), (ssize_t)size);
    BHT_EQ(close(fd), 0);
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
    write_file(path, file, 8 + there + bytes);
    free(file);
}

bh_file_source source_of(const char *path, bh_file_format format, const char *tensor) {
    bh_file_source source;
    bh_file_source_init(&source);
    source.path = path;
    source.format = format;
    source.tensor = tensor;
    return source;
}

bh_buffer *load(bh_context *context, const bh_file_source *source) {
    bh_buffer *buffer = NULL;
    bh_detail detail;
    if (bh_buffer_from_file(context, source, &buffer, &detail) != BH_OK) {
        BHT_FAIL("bh_buffer_from_file: %s", detail.message);
    }
    return buffer;
}

const void *mapped(bh_buffer *buffer) {
    void *pointer = NULL;
    bh_detail detail;
    if (bh_buffer_map(buffer, BH_MAP_READ, FX_SECONDS, &pointer, &detail) != BH_OK) {
        BHT_FAIL("bh_buffer_map: %s", detail.message);
    }
    return pointer;
}
