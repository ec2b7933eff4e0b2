/* worker/backend.h: calls the functions of whichever backend it is. */
#include "worker/backend/ops.h"

struct bhi_backend *bhi_backend_create(const struct bhi_backend_config *config,
                                       struct bhi_error *error) {
    return config->ops->create(config, error);
}

void bhi_backend_destroy(struct bhi_backend *b) {
    if (b) {
        b->ops->destroy(b);
    }
}

size_t bhi_backend_devices(const struct bhi_backend_config *config, const struct bhi_backend *b,
                           struct bhi_msg_device *out, size_t capacity) {
    struct bhi_error error;
    return b ? b->ops->devices(b, out, capacity)
             : bhi_backend_survey(config, out, NULL, capacity, &error);
}

size_t bhi_backend_survey(const struct bhi_backend_config *config, struct bhi_msg_device *out,
                          struct bhi_pci *out_pci, size_t capacity, struct bhi_error *error) {
    return config->ops->survey(config, out, out_pci, capacity, error);
}

#define OP(type, name, parameters, arguments)                                                      \
    type bhi_backend_##name parameters {                                                           \
        return b->ops->name arguments;                                                             \
    }
#define DO(name, parameters, arguments)                                                            \
    void bhi_backend_##name parameters {                                                           \
        b->ops->name arguments;                                                                    \
    }
#define MAY(type, name, parameters, arguments, otherwise)                                          \
    type bhi_backend_##name parameters {                                                           \
        return b->ops->name ? b->ops->name arguments : (otherwise);                                \
    }
#define MAY_DO(name, parameters, arguments)                                                        \
    void bhi_backend_##name parameters {                                                           \
        if (b->ops->name) {                                                                        \
            b->ops->name arguments;                                                                \
        }                                                                                          \
    }
BHI_BACKEND_OPS(OP, DO, MAY, MAY_DO)

void bhi_backend_compiles(struct bhi_backend *b, uint64_t seq) {
    if (b->compiles == UINT64_MAX && b->calls.compiling) {
        b->calls.compiling(b->calls.user, seq, false);
    }
    b->compiles = seq;
}

void bhi_backend_compiled(struct bhi_backend *b) {
    if (b->compiles != UINT64_MAX && b->calls.compiling) {
        b->calls.compiling(b->calls.user, b->compiles, true);
    }
    b->compiles = UINT64_MAX;
}
