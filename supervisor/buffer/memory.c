#include "supervisor/buffer/memory.h"
#include "supervisor/worker/cgroup.h"

#include <stdio.h>

#define LARGE (32ull << 20)

bool bhi_memory_available(uint64_t bytes) {
    if (bytes < LARGE) {
        return true;
    }
    char line[128];
    unsigned long long kib = UINT64_MAX / 1024;
    FILE *file = fopen("/proc/meminfo", "re");
    if (file) {
        while (fgets(line, sizeof line, file) && sscanf(line, "MemAvailable: %llu kB", &kib) != 1)
            ;
        fclose(file);
    }
    return bytes / 1024 <= kib && bytes <= bhi_cgroup_headroom();
}
