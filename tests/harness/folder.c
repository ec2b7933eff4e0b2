#include "harness.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

static char *folders[16]; /* owned */
static size_t folder_count;

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at) {
    (void)info, (void)kind, (void)at;
    return remove(path);
}

bool bht_remove(const char *folder) {
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0;
}

static void remove_folders(void) {
    for (; folder_count > 0; folder_count--) {
        if (!bht_remove(folders[folder_count - 1])) {
            BHT_EQ(errno, ENOENT); /* the test has removed it */
        }
    }
}

const char *bht_folder(void) {
    char path[] = "/tmp/bulkhead-test-XXXXXX";
    BHT_LT(folder_count, BHT_COUNT(folders));
    BHT_TRUE(mkdtemp(path));
    if (folder_count == 0) {
        bht_end_with(remove_folders);
    }
    return folders[folder_count++] = bht_own(strdup(path));
}

void bht_put(const char *text, const char *format, ...) {
    char path[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST) {
            BHT_FAIL("mkdir %s: %s", path, strerror(errno));
        }
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) {
        BHT_FAIL("cannot write %s", path);
    }
}
