/* CUDA's driver writes the names of its threads to /proc/self/task/TID/comm, and does not begin where it
 * cannot (cuInit returns 304). A /proc that may be written would let a worker write to its own read-only
 * memory (/proc/self/mem). So this program has an fopen() of its own, which libraries use, too: such a
 * name goes nowhere. */
#include <stdio.h>
#include <string.h>

#define FOLDER "/proc/self/task/"
#define NAME   "/comm"

static int is_name_of_thread(const char *path) {
    const size_t length = strlen(path);
    return strncmp(path, FOLDER, strlen(FOLDER)) == 0 &&
           strcmp(path + length - strlen(NAME), NAME) == 0;
}

__attribute__((visibility("default"))) FILE *fopen(const char *restrict path,
                                                   const char *restrict mode) {
    return *mode == 'w' && is_name_of_thread(path) ? fmemopen(NULL, 64, "w") : fopen64(path, mode);
}
