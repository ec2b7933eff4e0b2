/* A dispatch: arguments by name become bindings and push constants. */
#include "python/native.h"

#include <stdlib.h>
#include <string.h>

#define WHAT "launch"

/* -- begin and end ------------------------------------------------------------------------------
 */

/* A kernel is inspected when it is first launched by names. */
static bool reflect(PyObject *kernel) {
    if (((struct bhi_py_kernel *)kernel)->reflected) {
        return true;
    }
    PyObject *result = PyObject_CallMethod(kernel, "_reflect", NULL);
    Py_XDECREF(result);
    return result;
}

bool bhi_py_dispatch_init(struct bhi_py_dispatch *dispatch, PyObject *object) {
    dispatch->kernel = NULL;
    dispatch->manner = (struct bhi_py_manner){0};
    if (!PyObject_TypeCheck(object, bhi_py.kernel)) {
        return bhi_py_refuse_type(WHAT ": kernel: a Kernel, not %R", (PyObject *)Py_TYPE(object));
    }
    if (!reflect(object)) {
        return false;
    }
    struct bhi_py_kernel *kernel = (struct bhi_py_kernel *)object;
    const uint32_t buffers = kernel->buffer_count, parameters = kernel->parameter_count;
    dispatch->kernel = (struct bhi_py_kernel *)Py_NewRef(object);
    dispatch->groups[0] = 0;
    memset(dispatch->block, 0, sizeof dispatch->block);
    dispatch->shared_bytes = 0;
    dispatch->given_count = 0;
    const uint32_t push_room = (kernel->push_size + 3) / 4 * 4; /* the library takes whole words */
    dispatch->buffer_count = kernel->cuda ? 0 : buffers;        /* it is as |args| says */
    dispatch->push_size = kernel->cuda ? 0 : push_room;
    const bool few = buffers <= BHI_PY_FEW;
    dispatch->bindings = few ? dispatch->few_bindings : calloc(buffers, sizeof *dispatch->bindings);
    dispatch->uses = few ? dispatch->few_uses : calloc(buffers, sizeof *dispatch->uses);
    if (few) {
        memset(dispatch->few_uses, 0, sizeof dispatch->few_uses);
    }
    dispatch->given = parameters <= BHI_PY_FEW_PARAMETERS ? dispatch->few_given
                                                          : calloc(parameters, sizeof(bool));
    dispatch->push =
        kernel->push_size <= BHI_PY_FEW_PUSH ? (uint8_t *)dispatch->few_push : calloc(1, push_room);
    if (!dispatch->bindings || !dispatch->uses || !dispatch->given || !dispatch->push) {
        return PyErr_NoMemory();
    }
    memset(dispatch->given, 0, parameters * sizeof *dispatch->given);
    memset(dispatch->push, 0, push_room);
    return true;
}

void bhi_py_dispatch_fini(struct bhi_py_dispatch *dispatch) {
    struct bhi_py_kernel *kernel = dispatch->kernel;
    bhi_py_manner_fini(&dispatch->manner);
    if (!kernel) {
        return;
    }
    for (uint32_t i = 0; dispatch->uses && i < dispatch->buffer_count; i++) {
        if (dispatch->uses[i].storage) {
            bhi_py_storage_unref(dispatch->uses[i].storage);
        }
    }
    if (dispatch->bindings != dispatch->few_bindings) {
        free(dispatch->bindings);
    }
    if (dispatch->uses != dispatch->few_uses) {
        free(dispatch->uses);
    }
    if (dispatch->given != dispatch->few_given) {
        free(dispatch->given);
    }
    if (dispatch->push != (uint8_t *)dispatch->few_push) {
        free(dispatch->push);
    }
    dispatch->kernel = NULL;
    Py_DECREF((PyObject *)kernel);
}

/* -- buffers ------------------------------------------------------------------------------------
 */

static bool bind_all(struct bhi_py_dispatch *dispatch, const struct bhi_py_parameter *parameter,
                     PyObject *value) {
    if (!parameter->array) {
        return bhi_py_dispatch_bind(dispatch, parameter, 0, value);
    }
    PyObject *list = PyList_Check(value) || PyTuple_Check(value) ? PySequence_Tuple(value) : NULL;
    if (!list || PyTuple_Size(list) != (Py_ssize_t)parameter->count) {
        if (!PyErr_Occurred()) {
            bhi_py_refuse_type(WHAT ": %U: a list of %u buffers", parameter->name,
                               parameter->count);
        }
        Py_XDECREF(list);
        return false;
    }
    bool good = true;
    for (uint32_t i = 0; good && i < parameter->count; i++) {
        good = bhi_py_dispatch_bind(dispatch, parameter, i, PyTuple_GetItem(list, (Py_ssize_t)i));
    }
    Py_DECREF(list);
    return good;
}

/* -- push constants -----------------------------------------------------------------------------
 */

/* Stores the numbers of nested sequences, in order. */
static bool store_nested(struct bhi_py_dispatch *dispatch, const struct bhi_py_parameter *parameter,
                         PyObject *value, uint32_t *next, int depth) {
    const uint32_t all = parameter->length * parameter->width;
    const bool sequence = PySequence_Check(value) && !PyUnicode_Check(value);
    if (sequence && depth < 3) {
        const Py_ssize_t count = PySequence_Size(value);
        bool good = count >= 0;
        PyErr_Clear(); /* an array without dimensions is a number */
        for (Py_ssize_t i = 0; good && i < count; i++) {
            PyObject *item = PySequence_GetItem(value, i);
            good = item && store_nested(dispatch, parameter, item, next, depth + 1);
            Py_XDECREF(item);
        }
        if (count >= 0) {
            return good;
        }
    }
    if (*next >= all) {
        ++*next; /* counted for the message */
        return *next < 10000;
    }
    uint8_t *at = dispatch->push + parameter->offset +
                  *next / parameter->width * parameter->stride +
                  *next % parameter->width * parameter->step;
    ++*next;
    return bhi_py_number_store(value, parameter->dtype, at, parameter->name, WHAT);
}

static bool store(struct bhi_py_dispatch *dispatch, const struct bhi_py_parameter *parameter,
                  PyObject *value) {
    const uint32_t all = parameter->length * parameter->width;
    if (all == 1 && (PyFloat_Check(value) || PyLong_Check(value))) {
        return bhi_py_number_store(value, parameter->dtype, dispatch->push + parameter->offset,
                                   parameter->name, WHAT);
    }
    uint32_t count = 0;
    if (!store_nested(dispatch, parameter, value, &count, 0) && PyErr_Occurred()) {
        return false;
    }
    if (count != all) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT,
                             WHAT ": %U: it is %U, which is %u number%s, and %u %s",
                             parameter->name, parameter->type, all, all == 1 ? "" : "s", count,
                             count == 1 ? "is given" : "are given");
    }
    return true;
}

/* -- arguments ----------------------------------------------------------------------------------
 */

/* Up to three counts, each of |least| or more. */
static bool take_counts(PyObject *value, const char *name, uint64_t out[3]) {
    out[0] = out[1] = out[2] = 1;
    PyObject *tuple = PyTuple_Check(value) || PyList_Check(value) ? PySequence_Tuple(value)
                                                                  : PyTuple_Pack(1, value);
    const Py_ssize_t count = tuple ? PyTuple_Size(tuple) : -1;
    bool good = count >= 1 && count <= 3;
    for (Py_ssize_t i = 0; good && i < count; i++) {
        PyObject *number = PyNumber_Index(PyTuple_GetItem(tuple, i));
        out[i] = number ? PyLong_AsUnsignedLongLong(number) : 0;
        good = number && !PyErr_Occurred() && out[i] > 0;
        Py_XDECREF(number);
    }
    Py_XDECREF(tuple);
    if (!good) {
        PyErr_Clear();
        bhi_py_refuse(BH_INVALID_ARGUMENT,
                      WHAT ": %s: a number above 0, or up to three of them, not %R", name, value);
    }
    return good;
}

/* Of an image a grid is counted in blocks, as CUDA does. */
static bool set_groups(struct bhi_py_dispatch *dispatch, PyObject *value, bool grid) {
    uint64_t counts[3];
    if (value == Py_None) {
        return true;
    }
    if (dispatch->groups[0]) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, WHAT ": grid and groups are both given");
    }
    if (!take_counts(value, grid ? "grid" : "groups", counts)) {
        return false;
    }
    grid = grid && !dispatch->kernel->cuda;
    for (int i = 0; i < 3; i++) {
        const uint64_t local =
            grid && dispatch->kernel->local_size[i] ? dispatch->kernel->local_size[i] : 1;
        const uint64_t groups = (counts[i] - 1) / local + 1;
        if (groups > UINT32_MAX) {
            bhi_py_refuse(BH_INVALID_ARGUMENT, WHAT ": %s: %R is more than 2^32 - 1 groups",
                          grid ? "grid" : "groups", value);
            dispatch->groups[0] = 0;
            return false;
        }
        dispatch->groups[i] = (uint32_t)groups;
    }
    return true;
}

/* Returns 1, 0 if the kernel has no such parameter, or -1 with an exception set. */
static int set_parameter(struct bhi_py_dispatch *dispatch, PyObject *name, PyObject *value) {
    PyObject *index = PyDict_GetItemWithError(dispatch->kernel->names, name);
    if (!index) {
        return PyErr_Occurred() ? -1 : 0;
    }
    const size_t i = PyLong_AsSize_t(index);
    const struct bhi_py_parameter *parameter = &dispatch->kernel->parameters[i];
    if (!(parameter->is_binding ? bind_all : store)(dispatch, parameter, value)) {
        return -1;
    }
    dispatch->given_count += !dispatch->given[i];
    dispatch->given[i] = true;
    return 1;
}

/* "block", in threads, or "shared", in bytes. */
static bool set_of_image(struct bhi_py_dispatch *dispatch, PyObject *value, bool block) {
    uint64_t counts[3];
    if (value == Py_None) {
        return true;
    }
    if (!dispatch->kernel->cuda) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT,
                             WHAT ": %s: it is for CUDA kernels; this one has its own",
                             block ? "block" : "shared");
    }
    if (!take_counts(value, block ? "block" : "shared", counts)) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        if (counts[i] > UINT32_MAX || (!block && i && counts[i] != 1)) {
            return bhi_py_refuse(BH_INVALID_ARGUMENT, WHAT ": %s: %R is too many",
                                 block ? "block" : "shared", value);
        }
    }
    if (block) {
        for (int i = 0; i < 3; i++) {
            dispatch->block[i] = (uint32_t)counts[i];
        }
    } else {
        dispatch->shared_bytes = (uint32_t)counts[0];
    }
    return true;
}

static bool refuse_name(struct bhi_py_dispatch *dispatch, PyObject *name) {
    PyObject *text =
        PyObject_CallFunctionObjArgs(bhi_py.explain_name, (PyObject *)dispatch->kernel, name, NULL);
    if (text) {
        bhi_py_refuse(BH_INVALID_ARGUMENT, WHAT ": %U", text);
        Py_DECREF(text);
    }
    return false;
}

static bool set_args(struct bhi_py_dispatch *dispatch, PyObject *value) {
    Py_ssize_t position = 0;
    PyObject *name, *item;
    if (value == Py_None) {
        return true;
    }
    if (dispatch->kernel->cuda) {
        return bhi_py_dispatch_set_positions(dispatch, value);
    }
    if (!PyDict_Check(value)) {
        return bhi_py_refuse_type(WHAT ": args: a dict, not %R", (PyObject *)Py_TYPE(value));
    }
    /* A number's own code (__float__) may change the caller's dict meanwhile. */
    PyObject *copy = PyDict_Copy(value);
    bool good = copy;
    while (good && PyDict_Next(copy, &position, &name, &item)) {
        const int set = set_parameter(dispatch, name, item);
        good = set > 0 || (set == 0 && refuse_name(dispatch, name));
    }
    Py_XDECREF(copy);
    return good;
}

bool bhi_py_dispatch_set(struct bhi_py_dispatch *dispatch, PyObject *name, PyObject *value) {
    if (PyUnicode_CompareWithASCIIString(name, "grid") == 0) {
        return set_groups(dispatch, value, true);
    }
    if (PyUnicode_CompareWithASCIIString(name, "groups") == 0) {
        return set_groups(dispatch, value, false);
    }
    if (PyUnicode_CompareWithASCIIString(name, "args") == 0) {
        return set_args(dispatch, value);
    }
    int set = bhi_py_manner_set(&dispatch->manner, name, value, WHAT);
    if (set == 0 && !dispatch->kernel->cuda) {
        set = set_parameter(dispatch, name, value);
    }
    if (set == 0 && PyUnicode_CompareWithASCIIString(name, "block") == 0) {
        return set_of_image(dispatch, value, true);
    }
    if (set == 0 && PyUnicode_CompareWithASCIIString(name, "shared") == 0) {
        return set_of_image(dispatch, value, false);
    }
    return set ? set > 0 : refuse_name(dispatch, name);
}

bool bhi_py_dispatch_check(const struct bhi_py_dispatch *dispatch) {
    const struct bhi_py_kernel *kernel = dispatch->kernel;
    if (kernel->cuda && !dispatch->given_count && (!kernel->positions || kernel->position_count)) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, WHAT ": args is missing");
    }
    if (!kernel->cuda && dispatch->given_count < kernel->parameter_count) {
        uint32_t i = 0;
        while (dispatch->given[i]) {
            i++;
        }
        return bhi_py_refuse(BH_INVALID_ARGUMENT, WHAT ": '%U' (%U) is missing",
                             kernel->parameters[i].name, kernel->parameters[i].type);
    }
    if (!dispatch->groups[0]) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, WHAT ": grid or groups is missing");
    }
    uint64_t blocks;
    if (kernel->most_blocks &&
        (__builtin_mul_overflow((uint64_t)dispatch->groups[0] * dispatch->groups[1],
                                dispatch->groups[2], &blocks) ||
         blocks > kernel->most_blocks)) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT,
                             WHAT ": grid: the kernel was made for at most %llu blocks",
                             (unsigned long long)kernel->most_blocks);
    }
    return true;
}

bh_command bhi_py_dispatch_command(const struct bhi_py_dispatch *dispatch) {
    return (bh_command){
        .type = BH_COMMAND_DISPATCH,
        .dispatch = {.kernel = dispatch->kernel->kernel,
                     .groups = {dispatch->groups[0], dispatch->groups[1], dispatch->groups[2]},
                     .bindings = dispatch->bindings,
                     .binding_count = dispatch->buffer_count,
                     .push = dispatch->push,
                     .push_size = dispatch->push_size,
                     .block = {dispatch->block[0], dispatch->block[1], dispatch->block[2]},
                     .shared_bytes = dispatch->shared_bytes}};
}

PyObject *bhi_py_dispatch_name(void *user, size_t index) {
    const struct bhi_py_dispatch *dispatch = user;
    const struct bhi_py_kernel *kernel = dispatch->kernel;
    if (kernel->cuda) {
        return PyUnicode_FromFormat("args[%u]", dispatch->bindings[index].binding);
    }
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        const struct bhi_py_parameter *one = &kernel->parameters[i];
        if (one->is_binding && index - one->first < one->count) {
            return Py_NewRef(one->name);
        }
    }
    return PyUnicode_FromString("?");
}
