/* A buffer that a dispatch binds, and what the kernel may do with it. */
#include "python/native.h"

#define WHAT "launch"

/* A buffer with what the kernel may do: bulkhead.out(y), bulkhead.read(x). */
struct bound {
    PyObject base;
    PyObject *buffer;
    bh_access access;
};

PyObject *bhi_py_make_bound(PyObject *module, PyObject *args) {
    PyObject *buffer;
    int access;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oi:bound", &buffer, &access)) {
        return NULL;
    }
    if (!PyObject_TypeCheck(buffer, bhi_py.buffer)) {
        return bhi_py_refuse_type("%s: a Buffer, not %R",
                                  access == BH_ACCESS_WRITE ? "out" : "read",
                                  (PyObject *)Py_TYPE(buffer));
    }
    struct bound *bound = bhi_py_new(bhi_py.bound);
    if (bound) {
        bound->buffer = Py_NewRef(buffer);
        bound->access = (bh_access)access;
    }
    return (PyObject *)bound;
}

static void bound_dealloc(PyObject *self) {
    Py_XDECREF(((struct bound *)self)->buffer);
    bhi_py_free(self);
}

static PyType_Slot bound_slots[] = {{Py_tp_dealloc, bound_dealloc}, {0, NULL}};
PyType_Spec bhi_py_bound_spec = {
    .name = "bulkhead._native.Bound",
    .basicsize = sizeof(struct bound),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = bound_slots,
};

static const char *access_name(bh_access access) {
    return access == BH_ACCESS_READ    ? "reads"
           : access == BH_ACCESS_WRITE ? "writes"
                                       : "reads and writes";
}

bool bhi_py_is_array(PyObject *value) {
    return PyObject_CheckBuffer(value) || PyObject_HasAttrString(value, "__array_interface__") ||
           PyObject_HasAttrString(value, "__dlpack__");
}

/* A Buffer of the context with the elements of an array that the kernel only reads; NULL: an
 * exception is set. */
static PyObject *take_array(const struct bhi_py_dispatch *dispatch,
                            const struct bhi_py_parameter *parameter, PyObject *value) {
    const bool array = bhi_py_is_array(value);
    if (!array || parameter->access != BH_ACCESS_READ) {
        return bhi_py_refuse_type(WHAT ": %U: a Buffer, not %R%s; context.asarray() makes one of "
                                       "an array",
                                  parameter->name, (PyObject *)Py_TYPE(value),
                                  array ? ", because the kernel writes it" : "");
    }
    return PyObject_CallFunction(bhi_py.take_array, "OsOO", (PyObject *)dispatch->kernel->context,
                                 WHAT, parameter->name, value);
}

bool bhi_py_dispatch_bind(struct bhi_py_dispatch *dispatch,
                          const struct bhi_py_parameter *parameter, uint32_t element,
                          PyObject *value) {
    bh_access access = parameter->access == BH_ACCESS_READ ? BH_ACCESS_READ : BH_ACCESS_READ_WRITE;
    if (Py_IS_TYPE(value, bhi_py.bound)) {
        const struct bound *bound = (struct bound *)value;
        if (bound->access == BH_ACCESS_WRITE && parameter->access == BH_ACCESS_READ) {
            return bhi_py_refuse(BH_INVALID_ARGUMENT,
                                 WHAT ": %U: the kernel only %s it: it is no output",
                                 parameter->name, access_name(parameter->access));
        }
        access = bound->access;
        value = bound->buffer;
    }
    if (!PyObject_TypeCheck(value, bhi_py.buffer)) {
        PyObject *made = take_array(dispatch, parameter, value);
        const bool good = made && PyObject_TypeCheck(made, bhi_py.buffer) &&
                          bhi_py_dispatch_bind(dispatch, parameter, element, made);
        Py_XDECREF(made);
        return good;
    }
    struct bhi_py_buffer *buffer = (struct bhi_py_buffer *)value;
    if (bhi_py_closed(&buffer->handle)) {
        return bhi_py_refuse(BH_CLOSED, WHAT ": %U: the buffer was released", parameter->name);
    }
    if (buffer->dtype != BH_DTYPE_NONE && !(parameter->takes >> buffer->dtype & 1)) {
        return bhi_py_refuse_type(
            WHAT ": %U: the array is %s, and the kernel declares %U; astype() "
                 "converts an array, view() shows the same bytes as another type",
            parameter->name, bhi_py_dtypes[buffer->dtype].short_, parameter->type);
    }
    struct bhi_py_storage *storage = bhi_py_buffer_use(value, WHAT);
    if (!storage) {
        return false;
    }
    if (storage->context != dispatch->kernel->context) {
        bhi_py_refuse(BH_INVALID_ARGUMENT, WHAT ": %U: the buffer belongs to another context",
                      parameter->name);
        bhi_py_storage_unref(storage);
        return false;
    }
    struct bhi_py_use *use = &dispatch->uses[parameter->first + element];
    if (use->storage) {
        bhi_py_storage_unref(use->storage);
    }
    *use = (struct bhi_py_use){
        .storage = storage, .writes = access & BH_ACCESS_WRITE, .reads = access & BH_ACCESS_READ};
    dispatch->bindings[parameter->first + element] = (bh_binding){
        .set = parameter->set,
        .binding = parameter->binding,
        .buffer = storage->buffer,
        .offset = buffer->offset,
        .size = buffer->bytes,
        .access = access,
        .element = element,
    };
    return true;
}
