/* Submitting, and what every submission takes. */
#include "python/native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* views_lock is held: the first use that a view forbids; |count|: none. */
static size_t find_forbidden(const struct bhi_py_use *uses, size_t count) {
    size_t i = 0;
    while (i < count && !(uses[i].writes ? uses[i].storage->views : uses[i].storage->writable)) {
        i++;
    }
    return i;
}

/* views_lock is held: the first use whose content is poisoned already; |count|: none. |out_event|
 * is what poisoned it. */
static size_t find_poisoned(const struct bhi_py_use *uses, size_t count, uint64_t *out_event) {
    for (size_t i = 0; i < count; i++) {
        bh_event *writer = uses[i].storage->writer;
        if (uses[i].reads && writer && bh_event_query(writer) == BH_EVENT_POISONED) {
            *out_event = bh_event_id(writer);
            return i;
        }
    }
    return count;
}

static void refuse_for_view(const struct bhi_py_use *use, PyObject *name, const char *what) {
    if (!name) {
        return;
    }
    const uint32_t views = use->storage->views;
    if (use->writes) {
        bhi_py_refuse_view(
            "%s: %U: the submission would write memory that %u view%s (NumPy array, "
            "memoryview or tensor) still show%s: delete %s first, or keep numpy(copy=True); a "
            "notebook keeps what a cell shows in Out",
            what, name, views, views == 1 ? "" : "s", views == 1 ? "s" : "",
            views == 1 ? "it" : "them");
    } else {
        bhi_py_refuse_view("%s: %U: a view that may be written (numpy(writable=True), a tensor of "
                           "an old DLPack) still shows this memory: delete it first",
                           what, name);
    }
}

/* The library calls every call "bh_submit", and the events of |after| "waits". */
static PyObject *fail(bh_status status, const bh_detail *detail, const char *what) {
    static const char waits[] = "waits";
    const size_t length = sizeof waits - 1;
    bh_detail named = *detail;
    const char *sentence = detail->message + detail->sentence;
    if (detail->status == status && strncmp(detail->subject_name, waits, length) == 0) {
        snprintf(named.subject_name, sizeof named.subject_name, "after%s",
                 detail->subject_name + length);
        snprintf(named.message, sizeof named.message, "%s: after%s", what, sentence + length);
    } else if (detail->status == status) {
        snprintf(named.message, sizeof named.message, "%s: %s", what, sentence);
    }
    return bhi_py_fail(status, &named);
}

PyObject *bhi_py_submit(struct bhi_py_stream *stream, const bh_submit_info *info,
                        const struct bhi_py_use *uses, size_t use_count, const char *what,
                        PyObject *(*name_use)(void *user, size_t index), void *user) {
    struct bhi_py_context *context = stream->context;
    bh_event *event = NULL;
    bh_detail detail;
    bh_status status = BH_OK;
    size_t lost = use_count;
    uint64_t lost_to = 0;
    if (!bhi_py_stream_enter(stream)) {
        return NULL;
    }
    pthread_mutex_lock(&context->views_lock);
    const size_t forbidden = find_forbidden(uses, use_count);
    if (forbidden == use_count) {
        lost = find_poisoned(uses, use_count, &lost_to);
        status = bh_submit(stream->stream, info, &event, &detail);
        for (size_t i = 0; status == BH_OK && i < use_count; i++) {
            if (uses[i].writes) {
                bhi_py_storage_written(uses[i].storage, event);
            }
        }
    }
    pthread_mutex_unlock(&context->views_lock);
    bhi_py_stream_leave(stream);
    if (forbidden < use_count) {
        PyObject *name = name_use(user, forbidden);
        refuse_for_view(&uses[forbidden], name, what);
        Py_XDECREF(name);
        return NULL;
    }
    if (status != BH_OK) {
        return fail(status, &detail, what);
    }
    struct bhi_py_event *made = (struct bhi_py_event *)bhi_py_event_new(context, event);
    if (made && lost < use_count) {
        made->lost_name = name_use(user, lost);
        made->lost_to = lost_to;
        made->lost_output = uses[lost].writes;
        if (!made->lost_name) {
            Py_DECREF((PyObject *)made);
            return NULL;
        }
    }
    return (PyObject *)made;
}

/* -- manners ------------------------------------------------------------------------------------
 */

static bool set_after(struct bhi_py_manner *manner, PyObject *value, const char *what) {
    struct bhi_py_manner made = {0};
    if (PyObject_TypeCheck(value, bhi_py.event)) {
        made.after = PyTuple_Pack(1, value);
    } else if (value != Py_None) {
        PyObject *iterator = PyObject_GetIter(value);
        made.after = iterator ? PySequence_Tuple(iterator) : NULL;
        if (!iterator && PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            bhi_py_refuse_type("%s: after: an Event, or several, not %R", what,
                               (PyObject *)Py_TYPE(value));
        }
        Py_XDECREF(iterator);
    }
    const Py_ssize_t count = made.after ? PyTuple_Size(made.after) : 0;
    made.waits = calloc(count ? (size_t)count : 1, sizeof(bh_event *));
    bool good = made.waits && (made.after || value == Py_None);
    if (!good && !PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; good && i < count; i++) {
        PyObject *event = PyTuple_GetItem(made.after, i);
        if (!PyObject_TypeCheck(event, bhi_py.event)) {
            bhi_py_refuse_type("%s: after: an Event, not %R", what, (PyObject *)Py_TYPE(event));
            good = false;
        } else {
            made.waits[i] = ((struct bhi_py_event *)event)->event;
        }
    }
    if (!good) {
        bhi_py_manner_fini(&made);
        return false;
    }
    bhi_py_manner_fini(manner);
    manner->after = made.after;
    manner->waits = made.waits;
    manner->wait_count = (uint32_t)count;
    return true;
}

int bhi_py_manner_set(struct bhi_py_manner *manner, PyObject *name, PyObject *value,
                      const char *what) {
    if (PyUnicode_CompareWithASCIIString(name, "after") == 0) {
        return set_after(manner, value, what) ? 1 : -1;
    }
    if (PyUnicode_CompareWithASCIIString(name, "deadline") == 0) {
        /* 0 is the stream's deadline for the library, and no limit is BH_FOREVER. */
        uint64_t ns = 0;
        if (value != Py_None) {
            char full[64];
            snprintf(full, sizeof full, "%s: deadline", what);
            if (!bhi_py_to_duration(value, full, &ns)) {
                return -1;
            }
            if (ns == 0) {
                bhi_py_refuse(BH_INVALID_ARGUMENT, "%s: %R is not above 0", full, value);
                return -1;
            }
        }
        manner->deadline_ns = ns;
        return 1;
    }
    const bool alone = PyUnicode_CompareWithASCIIString(name, "alone") == 0;
    if (alone || PyUnicode_CompareWithASCIIString(name, "timed") == 0) {
        const int truth = PyObject_IsTrue(value);
        *(alone ? &manner->alone : &manner->timed) = truth > 0;
        return truth < 0 ? -1 : 1;
    }
    return 0;
}

bool bhi_py_manner_set_all(struct bhi_py_manner *manner, PyObject *values, const char *what) {
    PyObject *name, *value;
    Py_ssize_t position = 0;
    while (values && PyDict_Next(values, &position, &name, &value)) {
        const int set = bhi_py_manner_set(manner, name, value, what);
        if (set <= 0) {
            return set == 0 && PyErr_Format(PyExc_TypeError, "%s() has no argument %R", what, name);
        }
    }
    return true;
}

void bhi_py_manner_apply(const struct bhi_py_manner *manner, bh_submit_info *info) {
    info->waits = manner->waits;
    info->wait_count = manner->wait_count;
    info->deadline_ns = manner->deadline_ns;
    info->alone = manner->alone;
    info->flags = manner->timed ? BH_SUBMIT_TIMED : 0;
}

void bhi_py_manner_fini(struct bhi_py_manner *manner) {
    free(manner->waits);
    Py_CLEAR(manner->after);
    manner->waits = NULL;
    manner->wait_count = 0;
}
