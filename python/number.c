/* Numbers of Python as the bytes of a type. */
#include "python/native.h"

#include <math.h>
#include <string.h>

static bool refuse_number(PyObject *value, bh_dtype dtype, PyObject *name, const char *what) {
    PyErr_Clear();
    return bhi_py_refuse(BH_INVALID_ARGUMENT, "%s: %U: %R does not fit %s", what, name, value,
                         bhi_py_dtypes[dtype].short_);
}

static bool store_float(PyObject *value, bh_dtype dtype, uint8_t *at, PyObject *name,
                        const char *what) {
    const double number = PyFloat_AsDouble(value);
    if (number == -1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            return refuse_number(value, dtype, name, what);
        }
        PyErr_Clear();
        return bhi_py_refuse_type("%s: %U: a number (%s), not %R", what, name,
                                  bhi_py_dtypes[dtype].short_, (PyObject *)Py_TYPE(value));
    }
    if (dtype == BH_DTYPE_F64) {
        memcpy(at, &number, sizeof number);
        return true;
    }
    if (dtype == BH_DTYPE_F32) {
        const float narrow = (float)number;
        if (isinf(narrow) && !isinf(number)) {
            return refuse_number(value, dtype, name, what);
        }
        memcpy(at, &narrow, sizeof narrow);
        return true;
    }
    /* Two bytes: Python's struct rounds as IEEE 754 says. */
    PyObject *module = PyImport_ImportModule("struct");
    PyObject *bytes = module ? PyObject_CallMethod(module, "pack", "sd", "<e", number) : NULL;
    Py_XDECREF(module);
    if (!bytes) {
        return refuse_number(value, dtype, name, what);
    }
    memcpy(at, PyBytes_AsString(bytes), 2);
    Py_DECREF(bytes);
    return true;
}

static bool store_integer(PyObject *value, bh_dtype dtype, uint8_t *at, PyObject *name,
                          const char *what) {
    const uint32_t size = bhi_py_dtypes[dtype].size;
    const bool is_signed = dtype == BH_DTYPE_I8 || dtype == BH_DTYPE_I16 || dtype == BH_DTYPE_I32 ||
                           dtype == BH_DTYPE_I64;
    PyObject *number = PyNumber_Index(value);
    if (!number) {
        PyErr_Clear();
        return bhi_py_refuse_type("%s: %U: an integer (%s), not %R", what, name,
                                  bhi_py_dtypes[dtype].short_, value);
    }
    uint64_t bits;
    bool fits;
    if (is_signed) {
        int overflow;
        const long long wide = PyLong_AsLongLongAndOverflow(number, &overflow);
        const int64_t most = (int64_t)(UINT64_MAX >> (65 - 8 * size));
        fits = !overflow && wide <= most && wide >= -most - 1;
        bits = (uint64_t)wide;
    } else {
        bits = PyLong_AsUnsignedLongLong(number);
        fits = !PyErr_Occurred() && (size == 8 || bits >> (8 * size) == 0);
    }
    Py_DECREF(number);
    if (!fits) {
        return refuse_number(value, dtype, name, what);
    }
    memcpy(at, &bits, size); /* little endian */
    return true;
}

bool bhi_py_number_store(PyObject *value, bh_dtype dtype, uint8_t *at, PyObject *name,
                         const char *what) {
    switch (dtype) {
    case BH_DTYPE_F16:
    case BH_DTYPE_F32:
    case BH_DTYPE_F64:
        return store_float(value, dtype, at, name, what);
    case BH_DTYPE_BOOL: {
        const int truth = PyObject_IsTrue(value);
        *at = truth > 0;
        return truth >= 0;
    }
    default:
        return store_integer(value, dtype, at, name, what);
    }
}
