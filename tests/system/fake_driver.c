#include "fake_driver.h"

#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void copy_file(const char *from, const char *to) {
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
    snprintf(manifest, sizeof manifest, "%s/fake_icd.json", folder);
    copy_file(original, library);
    FILE *file = fopen(manifest, "we");
    BHT_TRUE(file);
    fprintf(file,
            "{\"file_format_version\": \"1.0.0\","
            " \"ICD\": {\"library_path\": \"%s\", \"api_version\": \"1.3.0\"}}",
            library);
    BHT_EQ(fclose(file), 0);
    BHT_EQ(setenv("VK_DRIVER_FILES", manifest, 1), 0);
}
