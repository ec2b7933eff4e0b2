/* Crashes of kernels, of copies, and of looks at memory that may not be there, as errors. */
#include "fake_cuda.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

struct frame {
    struct frame *outer;
    volatile int error;
    sigjmp_buf jump;
};

/* Not allocated when it is first used: that may be in the handler. */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct frame *innermost;

static const struct {
    int signal;
    CUresult error;
} signals[] = {
    {SIGSEGV, CUDA_ERROR_ILLEGAL_ADDRESS},     {SIGBUS, CUDA_ERROR_ILLEGAL_ADDRESS},
    {SIGFPE, CUDA_ERROR_LAUNCH_FAILED},        {SIGILL, CUDA_ERROR_ILLEGAL_INSTRUCTION},
    {SIGTRAP, CUDA_ERROR_ILLEGAL_INSTRUCTION},
};
#define SIGNALS (sizeof signals / sizeof signals[0])
static struct sigaction before[SIGNALS];

_Noreturn void fake_guard_fail(int error) {
    struct frame *frame = innermost;
    frame->error = error;
    siglongjmp(frame->jump, 1);
}

/* The same again, by this thread. */
static void cause(int signo) {
    static volatile int zero;
    switch (signo) {
    case SIGFPE:
        zero = 1 / zero;
        break;
    case SIGSEGV:
        *(volatile int *)(uintptr_t)zero = 0;
        break;
    default:
        signal(signo, SIG_DFL);
        raise(signo);
    }
}

static void handle(int signo, siginfo_t *info, void *user) {
    ucontext_t *context = user;
    size_t i = 0;
    while (signals[i].signal != signo) {
        i++;
    }
    if (innermost && info->si_code > 0) {
        /* A sanitizer has blocked all signals around this. */
        pthread_sigmask(SIG_SETMASK, &context->uc_sigmask, NULL);
        fake_guard_fail((int)signals[i].error);
    }
    if (before[i].sa_flags & SA_SIGINFO) {
        before[i].sa_sigaction(signo, info, user);
    } else if (before[i].sa_handler == SIG_DFL) {
        /* Once more, now blocked: that ends the process by this signal. It needs no sigaction(), which
         * the caller's sandbox may not allow. Who sent it (si_code <= 0) does not do it again. */
        sigaddset(&context->uc_sigmask, signo);
        if (info->si_code <= 0) {
            pthread_sigmask(SIG_SETMASK, &context->uc_sigmask, NULL);
            cause(signo);
            sigdelset(&context->uc_sigmask, signo);
        }
    } else if (before[i].sa_handler != SIG_IGN) {
        before[i].sa_handler(signo);
    }
}

CUresult fake_guard_install(void) {
    struct sigaction action = {.sa_sigaction = handle,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < SIGNALS; i++) {
        if (sigaction(signals[i].signal, &action, &before[i]) != 0) {
            return CUDA_ERROR_OPERATING_SYSTEM;
        }
    }
    return CUDA_SUCCESS;
}

void fake_guard_leave_out(sigset_t *set) {
    for (size_t i = 0; i < SIGNALS; i++) {
        sigdelset(set, signals[i].signal);
    }
}

CUresult fake_guard(void (*run)(void *argument), void *argument) {
    struct frame frame = {.outer = innermost, .error = CUDA_SUCCESS};
    if (sigsetjmp(frame.jump, 0) == 0) {
        innermost = &frame;
        run(argument);
    }
    innermost = frame.outer;
    return (CUresult)frame.error;
}

#if defined(__clang__)
#define UNSEEN __attribute__((no_sanitize("address", "thread", "undefined"), noinline))
#else
#define UNSEEN __attribute__((no_sanitize("address,thread,undefined"), noinline))
#endif

typedef uint64_t __attribute__((aligned(1), may_alias)) any_word;

/* Volatile: or it becomes a memcpy(), which sanitizers replace. */
UNSEEN void fake_move(void *to, const void *from, size_t bytes) {
    volatile unsigned char *out = to;
    const volatile unsigned char *in = from;
    for (; bytes >= sizeof(any_word); bytes -= sizeof(any_word)) {
        *(volatile any_word *)out = *(const volatile any_word *)in;
        out += sizeof(any_word);
        in += sizeof(any_word);
    }
    while (bytes-- > 0) {
        *out++ = *in++;
    }
}

struct access {
    const unsigned char *at;
    size_t bytes;
    bool write;
};

UNSEEN static void touch(void *argument) {
    const struct access *access = argument;
    const size_t page = 4096;
    for (size_t i = 0; i < access->bytes; i += page - (uintptr_t)(access->at + i) % page) {
        volatile unsigned char *byte = (volatile unsigned char *)access->at + i;
        if (access->write) {
            /* Others may write there meanwhile. */
            __atomic_fetch_or(byte, 0, __ATOMIC_RELAXED);
        } else {
            (void)*byte;
        }
    }
}

bool fake_may_access(const void *at, size_t bytes, bool write) {
    struct access access = {at, bytes, write};
    return fake_guard(touch, &access) == CUDA_SUCCESS;
}
