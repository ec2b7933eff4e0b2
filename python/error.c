/* Exceptions. Their classes are in python/bulkhead/errors.py. */
#include "python/native.h"

#include <stdarg.h>
#include <string.h>

/* Raises what a function of the Python side has made. Takes over |exception|. */
static PyObject *set_exception(PyObject *exception) {
    if (exception) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
        Py_DECREF(exception);
    }
    return NULL;
}

PyObject *bhi_py_text(const char *bytes) {
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)strlen(bytes), "replace");
}

static const bh_detail *detail_of(bh_status status, const bh_detail *detail) {
    static const bh_detail none;
    return detail && detail->status == status ? detail : &none;
}

static PyObject *message_of(bh_status status, const bh_detail *detail) {
    if (status == BH_FORKED) {
        return bhi_py_text("the context belongs to the parent process: after a fork, make one of "
                           "your own (multiprocessing can start processes by 'spawn')");
    }
    return bhi_py_text(detail->message[0] ? detail->message : bh_status_text(status));
}

/* (reason, subject, its name, value, limit) */
static PyObject *reason_of(const bh_detail *why) {
    return Py_BuildValue("(iiNKK)", (int)why->reason, (int)why->subject,
                         bhi_py_text(why->subject_name), (unsigned long long)why->value,
                         (unsigned long long)why->limit);
}

PyObject *bhi_py_fail(bh_status status, const bh_detail *detail) {
    const bh_detail *why = detail_of(status, detail);
    return set_exception(PyObject_CallFunction(bhi_py.make_error, "iNiiiN", (int)status,
                                               message_of(status, why), (int)why->sys_errno,
                                               (int)why->cause, (int)why->signal, reason_of(why)));
}

PyObject *bhi_py_fail_poison(bh_status status, const bh_detail *detail) {
    /* Below are failures of the wait itself. */
    if (status < BH_WORKER_SIGNAL) {
        return bhi_py_fail(status, detail);
    }
    const bh_detail *why = detail_of(status, detail);
    return set_exception(PyObject_CallFunction(bhi_py.make_poison, "OiNN", Py_None, (int)status,
                                               message_of(status, why), reason_of(why)));
}

PyObject *bhi_py_refuse(bh_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    PyObject *message = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    if (message) {
        set_exception(
            PyObject_CallFunction(bhi_py.make_error, "iOiii()", (int)status, message, 0, 0, 0));
        Py_DECREF(message);
    }
    return NULL;
}

PyObject *bhi_py_refuse_as(PyObject *make, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    PyObject *message = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    if (message) {
        set_exception(PyObject_CallFunctionObjArgs(make, message, NULL));
        Py_DECREF(message);
    }
    return NULL;
}

void bhi_py_add_log(PyObject *log) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && log && PyObject_SetAttrString(value, "log", log) < 0) {
        PyErr_Clear();
    }
    PyErr_Restore(type, value, trace);
    Py_XDECREF(log);
}

PyObject *bhi_py_fail_event(PyObject *event) {
    return set_exception(PyObject_CallFunction(bhi_py.make_poison, "Ois()", event, 0, ""));
}
