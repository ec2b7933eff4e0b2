/* A source in GLSL, HLSL or CUDA C++, what it is compiled with and what the compiler says; or the SPIR-V
 * or the image of a kernel. */
#include "python/native.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A copy of the argument |name|, or of None (NULL). |out_size|: it may have NULs. Returns false
 * with an exception set. */
static bool copy_text(PyObject *value, const char *what, const char *name, const char **out,
                      size_t *out_size) {
    Py_ssize_t size = 0;
    *out = NULL;
    if (value == Py_None) {
        return true;
    }
    const char *bytes =
        out_size ? bhi_py_utf8(value, what, name, &size) : bhi_py_utf8_text(value, what, name);
    if (!bytes) {
        return false;
    }
    const size_t length = out_size ? (size_t)size : strlen(bytes);
    char *copy = malloc(length + 1);
    if (!copy) {
        return PyErr_NoMemory();
    }
    memcpy(copy, bytes, length);
    copy[length] = 0;
    *out = copy;
    if (out_size) {
        *out_size = length;
    }
    return true;
}

/* Copies (name, text); what it has copied is set, also after a failure. */
static bool copy_pair(PyObject *pair, const char *what, const char *argument, const char **out_name,
                      const char **out_text, size_t *out_size) {
    PyObject *name, *text;
    return PyArg_ParseTuple(pair, "OO", &name, &text) &&
           copy_text(name, what, argument, out_name, NULL) &&
           copy_text(text, what, argument, out_text, out_size);
}

static bool copy_defines(bh_source *source, const char *what, PyObject *list) {
    const Py_ssize_t count = PyList_Size(list);
    bh_source_define *one = calloc(count ? (size_t)count : 1, sizeof *one);
    source->defines = one;
    bool good = one || PyErr_NoMemory();
    for (Py_ssize_t i = 0; good && i < count; i++, one++) {
        source->define_count++;
        good = copy_pair(PyList_GetItem(list, i), what, "defines", &one->name, &one->value, NULL);
    }
    return good;
}

static bool copy_includes(bh_source *source, const char *what, PyObject *list) {
    const Py_ssize_t count = PyList_Size(list);
    bh_source_include *one = calloc(count ? (size_t)count : 1, sizeof *one);
    source->includes = one;
    bool good = one || PyErr_NoMemory();
    for (Py_ssize_t i = 0; good && i < count; i++, one++) {
        source->include_count++;
        good = copy_pair(PyList_GetItem(list, i), what, "include", &one->name, &one->text,
                         &one->length);
    }
    return good;
}

bool bhi_py_source_init(bh_source *source, const char *what, PyObject *tuple) {
    static const struct bhi_py_field fields[] = {
        {"unoptimized", offsetof(bh_source, unoptimized), BHI_PY_BOOL},
        {"language", offsetof(bh_source, language), BHI_PY_U32},
        {"deadline", offsetof(bh_source, deadline_ns), BHI_PY_U64},
        {"memory", offsetof(bh_source, memory_limit), BHI_PY_U64},
    };
    PyObject *text, *name, *entry, *tenant, *limits, *defines, *includes, *options;
    *source = (bh_source){.struct_size = sizeof *source};
    if (PyArg_ParseTuple(tuple, "OOOOO!O!O!O", &text, &name, &entry, &tenant, &PyDict_Type, &limits,
                         &PyList_Type, &defines, &PyList_Type, &includes, &options) &&
        copy_text(text, what, "source", &source->text, &source->length) &&
        copy_text(name, what, "name", &source->name, NULL) &&
        copy_text(entry, what, "entry", &source->entry, NULL) &&
        copy_text(tenant, what, "tenant", &source->tenant, NULL) &&
        copy_text(options, what, "options", &source->options, NULL) &&
        bhi_py_set_fields(source, fields, BHI_PY_COUNT(fields), limits, what) &&
        copy_defines(source, what, defines) && copy_includes(source, what, includes)) {
        return true;
    }
    bhi_py_source_fini(source);
    return false;
}

/* The library only reads what it is given; this file made it. */
static void drop(const void *own) {
    free((void *)(uintptr_t)own);
}

void bhi_py_source_fini(bh_source *source) {
    for (uint32_t i = 0; i < source->define_count; i++) {
        drop(source->defines[i].name);
        drop(source->defines[i].value);
    }
    for (uint32_t i = 0; i < source->include_count; i++) {
        drop(source->includes[i].name);
        drop(source->includes[i].text);
    }
    drop(source->defines);
    drop(source->includes);
    drop(source->text);
    drop(source->name);
    drop(source->entry);
    drop(source->tenant);
    drop(source->options);
    *source = (bh_source){0};
}

PyObject *bhi_py_source_log(bh_module *module) {
    enum { LOG_SIZE = 32 << 10 }; /* of all of it */
    char *text = malloc(LOG_SIZE);
    if (!text) {
        return PyErr_NoMemory();
    }
    bh_module_log(module, text, LOG_SIZE);
    PyObject *log = bhi_py_text(text);
    free(text);
    return log;
}
