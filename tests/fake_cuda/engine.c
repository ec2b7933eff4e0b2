/* A context's engine: the thread that runs what its streams hold, one operation after the other, in the
 * order in which they came. */
#include "fake_cuda.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Of the thread, and for signals. Stacks count against a process's limit. */
#define STACK_BYTES        ((size_t)1 << 20)
#define SIGNAL_STACK_BYTES ((size_t)64 << 10)

uint64_t fake_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void run_guarded(void *argument) {
    struct fake_operation *operation = argument;
    operation->run(operation);
}

/* With the lock. */
static void finish(struct fake_operation *operation) {
    CUstream stream = operation->stream;
    CUevent event = operation->event;
    if (--stream->pending == 0 && stream->destroyed) {
        free(stream);
    }
    if (event) {
        event->at_ns = fake_now_ns() - (uint64_t)operation->context->skew_ns;
        if (--event->pending == 0 && event->destroyed) {
            free(event);
        }
    }
    operation->done = true;
    if (!operation->waited) {
        free(operation);
    }
}

/* With the lock. After a fault nothing that was submitted runs. */
static void finish_all(CUcontext context) {
    while (context->first) {
        struct fake_operation *operation = context->first;
        context->first = operation->next;
        finish(operation);
    }
    context->last = &context->first;
}

static void run_later(void *argument) {
    CUcontext context = argument;
    context->later(context->later_argument);
}

/* With the lock. Runs what a kernel has put off, if it is time; or waits for work. */
static void rest(CUcontext context) {
    if (!context->later) {
        pthread_cond_wait(&context->work, &fake_lock);
        return;
    }
    pthread_mutex_unlock(&fake_lock);
    if (fake_now_ns() < context->later_ns) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    } else {
        (void)fake_guard(run_later, context); /* what it can no longer write has no consequence */
        context->later = NULL;
    }
    pthread_mutex_lock(&fake_lock);
}

static void work(CUcontext context) {
    while (!context->closing) {
        struct fake_operation *operation = context->first;
        if (!operation) {
            rest(context);
            continue;
        }
        if (!(context->first = operation->next)) {
            context->last = &context->first;
        }
        context->running = operation;
        pthread_mutex_unlock(&fake_lock);
        CUresult result = operation->run ? fake_guard(run_guarded, operation) : CUDA_SUCCESS;
        pthread_mutex_lock(&fake_lock);
        context->running = NULL;
        finish(operation);
        if (result != CUDA_SUCCESS) {
            context->error = result;
            finish_all(context);
        }
        pthread_cond_broadcast(&context->done);
    }
    finish_all(context);
}

static void *run(void *argument) {
    CUcontext context = argument;
    /* A kernel may have used up the stack. A sanitizer has one for signals of its own, which it frees
     * when the thread ends. */
    void *memory =
        mmap(NULL, SIGNAL_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t mine = {.ss_sp = memory, .ss_size = SIGNAL_STACK_BYTES}, others;
    bool replaced = memory != MAP_FAILED && sigaltstack(&mine, &others) == 0;
    pthread_mutex_lock(&fake_lock);
    context->started = true;
    pthread_cond_broadcast(&context->done);
    work(context);
    pthread_mutex_unlock(&fake_lock);
    if (replaced) {
        sigaltstack(&others, NULL);
    }
    if (memory != MAP_FAILED) {
        munmap(memory, SIGNAL_STACK_BYTES);
    }
    return NULL;
}

/* With the lock. Its thread has made all its own system calls when this returns. */
CUresult fake_engine_start(CUcontext context) {
    sigset_t all, old;
    pthread_attr_t attributes;
    context->last = &context->first;
    sigfillset(&all);
    fake_guard_leave_out(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int r = pthread_create(&context->thread, &attributes, run, context);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    while (r == 0 && !context->started) {
        pthread_cond_wait(&context->done, &fake_lock);
    }
    return r == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

/* With the lock, which it gives back meanwhile. */
void fake_engine_stop(CUcontext context) {
    context->closing = true;
    context->abandoned = true;
    pthread_cond_signal(&context->work);
    pthread_mutex_unlock(&fake_lock);
    pthread_join(context->thread, NULL);
    pthread_mutex_lock(&fake_lock);
}

struct fake_operation *fake_operation_create(fake_run *run_it, size_t staged_bytes) {
    struct fake_operation *operation = calloc(1, sizeof *operation + staged_bytes);
    if (operation) {
        operation->run = run_it;
        operation->bytes = staged_bytes;
    }
    return operation;
}

/* With the lock, as the rest. */
void fake_operation_submit(CUcontext context, CUstream stream, struct fake_operation *operation) {
    operation->context = context;
    operation->stream = stream;
    stream->pending++;
    if (operation->event) {
        operation->event->pending++;
        operation->event->recorded = true;
    }
    *context->last = operation;
    context->last = &operation->next;
    pthread_cond_signal(&context->work);
}

CUresult fake_context_wait(CUcontext context) {
    while (context->error == CUDA_SUCCESS && (context->first || context->running)) {
        pthread_cond_wait(&context->done, &fake_lock);
    }
    return context->error;
}
