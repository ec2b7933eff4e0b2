/* Context: owns streams, buffers, kernels and workers. */
#include "python/native.h"
#include <bulkhead/device.h>
#include <bulkhead/quarantine.h>

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* How often this process and its parents have forked since the module was loaded. */
static atomic_uint forks;

static void count_fork(void) {
    atomic_fetch_add(&forks, 1);
    bhi_py.main_thread = (unsigned long)gettid(); /* the only one that is left */
}

void bhi_py_watch_forks(void) {
    pthread_atfork(NULL, NULL, count_fork);
}

bool bhi_py_context_forked(const struct bhi_py_context *context) {
    return context->forks != atomic_load_explicit(&forks, memory_order_relaxed);
}

bool bhi_py_context_check(struct bhi_py_context *context) {
    if (!context->made || bhi_py_closed(&context->handle)) {
        return bhi_py_refuse(BH_CLOSED, "the context was closed");
    }
    if (bhi_py_context_forked(context)) {
        return bhi_py_fail(BH_FORKED, NULL);
    }
    return true;
}

static const struct bhi_py_field fields[] = {
    {"worker_path", offsetof(bh_context_options, worker_path), BHI_PY_TEXT},
    {"runtime_dir", offsetof(bh_context_options, runtime_dir), BHI_PY_TEXT},
    {"cache_dir", offsetof(bh_context_options, cache_dir), BHI_PY_TEXT},
    {"spares", offsetof(bh_context_options, spares), BHI_PY_LIMIT},
    {"restart_budget", offsetof(bh_context_options, restart_budget), BHI_PY_U32},
    {"restart_window", offsetof(bh_context_options, restart_window_ns), BHI_PY_LIMIT},
    {"start_timeout", offsetof(bh_context_options, start_timeout_ns), BHI_PY_U64},
    {"pool_limit", offsetof(bh_context_options, pool_limit), BHI_PY_LIMIT},
    {"kernel_limit", offsetof(bh_context_options, kernel_limit), BHI_PY_U32},
    {"kernel_limit_bytes", offsetof(bh_context_options, kernel_limit_bytes), BHI_PY_U64},
    {"quarantine_deaths", offsetof(bh_context_options, quarantine_deaths), BHI_PY_LIMIT},
    {"quarantine", offsetof(bh_context_options, quarantine_ns), BHI_PY_LIMIT},
    {"worker_idle", offsetof(bh_context_options, worker_idle_ns), BHI_PY_U64},
    {"device_memory", offsetof(bh_context_options, device_memory), BHI_PY_U64},
    {"spare_kernels", offsetof(bh_context_options, spare_kernels), BHI_PY_U64},
    {"quarantine_deadlines", offsetof(bh_context_options, quarantine_deadlines), BHI_PY_U64},
    {"chaos", offsetof(bh_context_options, chaos), BHI_PY_TEXT},
    {"chaos_from_environment", offsetof(bh_context_options, chaos_from_environment), BHI_PY_BOOL},
};

static int context_init(PyObject *object, PyObject *args, PyObject *kwargs) {
    struct bhi_py_context *self = (struct bhi_py_context *)object;
    PyObject *values, *log = Py_None;
    bh_context_options options = {.struct_size = sizeof options};
    bh_detail detail;
    bh_status status;
    (void)kwargs;
    if (self->made) {
        PyErr_SetString(PyExc_RuntimeError, "the context is initialised already");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "O!|O:Context", &PyDict_Type, &values, &log) ||
        !bhi_py_set_fields(&options, fields, BHI_PY_COUNT(fields), values, "Context")) {
        return -1;
    }
    if (log != Py_None && !PyObject_TypeCheck(log, bhi_py.log)) {
        PyErr_SetString(PyExc_TypeError, "log: a Log or None");
        return -1;
    }
    if (log != Py_None) {
        options.log = bhi_py_log_line;
        options.log_user = self->log = bhi_py_log_of(log);
    }
    Py_BEGIN_ALLOW_THREADS
    status = bh_context_create(&options, &self->context, &detail);
    Py_END_ALLOW_THREADS
    if (status != BH_OK) {
        bhi_py_log_unref(self->log);
        self->log = NULL;
        bhi_py_fail(status, &detail);
        return -1;
    }
    self->forks = atomic_load(&forks);
    pthread_mutex_init(&self->views_lock, NULL);
    self->made = true;
    return 0;
}

/* The end of all processes of the context. The child of a fork has nothing to end. */
static void destroy(struct bhi_py_context *self) {
    if (self->made && bhi_py_close(&self->handle)) {
        __attribute__((unused)) bh_status ignored; /* nothing could be done about it here */
        Py_BEGIN_ALLOW_THREADS
        ignored = bh_context_destroy(self->context);
        Py_END_ALLOW_THREADS
        if (self->log && !bhi_py_context_forked(self)) { /* else its lock may be held forever */
            bhi_py_log_end(self->log);
        }
    }
}

static void context_dealloc(PyObject *object) {
    struct bhi_py_context *self = (struct bhi_py_context *)object;
    destroy(self);
    if (self->made && !bhi_py_context_forked(self)) {
        pthread_mutex_destroy(&self->views_lock);
        bhi_py_log_unref(self->log);
    }
    bhi_py_free(object);
}

static PyObject *context_close(PyObject *object, PyObject *unused) {
    (void)unused;
    destroy((struct bhi_py_context *)object);
    Py_RETURN_NONE;
}

static PyObject *get_closed(PyObject *object, void *unused) {
    struct bhi_py_context *self = (struct bhi_py_context *)object;
    (void)unused;
    return PyBool_FromLong(!self->made || bhi_py_closed(&self->handle));
}

static bh_status synchronize(void *context, uint64_t timeout_ns, bh_detail *detail) {
    return bh_context_synchronize(context, timeout_ns, detail);
}

static PyObject *context_synchronize(PyObject *object, PyObject *args, PyObject *kwargs) {
    struct bhi_py_context *self = (struct bhi_py_context *)object;
    static char *names[] = {"timeout", NULL};
    uint64_t timeout_ns = BH_FOREVER;
    bh_status status;
    bh_detail detail;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O&:synchronize", names, bhi_py_to_timeout,
                                     &timeout_ns) ||
        !bhi_py_context_check(self) ||
        !bhi_py_await(synchronize, self->context, timeout_ns, &status, &detail)) {
        return NULL;
    }
    return status == BH_OK ? Py_NewRef(Py_None) : bhi_py_fail_poison(status, &detail);
}

static PyObject *context_reset(PyObject *object, PyObject *unused) {
    struct bhi_py_context *self = (struct bhi_py_context *)object;
    bh_detail detail;
    (void)unused;
    if (!bhi_py_context_check(self)) {
        return NULL;
    }
    const bh_status status = bh_context_reset(self->context, &detail);
    return status == BH_OK ? Py_NewRef(Py_None) : bhi_py_fail(status, &detail);
}

static PyObject *context_trim(PyObject *object, PyObject *args) {
    struct bhi_py_context *self = (struct bhi_py_context *)object;
    unsigned long long bytes = 0;
    bh_detail detail;
    bh_status status;
    if (!PyArg_ParseTuple(args, "|K:trim", &bytes) || !bhi_py_context_check(self)) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = bh_context_trim(self->context, bytes, &detail);
    Py_END_ALLOW_THREADS
    return status == BH_OK ? Py_NewRef(Py_None) : bhi_py_fail(status, &detail);
}

static PyObject *context_describe(PyObject *object, PyObject *unused) {
    struct bhi_py_context *self = (struct bhi_py_context *)object;
    (void)unused;
    if (!bhi_py_context_check(self)) {
        return NULL;
    }
    const size_t size = 64 << 10;
    char *text = malloc(size);
    if (!text) {
        return PyErr_NoMemory();
    }
    __attribute__((unused)) size_t needed; /* what does not fit is cut off */
    Py_BEGIN_ALLOW_THREADS
    needed = bh_context_describe(self->context, text, size);
    Py_END_ALLOW_THREADS
    PyObject *result = bhi_py_text(text);
    free(text);
    return result;
}

static PyObject *context_stats(PyObject *object, PyObject *unused) {
    struct bhi_py_context *self = (struct bhi_py_context *)object;
    (void)unused;
    return bhi_py_context_check(self) ? bhi_py_stats(self->context) : NULL;
}

static PyObject *context_quarantine_release(PyObject *object, PyObject *args) {
    struct bhi_py_context *self = (struct bhi_py_context *)object;
    const char *tenant, *hash;
    Py_ssize_t hash_size;
    bh_detail detail;
    if (!PyArg_ParseTuple(args, "zz#:quarantine_release", &tenant, &hash, &hash_size) ||
        !bhi_py_context_check(self)) {
        return NULL;
    }
    if (hash && hash_size != 32) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "quarantine_release: a hash has 32 bytes");
    }
    const bh_status status =
        bh_quarantine_release(self->context, tenant, (const uint8_t *)hash, &detail);
    return status == BH_OK ? Py_NewRef(Py_None) : bhi_py_fail(status, &detail);
}

/* -- devices ------------------------------------------------------------------------------------
 */

enum { MAX_DEVICES = 64 };
struct devices {
    struct bhi_py_task task;
    bh_context *context;
    size_t count;
    bh_device_info devices[MAX_DEVICES];
};

static bh_status run_devices(struct bhi_py_task *task) {
    struct devices *devices = (struct devices *)task;
    devices->devices->struct_size = sizeof *devices->devices;
    return bh_devices(devices->context, devices->devices, MAX_DEVICES, &devices->count,
                      &task->detail);
}

static PyObject *device_to_dict(const bh_device_info *info) {
    PyObject *features = PyList_New(0);
    for (uint32_t i = 0; features && i < info->feature_count; i++) {
        bhi_py_append(&features, bhi_py_text(info->features[i]));
    }
    return features
               ? Py_BuildValue(
                     "{sNsNsNsNsisIs(III)sIsIsIsKsKsIsN}", "selector", bhi_py_text(info->selector),
                     "name", bhi_py_text(info->name), "driver", bhi_py_text(info->driver),
                     "driver_info", bhi_py_text(info->driver_info), "device_type",
                     (int)info->device_type, "api_version", info->api_version, "max_groups",
                     info->max_groups[0], info->max_groups[1], info->max_groups[2],
                     "max_group_invocations", info->max_group_invocations, "max_shared_bytes",
                     info->max_shared_bytes, "max_push_bytes", info->max_push_bytes,
                     "max_storage_range", (unsigned long long)info->max_storage_range,
                     "memory_bytes", (unsigned long long)info->memory_bytes, "storage_alignment",
                     info->storage_alignment, "features", features)
               : NULL;
}

static PyObject *context_devices(PyObject *object, PyObject *unused) {
    struct bhi_py_context *self = (struct bhi_py_context *)object;
    (void)unused;
    if (!bhi_py_context_check(self)) {
        return NULL;
    }
    struct devices *devices = bhi_py_task_new(sizeof *devices, run_devices, NULL);
    if (!devices) {
        return NULL;
    }
    devices->context = self->context;
    PyObject *list = bhi_py_task_run(&devices->task, BHI_PY_BLOCKS) ? PyList_New(0) : NULL;
    for (size_t i = 0; list && i < devices->count && i < MAX_DEVICES; i++) {
        bhi_py_append(&list, device_to_dict(&devices->devices[i]));
    }
    bhi_py_task_unref(&devices->task);
    return list;
}

/* -- quarantine ---------------------------------------------------------------------------------
 */

static PyObject *context_quarantined(PyObject *object, PyObject *unused) {
    struct bhi_py_context *self = (struct bhi_py_context *)object;
    (void)unused;
    if (!bhi_py_context_check(self)) {
        return NULL;
    }
    bh_quarantined *entries = NULL;
    size_t room = 0, count = 64;
    bh_detail detail;
    bh_status status = BH_OK;
    while (status == BH_OK && count > room) { /* more may have come meanwhile */
        free(entries);
        room = count;
        entries = calloc(room, sizeof *entries);
        if (!entries) {
            return PyErr_NoMemory();
        }
        entries->struct_size = sizeof *entries;
        status = bh_quarantine_list(self->context, entries, room, &count, &detail);
    }
    PyObject *list = status == BH_OK ? PyList_New(0) : bhi_py_fail(status, &detail);
    for (size_t i = 0; list && i < count; i++) {
        const bh_quarantined *entry = &entries[i];
        bhi_py_append(
            &list,
            Py_BuildValue("{sNsNsy#sisisisIsKsN}", "tenant", bhi_py_text(entry->tenant), "kernel",
                          bhi_py_text(entry->kernel_name), "hash", (const char *)entry->kernel_hash,
                          (Py_ssize_t)sizeof entry->kernel_hash, "status", (int)entry->status,
                          "cause", (int)entry->cause, "signal", (int)entry->signal, "deaths",
                          entry->deaths, "origin", (unsigned long long)entry->origin, "message",
                          bhi_py_text(entry->message)));
    }
    free(entries);
    return list;
}

static PyMethodDef methods[] = {
    {"close", context_close, METH_NOARGS,
     "close($self, /)\n--\n\n"
     "End everything: what is pending is poisoned CONTEXT_CLOSED, and all workers end. Blocks for\n"
     "some milliseconds. Views and verdicts that you hold stay."},
    {"synchronize", BHI_PY_METHOD(context_synchronize), METH_VARARGS | METH_KEYWORDS,
     "synchronize($self, /, timeout=None)\n--\n\n"
     "Wait for everything that was submitted on all streams; raise the earliest failure."},
    {"reset", context_reset, METH_NOARGS,
     "reset($self, /)\n--\n\n"
     "Forget the failures of loads and of streams that were closed."},
    {"trim", context_trim, METH_VARARGS,
     "trim($self, bytes=0, /)\n--\n\n"
     "Give memory of released buffers back to the machine, until `bytes` are kept."},
    {"describe", context_describe, METH_NOARGS,
     "describe($self, /)\n--\n\nReturn what the context is doing now, as a text for a person."},
    {"_stats", context_stats, METH_NOARGS, NULL},
    {"_devices", context_devices, METH_NOARGS, NULL},
    {"_quarantined", context_quarantined, METH_NOARGS, NULL},
    {"_quarantine_release", context_quarantine_release, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"closed", get_closed, NULL, "Whether the context was closed.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PyType_GenericNew}, {Py_tp_init, context_init}, {Py_tp_dealloc, context_dealloc},
    {Py_tp_methods, methods},       {Py_tp_getset, attributes}, {0, NULL},
};
PyType_Spec bhi_py_context_spec = {
    .name = "bulkhead._native.Context",
    .basicsize = sizeof(struct bhi_py_context),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};
