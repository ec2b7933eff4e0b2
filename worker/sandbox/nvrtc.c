#include "worker/sandbox/nvrtc.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HOW (RTLD_NOW | RTLD_LOCAL)

/* What stands in the place of a library, if that is no file: the dynamic linker would wait for the other
 * end of a FIFO. NULL: it is one, or the linker says what is wrong. */
static const char *in_place_of(const char *path) {
    struct stat status;
    if (!strchr(path, '/') || stat(path, &status) != 0 || S_ISREG(status.st_mode)) {
        return NULL;
    }
    return S_ISDIR(status.st_mode)    ? "a folder"
           : S_ISFIFO(status.st_mode) ? "a FIFO"
           : S_ISSOCK(status.st_mode) ? "a socket"
                                      : "a device";
}

static void *load(const char *path) {
    return in_place_of(path) ? NULL : dlopen(path, HOW);
}

/* Loads the last of the files that fit |pattern|: of several versions the newest of its length. */
static void *load_last(const char *pattern) {
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0) {
        return NULL;
    }
    void *library = load(found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return library;
}

/* In a folder of CUDA, or of the Python package. */
static void *load_below(const char *folder) {
    static const char *const places[] = {"lib64", "lib"};
    void *library = NULL;
    for (size_t i = 0; folder && i < sizeof places / sizeof places[0] && !library; i++) {
        char pattern[PATH_MAX];
        if (snprintf(pattern, sizeof pattern, "%s/%s/libnvrtc.so.[0-9]*", folder, places[i]) <
            (int)sizeof pattern) {
            library = load_last(pattern);
        }
    }
    return library;
}

static void *load_known(void) {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                        "libnvrtc.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !library; i++) {
        library = dlopen(names[i], HOW);
    }
    return library;
}

/* It is looked for by its name, which a library that is loaded already has. */
static void load_builtins(void *library) {
    struct link_map *map = NULL;
    char pattern[PATH_MAX];
    glob_t found;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !strchr(map->l_name, '/') ||
        snprintf(pattern, sizeof pattern, "%.*s/libnvrtc-builtins.so.[0-9]*",
                 (int)(strrchr(map->l_name, '/') - map->l_name),
                 map->l_name) >= (int)sizeof pattern ||
        glob(pattern, 0, NULL, &found) != 0) {
        return; /* NVRTC says what it misses */
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        (void)load(found.gl_pathv[i]);
    }
    globfree(&found);
}

void *bhi_nvrtc_load(struct bhi_error *failure) {
    const char *named = getenv("BULKHEAD_NVRTC");
    const bool chosen = named && named[0]; /* dlopen("") is this program */
    void *library = chosen ? load(named) : NULL;
    if (!chosen && !(library = load_below(getenv("CUDA_HOME"))) &&
        !(library = load_below(getenv("CUDA_PATH"))) && !(library = load_known())) {
        library = load_below("/usr/local/cuda");
    }
    if (library) {
        load_builtins(library);
        return library;
    }
    const char *other = chosen ? in_place_of(named) : NULL;
    if (other) {
        BHI_ERROR(failure, BH_REASON_NO_NVRTC,
                  .text = BHI_SAY("%.200s, which BULKHEAD_NVRTC names, is %s, not a library", named,
                                  other),
                  .advice = "install " BHI_NVRTC_PACKAGE);
        return NULL;
    }
    const char *why = dlerror();
    BHI_ERROR(failure, BH_REASON_NO_NVRTC, .text = why ? why : "not found",
              .advice = "install " BHI_NVRTC_PACKAGE);
    return NULL;
}
