/* Stream: an ordered queue of submissions with a worker of its own. */
#include "python/native.h"

#include <stddef.h>

static PyObject *stream_close(PyObject *object, PyObject *unused) {
    struct bhi_py_stream *self = (struct bhi_py_stream *)object;
    (void)unused;
    if (bhi_py_close(&self->handle)) {
        bh_stream_release(self->stream);
    }
    Py_RETURN_NONE;
}

static void stream_dealloc(PyObject *object) {
    struct bhi_py_stream *self = (struct bhi_py_stream *)object;
    if (bhi_py_close(&self->handle)) {
        bh_stream_release(self->stream);
    }
    Py_XDECREF((PyObject *)self->context);
    bhi_py_free(object);
}

static const struct bhi_py_field fields[] = {
    {"name", offsetof(bh_stream_options, name), BHI_PY_TEXT},
    {"device", offsetof(bh_stream_options, device), BHI_PY_TEXT},
    {"tenant", offsetof(bh_stream_options, tenant), BHI_PY_TEXT},
    {"deadline", offsetof(bh_stream_options, deadline_ns), BHI_PY_U64},
    {"compile_deadline", offsetof(bh_stream_options, compile_deadline_ns), BHI_PY_U64},
    {"grace", offsetof(bh_stream_options, grace_ns), BHI_PY_LIMIT},
    {"memory", offsetof(bh_stream_options, memory_limit), BHI_PY_LIMIT},
    {"device_memory", offsetof(bh_stream_options, device_memory), BHI_PY_U64},
    {"strict", offsetof(bh_stream_options, strict), BHI_PY_BOOL},
    {"isolation", offsetof(bh_stream_options, isolation), BHI_PY_INT},
    {"processor", offsetof(bh_stream_options, processor), BHI_PY_U32},
    {"nice", offsetof(bh_stream_options, nice), BHI_PY_U64},
};

/* (context, options) -> Stream */
PyObject *bhi_py_stream_create(PyObject *module, PyObject *args) {
    struct bhi_py_context *context;
    PyObject *values;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!:stream_create", bhi_py.context, &context, &PyDict_Type,
                          &values)) {
        return NULL;
    }
    bh_stream_options options = {.struct_size = sizeof options};
    bh_detail detail;
    if (!bhi_py_context_check(context) ||
        !bhi_py_set_fields(&options, fields, BHI_PY_COUNT(fields), values, "stream")) {
        return NULL;
    }
    struct bhi_py_stream *self = bhi_py_new(bhi_py.new_stream);
    if (!self) {
        return NULL;
    }
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = bh_stream_create(context->context, &options, &self->stream, &detail);
    Py_END_ALLOW_THREADS
    if (status != BH_OK) {
        bhi_py_fail(status, &detail);
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    self->context = (struct bhi_py_context *)Py_NewRef((PyObject *)context);
    self->deadline_ns = options.deadline_ns;
    return (PyObject *)self;
}

/* -- waiting ------------------------------------------------------------------------------------
 */

static bh_status wait_ready(void *stream, uint64_t timeout_ns, bh_detail *detail) {
    return bh_stream_wait_ready(stream, timeout_ns, detail);
}

static bh_status synchronize(void *stream, uint64_t timeout_ns, bh_detail *detail) {
    return bh_stream_synchronize(stream, timeout_ns, detail);
}

static PyObject *wait_for(PyObject *object, PyObject *args, PyObject *kwargs, bhi_py_wait wait,
                          const char *format) {
    struct bhi_py_stream *self = (struct bhi_py_stream *)object;
    static char *names[] = {"timeout", NULL};
    uint64_t timeout_ns = BH_FOREVER;
    bh_status status;
    bh_detail detail;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, names, bhi_py_to_timeout, &timeout_ns) ||
        !bhi_py_stream_enter(self)) {
        return NULL;
    }
    const bool awaited = bhi_py_await(wait, self->stream, timeout_ns, &status, &detail);
    bhi_py_stream_leave(self);
    if (!awaited) {
        return NULL;
    }
    return status == BH_OK ? Py_NewRef(Py_None) : bhi_py_fail_poison(status, &detail);
}

static PyObject *stream_wait_ready(PyObject *self, PyObject *args, PyObject *kwargs) {
    return wait_for(self, args, kwargs, wait_ready, "|O&:wait_ready");
}

static PyObject *stream_synchronize(PyObject *self, PyObject *args, PyObject *kwargs) {
    return wait_for(self, args, kwargs, synchronize, "|O&:synchronize");
}

/* -- the rest -----------------------------------------------------------------------------------
 */

static PyObject *stream_reset(PyObject *object, PyObject *unused) {
    struct bhi_py_stream *self = (struct bhi_py_stream *)object;
    bh_detail detail;
    (void)unused;
    if (!bhi_py_stream_enter(self)) {
        return NULL;
    }
    const bh_status status = bh_stream_reset(self->stream, &detail);
    bhi_py_stream_leave(self);
    return status == BH_OK ? Py_NewRef(Py_None) : bhi_py_fail(status, &detail);
}

static PyObject *stream_cancel(PyObject *object, PyObject *unused) {
    struct bhi_py_stream *self = (struct bhi_py_stream *)object;
    (void)unused;
    if (!bhi_py_stream_enter(self)) {
        return NULL;
    }
    const bh_status status = bh_stream_cancel(self->stream);
    bhi_py_stream_leave(self);
    return status == BH_OK ? Py_NewRef(Py_None) : bhi_py_fail(status, NULL);
}

static PyObject *get_worker_pid(PyObject *object, void *unused) {
    struct bhi_py_stream *self = (struct bhi_py_stream *)object;
    (void)unused;
    if (!bhi_py_stream_enter(self)) {
        return NULL;
    }
    const int32_t pid = bh_stream_worker_pid(self->stream);
    bhi_py_stream_leave(self);
    return PyLong_FromLong(pid);
}

static PyObject *get_device(PyObject *object, void *unused) {
    struct bhi_py_stream *self = (struct bhi_py_stream *)object;
    char selector[48];
    (void)unused;
    if (!bhi_py_stream_enter(self)) {
        return NULL;
    }
    const bh_status status = bh_stream_device(self->stream, selector);
    bhi_py_stream_leave(self);
    return status == BH_OK ? bhi_py_text(selector) : bhi_py_fail(status, NULL);
}

static PyObject *get_closed(PyObject *object, void *unused) {
    struct bhi_py_stream *self = (struct bhi_py_stream *)object;
    (void)unused;
    return PyBool_FromLong(bhi_py_closed(&self->handle) || bhi_py_closed(&self->context->handle));
}

static PyObject *get_context(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef((PyObject *)((struct bhi_py_stream *)object)->context);
}

static PyMethodDef methods[] = {
    {"launch", BHI_PY_METHOD(bhi_py_stream_launch), METH_FASTCALL | METH_KEYWORDS,
     "launch($self, kernel, /, *, grid=None, groups=None, block=None, shared=None, args=None,\n"
     "       after=None, deadline=None, alone=False, timed=False, **named)\n--\n\n"
     "Submit one dispatch of `kernel`, and return its Event. Does not wait.\n\n"
     "Buffers and push constants are given by the names that the kernel has for them: as "
     "keywords,\n"
     "or in the dict `args` if a name is no keyword. `grid` is how many invocations there are to "
     "be\n"
     "along each axis (a number or up to three); it is rounded up to whole workgroups, so the\n"
     "kernel has to check its bounds. `groups` counts workgroups instead. `after` are events to\n"
     "wait for; the submission is poisoned if one of them is. `alone` gives it a worker that runs\n"
     "nothing else, `timed` measures the time on the device (`Verdict.device_ns`).\n\n"
     "A buffer that the kernel stores into is taken to be read, too: if its content is poisoned,\n"
     "the submission is poisoned. Give `bulkhead.out(y)` if the kernel overwrites all of it.\n\n"
     "Of a CUDA kernel `args` is a tuple in the order of its parameters, `grid` counts blocks, of\n"
     "`block` threads each and with `shared` bytes of dynamic shared memory. What a kernel may "
     "not\n"
     "write is `bulkhead.read(x)`, or an array. A number becomes what the PTX declares; a cubin "
     "does\n"
     "not say that: give numpy.float32(2).\n\n"
     ">>> saxpy = ctx.kernel(shaders / 'saxpy.spv')\n"
     ">>> x, y = ctx.asarray([1.0, 2.0], 'float32'), ctx.empty(2)\n"
     ">>> event = stream.launch(saxpy, grid=x.size, X=x, Y=y, a=10, n=x.size)\n"
     ">>> y.tolist()\n"
     "[10.0, 20.0]"},
    {"prepare", BHI_PY_METHOD(bhi_py_stream_prepare), METH_FASTCALL | METH_KEYWORDS,
     "prepare($self, kernel, /, *, grid=None, groups=None, block=None, shared=None, args=None,\n"
     "        after=None, deadline=None, alone=False, timed=False, **named)\n--\n\n"
     "Check what launch() takes, and return a Launch. Each call of that submits it once more; "
     "calls\n"
     "may change buffers and push constants by name.\n\n"
     ">>> saxpy = ctx.kernel(shaders / 'saxpy.spv')\n"
     ">>> x, y = ctx.asarray([1.0, 2.0], 'float32'), ctx.empty(2)\n"
     ">>> add = stream.prepare(saxpy, grid=x.size, X=x, Y=y, a=1, n=x.size)\n"
     ">>> events = [add(), add(), add(a=10)]\n"
     ">>> y.tolist()\n"
     "[12.0, 24.0]"},
    {"_submit", BHI_PY_METHOD(bhi_py_stream_submit), METH_VARARGS | METH_KEYWORDS, NULL},
    {"wait_ready", BHI_PY_METHOD(stream_wait_ready), METH_VARARGS | METH_KEYWORDS,
     "wait_ready($self, /, timeout=None)\n--\n\n"
     "Wait until the stream has a worker, or raise why it cannot have one."},
    {"synchronize", BHI_PY_METHOD(stream_synchronize), METH_VARARGS | METH_KEYWORDS,
     "synchronize($self, /, timeout=None)\n--\n\n"
     "Wait for everything that was submitted; raise the earliest failure since reset()."},
    {"reset", stream_reset, METH_NOARGS,
     "reset($self, /)\n--\n\n"
     "Forget the failures of the stream, and let it have workers again if it had used up its\n"
     "restarts. Events keep their verdicts."},
    {"cancel", stream_cancel, METH_NOARGS,
     "cancel($self, /)\n--\n\nCancel everything that was submitted and has not ended."},
    {"close", stream_close, METH_NOARGS,
     "close($self, /)\n--\n\n"
     "Release the stream. What was submitted still ends, and then the worker does."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"worker_pid", get_worker_pid, NULL, "The process of its worker now; 0: it has none.", NULL},
    {"device", get_device, NULL, "The device that it runs on; '' before its first worker is ready.",
     NULL},
    {"closed", get_closed, NULL, "Whether the stream or its context was closed.", NULL},
    {"context", get_context, NULL, "The context that the stream belongs to.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, stream_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};
PyType_Spec bhi_py_stream_spec = {
    .name = "bulkhead._native.Stream",
    .basicsize = sizeof(struct bhi_py_stream),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
