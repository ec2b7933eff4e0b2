#include "supervisor/buffer/memory.h"
#include "base/memory.h"
#include "supervisor/worker/cgroup.h"

#define LARGE (32ull << 20)

bool bhi_memory_available(uint64_t bytes) {
    if (bytes < LARGE) {
        return true;
    }
    return bytes <= bhi_memory_unused() && bytes <= bhi_cgroup_headroom();
}
