/* For kernels of the fake CUDA driver. A file is one cubin (kernels.cmake builds it):
 *
 *     FAKE_KERNEL(saxpy, (const float *, x), (float *, y), (float, a), (uint32_t, count)) {
 *         uint32_t i = fake_index(thread);
 *         if (i < p->count) { p->y[i] += p->a * p->x[i]; }
 *     }
 */
#ifndef TESTS_FAKE_CUDA_KERNEL_H
#define TESTS_FAKE_CUDA_KERNEL_H

#include "tests/fake_cuda/abi.h"

#include <stddef.h>
#include <stdint.h>

#ifndef FAKE_KERNEL_ARCH
#define FAKE_KERNEL_ARCH FAKE_CUDA_ARCH
#endif
extern const int fake_arch;
const int fake_arch = FAKE_KERNEL_ARCH;

#define FAKE_EACH(do, values, ...) __VA_OPT__(FAKE_1(do, values, __VA_ARGS__))
#define FAKE_1(do, values, a, ...)                                                                 \
    do                                                                                             \
    (values, a) __VA_OPT__(FAKE_2(do, values, __VA_ARGS__))
#define FAKE_2(do, values, a, ...)                                                                 \
    do                                                                                             \
    (values, a) __VA_OPT__(FAKE_3(do, values, __VA_ARGS__))
#define FAKE_3(do, values, a, ...)                                                                 \
    do                                                                                             \
    (values, a) __VA_OPT__(FAKE_4(do, values, __VA_ARGS__))
#define FAKE_4(do, values, a, ...)                                                                 \
    do                                                                                             \
    (values, a) __VA_OPT__(FAKE_5(do, values, __VA_ARGS__))
#define FAKE_5(do, values, a, ...)                                                                 \
    do                                                                                             \
    (values, a) __VA_OPT__(FAKE_6(do, values, __VA_ARGS__))
#define FAKE_6(do, values, a, ...)                                                                 \
    do                                                                                             \
    (values, a) __VA_OPT__(FAKE_7(do, values, __VA_ARGS__))
#define FAKE_7(do, values, a, ...)                                                                 \
    do                                                                                             \
    (values, a) __VA_OPT__(FAKE_8(do, values, __VA_ARGS__))
#define FAKE_8(do, values, a, ...)                                                                 \
    do                                                                                             \
    (values, a) __VA_OPT__(FAKE_9(do, values, __VA_ARGS__))
#define FAKE_9(do, values, a, ...)                                                                 \
    do                                                                                             \
    (values, a) __VA_OPT__(FAKE_10(do, values, __VA_ARGS__))
#define FAKE_10(do, values, a, ...)                                                                \
    do                                                                                             \
    (values, a) __VA_OPT__(FAKE_11(do, values, __VA_ARGS__))
#define FAKE_11(do, values, a)                                                                     \
    do                                                                                             \
    (values, a)

#define FAKE_TYPE_OF(type, name)      type name;
#define FAKE_NAME_OF(type, name)      name
#define FAKE_FIELD(values, parameter) FAKE_TYPE_OF parameter
#define FAKE_OFFSET(values, parameter)                                                             \
    {offsetof(struct values, FAKE_NAME_OF parameter),                                              \
     sizeof((struct values *)0)->FAKE_NAME_OF parameter},

/* Up to eleven parameters, each (type, name): at most two words of C in parentheses each. */
#define FAKE_KERNEL(name, ...)                                                                     \
    struct name##_values {                                                                         \
        FAKE_EACH(FAKE_FIELD, name##_values, __VA_ARGS__)                                          \
    };                                                                                             \
    extern const struct fake_cuda_parameter name##_parameters[];                                   \
    const struct fake_cuda_parameter name##_parameters[] = {                                       \
        FAKE_EACH(FAKE_OFFSET, name##_values, __VA_ARGS__){0, 0}};                                 \
    static void name##_body(const struct fake_cuda_thread *thread, const struct name##_values *p); \
    fake_cuda_kernel name;                                                                         \
    void name(const struct fake_cuda_thread *thread, const void *parameters) {                     \
        name##_body(thread, parameters);                                                           \
    }                                                                                              \
    static void name##_body(const struct fake_cuda_thread *thread, const struct name##_values *p)

#define FAKE_ATTRIBUTES(name, ...)                                                                 \
    extern const struct fake_cuda_attributes name##_attributes;                                    \
    const struct fake_cuda_attributes name##_attributes = {__VA_ARGS__}

/* The thread's place in x among all of the grid. */
static inline uint32_t fake_index(const struct fake_cuda_thread *thread) {
    return thread->blockIdx.x * thread->blockDim.x + thread->threadIdx.x;
}

#endif
