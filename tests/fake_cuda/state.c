/* What the whole driver has: its lock, whether it was initialised, lists. */
#include "fake_cuda.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

static atomic_bool initialized, forked;

/* What lies beside the library, since a worker has no environment of its host's. */
static char settings[1024];

volatile uint32_t *fake_latches;

static bool find_beside(const char *name, char path[512]) {
    Dl_info library;
    const char *slash = dladdr(settings, &library) ? strrchr(library.dli_fname, '/') : NULL;
    return slash && snprintf(path, 512, "%.*s/%s", (int)(slash - library.dli_fname),
                             library.dli_fname, name) < 512;
}

__attribute__((constructor)) static void map_latches(void) {
    const size_t bytes = FAKE_CUDA_LATCHES * sizeof *fake_latches;
    char path[512];
    const int fd = find_beside("fake_cuda.latches", path) ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        fake_latches = at != MAP_FAILED ? at : NULL;
        close(fd);
    }
}

__attribute__((constructor)) static void read_settings(void) {
    char path[512];
    FILE *file = find_beside("fake_cuda.settings", path) ? fopen(path, "re") : NULL;
    if (file) {
        settings[0] = '\n';
        settings[1 + fread(settings + 1, 1, sizeof settings - 2, file)] = '\0';
        fclose(file);
    }
}

unsigned long long fake_setting(const char *variable, unsigned long long otherwise) {
    char line[64];
    const char *text = getenv(variable), *found;
    snprintf(line, sizeof line, "\n%s=", variable);
    if (!text && (found = strstr(settings, line))) {
        text = found + strlen(line);
    }
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

int fake_take_lock(void) {
    if (forked) {
        pthread_mutex_init(&fake_lock, NULL); /* whoever held it is not in this process */
    }
    return pthread_mutex_lock(&fake_lock);
}

void fake_leave_lock(int *unused) {
    (void)unused;
    pthread_mutex_unlock(&fake_lock);
}

CUresult fake_check_driver(void) {
    return initialized && !forked ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult fake_check_context(CUcontext *out_current) {
    *out_current = fake_context_current();
    return *out_current ? (*out_current)->error : CUDA_ERROR_INVALID_CONTEXT;
}

static void note_fork(void) {
    forked = initialized;
}

/* The real driver does not begin where it cannot name its threads in this way. */
static bool can_name_threads(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)gettid());
    FILE *file = fopen(path, "wb");
    return file && fclose(file) == 0;
}

CUresult fake_cuInit(unsigned flags) {
    FAKE_REQUIRE(!forked, NOT_INITIALIZED);
    FAKE_REQUIRE(flags == 0, INVALID_VALUE);
    FAKE_CHECK((CUresult)fake_setting("FAKE_CUDA_INIT", CUDA_SUCCESS));
    FAKE_REQUIRE(fake_is_device(0), NO_DEVICE);
    FAKE_REQUIRE(can_name_threads(), OPERATING_SYSTEM);
    __attribute__((cleanup(fake_leave_lock), unused)) int held = fake_take_lock();
    if (!initialized) {
        FAKE_CHECK(fake_guard_install());
        FAKE_REQUIRE(pthread_atfork(NULL, NULL, note_fork) == 0, OUT_OF_MEMORY);
        initialized = true;
    }
    return CUDA_SUCCESS;
}

bool fake_has(const struct fake_link *list, const void *entry) {
    const struct fake_link *at = list->next;
    while (at && at != entry) {
        at = at->next;
    }
    return at;
}

void fake_add(struct fake_link *list, void *entry) {
    struct fake_link *link = entry;
    link->next = list->next;
    list->next = link;
}

void fake_remove(struct fake_link *list, void *entry) {
    while (list->next != entry) {
        list = list->next;
    }
    list->next = list->next->next;
}

void fake_free_list(struct fake_link *list) {
    while (list->next) {
        void *entry = list->next;
        fake_remove(list, entry);
        free(entry);
    }
}
