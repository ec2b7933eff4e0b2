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

static void finish(struct bhi_py_task *task) {
    task->status = task->run(task);
    atomic_store(&task->done, 1);
    syscall(SYS_futex, &task->done, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    bhi_py_task_unref(task);
}

static void *run_thread(void *argument) {
    finish(argument);
    return NULL;
}

/* A wait of the library, in form: for the end of a task. */
static bh_status wait_for_task(void *argument, uint64_t timeout_ns, bh_detail *detail) {
    struct bhi_py_task *task = argument;
    const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                                     .tv_nsec = (long)(timeout_ns % 1000000000u)};
    (void)detail;
    if (atomic_load(&task->done)) {
        return BH_OK;
    }
    syscall(SYS_futex, &task->done, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL, 0);
    return atomic_load(&task->done) ? BH_OK : BH_TIMEOUT;
}

void bhi_py_task_join(struct bhi_py_task *task) {
    while (wait_for_task(task, SLICE_NS, NULL) != BH_OK) {
    }
}

bool bhi_py_task_run(struct bhi_py_task *task, enum bhi_py_gil manner) {
    bool started = false;
    bh_status waited;
    atomic_fetch_add(&task->refs, 1); /* that of who runs it */
    if (manner == BHI_PY_BLOCKS && handles_signals()) {
        sigset_t all, old;
        pthread_t thread;
        pthread_attr_t detached;
        sigfillset(&all);
        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        started = pthread_create(&thread, &detached, run_thread, task) == 0;
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&detached);
    }
    if (!started) {
        PyThreadState *state = manner == BHI_PY_HOLDS ? NULL : PyEval_SaveThread();
        finish(task);
        if (state) {
            PyEval_RestoreThread(state);
        }
    } else if (!bhi_py_await(wait_for_task, task, BH_FOREVER, &waited, NULL)) {
        return false;
    }
    task->failed = task->status != BH_OK;
    return !task->failed || bhi_py_fail(task->status, &task->detail);
}
