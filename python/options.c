#include "python/native.h"

#include <string.h>

const char *bhi_py_utf8(PyObject *value, const char *what, const char *name, Py_ssize_t *out_size) {
    char *bytes = NULL;
    if (PyBytes_Check(value)) {
        return PyBytes_AsStringAndSize(value, &bytes, out_size) < 0 ? NULL : bytes;
    }
    if (!PyUnicode_Check(value)) {
        bhi_py_refuse_type("%s: %s: a text, not %R", what, name, (PyObject *)Py_TYPE(value));
        return NULL;
    }
    const char *utf8 = PyUnicode_AsUTF8AndSize(value, out_size);
    if (!utf8 && PyErr_ExceptionMatches(PyExc_UnicodeError)) {
        PyErr_Clear();
        bhi_py_refuse(BH_INVALID_ARGUMENT, "%s: %s: UTF-8 has no half of a surrogate pair", what,
                      name);
    }
    return utf8;
}

const char *bhi_py_utf8_text(PyObject *value, const char *what, const char *name) {
    Py_ssize_t size = 0;
    const char *text = bhi_py_utf8(value, what, name, &size);
    if (text && strlen(text) != (size_t)size) {
        bhi_py_refuse(BH_INVALID_ARGUMENT, "%s: %s: the text has a NUL in it", what, name);
        return NULL;
    }
    return text;
}

static bool set_field(void *options, const struct bhi_py_field *field, PyObject *value,
                      const char *what) {
    char *at = (char *)options + field->offset;
    if (field->type == BHI_PY_TEXT) {
        const char *text = bhi_py_utf8_text(value, what, field->name);
        memcpy(at, &text, sizeof text);
        return text;
    }
    if (field->type == BHI_PY_BOOL) {
        const int truth = PyObject_IsTrue(value);
        *(bool *)at = truth > 0;
        return truth >= 0;
    }
    if (field->type == BHI_PY_F64) {
        const double real = PyFloat_AsDouble(value);
        memcpy(at, &real, sizeof real);
        return !PyErr_Occurred();
    }
    PyObject *number = PyNumber_Index(value);
    if (!number) {
        PyErr_Clear();
        return bhi_py_refuse_type("%s: %s: an integer, not %R", what, field->name, value);
    }
    const bool wide = field->type == BHI_PY_U64 || field->type == BHI_PY_LIMIT;
    const uint64_t most = wide ? UINT64_MAX : field->type == BHI_PY_U32 ? UINT32_MAX : INT32_MAX;
    const unsigned long long bits = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (PyErr_Occurred() || bits > most) {
        PyErr_Clear();
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "%s: %s: %R is not from 0 to %llu", what,
                             field->name, value, (unsigned long long)most);
    }
    if (wide) {
        const uint64_t all = field->type == BHI_PY_LIMIT && !bits ? BH_OFF : bits;
        memcpy(at, &all, sizeof all);
    } else {
        const uint32_t narrow = (uint32_t)bits;
        memcpy(at, &narrow, sizeof narrow);
    }
    return true;
}

bool bhi_py_set_fields(void *options, const struct bhi_py_field *fields, size_t count,
                       PyObject *values, const char *what) {
    Py_ssize_t position = 0;
    PyObject *key, *value;
    if (!PyDict_Check(values)) {
        PyErr_SetString(PyExc_TypeError, "options are a dict");
        return false;
    }
    while (PyDict_Next(values, &position, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        size_t i = 0;
        while (name && i < count && strcmp(fields[i].name, name) != 0) {
            i++;
        }
        if (!name || i == count) {
            if (name) {
                PyErr_Format(PyExc_TypeError, "%s: there is no option '%s'", what, name);
            }
            return false;
        }
        if (value != Py_None && !set_field(options, &fields[i], value, what)) {
            return false;
        }
    }
    return true;
}
