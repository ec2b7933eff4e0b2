/* Event: how one submission ends. */
#include "python/native.h"

PyObject *bhi_py_event_new(struct bhi_py_context *context, bh_event *event) {
    struct bhi_py_event *self = bhi_py_new(bhi_py.new_event);
    if (!self) {
        bh_event_release(event);
        return NULL;
    }
    self->event = event;
    self->context = (struct bhi_py_context *)Py_NewRef((PyObject *)context);
    return (PyObject *)self;
}

static void event_dealloc(PyObject *object) {
    struct bhi_py_event *self = (struct bhi_py_event *)object;
    bh_event_release(self->event);
    bh_module_release(self->module);
    Py_XDECREF((PyObject *)self->context);
    Py_XDECREF(self->lost_name);
    bhi_py_free(object);
}

static bh_event *event_of(PyObject *self) {
    return ((struct bhi_py_event *)self)->event;
}

static bh_status wait_for_event(void *argument, uint64_t timeout_ns, bh_detail *detail) {
    (void)detail;
    return bh_event_wait(argument, timeout_ns);
}

/* Waits; returns false with an exception set if the event is pending all the same. */
static bool await(PyObject *self, uint64_t timeout_ns) {
    bh_event *event = event_of(self);
    bh_status status;
    if (bh_event_query(event) != BH_EVENT_PENDING) {
        return true;
    }
    if (!bhi_py_await(wait_for_event, event, timeout_ns, &status, NULL)) {
        return false;
    }
    if (bh_event_query(event) != BH_EVENT_PENDING) {
        return true;
    }
    if (status != BH_TIMEOUT) {
        return bhi_py_fail(status, NULL);
    }
    return bhi_py_refuse(BH_TIMEOUT, "event %llu has not ended in time",
                         (unsigned long long)bh_event_id(event));
}

/* The only argument, |name|, of a function that takes a timeout; not given: no limit. */
static bool take_timeout(PyObject *const *args, Py_ssize_t count, PyObject *names, const char *what,
                         uint64_t *out_ns) {
    const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    *out_ns = BH_FOREVER;
    if (count + named == 0) {
        return true;
    }
    if (count + named > 1 ||
        (named && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "timeout") != 0)) {
        return PyErr_Format(PyExc_TypeError, "%s() takes one argument, timeout", what);
    }
    return bhi_py_to_timeout(args[0], out_ns);
}

static PyObject *event_wait(PyObject *self, PyObject *const *args, Py_ssize_t count,
                            PyObject *names) {
    uint64_t timeout_ns;
    if (!take_timeout(args, count, names, "wait", &timeout_ns) || !await(self, timeout_ns)) {
        return NULL;
    }
    if (bh_event_query(event_of(self)) == BH_EVENT_POISONED) {
        return bhi_py_fail_event(self);
    }
    Py_RETURN_NONE;
}

/* Waits, and does not raise the verdict. */
static PyObject *event_join(PyObject *self, PyObject *const *args, Py_ssize_t count,
                            PyObject *names) {
    uint64_t timeout_ns;
    if (!take_timeout(args, count, names, "_join", &timeout_ns) || !await(self, timeout_ns)) {
        return NULL;
    }
    return PyBool_FromLong(bh_event_query(event_of(self)) == BH_EVENT_READY);
}

static PyObject *event_done(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(bh_event_query(event_of(self)) != BH_EVENT_PENDING);
}

static PyObject *event_state(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyLong_FromLong(bh_event_query(event_of(self)));
}

static PyObject *event_cancel(PyObject *self, PyObject *unused) {
    (void)unused;
    const bh_status status = bh_event_cancel(event_of(self));
    return status == BH_OK ? Py_NewRef(Py_None) : bhi_py_fail(status, NULL);
}

/* All fields of the verdict, in their order; None while the event is pending. */
static PyObject *event_verdict(PyObject *self, PyObject *unused) {
    (void)unused;
    bh_verdict v = {.struct_size = sizeof v};
    const bh_status status = bh_event_verdict(event_of(self), &v);
    if (status == BH_PENDING || status == BH_FORKED) {
        Py_RETURN_NONE; /* a child does not learn how its parent's submissions end */
    }
    if (status != BH_OK) {
        return bhi_py_fail(status, NULL);
    }
    return Py_BuildValue(
        "(iiiiiiiKKIIIiKKKKNy#NNiKNiiNK)", (int)v.status, (int)bh_verdict_classify(&v),
        (int)v.executed, (int)v.signal, (int)v.exit_code, (int)v.vk_result, (int)v.sys_errno,
        (unsigned long long)v.event, (unsigned long long)v.origin, v.hops, v.other_causes,
        v.command_index, (int)v.worker_pid, (unsigned long long)v.limit,
        (unsigned long long)v.submitted_ns, (unsigned long long)v.started_ns,
        (unsigned long long)v.ended_ns, bhi_py_text(v.kernel_name), (const char *)v.kernel_hash,
        (Py_ssize_t)sizeof v.kernel_hash, bhi_py_text(v.stream_name), bhi_py_text(v.message),
        (int)v.blame, (unsigned long long)v.device_ns, bhi_py_text(v.device), (int)v.reason,
        (int)v.subject, bhi_py_text(v.subject_name), (unsigned long long)v.value);
}

static PyObject *get_id(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(bh_event_id(event_of(self)));
}

static PyObject *get_context(PyObject *self, void *unused) {
    (void)unused;
    return Py_NewRef((PyObject *)((struct bhi_py_event *)self)->context);
}

/* (name, the id of the event that poisoned it, whether it is an output) of a buffer whose content
 * was poisoned before; None. */
static PyObject *get_lost(PyObject *object, void *unused) {
    const struct bhi_py_event *self = (struct bhi_py_event *)object;
    (void)unused;
    return self->lost_name
               ? Py_BuildValue("(OKN)", self->lost_name, (unsigned long long)self->lost_to,
                               PyBool_FromLong(self->lost_output))
               : Py_NewRef(Py_None);
}

/* Of a compile: the compiler's errors and warnings. */
static PyObject *get_log(PyObject *object, void *unused) {
    bh_module *module = ((struct bhi_py_event *)object)->module;
    (void)unused;
    return module ? bhi_py_source_log(module) : bhi_py_text("");
}

static PyMethodDef methods[] = {
    {"wait", BHI_PY_METHOD(event_wait), METH_FASTCALL | METH_KEYWORDS,
     "wait($self, /, timeout=None)\n--\n\n"
     "Wait until the submission has ended; raise its verdict if it is poisoned.\n\n"
     "After `timeout` seconds it raises `bulkhead.Timeout`, and nothing has changed. Other "
     "threads\n"
     "run meanwhile, and signals are handled: Ctrl-C ends the wait, not the submission.\n\n"
     ">>> stream.fill(ctx.empty(4), 0).wait(timeout='30s')"},
    {"_join", BHI_PY_METHOD(event_join), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"done", event_done, METH_NOARGS,
     "done($self, /)\n--\n\nWhether the submission has ended, READY or POISONED."},
    {"_state", event_state, METH_NOARGS, NULL},
    {"cancel", event_cancel, METH_NOARGS,
     "cancel($self, /)\n--\n\n"
     "Cancel the submission. A queued one never runs; a running one is stopped, or its worker is\n"
     "killed. Does not wait: the event ends CANCELLED, unless it ends in another way first."},
    {"_verdict", event_verdict, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"id", get_id, NULL, "The number of the event in its context.", NULL},
    {"context", get_context, NULL, "The context that the event belongs to.", NULL},
    {"_lost", get_lost, NULL, NULL, NULL},
    {"_log", get_log, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, event_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};
PyType_Spec bhi_py_event_spec = {
    .name = "bulkhead._native.Event",
    .basicsize = sizeof(struct bhi_py_event),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
