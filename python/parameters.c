/* What a kernel declares: its inspection, and the parameters that a launch can name. */
#include "python/native.h"
#include <bulkhead/inspect.h>

#include <stdlib.h>

struct inspection {
    struct bhi_py_task task;
    bh_kernel *kernel; /* referenced */
    bh_inspect_options options;
    bh_inspection result;
};

static bh_status run_inspection(struct bhi_py_task *task) {
    struct inspection *inspection = (struct inspection *)task;
    inspection->result.struct_size = sizeof inspection->result;
    return bh_kernel_inspect(inspection->kernel, &inspection->options, &inspection->result,
                             &task->detail);
}

static void drop_inspection(struct bhi_py_task *task) {
    bh_kernel_release(((struct inspection *)task)->kernel);
}

static PyObject *list_bindings(const bh_inspection *result) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < result->binding_count; i++) {
        const bh_inspected_binding *one = &result->bindings[i];
        bhi_py_append(&list, Py_BuildValue("(NNIIIii)", bhi_py_text(one->name),
                                           bhi_py_text(one->type), one->set, one->binding,
                                           one->count, (int)one->access, (int)one->kind));
    }
    return list;
}

static PyObject *list_members(const bh_inspection *result) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < result->member_count; i++) {
        const bh_inspected_member *one = &result->members[i];
        bhi_py_append(&list,
                      Py_BuildValue("(NNIII)", bhi_py_text(one->name), bhi_py_text(one->type),
                                    one->offset, one->stride, one->step));
    }
    return list;
}

static PyObject *list_constants(const bh_inspection *result) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < result->constant_count; i++) {
        const bh_inspected_constant *one = &result->constants[i];
        bhi_py_append(&list, Py_BuildValue("(NIiK)", bhi_py_text(one->name), one->constant_id,
                                           (int)one->dtype, (unsigned long long)one->bits));
    }
    return list;
}

static PyObject *list_texts(const char (*texts)[64], uint32_t count) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < count; i++) {
        bhi_py_append(&list, bhi_py_text(texts[i]));
    }
    return list;
}

/* () -> (local_size, push_size, shared_bytes, bindings, members, constants, capabilities, entries)
 */
PyObject *bhi_py_kernel_inspect(PyObject *object, PyObject *unused) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    (void)unused;
    if (!bhi_py_context_check(self->context) || !bhi_py_kernel_enter(self)) {
        return NULL;
    }
    struct inspection *inspection =
        bhi_py_task_new(sizeof *inspection, run_inspection, drop_inspection);
    if (inspection) {
        inspection->kernel = self->kernel;
        bh_kernel_retain(self->kernel);
        inspection->options = (bh_inspect_options){.struct_size = sizeof(bh_inspect_options)};
    }
    bhi_py_kernel_leave(self);
    if (!inspection) {
        return NULL;
    }
    PyObject *answer = NULL;
    if (bhi_py_task_run(&inspection->task, BHI_PY_BLOCKS)) {
        const bh_inspection *result = &inspection->result;
        answer = Py_BuildValue(
            "((III)IKNNNNN)", result->local_size[0], result->local_size[1], result->local_size[2],
            result->push_size, (unsigned long long)result->shared_bytes, list_bindings(result),
            list_members(result), list_constants(result),
            list_texts(result->capabilities, result->capability_count),
            list_texts(result->entries, result->entry_count < BHI_PY_COUNT(result->entries)
                                            ? result->entry_count
                                            : (uint32_t)BHI_PY_COUNT(result->entries)));
    }
    bhi_py_task_unref(&inspection->task);
    return answer;
}

/* -- parameters ---------------------------------------------------------------------------------
 */

static bool set_binding(struct bhi_py_kernel *self, struct bhi_py_parameter *one, PyObject *tuple) {
    PyObject *name, *type;
    int access, array;
    if (!PyArg_ParseTuple(tuple, "OOIIIiIp", &name, &type, &one->set, &one->binding, &one->count,
                          &access, &one->takes, &array)) {
        return false;
    }
    one->name = Py_NewRef(name);
    one->type = Py_NewRef(type);
    one->is_binding = true;
    one->array = array;
    one->access = (bh_access)access;
    one->first = self->buffer_count;
    self->buffer_count += one->count;
    return true;
}

static bool set_member(struct bhi_py_parameter *one, PyObject *tuple) {
    PyObject *name, *type;
    int dtype;
    if (!PyArg_ParseTuple(tuple, "OOiIIIII", &name, &type, &dtype, &one->offset, &one->stride,
                          &one->step, &one->length, &one->width)) {
        return false;
    }
    one->name = Py_NewRef(name);
    one->type = Py_NewRef(type);
    one->dtype = (bh_dtype)dtype;
    return true;
}

/* (local_size, push_size, bindings, members): each binding as (name, type, set, binding, count,
 * access, takes, array), each member as (name, type, dtype, offset, stride, step, length, width).
 * The Python side has checked them: a member's numbers lie within |push_size|. */
PyObject *bhi_py_kernel_set_parameters(PyObject *object, PyObject *args) {
    struct bhi_py_kernel *self = (struct bhi_py_kernel *)object;
    PyObject *bindings, *members;
    uint32_t local[3], push_size;
    if (!PyArg_ParseTuple(args, "(III)IO!O!:_set_parameters", &local[0], &local[1], &local[2],
                          &push_size, &PyList_Type, &bindings, &PyList_Type, &members)) {
        return NULL;
    }
    if (self->reflected) { /* another thread was faster; both have learned the same */
        Py_RETURN_NONE;
    }
    const size_t binding_count = (size_t)PyList_Size(bindings);
    const size_t count = binding_count + (size_t)PyList_Size(members);
    struct bhi_py_parameter *all = calloc(count ? count : 1, sizeof *all);
    PyObject *names = PyDict_New();
    bool good = all && names;
    self->buffer_count = 0;
    for (size_t i = 0; good && i < count; i++) {
        good = i < binding_count
                   ? set_binding(self, &all[i], PyList_GetItem(bindings, (Py_ssize_t)i))
                   : set_member(&all[i], PyList_GetItem(members, (Py_ssize_t)(i - binding_count)));
        PyObject *index = good ? PyLong_FromSize_t(i) : NULL;
        good = index && PyDict_SetItem(names, all[i].name, index) == 0;
        Py_XDECREF(index);
    }
    if (!good) {
        for (size_t i = 0; all && i < count; i++) {
            Py_XDECREF(all[i].name);
            Py_XDECREF(all[i].type);
        }
        free(all);
        Py_XDECREF(names);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    self->parameters = all;
    self->parameter_count = (uint32_t)count;
    self->push_size = push_size;
    for (int i = 0; i < 3; i++) {
        self->local_size[i] = local[i];
    }
    self->names = names;
    self->reflected = true;
    Py_RETURN_NONE;
}
