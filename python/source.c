/* A source in GLSL or HLSL, what it is compiled with and what the compiler says; or the SPIR-V of a
 * kernel. */
#include "python/native.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A copy of the argument |name|, or of None (NULL). |out_size|: it may have NULs. Returns false
 * with an exception set. */
static bool copy_text(PyObject *value, const char *what, const char *name, char **out,
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
    *out = malloc(length + 1);
    if (!*out) {
        PyErr_NoMemory();
        return false;
    }
    memcpy(*out, bytes, length);
    (*out)[length] = 0;
    if (out_size) {
        *out_size = length;
    }
    return true;
}

static bool copy_defines(struct bhi_py_source *source, const char *what, PyObject *list) {
    const Py_ssize_t count = PyList_Size(list);
    source->defines = calloc(count ? (size_t)count : 1, sizeof *source->defines);
    if (!source->defines) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name, *value;
        char *name_copy, *value_copy = NULL;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "OO", &name, &value) ||
            !copy_text(name, what, "defines", &name_copy, NULL)) {
            return false;
        }
        source->defines[source->define_count].name = name_copy;
        const bool copied = copy_text(value, what, "defines", &value_copy, NULL);
        source->defines[source->define_count++].value = value_copy;
        if (!copied) {
            return false;
        }
    }
    return true;
}

static bool copy_includes(struct bhi_py_source *source, const char *what, PyObject *list) {
    const Py_ssize_t count = PyList_Size(list);
    source->includes = calloc(count ? (size_t)count : 1, sizeof *source->includes);
    if (!source->includes) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name, *text;
        char *name_copy, *text_copy = NULL;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "OO", &name, &text) ||
            !copy_text(name, what, "include", &name_copy, NULL)) {
            return false;
        }
        bh_glsl_include *include = &source->includes[source->include_count++];
        include->name = name_copy;
        const bool copied = copy_text(text, what, "include", &text_copy, &include->length);
        include->text = text_copy;
        if (!copied) {
            return false;
        }
    }
    return true;
}

bool bhi_py_source_init(struct bhi_py_source *source, const char *what, PyObject *tuple) {
    static const struct bhi_py_field fields[] = {
        {"optimize", offsetof(struct bhi_py_source, optimize), BHI_PY_BOOL},
        {"hlsl", offsetof(struct bhi_py_source, hlsl), BHI_PY_BOOL},
        {"deadline", offsetof(struct bhi_py_source, deadline_ns), BHI_PY_U64},
        {"memory", offsetof(struct bhi_py_source, memory_limit), BHI_PY_U64},
    };
    PyObject *text, *name, *entry, *tenant, *options, *defines, *includes;
    *source = (struct bhi_py_source){.optimize = true};
    if (PyArg_ParseTuple(tuple, "OOOOO!O!O!", &text, &name, &entry, &tenant, &PyDict_Type, &options,
                         &PyList_Type, &defines, &PyList_Type, &includes) &&
        copy_text(text, what, "source", &source->text, &source->size) &&
        copy_text(name, what, "name", &source->name, NULL) &&
        copy_text(entry, what, "entry", &source->entry, NULL) &&
        copy_text(tenant, what, "tenant", &source->tenant, NULL) &&
        bhi_py_set_fields(source, fields, BHI_PY_COUNT(fields), options, what) &&
        copy_defines(source, what, defines) && copy_includes(source, what, includes)) {
        return true;
    }
    bhi_py_source_fini(source);
    return false;
}

void bhi_py_source_fini(struct bhi_py_source *source) {
    for (uint32_t i = 0; i < source->define_count; i++) {
        free((char *)(uintptr_t)source->defines[i].name);
        free((char *)(uintptr_t)source->defines[i].value);
    }
    for (uint32_t i = 0; i < source->include_count; i++) {
        free((char *)(uintptr_t)source->includes[i].name);
        free((char *)(uintptr_t)source->includes[i].text);
    }
    free(source->defines);
    free(source->includes);
    free(source->text);
    free(source->name);
    free(source->entry);
    free(source->tenant);
    *source = (struct bhi_py_source){0};
}

bh_glsl_source bhi_py_source_glsl(const struct bhi_py_source *source) {
    bh_glsl_source glsl = {.struct_size = sizeof glsl};
    glsl.text = source->text;
    glsl.length = source->size;
    glsl.name = source->name;
    glsl.defines = source->defines;
    glsl.define_count = source->define_count;
    glsl.includes = source->includes;
    glsl.include_count = source->include_count;
    glsl.unoptimized = !source->optimize;
    glsl.deadline_ns = source->deadline_ns;
    glsl.memory_limit = source->memory_limit;
    glsl.tenant = source->tenant;
    glsl.language = source->hlsl ? BH_LANGUAGE_HLSL : BH_LANGUAGE_GLSL;
    glsl.entry = source->entry;
    return glsl;
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
