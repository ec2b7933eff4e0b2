/* For those who implement a backend (worker/vulkan, worker/cuda): the functions behind
 * worker/backend.h, and what all of them hold and do alike. */
#ifndef BHI_WORKER_BACKEND_OPS_H
#define BHI_WORKER_BACKEND_OPS_H

#include "worker/backend.h"

/* OP(type, name, parameters, arguments): bhi_backend_name(). DO is an OP that returns nothing. MAY has
 * one more argument, what it returns if the backend does not have it (NULL); MAY_DO returns nothing. */
#define BHI_BACKEND_OPS(OP, DO, MAY, MAY_DO)                                                       \
    OP(bool, warm_up, (struct bhi_backend * b, struct bhi_error * error), (b, error))              \
    DO(attach,                                                                                     \
       (struct bhi_backend * b, uint64_t id, int fd, uint64_t size, enum bhi_attach access),       \
       (b, id, fd, size, access))                                                                  \
    OP(bool, exports, (const struct bhi_backend *b), (b))                                          \
    OP(int, make, (struct bhi_backend * b, uint64_t id, uint64_t size), (b, id, size))             \
    OP(bool, is_full, (const struct bhi_backend *b, uint64_t id), (b, id))                         \
    OP(bool, clear, (struct bhi_backend * b, uint64_t id), (b, id))                                \
    DO(import, (struct bhi_backend * b, uint64_t id, int fd, uint64_t size), (b, id, fd, size))    \
    DO(detach, (struct bhi_backend * b, uint64_t id), (b, id))                                     \
    DO(kernel_create,                                                                              \
       (struct bhi_backend * b, const struct bhi_msg_kernel_create *info, const void *code,        \
        const struct bhi_spec_constant *constants, uint32_t count),                                \
       (b, info, code, constants, count))                                                          \
    DO(kernel_destroy, (struct bhi_backend * b, uint64_t id), (b, id))                             \
    OP(bool, learn, (struct bhi_backend * b, uint64_t id, struct bhi_error *error),                \
       (b, id, error))                                                                             \
    OP(bool, next_reflection,                                                                      \
       (struct bhi_backend * b, struct bhi_msg_kernel_info * out,                                  \
        struct bhi_msg_kernel_binding * bindings),                                                 \
       (b, out, bindings))                                                                         \
    OP(bool, run,                                                                                  \
       (struct bhi_backend * b, const struct bhi_lane_record *const *records, size_t count,        \
        struct bhi_result *results, struct bhi_error *errors),                                     \
       (b, records, count, results, errors))                                                       \
    OP(bool, warm, (const struct bhi_backend *b, const struct bhi_lane_record *record),            \
       (b, record))                                                                                \
    DO(counts, (const struct bhi_backend *b, struct bhi_backend_counts *out), (b, out))            \
    MAY_DO(cache_attach, (struct bhi_backend * b, int fd, uint64_t room), (b, fd, room))           \
    MAY_DO(cache_save, (struct bhi_backend * b, bool idle), (b, idle))                             \
    MAY(bool, copies, (const struct bhi_backend *b, const struct bhi_lane_record *record),         \
        (b, record), false)                                                                        \
    MAY(bool, copy_room, (const struct bhi_backend *b), (b), false)                                \
    MAY(bool, copy_fits, (const struct bhi_backend *b, const struct bhi_lane_record *record),      \
        (b, record), false)                                                                        \
    MAY_DO(copy_begin, (struct bhi_backend * b, const struct bhi_lane_record *record),             \
           (b, record))                                                                            \
    MAY(bool, copy_end,                                                                            \
        (struct bhi_backend * b, struct bhi_result * result, struct bhi_error * error),            \
        (b, result, error), false)                                                                 \
    MAY_DO(abort, (struct bhi_backend * b, uint64_t seq), (b, seq))                                \
    MAY_DO(abort_all, (struct bhi_backend * b), (b))                                               \
    MAY(bool, aborts, (const struct bhi_backend *b), (b), false)                                   \
    MAY(int, words, (struct bhi_backend * b, uint64_t *out_bytes), (b, out_bytes), -1)

struct bhi_backend_ops {
    struct bhi_backend *(*create)(const struct bhi_backend_config *config, struct bhi_error *error);
    void (*destroy)(struct bhi_backend *b);
    size_t (*devices)(const struct bhi_backend *b, struct bhi_msg_device *out, size_t capacity);
    size_t (*survey)(const struct bhi_backend_config *config, struct bhi_msg_device *out,
                     struct bhi_pci *out_pci, size_t capacity, struct bhi_error *error);
#define BHI_OP(type, name, parameters, arguments)             type(*name) parameters;
#define BHI_DO(name, parameters, arguments)                   void(*name) parameters;
#define BHI_MAY(type, name, parameters, arguments, otherwise) type(*name) parameters;
    BHI_BACKEND_OPS(BHI_OP, BHI_DO, BHI_MAY, BHI_DO)
#undef BHI_OP
#undef BHI_DO
#undef BHI_MAY
};

/* The first member of a backend. Its create() fills it in. */
struct bhi_backend {
    const struct bhi_backend_ops *ops;
    struct bhi_backend_calls calls;
    uint64_t compiles; /* seq of the record that has to be compiled first; UINT64_MAX: none */
    bool lost;
    bool starved; /* there was no memory for the entry of a buffer or a kernel */
};

/* Says that |seq| is compiled, if that is not said yet; and that what runs next needs no more of
 * it. */
void bhi_backend_compiles(struct bhi_backend *backend, uint64_t seq);
void bhi_backend_compiled(struct bhi_backend *backend);

#endif
