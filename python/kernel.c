/* Kernel: a module with an entry point and constants. */
#include "python/native.h"

#include <stdlib.h>
#include <string.h>

static PyObject *kernel_release(PyObject *object, PyObject *unused) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    (void)unused;
    if (bhi_py_close(&self->handle)) {
        bh_kernel_release(self->kernel);
    }
    Py_RETURN_NONE;
}

static void kernel_dealloc(PyObject *object) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    if (bhi_py_close(&self->handle)) {
        bh_kernel_release(self->kernel);
    }
    for (uint32_t i = 0; i < self->parameter_count; i++) {
        Py_XDECREF(self->parameters[i].name);
        Py_XDECREF(self->parameters[i].type);
    }
    free(self->parameters);
    free(self->positions);
    Py_XDECREF(self->names);
    Py_XDECREF((PyObject *)self->context);
    bhi_py_free(object);
}

/* -- creation -----------------------------------------------------------------------------------
 */

enum { LOG_SIZE = 32 << 10, MAX_SPECIALIZATIONS = 256 };

/* All that a creation uses: the Python objects behind it may go while it goes on. */
struct creation {
    struct bhi_py_task task;
    bh_context *context;
    enum { SPIRV, TEXT, IMAGE } kind;
    bool trusted;
    uint32_t block[3], shared_bytes;
    bh_source source; /* of which the text is the module or the image, unless it is a TEXT */
    bh_specialization *specializations;
    uint32_t specialization_count;
    char *log;
    bh_kernel *kernel;
};

static bh_status run_creation(struct bhi_py_task *task) {
    struct creation *creation = (struct creation *)task;
    bh_source *source = &creation->source;
    bh_kernel_options options = {.struct_size = sizeof options};
    options.name = source->name;
    if (!source->name && (creation->kind == IMAGE || source->language == BH_LANGUAGE_CUDA)) {
        options.name = source->entry;
    }
    options.entry = source->entry;
    options.trusted = creation->trusted;
    options.specializations = creation->specializations;
    options.specialization_count = creation->specialization_count;
    memcpy(options.block, creation->block, sizeof options.block);
    options.shared_bytes = creation->shared_bytes;
    if (creation->kind != TEXT) {
        return (creation->kind == IMAGE ? bh_kernel_create_image : bh_kernel_create_spirv)(
            creation->context, source->text, source->length, &options, &creation->kernel,
            &task->detail);
    }
    source->log = creation->log;
    source->log_size = LOG_SIZE;
    return bh_kernel_create_source(creation->context, source, &options, &creation->kernel,
                                   &task->detail);
}

static void drop_creation(struct bhi_py_task *task) {
    struct creation *creation = (struct creation *)task;
    bhi_py_source_fini(&creation->source);
    bh_kernel_release(creation->kernel);
    free(creation->specializations);
    free(creation->log);
}

PyObject *bhi_py_kernel_new(struct bhi_py_context *context, bh_kernel *kernel, bool cuda) {
    struct bhi_py_kernel *self = bhi_py_new(bhi_py.new_kernel);
    if (!self) {
        bh_kernel_release(kernel);
        return NULL;
    }
    self->kernel = kernel;
    self->cuda = cuda;
    self->context = (struct bhi_py_context *)Py_NewRef((PyObject *)context);
    return (PyObject *)self;
}

bool bhi_py_specializations(PyObject *list, bh_specialization **out, uint32_t *out_count) {
    const Py_ssize_t count = PyList_Size(list);
    if (count > MAX_SPECIALIZATIONS) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "constants: more than %d", MAX_SPECIALIZATIONS);
    }
    bh_specialization *found = calloc(count ? (size_t)count : 1, sizeof *found);
    if (!found) {
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        unsigned id, size;
        unsigned long long bits;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "IIK", &id, &size, &bits)) {
            free(found);
            return false;
        }
        found[i] = (bh_specialization){.constant_id = id, .size = size, .bits = bits};
    }
    *out = found;
    *out_count = (uint32_t)count;
    return true;
}

/* (context, source, kind, trusted, specializations, block, shared_bytes) -> Kernel */
PyObject *bhi_py_kernel_create(PyObject *module, PyObject *args) {
    struct bhi_py_context *context;
    PyObject *source, *specializations, *result = NULL;
    const char *kind;
    int trusted;
    uint32_t block[3], shared_bytes;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!spO!(III)I:kernel_create", bhi_py.context, &context,
                          &PyTuple_Type, &source, &kind, &trusted, &PyList_Type, &specializations,
                          &block[0], &block[1], &block[2], &shared_bytes) ||
        !bhi_py_context_check(context)) {
        return NULL;
    }
    struct creation *creation = bhi_py_task_new(sizeof *creation, run_creation, drop_creation);
    if (!creation) {
        return NULL;
    }
    creation->context = context->context;
    creation->kind = kind[0] == 't' ? TEXT : kind[0] == 'i' ? IMAGE : SPIRV;
    memcpy(creation->block, block, sizeof block);
    creation->shared_bytes = shared_bytes;
    creation->trusted = trusted;
    creation->log = calloc(1, LOG_SIZE);
    if (!creation->log) {
        PyErr_NoMemory();
    } else if (bhi_py_source_init(&creation->source, "kernel", source) &&
               bhi_py_specializations(specializations, &creation->specializations,
                                      &creation->specialization_count) &&
               bhi_py_task_run(&creation->task,
                               creation->kind == TEXT ? BHI_PY_BLOCKS : BHI_PY_HOLDS)) {
        bh_kernel *kernel = creation->kernel;
        creation->kernel = NULL;
        result = bhi_py_kernel_new(
            context, kernel,
            creation->kind == IMAGE ||
                (creation->kind == TEXT && creation->source.language == BH_LANGUAGE_CUDA));
    } else if (creation->task.failed && creation->task.status == BH_COMPILE_FAILED &&
               creation->log[0]) {
        bhi_py_add_log(bhi_py_text(creation->log));
    }
    bhi_py_task_unref(&creation->task);
    return result;
}

/* -- attributes ---------------------------------------------------------------------------------
 */

static PyObject *get_name(PyObject *object, void *unused) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    (void)unused;
    if (!bhi_py_kernel_enter(self)) {
        return NULL;
    }
    PyObject *name = bhi_py_text(bh_kernel_name(self->kernel));
    bhi_py_kernel_leave(self);
    return name;
}

static PyObject *get_hash(PyObject *object, void *unused) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    uint8_t hash[32];
    (void)unused;
    if (!bhi_py_kernel_enter(self)) {
        return NULL;
    }
    bh_kernel_hash(self->kernel, hash);
    bhi_py_kernel_leave(self);
    return PyBytes_FromStringAndSize((const char *)hash, sizeof hash);
}

static PyObject *get_code(PyObject *object, void *unused) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    size_t size = 0;
    bh_detail detail;
    (void)unused;
    if (!bhi_py_kernel_enter(self)) {
        return NULL;
    }
    bh_status status = bh_kernel_code(self->kernel, NULL, 0, &size, &detail);
    PyObject *code = status == BH_OK ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size) : NULL;
    if (code) {
        status = bh_kernel_code(self->kernel, PyBytes_AsString(code), size, &size, &detail);
    }
    bhi_py_kernel_leave(self);
    if (status != BH_OK) {
        Py_XDECREF(code);
        return bhi_py_fail(status, &detail);
    }
    return code;
}

static PyObject *get_cuda(PyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(((struct bhi_py_kernel *)object)->cuda);
}

static PyObject *get_released(PyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(bhi_py_closed(&((struct bhi_py_kernel *)object)->handle));
}

static PyObject *get_context(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef((PyObject *)((struct bhi_py_kernel *)object)->context);
}

static PyObject *kernel_prepare(PyObject *object, PyObject *args) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    struct bhi_py_stream *stream;
    bh_event *event = NULL;
    bh_detail detail;
    if (!PyArg_ParseTuple(args, "O!:prepare", bhi_py.stream, &stream) ||
        !bhi_py_kernel_enter(self)) {
        return NULL;
    }
    if (!bhi_py_stream_enter(stream)) {
        bhi_py_kernel_leave(self);
        return NULL;
    }
    const bh_status status = bh_kernel_prepare(self->kernel, stream->stream, &event, &detail);
    bhi_py_stream_leave(stream);
    bhi_py_kernel_leave(self);
    return status == BH_OK ? bhi_py_event_new(self->context, event) : bhi_py_fail(status, &detail);
}

static PyMethodDef methods[] = {
    {"release", kernel_release, METH_NOARGS,
     "release($self, /)\n--\n\nGive the kernel back. Submissions that use it keep it."},
    {"prepare", kernel_prepare, METH_VARARGS,
     "prepare($self, stream, /)\n--\n\n"
     "Have the stream's worker validate and compile the kernel, in the stream's order; return the\n"
     "Event. Without it the first launch does that."},
    {"_inspect", BHI_PY_METHOD(bhi_py_kernel_inspect), METH_VARARGS, NULL},
    {"_set_parameters", BHI_PY_METHOD(bhi_py_kernel_set_parameters), METH_VARARGS, NULL},
    {"_set_positions", BHI_PY_METHOD(bhi_py_kernel_set_positions), METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"name", get_name, NULL, "The name of the kernel, for messages.", NULL},
    {"hash", get_hash, NULL, "What identifies the kernel: 32 bytes.", NULL},
    {"code", get_code, NULL,
     "The SPIR-V module, as it was given or compiled, or the image for CUDA: bytes.", NULL},
    {"cuda", get_cuda, NULL, "Whether it is a kernel for CUDA devices.", NULL},
    {"released", get_released, NULL, "Whether release() was called.", NULL},
    {"context", get_context, NULL, "The context that the kernel belongs to.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};
PyType_Spec bhi_py_kernel_spec = {
    .name = "bulkhead._native.Kernel",
    .basicsize = sizeof(struct bhi_py_kernel),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
