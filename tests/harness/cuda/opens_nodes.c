#include "tests/fake_cuda/kernel.h"

/* open(path, O_RDWR | O_CLOEXEC): a descriptor, or -errno. */
static long open_node(const char *path) {
    const long here = -100, flags = 02000002;
#if defined(__x86_64__)
    long result = 257;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(here), "S"(path), "d"(flags)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long number __asm__("x8") = 56, result __asm__("x0") = here;
    register const char *second __asm__("x1") = path;
    register long third __asm__("x2") = flags;
    __asm__ volatile("svc 0" : "+r"(result) : "r"(number), "r"(second), "r"(third) : "memory");
    return result;
#endif
}

/* Why its worker cannot open each node: an errno; 0: it can. */
FAKE_KERNEL(opens_nodes, (uint32_t *, errors)) {
    char path[] = "/dev/nvidia0";
    for (uint32_t i = 0; fake_index(thread) == 0 && i < 3; i++) {
        path[sizeof path - 2] = (char)('0' + i);
        const long result = open_node(path);
        p->errors[i] = result < 0 ? (uint32_t)-result : 0;
    }
}
