#include "tool/memory.h"

#include <stdio.h>

uint64_t bhi_memory_unused(void) {
    unsigned long long kib;
    char line[128];
    uint64_t bytes = UINT64_MAX;
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file) {
        return bytes;
    }
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) {
            bytes = (uint64_t)kib * 1024;
        }
    }
    fclose(file);
    return bytes;
}
