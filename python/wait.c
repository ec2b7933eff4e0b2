/* Waiting: without the interpreter's lock, and so that signals are handled in time. */
#include "python/native.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A signal is handled this long after it came, at most. The library's waits go on when a signal
 * interrupts them, and one that came between the look for signals and the wait would not interrupt
 * it. */
#define SLICE_NS 20000000ull

uint64_t bhi_py_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool bhi_py_to_duration(PyObject *value, const char *name, uint64_t *out_ns) {
    *out_ns = BH_FOREVER;
    if (value == Py_None) {
        return true;
    }
    PyObject *number = PyFloat_Check(value) || PyLong_Check(value)
                           ? Py_NewRef(value)
                           : PyObject_CallFunction(bhi_py.to_seconds, "Os", value, name);
    if (!number) {
        return false;
    }
    if (number == Py_None) { /* "none" */
        Py_DECREF(number);
        return true;
    }
    const double seconds = PyFloat_AsDouble(number);
    Py_DECREF(number);
    if (PyErr_Occurred()) { /* of an integer over all floats */
        PyErr_Clear();
        return bhi_py_refuse(BH_INVALID_ARGUMENT,
                             "%s: the number is too large; 'none' means no limit", name);
    }
    if (isnan(seconds)) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "%s: it is not a number", name);
    }
    if (seconds < 1e9) {
        *out_ns = seconds > 0 ? (uint64_t)(seconds * 1e9) : 0;
    }
    return true;
}

int bhi_py_to_timeout(PyObject *value, void *out_ns) {
    return bhi_py_to_duration(value, "timeout", out_ns);
}

/* Signals are handled by one thread only; others need not look for them. (Under gevent threads are
 * known to Python by another identity.) */
static bool handles_signals(void) {
    return (unsigned long)gettid() == bhi_py.main_thread;
}

bool bhi_py_await(bhi_py_wait wait, void *argument, uint64_t timeout_ns, bh_status *out_status,
                  bh_detail *detail) {
    const bool slices = handles_signals();
    const uint64_t began_ns = bhi_py_now_ns();
    uint64_t left_ns = timeout_ns;
    for (;;) {
        const uint64_t piece_ns = slices && left_ns > SLICE_NS ? SLICE_NS : left_ns;
        Py_BEGIN_ALLOW_THREADS
        *out_status = wait(argument, piece_ns, detail);
        Py_END_ALLOW_THREADS
        if (slices && PyErr_CheckSignals() < 0) {
            return false;
        }
        if (*out_status != BH_TIMEOUT || piece_ns == left_ns) {
            return true;
        }
        if (timeout_ns != BH_FOREVER) {
            const uint64_t gone_ns = bhi_py_now_ns() - began_ns;
            left_ns = gone_ns < timeout_ns ? timeout_ns - gone_ns : 0;
        }
    }
}

/* -- tasks --------------------------------------------------------------------------------------
 */

void *bhi_py_task_new(size_t size, bh_status (*run)(struct bhi_py_task *task),
                      void (*drop)(struct bhi_py_task *task)) {
    struct bhi_py_task *task = calloc(1, size);
    if (!task) {
        return PyErr_NoMemory();
    }
    task->run = run;
    task->drop = drop;
    task->refs = 1;
    return task;
}

void bhi_py_task_unref(struct bhi_py_task *task) {
    if (atomic_fetch_sub(&task->refs, 1) == 1) {
        if (task->drop) {
            task->drop(task);
        }
        free(task);
    }
}

/* RUNS ─▶ DONE, and before that any number of times RUNS ─▶ ASKS ─▶ RUNS; from RUNS and ASKS to LEFT ─▶ DONE,
 * when a signal handler has raised an exception in the thread that waits. */
enum { RUNS, ASKS, LEFT, DONE };

static void wake(struct bhi_py_task *task) {
    syscall(SYS_futex, &task->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void finish(struct bhi_py_task *task) {
    task->status = task->run(task);
    atomic_store(&task->state, DONE);
    wake(task);
    bhi_py_task_unref(task);
}

static void *run_thread(void *argument) {
    finish(argument);
    return NULL;
}

/* Sleeps while the task is in that state. Returns the state in which it is then. */
static unsigned sleep_while(struct bhi_py_task *task, unsigned state, uint64_t timeout_ns) {
    const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                                     .tv_nsec = (long)(timeout_ns % 1000000000u)};
    if (atomic_load(&task->state) == state) {
        syscall(SYS_futex, &task->state, FUTEX_WAIT_PRIVATE, state, &timeout, NULL, 0);
    }
    return atomic_load(&task->state);
}

/* A wait of the library, in form: for the end of a task, or for what it asks. */
static bh_status wait_for_task(void *argument, uint64_t timeout_ns, bh_detail *detail) {
    (void)detail;
    return sleep_while(argument, RUNS, timeout_ns) == RUNS ? BH_TIMEOUT : BH_OK;
}

void bhi_py_task_join(struct bhi_py_task *task) {
    for (unsigned state = atomic_load(&task->state); state != DONE;) {
        state = sleep_while(task, state, SLICE_NS);
    }
}

/* Nobody waits for the task any more: what it asks is not answered. */
static void desert(struct bhi_py_task *task) {
    unsigned state = atomic_load(&task->state);
    while (state != DONE && !atomic_compare_exchange_weak(&task->state, &state, LEFT)) {
    }
    wake(task);
}

bool bhi_py_task_ask(struct bhi_py_task *task, void (*asked)(struct bhi_py_task *task)) {
    unsigned state = RUNS;
    if (!task->apart) {
        const PyGILState_STATE lock = PyGILState_Ensure();
        asked(task);
        PyGILState_Release(lock);
        return true;
    }
    task->asked = asked;
    if (atomic_compare_exchange_strong(&task->state, &state, ASKS)) {
        wake(task);
        do {
            state = sleep_while(task, ASKS, SLICE_NS);
        } while (state == ASKS);
    }
    return state == RUNS;
}

/* Waits for the task, and answers it. Returns false with an exception set if a signal handler raised
 * one. */
static bool attend(struct bhi_py_task *task) {
    bh_status waited;
    while (bhi_py_await(wait_for_task, task, BH_FOREVER, &waited, NULL)) {
        if (atomic_load(&task->state) == DONE) {
            return true;
        }
        task->asked(task);
        atomic_store(&task->state, RUNS);
        wake(task);
    }
    desert(task);
    return false;
}

bool bhi_py_task_run(struct bhi_py_task *task, enum bhi_py_gil manner) {
    bool started = false;
    atomic_fetch_add(&task->refs, 1); /* that of who runs it */
    if (manner == BHI_PY_BLOCKS && handles_signals()) {
        sigset_t all, old;
        pthread_t thread;
        pthread_attr_t detached;
        sigfillset(&all);
        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        task->apart = true;
        started = pthread_create(&thread, &detached, run_thread, task) == 0;
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&detached);
    }
    if (!started) {
        task->apart = false;
        PyThreadState *state = manner == BHI_PY_HOLDS ? NULL : PyEval_SaveThread();
        finish(task);
        if (state) {
            PyEval_RestoreThread(state);
        }
    } else if (!attend(task)) {
        return false;
    }
    task->failed = task->status != BH_OK;
    return !task->failed || bhi_py_fail(task->status, &task->detail);
}
