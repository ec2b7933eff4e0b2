/* Queue: a completion queue (bulkhead/queue.h). Each event is known by a number. */
#include "python/native.h"

#include <poll.h>

struct queue {
    PyObject base;
    bh_queue *queue;
};

/* (event, number): take() gives the number when the event has ended. */
static PyObject *queue_add(PyObject *object, PyObject *args) {
    struct bhi_py_event *event;
    unsigned long long number;
    bh_detail detail;
    if (!PyArg_ParseTuple(args, "O!K:add", bhi_py.event, &event, &number)) {
        return NULL;
    }
    const bh_status status =
        bh_queue_add(((struct queue *)object)->queue, event->event, number, &detail);
    return status == BH_OK ? Py_NewRef(Py_None) : bhi_py_fail(status, &detail);
}

/* Nothing is taken here: an exception of a signal handler, after the wait, must not lose it. */
static bh_status wait_for_queue(void *argument, uint64_t timeout_ns, bh_detail *detail) {
    struct pollfd wanted = {.fd = bh_queue_fd(argument), .events = POLLIN};
    const uint64_t ms = timeout_ns / 1000000u + (timeout_ns % 1000000u != 0);
    (void)detail;
    const int ready = poll(&wanted, 1, ms > INT32_MAX ? INT32_MAX : (int)ms);
    /* An interrupted wait counts as one that timed out: there is a look for signals after it. */
    return ready > 0 ? BH_OK : BH_TIMEOUT;
}

/* Returns false with an exception set. */
static bool take_all(bh_queue *queue, PyObject *list) {
    bh_completion ended;
    bh_status status;
    size_t count;
    bool good = true;
    while (good && (status = bh_queue_take(queue, BH_NOW, &ended, 1, &count)) == BH_OK) {
        PyObject *number = PyLong_FromUnsignedLongLong(ended.user_data);
        bh_event_release(ended.event);
        good = number && PyList_Append(list, number) == 0;
        Py_XDECREF(number);
    }
    return good && (status == BH_TIMEOUT || bhi_py_fail(status, NULL));
}

/* (timeout) -> the numbers of what has ended, when there are some; [] after the timeout */
static PyObject *queue_take(PyObject *object, PyObject *args) {
    bh_queue *queue = ((struct queue *)object)->queue;
    uint64_t timeout_ns = BH_FOREVER;
    bh_status status;
    if (!PyArg_ParseTuple(args, "|O&:take", bhi_py_to_timeout, &timeout_ns)) {
        return NULL;
    }
    const uint64_t began_ns = bhi_py_now_ns();
    PyObject *list = PyList_New(0);
    while (list) {
        const uint64_t gone_ns = bhi_py_now_ns() - began_ns;
        const uint64_t left_ns = timeout_ns == BH_FOREVER ? timeout_ns
                                 : gone_ns < timeout_ns   ? timeout_ns - gone_ns
                                                          : 0;
        if (!take_all(queue, list) ||
            (!PyList_Size(list) && left_ns &&
             !bhi_py_await(wait_for_queue, queue, left_ns, &status, NULL))) {
            Py_CLEAR(list);
        } else if (PyList_Size(list) || !left_ns) {
            return list;
        }
    }
    return NULL;
}

static PyObject *queue_fileno(PyObject *object, PyObject *unused) {
    (void)unused;
    return PyLong_FromLong(bh_queue_fd(((struct queue *)object)->queue));
}

static PyObject *queue_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)kwargs;
    if (!PyArg_ParseTuple(args, ":Queue")) {
        return NULL;
    }
    struct queue *self = bhi_py_new(type);
    bh_detail detail;
    bh_status status;
    if (self && (status = bh_queue_create(&self->queue, &detail)) != BH_OK) {
        Py_DECREF((PyObject *)self);
        return bhi_py_fail(status, &detail);
    }
    return (PyObject *)self;
}

static void queue_dealloc(PyObject *object) {
    bh_queue_destroy(((struct queue *)object)->queue);
    bhi_py_free(object);
}

static PyMethodDef methods[] = {
    {"add", queue_add, METH_VARARGS, NULL},
    {"take", queue_take, METH_VARARGS, NULL},
    {"fileno", queue_fileno, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, queue_new},
    {Py_tp_dealloc, queue_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};
PyType_Spec bhi_py_queue_spec = {
    .name = "bulkhead._native.Queue",
    .basicsize = sizeof(struct queue),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
