#include "worker/spirv/names.h"

#include <stddef.h>

struct name {
    uint32_t number;
    const char *text;
};

/* In the order of the header, where the preferred name comes before its aliases. */
static const struct name capabilities[] = {
#define CAPABILITY(number, text) {number, text},
#define EXECUTION_MODEL(number, text)
#include "spirv_names.inc"
#undef CAPABILITY
#undef EXECUTION_MODEL
};
static const struct name models[] = {
#define CAPABILITY(number, text)
#define EXECUTION_MODEL(number, text) {number, text},
#include "spirv_names.inc"
};

static const char *find(const struct name *names, size_t count, uint32_t number) {
    for (size_t i = 0; i < count; i++) {
        if (names[i].number == number) {
            return names[i].text;
        }
    }
    return "unnamed";
}

const char *bhi_capability_name(uint32_t capability) {
    return find(capabilities, sizeof capabilities / sizeof *capabilities, capability);
}

const char *bhi_execution_model_name(uint32_t model) {
    return find(models, sizeof models / sizeof *models, model);
}
