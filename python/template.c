/* Template: a kernel from an expression or a body, whose types follow from its arguments. */
#include "python/native.h"

#include <stdlib.h>
#include <string.h>

#include "request/eval_plan.h"

struct template {
    PyObject base;
    struct bhi_eval_plan *plan;
    bh_context *context; /* to compare; a cache of the context can have the template */
};

/* Arguments on their way into a launch. It owns the names, and references the storages. */
struct call {
    struct bhi_py_task task;
    struct bhi_eval_plan *plan;               /* referenced */
    bh_argument arguments[BH_MAX_PARAMETERS]; /* arrays first */
    bh_description *descriptions;             /* owned; of the arrays */
    struct bhi_py_use uses[BH_MAX_PARAMETERS];
    uint32_t count, use_count;
    struct bhi_pieces pieces;
    struct bhi_eval_limits limits;
    bh_buffer *buffers[BH_MAX_PARAMETERS]; /* referenced */
    uint32_t buffer_count;
};

static bh_status run_call(struct bhi_py_task *task) {
    struct call *call = (struct call *)task;
    return bhi_eval_plan_cut(call->plan, call->arguments, call->count, call->buffer_count,
                             &call->limits, &call->pieces, &task->detail);
}

/* Without the interpreter's lock: what needs that is dropped before. */
static void drop_call(struct bhi_py_task *task) {
    struct call *call = (struct call *)task;
    bhi_pieces_free(&call->pieces);
    for (uint32_t i = 0; i < call->buffer_count; i++) {
        bh_buffer_release(call->buffers[i]);
    }
    for (uint32_t i = 0; i < call->count; i++) {
        free((char *)(uintptr_t)call->arguments[i].name);
    }
    bhi_eval_plan_release(call->plan);
    bh_stream_release(call->limits.stream);
    free(call->descriptions);
}

static void leave_call(struct call *call) {
    for (uint32_t i = 0; i < call->use_count; i++) {
        bhi_py_storage_unref(call->uses[i].storage);
    }
    bhi_py_task_unref(&call->task);
}

/* The library's description of the array that a Buffer is. It belongs to the call: other Buffers
 * can show the same memory as something else. */
static void describe(const struct bhi_py_buffer *buffer, bh_description *out) {
    const struct bhi_py_dtype *type = &bhi_py_dtypes[buffer->dtype];
    *out = (bh_description){.struct_size = sizeof(bh_description)};
    out->kind = (bh_number_kind)type->dlpack_code;
    out->bits = type->dlpack_bits;
    out->rank = buffer->rank;
    out->offset = buffer->offset;
    for (uint32_t i = 0; i < buffer->rank; i++) {
        out->shape[i] = (uint64_t)buffer->shape[i];
    }
}

/* (name, Buffer, writes), (name, dtype, number) or (name, None, True): an output that is not made
 * yet. */
static bool add_argument(struct call *call, bh_context *context, PyObject *tuple) {
    bh_argument *argument = &call->arguments[call->count];
    const char *name;
    PyObject *what, *value;
    *argument = (bh_argument){0};
    if (!PyArg_ParseTuple(tuple, "sOO:argument", &name, &what, &value)) {
        return false;
    }
    argument->name = strdup(name);
    if (!argument->name) {
        return PyErr_NoMemory();
    }
    call->count++;
    if (what == Py_None) {
        return true;
    }
    if (PyLong_Check(what)) {
        PyObject *text = PyUnicode_FromString(name);
        const long code = PyLong_AsLong(what);
        if (code <= BH_DTYPE_NONE || code >= BHI_PY_DTYPES) {
            PyErr_Clear();
            Py_XDECREF(text);
            return bhi_py_refuse_type("eval: %s: %R is no type", name, what);
        }
        argument->dtype = (bh_dtype)code;
        const bool stored = text && bhi_py_number_store(value, argument->dtype,
                                                        (uint8_t *)&argument->bits, text, "eval");
        Py_XDECREF(text);
        return stored;
    }
    if (!PyObject_TypeCheck(what, bhi_py.buffer)) {
        return bhi_py_refuse_type("eval: %s: a Buffer or a number, not %R", name,
                                  (PyObject *)Py_TYPE(what));
    }
    struct bhi_py_storage *storage = bhi_py_buffer_use(what, "eval");
    if (!storage) {
        return false;
    }
    const bool writes = PyObject_IsTrue(value) > 0;
    call->uses[call->use_count++] =
        (struct bhi_py_use){.storage = storage, .writes = writes, .reads = !writes};
    call->buffers[call->buffer_count++] = storage->buffer;
    bh_buffer_retain(storage->buffer);
    argument->buffer = storage->buffer;
    if (storage->context->context != context) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "eval: %s: the buffer belongs to another context",
                             name);
    }
    describe((struct bhi_py_buffer *)what, &call->descriptions[call->use_count - 1]);
    argument->description = &call->descriptions[call->use_count - 1];
    return true;
}

static struct call *new_call(struct template *self, PyObject *list) {
    struct call *call = bhi_py_task_new(sizeof *call, run_call, drop_call);
    if (!call) {
        return NULL;
    }
    call->plan = self->plan;
    bhi_eval_plan_retain(call->plan);
    const Py_ssize_t count = PyList_Size(list);
    bool good = count <= BH_MAX_PARAMETERS;
    if (!good) {
        bhi_py_refuse(BH_INVALID_ARGUMENT, "eval: more than %d arguments", BH_MAX_PARAMETERS);
    } else if (!(call->descriptions =
                     calloc(count ? (size_t)count : 1, sizeof *call->descriptions))) {
        PyErr_NoMemory();
        good = false;
    }
    for (Py_ssize_t i = 0; good && i < count; i++) {
        good = add_argument(call, self->context, PyList_GetItem(list, i));
    }
    if (!good) {
        leave_call(call);
        return NULL;
    }
    return call;
}

/* (arguments, name) -> (dtype, shape) of that output */
static PyObject *template_output(PyObject *object, PyObject *args) {
    struct template *self = (struct template *)object;
    PyObject *list;
    const char *name;
    bh_description description = {.struct_size = sizeof description};
    bh_detail detail;
    if (!PyArg_ParseTuple(args, "O!s:output", &PyList_Type, &list, &name)) {
        return NULL;
    }
    struct call *call = new_call(self, list);
    if (!call) {
        return NULL;
    }
    const bh_status status =
        bhi_eval_plan_output(self->plan, call->arguments, call->count, name, &description, &detail);
    leave_call(call);
    if (status != BH_OK) {
        return bhi_py_fail(status, &detail);
    }
    const bh_dtype dtype = bhi_py_dtype_of_dlpack(description.kind, description.bits);
    return Py_BuildValue("(iN)", (int)dtype, bhi_py_numbers(description.shape, description.rank));
}

static PyObject *name_use(void *user, size_t index) {
    const struct call *call = user;
    size_t uses = 0;
    for (uint32_t i = 0; i < call->count; i++) {
        if (call->arguments[i].buffer && uses++ == index) {
            return PyUnicode_FromString(call->arguments[i].name);
        }
    }
    return PyUnicode_FromString("?");
}

/* Each piece has the whole deadline; together they are one submission. */
static uint64_t deadline_of(const struct call *call, uint64_t each) {
    uint64_t all;
    return each == BH_FOREVER || __builtin_mul_overflow(each, call->pieces.count, &all) ? BH_FOREVER
                                                                                        : all;
}

/* (stream, arguments, manner, piece, alignment) -> Event. Arrays come before numbers. */
static PyObject *template_launch(PyObject *object, PyObject *args) {
    struct template *self = (struct template *)object;
    struct bhi_py_stream *stream;
    struct bhi_py_manner manner = {0};
    PyObject *list, *options, *event = NULL;
    unsigned long long piece;
    unsigned alignment;
    if (!PyArg_ParseTuple(args, "O!O!O!KI:launch", bhi_py.stream, &stream, &PyList_Type, &list,
                          &PyDict_Type, &options, &piece, &alignment) ||
        !bhi_py_context_check(stream->context)) {
        return NULL;
    }
    struct call *call =
        bhi_py_manner_set_all(&manner, options, "eval") ? new_call(self, list) : NULL;
    if (!call) {
        bhi_py_manner_fini(&manner);
        return NULL;
    }
    call->limits =
        (struct bhi_eval_limits){.bytes = piece, .alignment = alignment, .stream = stream->stream};
    bh_stream_retain(call->limits.stream);
    if (bhi_py_task_run(&call->task, BHI_PY_BLOCKS)) {
        bh_submit_info info = {.struct_size = sizeof info,
                               .commands = call->pieces.commands,
                               .command_count = call->pieces.count};
        bhi_py_manner_apply(&manner, &info);
        if (call->pieces.count > 1) {
            info.deadline_ns =
                deadline_of(call, info.deadline_ns ? info.deadline_ns : stream->deadline_ns);
        }
        event = bhi_py_submit(stream, &info, call->uses, call->use_count, "eval", name_use, call);
    }
    leave_call(call);
    bhi_py_manner_fini(&manner);
    return event;
}

/* (context, name, expression, [(name, role), …]) -> Template */
PyObject *bhi_py_template_create(PyObject *module, PyObject *args) {
    struct bhi_py_context *context;
    const char *name, *expression;
    PyObject *list;
    bh_parameter parameters[BH_MAX_PARAMETERS];
    bh_template_options options = {.struct_size = sizeof options};
    bh_detail detail;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!ssO!:template_create", bhi_py.context, &context, &name,
                          &expression, &PyList_Type, &list) ||
        !bhi_py_context_check(context)) {
        return NULL;
    }
    const Py_ssize_t count = PyList_Size(list);
    if (count > BH_MAX_PARAMETERS) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "eval: more than %d arrays and numbers",
                             BH_MAX_PARAMETERS);
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        int role;
        parameters[i] = (bh_parameter){0};
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "si", &parameters[i].name, &role)) {
            return NULL;
        }
        parameters[i].role = (bh_parameter_role)role;
    }
    options.name = name;
    options.expression = expression;
    options.parameters = parameters;
    options.parameter_count = (uint32_t)count;
    struct template *self = bhi_py_new(bhi_py.template_);
    if (!self) {
        return NULL;
    }
    const bh_status status = bhi_eval_plan_create(context->context, &options, &self->plan, &detail);
    if (status != BH_OK) {
        bhi_py_fail(status, &detail);
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    self->context = context->context;
    return (PyObject *)self;
}

static void template_dealloc(PyObject *object) {
    bhi_eval_plan_release(((struct template *)object)->plan);
    bhi_py_free(object);
}

static PyMethodDef methods[] = {
    {"output", template_output, METH_VARARGS, NULL},
    {"launch", template_launch, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, template_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};
PyType_Spec bhi_py_template_spec = {
    .name = "bulkhead._native.Template",
    .basicsize = sizeof(struct template),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
