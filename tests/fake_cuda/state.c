/* What the whole driver has: its lock, whether it was initialised, lists. */
#include "fake_cuda.h"

#include <stdlib.h>

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

static atomic_bool initialized, forked;

unsigned long long fake_setting(const char *variable, unsigned long long otherwise) {
    const char *text = getenv(variable);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void note_fork(void) {
    forked = initialized;
}

bool fake_is_initialized(void) {
    return initialized && !forked;
}

CUresult fake_cuInit(unsigned flags) {
    static bool at_fork;
    if (forked) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = (CUresult)fake_setting("FAKE_CUDA_INIT", CUDA_SUCCESS);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (fake_setting("FAKE_CUDA_DEVICES", 1) == 0) {
        return CUDA_ERROR_NO_DEVICE;
    }
    pthread_mutex_lock(&fake_lock);
    if (!at_fork) {
        at_fork = pthread_atfork(NULL, NULL, note_fork) == 0;
        result = at_fork ? fake_guard_install() : CUDA_ERROR_OUT_OF_MEMORY;
    }
    initialized = result == CUDA_SUCCESS;
    return fake_leave(result);
}

/* Without the lock in a forked child: whoever held it is not there. */
CUresult fake_enter_driver(void) {
    if (!fake_is_initialized()) {
        if (forked) {
            pthread_mutex_init(&fake_lock, NULL);
        }
        pthread_mutex_lock(&fake_lock);
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    pthread_mutex_lock(&fake_lock);
    return CUDA_SUCCESS;
}

CUresult fake_enter(CUcontext *out_context) {
    CUresult result = fake_enter_driver();
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *out_context = fake_context_current();
    return *out_context ? (*out_context)->error : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult fake_leave(CUresult result) {
    pthread_mutex_unlock(&fake_lock);
    return result;
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
