/* The interposers. They call glibc's allocator by its second names, __libc_…; glibc's own free(),
 * which is not replaced, frees what they return. A sanitizer has its own allocator, which stays. */
#include "worker/process/alloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static struct bhi_progress_header *watched;

#if BHI_SANITIZED

void bhi_alloc_watch(struct bhi_progress_header *header) {
    watched = header;
}

#else

typedef void *(*start_fn)(void *);
typedef int (*create_fn)(pthread_t *, const pthread_attr_t *, start_fn, void *);

static create_fn real_create;

#define EXPORT __attribute__((visibility("default")))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

EXPORT void *malloc(size_t size);
EXPORT void *calloc(size_t count, size_t size);
EXPORT void *realloc(void *old, size_t size);
EXPORT void *memalign(size_t alignment, size_t size);
EXPORT void *aligned_alloc(size_t alignment, size_t size);
EXPORT int posix_memalign(void **out, size_t alignment, size_t size);
EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset);

EXPORT int pthread_create(pthread_t *out, const pthread_attr_t *attributes, start_fn start,
                          void *argument);

static create_fn find_create(void) {
    return (create_fn)dlsym(RTLD_NEXT, "pthread_create");
}

void bhi_alloc_watch(struct bhi_progress_header *header) {
    watched = header;
    real_create = find_create(); /* later, under the sandbox, the linker can no longer look it up */
}

static void refused(void) {
    struct bhi_progress_header *header = watched;
    if (header) {
        atomic_fetch_add_explicit(&header->refused_allocations, 1, memory_order_release);
    }
}

static void *noted(void *p) {
    if (!p) {
        refused();
    }
    return p;
}

void *malloc(size_t size) {
    return noted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size) {
    return noted(__libc_calloc(count, size));
}

void *realloc(void *old, size_t size) {
    void *p = __libc_realloc(old, size);
    return size != 0 ? noted(p) : p;
}

void *memalign(size_t alignment, size_t size) {
    void *p = __libc_memalign(alignment, size);
    return errno == ENOMEM ? noted(p) : p;
}

void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) {
        return EINVAL;
    }
    const int saved = errno; /* posix_memalign must leave errno alone */
    void *p = memalign(alignment, size);
    errno = saved;
    if (!p) {
        return ENOMEM;
    }
    *out = p;
    return 0;
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    void *p = (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
    if (p == (void *)-1 && errno == ENOMEM) {
        refused();
    }
    return p;
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    return mmap(address, length, protection, flags, fd, offset);
}

/* glibc maps a thread's stack itself, past the interposers. All that can be seen is EAGAIN, which
 * also means that there may be no more threads. Then there is memory for another stack. */
static void refused_thread(size_t stack) {
    struct bhi_progress_header *header = watched;
    const int error = errno;
    void *probe = (void *)syscall(SYS_mmap, NULL, stack, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED) {
        refused();
    } else {
        syscall(SYS_munmap, probe, stack);
        if (header) {
            atomic_fetch_add_explicit(&header->refused_threads, 1, memory_order_release);
        }
    }
    errno = error;
}

int pthread_create(pthread_t *out, const pthread_attr_t *attributes, start_fn start,
                   void *argument) {
    int r = (real_create ? real_create : find_create())(out, attributes, start, argument);
    if (r == EAGAIN) {
        pthread_attr_t defaults;
        size_t stack = 0;
        if (attributes) {
            (void)pthread_attr_getstacksize(attributes, &stack);
        } else if (pthread_getattr_default_np(&defaults) == 0) {
            (void)pthread_attr_getstacksize(&defaults, &stack);
            pthread_attr_destroy(&defaults);
        }
        refused_thread(stack);
    }
    return r;
}

#endif
