/* Libraries that only look like a Vulkan driver, one for each way in which loading can go wrong. */
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#if FAKE_CRASH
__attribute__((constructor)) static void crash(void) {
    *(volatile int *)8 = 0;
}
#endif

#if FAKE_STUCK
__attribute__((constructor)) static void stick(void) {
    (void)prctl(PR_SET_NAME, "stuck");
    for (;;) {
        pause();
    }
}
#endif

#if FAKE_THREAD
static void *sit(void *unused) {
    (void)unused;
    for (;;) {
        pause();
    }
}

__attribute__((constructor)) static void start_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, sit, NULL);
}
#endif

#if FAKE_SYMBOLS
EXPORT int vk_icdNegotiateLoaderICDInterfaceVersion(unsigned *version);
EXPORT int vk_icdNegotiateLoaderICDInterfaceVersion(unsigned *version) {
    *version = 1; /* too old for anybody */
    return 0;
}
EXPORT void *vk_icdGetInstanceProcAddr(void *instance, const char *name);
EXPORT void *vk_icdGetInstanceProcAddr(void *instance, const char *name) {
    (void)instance;
    (void)name;
    return NULL;
}
#else
EXPORT int not_a_driver(void);
EXPORT int not_a_driver(void) {
    return 0;
}
#endif
