#include "fake_driver.h"

#include "fake_engine_page.h"
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void fake_library_copy(const char *from, const char *to) {
    static char bytes[1 << 20];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    BHT_TRUE(in >= 0 && out >= 0);
    for (ssize_t n; (n = read(in, bytes, sizeof bytes)) > 0;) {
        BHT_EQ(write(out, bytes, (size_t)n), n);
    }
    close(in);
    close(out);
}

/* In a folder that everybody can read: workers of a root's host are nobody here. */
void fake_driver_install(const char *original) {
    const char *folder = bht_folder();
    char library[128], manifest[128];
    BHT_EQ(chmod(folder, 0755), 0);
    snprintf(library, sizeof library, "%s/libvulkan_lvp.so.fake", folder);
    snprintf(manifest, sizeof manifest, "%s/fake_lvp_icd.json", folder);
    fake_library_copy(original, library);
    FILE *file = fopen(manifest, "we");
    BHT_TRUE(file);
    fprintf(file,
            "{\"file_format_version\": \"1.0.0\","
            " \"ICD\": {\"library_path\": \"%s\", \"api_version\": \"1.3.0\"}}",
            library);
    BHT_EQ(fclose(file), 0);
    BHT_EQ(setenv("VK_DRIVER_FILES", manifest, 1), 0);
}

static struct fake_engine *engine;

static void unmap_engine(void) {
    munmap(engine, FAKE_ENGINE_BYTES);
}

struct fake_engine *fake_driver_engine(void) {
    char path[256];
    snprintf(path, sizeof path, "%s", getenv("VK_DRIVER_FILES"));
    snprintf(strrchr(path, '/'), 16, "/engine");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    BHT_GE(fd, 0);
    BHT_EQ(ftruncate(fd, FAKE_ENGINE_BYTES), 0);
    engine = mmap(NULL, FAKE_ENGINE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    BHT_NE(engine, MAP_FAILED);
    close(fd);
    bht_end_with(unmap_engine);
    return engine;
}
