/* Launch: a dispatch that was prepared once. And Stream.launch, which prepares and submits. */
#include "python/native.h"

#include <stdlib.h>
#include <string.h>

struct launch {
    PyObject base;
    struct bhi_py_stream *stream;
    struct bhi_py_dispatch dispatch;
};

static bool take_arguments(struct bhi_py_dispatch *dispatch, const char *what,
                           PyObject *const *args, Py_ssize_t count, PyObject *names) {
    dispatch->kernel = NULL;
    if (count != 1) {
        return PyErr_Format(PyExc_TypeError,
                            "%s() takes one positional argument, the kernel; give others by name",
                            what);
    }
    bool good = bhi_py_dispatch_init(dispatch, args[0]);
    const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; good && i < named; i++) {
        good = bhi_py_dispatch_set(dispatch, PyTuple_GetItem(names, i), args[count + i]);
    }
    return good && bhi_py_dispatch_check(dispatch);
}

static PyObject *submit(struct bhi_py_stream *stream, struct bhi_py_dispatch *dispatch) {
    struct bhi_py_kernel *kernel = dispatch->kernel;
    if (stream->context != kernel->context) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "launch: the kernel belongs to another context");
    }
    if (!bhi_py_kernel_enter(kernel)) {
        return NULL;
    }
    const bh_command command = bhi_py_dispatch_command(dispatch);
    bh_submit_info info = {.struct_size = sizeof info, .commands = &command, .command_count = 1};
    bhi_py_manner_apply(&dispatch->manner, &info);
    PyObject *event = bhi_py_submit(stream, &info, dispatch->uses, dispatch->buffer_count, "launch",
                                    bhi_py_dispatch_name, dispatch);
    bhi_py_kernel_leave(kernel);
    return event;
}

PyObject *bhi_py_stream_launch(PyObject *self, PyObject *const *args, Py_ssize_t count,
                               PyObject *names) {
    struct bhi_py_dispatch dispatch;
    PyObject *event = NULL;
    dispatch.manner = (struct bhi_py_manner){0};
    if (!bhi_py_context_check(((struct bhi_py_stream *)self)->context)) {
        return NULL;
    }
    if (take_arguments(&dispatch, "launch", args, count, names)) {
        event = submit((struct bhi_py_stream *)self, &dispatch);
    }
    bhi_py_dispatch_fini(&dispatch);
    return event;
}

/* -- prepared -----------------------------------------------------------------------------------
 */

PyObject *bhi_py_stream_prepare(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                PyObject *names) {
    if (!bhi_py_context_check(((struct bhi_py_stream *)self)->context)) {
        return NULL;
    }
    struct launch *launch = bhi_py_new(bhi_py.launch);
    if (!launch) {
        return NULL;
    }
    launch->stream = (struct bhi_py_stream *)Py_NewRef(self);
    if (!take_arguments(&launch->dispatch, "prepare", args, count, names)) {
        Py_DECREF((PyObject *)launch);
        return NULL;
    }
    return (PyObject *)launch;
}

/* Sets what is given by name. If something is refused, the groups are as before. */
static bool change(struct bhi_py_dispatch *dispatch, PyObject *kwargs) {
    uint32_t before[3];
    bool placed = false;
    Py_ssize_t position = 0;
    PyObject *name, *value;
    memcpy(before, dispatch->groups, sizeof before);
    while (PyDict_Next(kwargs, &position, &name, &value)) {
        if (!placed && value != Py_None &&
            (PyUnicode_CompareWithASCIIString(name, "grid") == 0 ||
             PyUnicode_CompareWithASCIIString(name, "groups") == 0)) {
            dispatch->groups[0] = 0;
            placed = true;
        }
        if (!bhi_py_dispatch_set(dispatch, name, value)) {
            memcpy(dispatch->groups, before, sizeof before);
            return false;
        }
    }
    return true;
}

/* Submits once more, with changes by name. */
static PyObject *launch_call(PyObject *object, PyObject *args, PyObject *kwargs) {
    struct launch *self = (struct launch *)object;
    if (PyTuple_Size(args) > 0) {
        PyErr_SetString(PyExc_TypeError, "a Launch takes arguments by name only");
        return NULL;
    }
    if (kwargs && !change(&self->dispatch, kwargs)) {
        return NULL;
    }
    return bhi_py_dispatch_check(&self->dispatch) ? submit(self->stream, &self->dispatch) : NULL;
}

static void launch_dealloc(PyObject *object) {
    struct launch *self = (struct launch *)object;
    bhi_py_dispatch_fini(&self->dispatch);
    Py_XDECREF((PyObject *)self->stream);
    bhi_py_free(object);
}

static PyObject *launch_repr(PyObject *object) {
    const struct launch *self = (struct launch *)object;
    const uint32_t *groups = self->dispatch.groups;
    PyObject *name = bhi_py_closed(&self->dispatch.kernel->handle)
                         ? PyUnicode_FromString("a kernel that was released")
                         : PyObject_GetAttrString((PyObject *)self->dispatch.kernel, "name");
    PyObject *text = name ? PyUnicode_FromFormat("<bulkhead.Launch of %U, %u x %u x %u groups>",
                                                 name, groups[0], groups[1], groups[2])
                          : NULL;
    Py_XDECREF(name);
    return text;
}

static PyType_Slot slots[] = {
    {Py_tp_dealloc, launch_dealloc},
    {Py_tp_call, launch_call},
    {Py_tp_repr, launch_repr},
    {Py_tp_doc,
     "A dispatch whose arguments were checked once (Stream.prepare). Calling it submits\n"
     "it and returns the Event; arguments by name change it first, for good. If one of\n"
     "them is refused, nothing is submitted, and others may have changed."},
    {0, NULL},
};
PyType_Spec bhi_py_launch_spec = {
    .name = "bulkhead.Launch",
    .basicsize = sizeof(struct launch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

/* -- several commands ---------------------------------------------------------------------------
 */

/* A list of commands on its way into a submission. */
struct list {
    bh_command *commands;
    struct bhi_py_use *uses;        /* storages are referenced */
    struct bhi_py_kernel **kernels; /* entered */
    size_t command_count, use_count, use_room, kernel_count;
};

static bool add_use(struct list *list, struct bhi_py_use use) {
    if (list->use_count == list->use_room) {
        const size_t room = list->use_room ? 2 * list->use_room : 16;
        struct bhi_py_use *uses = realloc(list->uses, room * sizeof *uses);
        if (!uses) {
            return PyErr_NoMemory();
        }
        list->uses = uses;
        list->use_room = room;
    }
    bhi_py_storage_ref(use.storage);
    list->uses[list->use_count++] = use;
    return true;
}

/* The range of a Buffer, which becomes one of the storage. */
static bool add_buffer(struct list *list, struct bhi_py_stream *stream, PyObject *object,
                       const char *name, bool writes, bh_buffer **out, uint64_t *out_offset,
                       uint64_t *out_bytes) {
    if (!PyObject_TypeCheck(object, bhi_py.buffer)) {
        return bhi_py_refuse_type("submit: %s: a Buffer, not %R", name,
                                  (PyObject *)Py_TYPE(object));
    }
    struct bhi_py_storage *storage = bhi_py_buffer_use(object, "submit");
    if (!storage) {
        return false;
    }
    bool good = storage->context == stream->context;
    if (!good) {
        bhi_py_refuse(BH_INVALID_ARGUMENT, "submit: %s: the buffer belongs to another context",
                      name);
    }
    good =
        good &&
        add_use(list, (struct bhi_py_use){.storage = storage, .writes = writes, .reads = !writes});
    *out = storage->buffer;
    *out_offset = ((struct bhi_py_buffer *)object)->offset;
    *out_bytes = ((struct bhi_py_buffer *)object)->bytes;
    bhi_py_storage_unref(storage);
    return good;
}

/* (source, destination), or (destination, word). */
static bool add_tuple(struct list *list, struct bhi_py_stream *stream, PyObject *item) {
    bh_command *command = &list->commands[list->command_count++];
    PyObject *first, *second;
    uint64_t bytes, room;
    *command = (bh_command){.type = BH_COMMAND_COPY};
    if (!PyArg_ParseTuple(item, "OO:command", &first, &second)) {
        return false;
    }
    if (PyLong_Check(second)) {
        command->type = BH_COMMAND_FILL;
        command->fill.value = (uint32_t)PyLong_AsUnsignedLong(second);
        if (PyErr_Occurred() ||
            !add_buffer(list, stream, first, "destination", true, &command->fill.dst,
                        &command->fill.offset, &command->fill.size)) {
            return false;
        }
        if (command->fill.size % 4) {
            return bhi_py_refuse(BH_INVALID_ARGUMENT,
                                 "fill: the buffer has %llu bytes, which is no multiple of 4",
                                 (unsigned long long)command->fill.size);
        }
        list->command_count -= command->fill.size == 0; /* there is nothing to do */
        return true;
    }
    if (!add_buffer(list, stream, first, "source", false, &command->copy.src,
                    &command->copy.src_offset, &bytes) ||
        !add_buffer(list, stream, second, "destination", true, &command->copy.dst,
                    &command->copy.dst_offset, &room)) {
        return false;
    }
    if (bytes != room) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT,
                             "copy: the source has %llu bytes, and the destination %llu",
                             (unsigned long long)bytes, (unsigned long long)room);
    }
    command->copy.size = bytes;
    list->command_count -= bytes == 0; /* there is nothing to do */
    return true;
}

static bool add_launch(struct list *list, struct bhi_py_stream *stream, struct launch *launch) {
    struct bhi_py_kernel *kernel = launch->dispatch.kernel;
    const struct bhi_py_manner *manner = &launch->dispatch.manner;
    if (manner->wait_count || manner->deadline_ns || manner->alone || manner->timed) {
        return bhi_py_refuse(
            BH_INVALID_ARGUMENT,
            "submit: a Launch was prepared with after, deadline, alone or timed: these "
            "are of the whole submission, so give them to submit()");
    }
    if (kernel->context != stream->context) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "submit: the kernel belongs to another context");
    }
    if (!bhi_py_kernel_enter(kernel)) {
        return false;
    }
    list->kernels[list->kernel_count++] = kernel;
    list->commands[list->command_count++] = bhi_py_dispatch_command(&launch->dispatch);
    for (uint32_t i = 0; i < launch->dispatch.buffer_count; i++) {
        if (!add_use(list, launch->dispatch.uses[i])) {
            return false;
        }
    }
    return true;
}

static PyObject *name_use(void *user, size_t index) {
    (void)user;
    return PyUnicode_FromFormat("buffer %zu of the commands", index);
}

/* ([command, …], **manner): a command is a Launch, (source, destination) or (destination, word). */
PyObject *bhi_py_stream_submit(PyObject *object, PyObject *args, PyObject *kwargs) {
    struct bhi_py_stream *stream = (struct bhi_py_stream *)object;
    struct bhi_py_manner manner = {0};
    struct list list = {0};
    PyObject *items, *event = NULL;
    if (!PyArg_ParseTuple(args, "O!:submit", &PyList_Type, &items) ||
        !bhi_py_context_check(stream->context)) {
        return NULL;
    }
    const Py_ssize_t count = PyList_Size(items);
    bool good = bhi_py_manner_set_all(&manner, kwargs, "submit");
    list.commands = calloc(count ? (size_t)count : 1, sizeof *list.commands);
    list.kernels = calloc(count ? (size_t)count : 1, sizeof(struct bhi_py_kernel *));
    if (good && (!list.commands || !list.kernels)) {
        PyErr_NoMemory();
        good = false;
    }
    for (Py_ssize_t i = 0; good && i < count; i++) {
        PyObject *item = PyList_GetItem(items, i);
        if (Py_IS_TYPE(item, bhi_py.launch)) {
            good = add_launch(&list, stream, (struct launch *)item);
        } else if (PyTuple_Check(item)) {
            good = add_tuple(&list, stream, item);
        } else {
            bhi_py_refuse_type("submit: command %zd: a Launch, copy() or fill(), not %R", i,
                               (PyObject *)Py_TYPE(item));
            good = false;
        }
    }
    if (good) {
        bh_submit_info info = {.struct_size = sizeof info,
                               .commands = list.commands,
                               .command_count = (uint32_t)list.command_count};
        bhi_py_manner_apply(&manner, &info);
        event = bhi_py_submit(stream, &info, list.uses, list.use_count, "submit", name_use, NULL);
    }
    for (size_t i = 0; i < list.kernel_count; i++) {
        bhi_py_kernel_leave(list.kernels[i]);
    }
    for (size_t i = 0; i < list.use_count; i++) {
        bhi_py_storage_unref(list.uses[i].storage);
    }
    bhi_py_manner_fini(&manner);
    free(list.uses);
    free(list.commands);
    free(list.kernels);
    return event;
}
