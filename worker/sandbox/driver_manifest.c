/* ICD manifests: finds the library of the system's Vulkan driver. */
#include "base/fd.h"
#include "worker/sandbox/driver.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_MAX 65536

static const char *const folders[] = {"/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d",
                                      "/usr/share/vulkan/icd.d", NULL};

struct search {
    const struct bhi_driver_info *info;
    char *library;
    size_t library_size;
    unsigned manifests; /* read so far */
    bool unloadable;    /* one of them names a library of the driver that cannot be loaded */
    char problem[150];  /* of the first item of the variable that is of no use; "": none */
};

/* Notes what is wrong with an item that the user has named. */
static void note_problem(struct search *search, const char *item, const char *problem) {
    if (!search->problem[0]) {
        snprintf(search->problem, sizeof search->problem, "%.90s: %.50s", item, problem);
    }
}

static bool name_matches(const struct bhi_driver_info *info, const char *library) {
    const char *slash = strrchr(library, '/');
    for (const char *const *pattern = info->libraries; *pattern; pattern++) {
        if (fnmatch(*pattern, slash ? slash + 1 : library, 0) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns the number of bytes, at most |size|, or -1. */
static ssize_t read_start(const char *path, void *out, size_t size) {
    BHI_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? -1 : read(fd, out, size);
}

/* Machines with 32-bit libraries have manifests of the same names for them. For a library without a
 * folder the dynamic linker decides: it looks only at libraries that fit. */
static bool loadable(const char *library) {
    if (!strchr(library, '/')) {
        return true;
    }
    unsigned char ident[EI_NIDENT];
    return read_start(library, ident, sizeof ident) == (ssize_t)sizeof ident &&
           memcmp(ident, ELFMAG, SELFMAG) == 0 &&
           ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32);
}

/* Resolves library_path, which is absolute, a bare name, or relative to the manifest. */
static bool resolve(const char *manifest, const char *library, char *out, size_t size) {
    const char *slash = strrchr(manifest, '/');
    int length;
    if (library[0] == '/' || !strchr(library, '/') || !slash) {
        length = snprintf(out, size, "%s", library);
    } else {
        length = snprintf(out, size, "%.*s/%s", (int)(slash - manifest), manifest, library);
    }
    return length > 0 && (size_t)length < size;
}

static bool try_manifest(struct search *search, const char *path) {
    char text[MANIFEST_MAX];
    const ssize_t n = read_start(path, text, sizeof text);
    if (n <= 0 || n == (ssize_t)sizeof text) {
        return false;
    }
    json_t *root = json_loadb(text, (size_t)n, 0, NULL);
    const char *library =
        json_string_value(json_object_get(json_object_get(root, "ICD"), "library_path"));
    bool found = false;
    if (library) {
        search->manifests++;
        const bool matches = name_matches(search->info, library) &&
                             resolve(path, library, search->library, search->library_size);
        found = matches && loadable(search->library);
        search->unloadable |= matches && !found;
    }
    json_decref(root);
    return found;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_manifest(const struct dirent *entry) {
    return fnmatch("*.json", entry->d_name, 0) == 0;
}

static bool try_folder(struct search *search, const char *folder) {
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_manifest, by_name);
    bool found = false;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        if (!found &&
            snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < (int)sizeof path) {
            found = try_manifest(search, path);
        }
        free(entries[i]);
    }
    free(entries);
    return found;
}

/* Tries a colon-separated list of manifests, or of folders of them. */
static bool try_list(struct search *search, const char *list) {
    bool found = false;
    char *copy = strdup(list);
    char *state = NULL;
    for (char *item = !copy ? NULL : strtok_r(copy, ":", &state); item && !found;
         item = strtok_r(NULL, ":", &state)) {
        struct stat st;
        const unsigned before = search->manifests;
        if (stat(item, &st) != 0) {
            note_problem(search, item, strerror(errno));
        } else if (S_ISDIR(st.st_mode)) {
            found = try_folder(search, item);
        } else if (!(found = try_manifest(search, item)) && search->manifests == before) {
            note_problem(search, item, "not a driver's manifest, or not readable");
        } else if (!found && search->unloadable) {
            note_problem(search, item, "its library is missing, or does not fit");
        }
    }
    free(copy);
    return found;
}

const char *bhi_driver_variable(void) {
    static const char *const variables[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *list = getenv(variables[i]);
        if (list && list[0] != '\0') {
            return variables[i];
        }
    }
    return NULL;
}

int bhi_driver_manifest(const struct bhi_driver_info *info, char *library, size_t library_size,
                        char *seen, size_t seen_size) {
    struct search search = {.info = info, .library = library, .library_size = library_size};
    const char *where = bhi_driver_variable();
    bool found = false;
    if (where) {
        found = try_list(&search, getenv(where));
    } else {
        where = "the system's vulkan/icd.d folders";
        for (const char *const *folder = folders; *folder && !found; folder++) {
            found = try_folder(&search, *folder);
        }
        for (const char *const *folder = info->folders; folder && *folder && !found; folder++) {
            where = "its own folder";
            found = try_folder(&search, *folder);
        }
    }
    if (!found && search.problem[0]) {
        snprintf(seen, seen_size, "%s: %s names %s", info->name, where, search.problem);
        library[0] = '\0';
        return -ENOENT;
    }
    if (!found) {
        snprintf(seen, seen_size, "%s: no manifest in %s names the library %s (manifests read: %u)",
                 info->name, where, info->libraries[0], search.manifests);
        library[0] = '\0';
        return -ENOENT;
    }
    return 0;
}
