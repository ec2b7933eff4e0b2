/* Making buffers: of new memory, of a memfd, of a file. */
#include "python/native.h"
#include <bulkhead/array.h>
#include <bulkhead/file.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A tuple of sizes, and how many elements and bytes that is. */
static bool take_shape(PyObject *shape, bh_dtype dtype, uint64_t out[BH_MAX_RANK],
                       uint32_t *out_rank, uint64_t *out_bytes) {
    const Py_ssize_t rank = PyTuple_Size(shape);
    uint64_t bytes = bhi_py_dtypes[dtype].size;
    bool empty = false, large = false;
    if (rank > BH_MAX_RANK) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "shape: more than %d dimensions", BH_MAX_RANK);
    }
    for (Py_ssize_t i = 0; i < rank; i++) {
        out[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(shape, i));
        if (PyErr_Occurred()) {
            PyErr_Clear();
            return bhi_py_refuse(BH_INVALID_ARGUMENT, "shape: %R", shape);
        }
        empty |= out[i] == 0;
        large |= out[i] && __builtin_mul_overflow(bytes, out[i], &bytes);
    }
    if (large || bytes > INT64_MAX) {
        return bhi_py_refuse(BH_TOO_LARGE, "shape: %R of %s is larger than any memory", shape,
                             bhi_py_dtypes[dtype].name);
    }
    *out_rank = (uint32_t)rank;
    *out_bytes = empty ? 0 : bytes;
    return true;
}

static PyObject *wrap(struct bhi_py_context *context, bh_buffer *buffer, PyObject *stream,
                      bh_dtype dtype, uint32_t rank, const uint64_t *shape) {
    const bool device = bh_buffer_memory(buffer) == BH_MEMORY_DEVICE;
    struct bhi_py_storage *storage =
        bhi_py_storage_new(context, buffer, device && stream != Py_None ? stream : NULL);
    if (!storage) {
        return NULL;
    }
    PyObject *result = bhi_py_buffer_new(storage, dtype, rank, shape, 0);
    bhi_py_storage_unref(storage);
    return result;
}

enum { FEW_TENSORS = 1024 };
/* A call that makes a buffer or, with |tensors|, lists those of a file. */
struct making {
    struct bhi_py_task task;
    bh_context *context;
    uint64_t size;
    bh_buffer_options options; /* its stream is referenced */
    bh_buffer *buffer;
    bh_file_source source;
    char *texts[3]; /* owned; |source| has them */
    bh_file_tensor *tensors;
    size_t room, count;
};

static bh_status run_making(struct bhi_py_task *task) {
    struct making *making = (struct making *)task;
    if (making->tensors) {
        making->tensors->struct_size = sizeof *making->tensors;
        return bh_file_tensors(making->context, &making->source, making->tensors, making->room,
                               &making->count, &task->detail);
    }
    return bh_buffer_create(making->context, making->size, &making->options, &making->buffer,
                            &task->detail);
}

static void drop_making(struct bhi_py_task *task) {
    struct making *making = (struct making *)task;
    for (size_t i = 0; i < BHI_PY_COUNT(making->texts); i++) {
        free(making->texts[i]);
    }
    bh_buffer_release(making->buffer);
    bh_stream_release(making->options.stream);
    free(making->tensors);
}

/* |stream| is a Stream, or None. */
static struct making *new_making(struct bhi_py_context *context, PyObject *stream) {
    struct making *making = bhi_py_task_new(sizeof *making, run_making, drop_making);
    if (!making) {
        return NULL;
    }
    making->context = context->context;
    making->options.struct_size = sizeof making->options;
    if (stream == Py_None) {
        return making;
    }
    if (!PyObject_TypeCheck(stream, bhi_py.stream)) {
        bhi_py_refuse_type("stream: a Stream, not %R", (PyObject *)Py_TYPE(stream));
    } else if (bhi_py_stream_enter((struct bhi_py_stream *)stream)) {
        making->options.stream = ((struct bhi_py_stream *)stream)->stream;
        bh_stream_retain(making->options.stream);
        bhi_py_stream_leave((struct bhi_py_stream *)stream);
        return making;
    }
    bhi_py_task_unref(&making->task);
    return NULL;
}

/* Takes over the buffer. */
static PyObject *wrap_made(struct bhi_py_context *context, struct making *making, PyObject *stream,
                           bh_dtype dtype, uint32_t rank, const uint64_t *shape) {
    bh_buffer *buffer = making->buffer;
    making->buffer = NULL;
    return wrap(context, buffer, stream, dtype, rank, shape);
}

/* -- new memory ---------------------------------------------------------------------------------
 */

/* (context, dtype, shape, stream, memory, uninitialized) -> Buffer */
PyObject *bhi_py_buffer_create(PyObject *module, PyObject *args) {
    struct bhi_py_context *context;
    PyObject *shape, *stream, *result = NULL;
    int dtype, memory, uninitialized;
    uint64_t sizes[BH_MAX_RANK], bytes;
    uint32_t rank;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!iO!Oip:buffer_create", bhi_py.context, &context, &dtype,
                          &PyTuple_Type, &shape, &stream, &memory, &uninitialized) ||
        !bhi_py_context_check(context) ||
        !take_shape(shape, (bh_dtype)dtype, sizes, &rank, &bytes)) {
        return NULL;
    }
    struct making *making = new_making(context, stream);
    if (!making) {
        return NULL;
    }
    making->size = bytes;
    making->options.memory = (uint64_t)memory;
    making->options.flags = uninitialized ? BH_BUFFER_UNINITIALIZED : 0;
    /* Host memory takes time, and does not wait. */
    if (bhi_py_task_run(&making->task,
                        memory == BH_MEMORY_HOST ? BHI_PY_TAKES_TIME : BHI_PY_BLOCKS)) {
        result = wrap_made(context, making, stream, (bh_dtype)dtype, rank, sizes);
    }
    bhi_py_task_unref(&making->task);
    return result;
}

/* (context, dtype, shape, fd) -> Buffer */
PyObject *bhi_py_buffer_wrap(PyObject *module, PyObject *args) {
    struct bhi_py_context *context;
    PyObject *shape;
    int dtype, fd;
    uint64_t sizes[BH_MAX_RANK], bytes;
    uint32_t rank;
    bh_buffer *buffer = NULL;
    bh_status status;
    bh_detail detail;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!iO!i:buffer_wrap", bhi_py.context, &context, &dtype,
                          &PyTuple_Type, &shape, &fd) ||
        !bhi_py_context_check(context) ||
        !take_shape(shape, (bh_dtype)dtype, sizes, &rank, &bytes)) {
        return NULL;
    }
    const bh_buffer_options options = {.struct_size = sizeof options, .memfd = &fd};
    Py_BEGIN_ALLOW_THREADS
    status = bh_buffer_create(context->context, bytes, &options, &buffer, &detail);
    Py_END_ALLOW_THREADS
    return status == BH_OK ? wrap(context, buffer, Py_None, (bh_dtype)dtype, rank, sizes)
                           : bhi_py_fail(status, &detail);
}

/* -- files --------------------------------------------------------------------------------------
 */

static struct making *new_opening(struct bhi_py_context *context, PyObject *values,
                                  PyObject *stream) {
    static const struct bhi_py_field fields[] = {
        {"path", offsetof(struct making, source.path), BHI_PY_TEXT},
        {"tensor", offsetof(struct making, source.tensor), BHI_PY_TEXT},
        {"tenant", offsetof(struct making, source.tenant), BHI_PY_TEXT},
        {"format", offsetof(struct making, source.format), BHI_PY_INT},
        {"offset", offsetof(struct making, source.offset), BHI_PY_U64},
        {"size", offsetof(struct making, size), BHI_PY_U64},
        {"header_timeout", offsetof(struct making, source.header_timeout_ns), BHI_PY_U64},
        {"deadline", offsetof(struct making, source.deadline_ns), BHI_PY_U64},
        {"memory", offsetof(struct making, options.memory), BHI_PY_U64},
    };
    struct making *opening = new_making(context, stream);
    if (!opening) {
        return NULL;
    }
    bh_file_source *source = &opening->source;
    source->struct_size = sizeof *source;
    opening->options.file = source;
    if (!bhi_py_set_fields(opening, fields, BHI_PY_COUNT(fields), values, "load")) {
        bhi_py_task_unref(&opening->task);
        return NULL;
    }
    const char **texts[] = {&source->path, &source->tensor, &source->tenant};
    for (size_t i = 0; i < BHI_PY_COUNT(texts); i++) {
        if (*texts[i]) {
            *texts[i] = opening->texts[i] = strdup(*texts[i]);
            if (!*texts[i]) {
                bhi_py_task_unref(&opening->task);
                PyErr_NoMemory();
                return NULL;
            }
        }
    }
    return opening;
}

/* (context, options, stream) -> (Buffer, Event of the load) */
PyObject *bhi_py_buffer_load(PyObject *module, PyObject *args) {
    struct bhi_py_context *context;
    PyObject *values, *stream, *result = NULL;
    bh_detail detail;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O:buffer_load", bhi_py.context, &context, &PyDict_Type,
                          &values, &stream) ||
        !bhi_py_context_check(context)) {
        return NULL;
    }
    struct making *opening = new_opening(context, values, stream);
    if (!opening) {
        return NULL;
    }
    if (bhi_py_task_run(&opening->task, BHI_PY_BLOCKS)) {
        bh_array_info info = {.struct_size = sizeof info};
        bh_event *event = NULL;
        bh_status status = bh_buffer_array(opening->buffer, &info, &detail);
        if (status == BH_OK) {
            status = bh_buffer_load_event(opening->buffer, &event, &detail);
        }
        if (status != BH_OK) {
            bhi_py_fail(status, &detail);
        } else {
            const uint64_t size = bh_buffer_size(opening->buffer);
            const bool raw = info.dtype == BH_DTYPE_NONE;
            result = wrap_made(context, opening, stream, info.dtype, raw ? 1 : info.rank,
                               raw ? &size : info.shape);
            if (result) {
                struct bhi_py_storage *storage = ((struct bhi_py_buffer *)result)->storage;
                pthread_mutex_lock(&context->views_lock);
                bhi_py_storage_written(storage, event);
                pthread_mutex_unlock(&context->views_lock);
            }
            bh_event_release(event);
        }
    }
    bhi_py_task_unref(&opening->task);
    return result;
}

/* (Buffer) -> (bytes loaded, bytes in all) */
PyObject *bhi_py_buffer_progress(PyObject *module, PyObject *args) {
    PyObject *object;
    uint64_t loaded, total;
    bh_detail detail;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!:buffer_progress", bhi_py.buffer, &object)) {
        return NULL;
    }
    struct bhi_py_storage *storage = bhi_py_buffer_use(object, "progress");
    if (!storage) {
        return NULL;
    }
    const bh_status status = bh_buffer_load_progress(storage->buffer, &loaded, &total, &detail);
    bhi_py_storage_unref(storage);
    return status == BH_OK
               ? Py_BuildValue("(KK)", (unsigned long long)loaded, (unsigned long long)total)
               : bhi_py_fail(status, &detail);
}

static PyObject *tensor_to_tuple(const bh_file_tensor *tensor) {
    return Py_BuildValue("(NiNKKN)", bhi_py_text(tensor->name), (int)tensor->dtype,
                         bhi_py_numbers(tensor->shape, tensor->rank),
                         (unsigned long long)tensor->offset, (unsigned long long)tensor->bytes,
                         bhi_py_text(tensor->type));
}

/* Lists the first |room| tensors. NULL: an exception is set. */
static struct making *list_tensors(struct bhi_py_context *context, PyObject *values, size_t room) {
    struct making *opening = new_opening(context, values, Py_None);
    if (!opening) {
        return NULL;
    }
    opening->room = room;
    opening->tensors = calloc(room, sizeof *opening->tensors);
    if (!opening->tensors) {
        PyErr_NoMemory();
    } else if (bhi_py_task_run(&opening->task, BHI_PY_BLOCKS)) {
        return opening;
    }
    bhi_py_task_unref(&opening->task);
    return NULL;
}

/* (context, options) -> [(name, dtype, shape, offset, bytes, type), …] */
PyObject *bhi_py_file_tensors(PyObject *module, PyObject *args) {
    struct bhi_py_context *context;
    PyObject *values, *list = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!:file_tensors", bhi_py.context, &context, &PyDict_Type,
                          &values) ||
        !bhi_py_context_check(context)) {
        return NULL;
    }
    struct making *opening = list_tensors(context, values, FEW_TENSORS);
    while (opening && opening->count > opening->room) {
        const size_t all = opening->count;
        bhi_py_task_unref(&opening->task);
        opening = bhi_py_context_check(context) ? list_tensors(context, values, all) : NULL;
    }
    if (!opening) {
        return NULL;
    }
    list = PyList_New(0);
    for (size_t i = 0; list && i < opening->count; i++) {
        bhi_py_append(&list, tensor_to_tuple(&opening->tensors[i]));
    }
    bhi_py_task_unref(&opening->task);
    return list;
}

/* -- copies -------------------------------------------------------------------------------------
 */

/* Copies what |source| shows, in C order, into the whole Buffer, whose old content does not count.
 * (Buffer, source) */
PyObject *bhi_py_buffer_assign(PyObject *module, PyObject *args) {
    PyObject *object, *source, *result = NULL;
    Py_buffer view;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O:buffer_assign", bhi_py.buffer, &object, &source) ||
        PyObject_GetBuffer(source, &view, PyBUF_FULL_RO) < 0) {
        return NULL;
    }
    const struct bhi_py_buffer *buffer = (struct bhi_py_buffer *)object;
    struct bhi_py_storage *storage = bhi_py_buffer_use(object, "write");
    if (!storage) {
        PyBuffer_Release(&view);
        return NULL;
    }
    const bool whole = buffer->bytes == storage->size;
    const uint32_t views = storage->views;
    if (bhi_py_context_forked(storage->context)) {
        bhi_py_context_check(storage->context);
    } else if (views) {
        bhi_py_refuse_view("write: it would change memory that %u view%s (NumPy array, memoryview "
                           "or tensor) still show%s: delete %s first, or keep a copy",
                           views, views == 1 ? "" : "s", views == 1 ? "s" : "",
                           views == 1 ? "it" : "them");
    } else if ((uint64_t)view.len != buffer->bytes) {
        bhi_py_refuse(BH_INVALID_ARGUMENT, "write: %zd bytes for a buffer of %llu", view.len,
                      (unsigned long long)buffer->bytes);
    } else if (bhi_py_view_begin(storage, whole ? BH_MAP_DISCARD : BH_MAP_READ_WRITE, BH_FOREVER,
                                 NULL)) {
        char *at = (char *)storage->pointer + buffer->offset;
        int copied = 0;
        if (PyBuffer_IsContiguous(&view, 'C')) {
            Py_BEGIN_ALLOW_THREADS
            memmove(at, view.buf, (size_t)view.len);
            Py_END_ALLOW_THREADS
        } else {
            copied = PyBuffer_ToContiguous(at, &view, view.len, 'C');
        }
        if (whole) { /* the host has written it since */
            pthread_mutex_lock(&storage->context->views_lock);
            bhi_py_storage_written(storage, NULL);
            pthread_mutex_unlock(&storage->context->views_lock);
        }
        bhi_py_view_end(storage, true);
        result = copied == 0 ? Py_NewRef(Py_None) : NULL;
    }
    bhi_py_storage_unref(storage);
    PyBuffer_Release(&view);
    return result;
}

/* What a buffer shows that exports memory: (dtype, format's complaint or None, shape, address,
 * whether it is contiguous, bytes). Of no type that the library has: dtype is -1. */
PyObject *bhi_py_examine(PyObject *module, PyObject *object) {
    Py_buffer view;
    bh_dtype dtype;
    const char *why;
    (void)module;
    if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO) < 0) {
        return NULL;
    }
    const bool known = bhi_py_dtype_of_format(view.format, view.itemsize, &dtype, &why);
    const Py_ssize_t *shape = view.shape ? view.shape : &view.len;
    PyObject *result = Py_BuildValue(
        "(issNKNn)", known ? (int)dtype : -1, known ? "" : why, view.format ? view.format : "B",
        bhi_py_numbers((const uint64_t *)shape, view.shape ? view.ndim : view.ndim > 0),
        (unsigned long long)(uintptr_t)view.buf, PyBool_FromLong(PyBuffer_IsContiguous(&view, 'C')),
        view.len);
    PyBuffer_Release(&view);
    return result;
}

/* A Buffer of memory that a view of this context shows; None: it is other memory, or begins where a
 * device cannot bind it. (context, dtype, shape, address, bytes) */
PyObject *bhi_py_buffer_at(PyObject *module, PyObject *args) {
    enum { ALIGNMENT = 256 }; /* the largest that Vulkan allows a device to require */
    struct bhi_py_context *context;
    PyObject *shape, *result = NULL;
    int dtype;
    unsigned long long address, bytes;
    uint64_t sizes[BH_MAX_RANK], all;
    uint32_t rank;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!iO!KK:buffer_at", bhi_py.context, &context, &dtype,
                          &PyTuple_Type, &shape, &address, &bytes) ||
        !bhi_py_context_check(context) || !take_shape(shape, (bh_dtype)dtype, sizes, &rank, &all)) {
        return NULL;
    }
    struct bhi_py_storage *storage =
        bytes ? bhi_py_storage_find(context, (uintptr_t)address, bytes) : NULL;
    if (!storage) {
        Py_RETURN_NONE;
    }
    const uint64_t offset = (uintptr_t)address - (uintptr_t)storage->pointer;
    result = offset % ALIGNMENT ? Py_NewRef(Py_None)
                                : bhi_py_buffer_new(storage, (bh_dtype)dtype, rank, sizes, offset);
    bhi_py_storage_unref(storage);
    return result;
}
