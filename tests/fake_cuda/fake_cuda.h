/* The fake CUDA driver from inside. One lock guards everything but what an operation touches while it
 * runs; what is behind a handle is looked up in a list, so that a stale handle is an error.
 *
 * What a test chooses, in the environment or by lines NAME=VALUE in fake_cuda.settings beside the library:
 *   FAKE_CUDA_VERSION    of the driver (12080); later functions are not there
 *   FAKE_CUDA_INIT       what cuInit() returns (0)
 *   FAKE_CUDA_DEVICES    how many there are (1)
 *   FAKE_CUDA_MEMORY     bytes of each (8 GiB)
 *   FAKE_CUDA_GRANULARITY  of its memory (2 MiB)
 *   FAKE_CUDA_MODE       its compute mode (0); 2 lets nobody in, 3 the first process that comes
 *   FAKE_CUDA_PTX        what loading PTX returns (0)
 *   FAKE_CUDA_READ_ONLY  0: no read-only registration of host memory (1)
 *
 * After cuCtxCreate() the driver opens no file and makes few system calls, as a worker's filter wants it:
 * the test fake_cuda_runs_behind_a_filter has the list. What it needs more for, it makes before: the
 * context's thread, the place for code, and memfds for device memory.
 *
 * What a real device does better: its kernels reach none of the host's memory that is not registered,
 * its threads run at once, and a kernel that loops without pause() does not survive its context. */
#ifndef TESTS_FAKE_CUDA_FAKE_CUDA_H
#define TESTS_FAKE_CUDA_FAKE_CUDA_H

#include "base/cuda.h"
#include "tests/fake_cuda/abi.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Not in base/cuda.h: we have no use for its name. */
#define CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED ((CUresult)713)

#define FAKE_DECLARE(name, since, parameters) CUresult fake_##name parameters;
BHI_CUDA_FUNCTIONS(FAKE_DECLARE)
BHI_CUDA_HOST_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE

/* -- the driver: state.c -------------------------------------------------------------------------- */

extern pthread_mutex_t fake_lock;
int fake_take_lock(void);
void fake_leave_lock(int *unused);
extern volatile uint32_t *fake_latches; /* the file fake_cuda.latches beside the library; or NULL */
CUresult fake_check_driver(void);
CUresult fake_check_context(CUcontext *out_current);
unsigned long long fake_setting(const char *variable, unsigned long long otherwise);
bool fake_is_device(CUdevice device);

/* How a function of the API begins: it has the lock until it returns, and returns at once without
 * cuInit(), or where no context is current or that has a fault. */
#define FAKE_ENTER_DRIVER()                                                                        \
    __attribute__((cleanup(fake_leave_lock), unused)) int fake_held = fake_take_lock();            \
    FAKE_CHECK(fake_check_driver())
#define FAKE_ENTER(context)                                                                        \
    FAKE_ENTER_DRIVER();                                                                           \
    CUcontext context;                                                                             \
    FAKE_CHECK(fake_check_context(&context))
/* Return from it, too: with the call's error; with that error if the condition does not hold. */
#define FAKE_CHECK(call)                                                                           \
    do {                                                                                           \
        CUresult fake_result = (call);                                                             \
        if (fake_result != CUDA_SUCCESS) {                                                         \
            return fake_result;                                                                    \
        }                                                                                          \
    } while (0)
#define FAKE_REQUIRE(condition, error)                                                             \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return CUDA_ERROR_##error;                                                             \
        }                                                                                          \
    } while (0)

/* A list of what has its link first. */
struct fake_link {
    struct fake_link *next;
};
bool fake_has(const struct fake_link *list, const void *entry);
void fake_add(struct fake_link *list, void *entry);
void fake_remove(struct fake_link *list, void *entry);
void fake_free_list(struct fake_link *list);

/* -- faults: guard.c ------------------------------------------------------------------------------ */

CUresult fake_guard_install(void);
void fake_guard_leave_out(sigset_t *set); /* the signals that it handles */
/* Runs it; a crash of this thread in there ends it. Returns CUDA_SUCCESS, or which fault it was. */
CUresult fake_guard(void (*run)(void *argument), void *argument);
/* Ends what the innermost fake_guard() of this thread runs. */
_Noreturn void fake_guard_fail(int error);
/* A copy that no sanitizer looks at: of what may be no memory at all. */
void fake_move(void *to, const void *from, size_t bytes);
/* Whether all pages may be read, or else written. */
bool fake_may_access(const void *at, size_t bytes, bool write);

/* -- contexts, streams, events -------------------------------------------------------------------- */

struct CUstream_st {
    struct fake_link link;
    unsigned pending; /* operations */
    bool destroyed;   /* it is freed with the last of these */
};

struct CUevent_st {
    struct fake_link link;
    unsigned pending;
    bool destroyed, timed, recorded;
    uint64_t at_ns;
};

struct fake_operation;
typedef void fake_run(struct fake_operation *operation);

struct fake_operation {
    struct fake_operation *next;
    CUcontext context;
    CUstream stream;
    CUevent event;     /* or NULL */
    fake_run *run;     /* or NULL */
    bool done, waited; /* waited: who waits frees it */
    CUfunction function;
    struct fake_cuda_dim grid, block;
    uint32_t shared_bytes;
    void *to;
    const void *from;
    size_t bytes;
    uint64_t value;
    _Alignas(16) unsigned char staged[]; /* parameters, or what is copied from ordinary memory */
};

#define FAKE_CODE_PAGES 16384u

/* Where images are: one memory, mapped twice, since none is mapped writable and executable. */
struct fake_code {
    unsigned char *runs, *writes;
    bool used[FAKE_CODE_PAGES];
};

struct CUctx_st {
    struct fake_link link;
    CUresult error; /* sticky */
    pthread_t thread;
    pthread_cond_t work, done;
    struct fake_operation *first, **last, *running;
    bool started, closing;
    atomic_bool abandoned; /* its kernels end where they look */
    struct fake_link streams, events, modules, registrations;
    struct CUstream_st legacy; /* the stream NULL */
    struct fake_code code;
    unsigned char shared[FAKE_CUDA_SHARED_OPTIN];
    _Alignas(16) unsigned char kept[FAKE_CUDA_KEPT];
    int64_t skew_ns;
    void (*later)(void *argument); /* or NULL */
    void *later_argument;
    uint64_t later_ns; /* when */
};

CUcontext fake_context_current(void);
CUstream fake_stream(CUcontext context, CUstream stream); /* NULL: no such stream */

uint64_t fake_now_ns(void);
CUresult fake_engine_start(CUcontext context);
void fake_engine_stop(CUcontext context);
struct fake_operation *fake_operation_create(fake_run *run, size_t staged_bytes);
void fake_operation_submit(CUcontext context, CUstream stream, struct fake_operation *operation);
/* Until all that was submitted has ended, or something has failed: its error. */
CUresult fake_context_wait(CUcontext context);

/* -- modules -------------------------------------------------------------------------------------- */

struct fake_image { /* an ELF object in memory; its variables are constants */
    struct fake_code *code;
    unsigned char *at, *writes;
    size_t bytes;
    size_t symbols, symbol_count, strings, string_bytes; /* offsets into it */
};

CUresult fake_code_init(struct fake_code *code);
void fake_code_fini(struct fake_code *code);
/* |elf| may end anywhere: what is no memory is not read. */
CUresult fake_image_load(struct fake_code *code, struct fake_image *image, const void *elf);
void fake_image_unload(struct fake_image *image);
/* NULL: no such object of at least |bytes|, or with 0 no such function. */
const void *fake_image_find(const struct fake_image *image, const char *name, size_t bytes);

struct CUfunc_st {
    struct fake_link link;
    struct fake_cuda_attributes attributes;
    uint32_t parameter_count, parameter_bytes;
    fake_cuda_kernel *run;
    const struct fake_cuda_parameter *parameters;
    char name[256];
    struct fake_cuda_parameter own[]; /* in place of the image's */
};

struct CUmod_st {
    struct fake_link link;
    struct fake_link images, functions;
    bool closed; /* it has no functions but those */
    struct fake_code *code;
};

CUresult fake_module_add_image(CUmodule module, const void *elf);
/* The same, unless the module has it: then it is as if it were added last. */
CUresult fake_module_use_image(CUmodule module, const void *elf);
/* The kernel of the image that was added last, under |name|, with room for |room| parameters of its own.
 * NOT_FOUND: there is none. */
CUresult fake_module_add_function(CUmodule module, const char *kernel, const char *name,
                                  size_t room, CUfunction *out);
void fake_module_free(CUcontext context, CUmodule module);
bool fake_is_function(CUcontext context, CUfunction function);
/* The "PTX" of ptx.c. */
CUresult fake_ptx_load(CUmodule module, const char *text, char *log, size_t log_bytes);

/* While there is a context, descriptors for device memory are kept ready. */
CUresult fake_memory_prepare(void);
void fake_memory_forget(void);

/* Whether the device may use these bytes of the host's later: they are in one registration. */
bool fake_is_registered(CUcontext context, const void *at, size_t bytes);

#endif
