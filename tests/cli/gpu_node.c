/* Preloaded: the machine seems to have a GPU's device node, as tool/gpu_nodes.c looks for one. */
#include <glob.h>
#include <string.h>

#define SEEN __attribute__((visibility("default")))

SEEN int glob(const char *restrict pattern, int flags, int (*failed)(const char *, int),
              glob_t *restrict paths) {
    (void)flags;
    (void)failed;
    memset(paths, 0, sizeof *paths);
    return strncmp(pattern, "/dev/", 5) == 0 ? 0 : GLOB_NOMATCH;
}

SEEN void globfree(glob_t *paths) {
    (void)paths;
}
