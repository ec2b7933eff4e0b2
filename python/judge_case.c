/* A judge's case, as the Python side takes it (python/bulkhead/references.py). */
#include "python/judge_case.h"

#include <string.h>

/* A function may keep what it was given. */
static PyObject *copy(const void *bytes, uint64_t size) {
    return bytes ? PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size) : Py_NewRef(Py_None);
}

static PyObject *tell_array(const bh_judge_array *array) {
    PyObject *after = array->expected ? copy(array->after, array->bytes) : Py_NewRef(Py_None);
    return Py_BuildValue("(NiNNONN)", bhi_py_text(array->name), (int)array->dtype,
                         bhi_py_numbers(array->shape, array->rank),
                         copy(array->before, array->bytes), array->after ? Py_True : Py_False,
                         after, copy(array->expected, array->bytes));
}

static PyObject *tell_numbers(const bh_judge_number *numbers, uint32_t count) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < count; i++) {
        bhi_py_append(&list, Py_BuildValue("(Ns)", bhi_py_text(numbers[i].name), numbers[i].text));
    }
    return list;
}

PyObject *bhi_py_case_tell(const bh_judge_case *one) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < one->array_count; i++) {
        bhi_py_append(&list, tell_array(&one->arrays[i]));
    }
    return Py_BuildValue("(NNNN)", list, tell_numbers(one->sizes, one->size_count),
                         tell_numbers(one->pushes, one->push_count), bhi_py_text(one->text));
}

bool bhi_py_case_take(const bh_judge_case *one, PyObject *outputs) {
    Py_ssize_t next = 0;
    for (uint32_t i = 0; i < one->array_count; i++) {
        const bh_judge_array *array = &one->arrays[i];
        char *bytes;
        Py_ssize_t size;
        if (!array->after) {
            continue;
        }
        PyObject *output = PyList_GetItem(outputs, next++);
        if (!output || PyBytes_AsStringAndSize(output, &bytes, &size) < 0) {
            return false;
        }
        if ((uint64_t)size != array->bytes) {
            PyErr_Format(PyExc_ValueError, "%s: %zd bytes", array->name, size);
            return false;
        }
        memcpy(array->after, bytes, array->bytes);
    }
    return true;
}
