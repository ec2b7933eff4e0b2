/* Queue: one descriptor for many events.
 *
 * A completion callback (bh_event_on_end) puts the number of a watch into the queue, and makes the
 * descriptor readable. It runs in the callback thread of a context and touches no Python object: so
 * it needs no lock of the interpreter, and bh_context_destroy can wait for it. */
#include "python/native.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Shared with the callbacks: it lives until the last of them has run. */
struct ring {
    atomic_int refs;
    int fd;
    pthread_mutex_t lock;
    uint64_t *ended;    /* lock: numbers of watches whose events have ended */
    size_t count, room; /* lock */
    size_t watched;     /* lock: callbacks that are still to come; room >= count + watched */
};

struct queue {
    PyObject base;
    struct ring *ring;
};

struct watch {
    struct ring *ring;
    uint64_t number;
};

static void ring_unref(struct ring *ring) {
    if (atomic_fetch_sub(&ring->refs, 1) == 1) {
        close(ring->fd);
        pthread_mutex_destroy(&ring->lock);
        free(ring->ended);
        free(ring);
    }
}

static void on_end(bh_event *event, void *user) {
    struct watch *watch = user;
    struct ring *ring = watch->ring;
    const uint64_t one = 1;
    (void)event;
    pthread_mutex_lock(&ring->lock);
    ring->watched--;
    ring->ended[ring->count++] = watch->number;
    if (ring->count == 1 && write(ring->fd, &one, sizeof one) < 0) {
        /* It cannot fail: the counter is 0 or 1. */
    }
    pthread_mutex_unlock(&ring->lock);
    ring_unref(ring);
    free(watch);
}

static bool reserve(struct ring *ring) {
    const size_t wanted = ring->count + ring->watched + 1;
    if (wanted > ring->room) {
        const size_t room = wanted < 32 ? 32 : 2 * wanted;
        uint64_t *ended = realloc(ring->ended, room * sizeof *ended);
        if (!ended) {
            return false;
        }
        ring->ended = ended;
        ring->room = room;
    }
    ring->watched++;
    return true;
}

/* (event, number): the queue gets the number when the event has ended. */
static PyObject *queue_watch(PyObject *object, PyObject *args) {
    struct ring *ring = ((struct queue *)object)->ring;
    struct bhi_py_event *event;
    unsigned long long number;
    bh_detail detail;
    if (!PyArg_ParseTuple(args, "O!K:watch", bhi_py.event, &event, &number)) {
        return NULL;
    }
    if (bhi_py_context_forked(event->context)) {
        return bhi_py_fail(BH_FORKED, NULL);
    }
    struct watch *watch = malloc(sizeof *watch);
    if (!watch) {
        return PyErr_NoMemory();
    }
    *watch = (struct watch){.ring = ring, .number = number};
    pthread_mutex_lock(&ring->lock);
    const bool reserved = reserve(ring);
    pthread_mutex_unlock(&ring->lock);
    if (!reserved) {
        free(watch);
        return PyErr_NoMemory();
    }
    atomic_fetch_add(&ring->refs, 1);
    const bh_status status = bh_event_on_end(event->event, on_end, watch, &detail);
    if (status == BH_OK) {
        Py_RETURN_NONE;
    }
    pthread_mutex_lock(&ring->lock);
    ring->watched--;
    pthread_mutex_unlock(&ring->lock);
    ring_unref(ring);
    free(watch);
    return bhi_py_fail(status, &detail);
}

/* Takes out all numbers, as a list. */
static PyObject *queue_drain(PyObject *object, PyObject *unused) {
    struct ring *ring = ((struct queue *)object)->ring;
    uint64_t counter;
    (void)unused;
    PyObject *list = PyList_New(0);
    pthread_mutex_lock(&ring->lock);
    size_t i = 0;
    for (; list && i < ring->count; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(ring->ended[i]);
        if (!number || PyList_Append(list, number) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(number);
    }
    if (list) {
        ring->count = 0;
        if (read(ring->fd, &counter, sizeof counter) < 0) {
            /* EAGAIN: nothing had ended. */
        }
    }
    pthread_mutex_unlock(&ring->lock);
    return list;
}

static bh_status wait_for_ring(void *argument, uint64_t timeout_ns, bh_detail *detail) {
    const struct ring *ring = argument;
    struct pollfd wanted = {.fd = ring->fd, .events = POLLIN};
    const uint64_t ms = timeout_ns / 1000000u + (timeout_ns % 1000000u != 0);
    (void)detail;
    const int ready = poll(&wanted, 1, ms > INT32_MAX ? INT32_MAX : (int)ms);
    /* An interrupted wait counts as one that timed out: there is a look for signals after it. */
    return ready > 0 ? BH_OK : BH_TIMEOUT;
}

/* (timeout) -> whether something has ended */
static PyObject *queue_wait(PyObject *object, PyObject *args) {
    struct ring *ring = ((struct queue *)object)->ring;
    uint64_t timeout_ns = BHI_PY_FOREVER;
    bh_status status;
    if (!PyArg_ParseTuple(args, "|O&:wait", bhi_py_to_timeout, &timeout_ns)) {
        return NULL;
    }
    const uint64_t began_ns = bhi_py_now_ns();
    for (;;) {
        const uint64_t gone_ns = bhi_py_now_ns() - began_ns;
        const uint64_t left_ns = timeout_ns == BHI_PY_FOREVER ? timeout_ns
                                 : gone_ns < timeout_ns       ? timeout_ns - gone_ns
                                                              : 0;
        if (!bhi_py_await(wait_for_ring, ring, left_ns, &status, NULL)) {
            return NULL;
        }
        if (status == BH_OK || left_ns == 0) {
            return PyBool_FromLong(status == BH_OK);
        }
    }
}

static PyObject *queue_fileno(PyObject *object, PyObject *unused) {
    (void)unused;
    return PyLong_FromLong(((struct queue *)object)->ring->fd);
}

static PyObject *queue_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)kwargs;
    if (!PyArg_ParseTuple(args, ":Queue")) {
        return NULL;
    }
    struct queue *self = bhi_py_new(type);
    if (!self) {
        return NULL;
    }
    struct ring *ring = calloc(1, sizeof *ring);
    if (ring) {
        ring->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        atomic_init(&ring->refs, 1);
        pthread_mutex_init(&ring->lock, NULL);
    }
    if (!ring || ring->fd < 0) {
        PyObject *error = ring ? PyErr_SetFromErrno(PyExc_OSError) : PyErr_NoMemory();
        free(ring);
        Py_DECREF((PyObject *)self);
        return error;
    }
    self->ring = ring;
    return (PyObject *)self;
}

static void queue_dealloc(PyObject *object) {
    struct queue *self = (struct queue *)object;
    if (self->ring) {
        ring_unref(self->ring);
    }
    bhi_py_free(object);
}

static PyMethodDef methods[] = {
    {"watch", queue_watch, METH_VARARGS, NULL},
    {"drain", queue_drain, METH_NOARGS, NULL},
    {"wait", queue_wait, METH_VARARGS, NULL},
    {"fileno", queue_fileno, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, queue_new},
    {Py_tp_dealloc, queue_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};
static PyType_Spec spec = {
    .name = "bulkhead._native.Queue",
    .basicsize = sizeof(struct queue),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

bool bhi_py_add_queue(PyObject *module) {
    bhi_py.queue = bhi_py_add_type(module, &spec);
    return bhi_py.queue;
}
