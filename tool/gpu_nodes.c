#include "tool/gpu_nodes.h"

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

static bool has_gpu_nodes(void) {
    static const char *const patterns[] = {"/dev/nvidia[0-9]*", "/dev/dri/renderD*", "/dev/dxg"};
    bool found = false;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0] && !found; i++) {
        glob_t paths;
        found = glob(patterns[i], 0, NULL, &paths) == 0;
        if (found) {
            globfree(&paths);
        }
    }
    return found;
}

bh_memory bhi_memory_for_file(bh_memory memory, const char *path) {
    struct stat status;
    if (memory != BH_MEMORY_AUTO || stat(path, &status) != 0) {
        return memory; /* the code that opens it prints why it cannot */
    }
    return bhi_memory_for(memory, (uint64_t)status.st_size);
}

bh_memory bhi_memory_here(bh_memory memory) {
    return memory == BH_MEMORY_AUTO && !has_gpu_nodes() ? BH_MEMORY_HOST : memory;
}
