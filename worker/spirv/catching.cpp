#include "worker/spirv/catching.h"

#include <cstdio>
#include <exception>
#include <new>

enum bhi_caught bhi_catching(void (*call)(void *), void *data, char *text, size_t size) {
    try {
        call(data);
        return BHI_CAUGHT_NOTHING;
    } catch (const std::bad_alloc &) {
        std::snprintf(text, size, "out of memory");
        return BHI_CAUGHT_NO_MEMORY;
    } catch (const std::exception &thrown) {
        std::snprintf(text, size, "%s", thrown.what());
    } catch (...) {
        std::snprintf(text, size, "an unknown exception");
    }
    return BHI_CAUGHT_OTHER;
}
