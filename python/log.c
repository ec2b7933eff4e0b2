/* Log: lines of a context's log on their way to Python.
 *
 * The library logs from the thread that serves the whole context, and from the one that ends it.
 * The callback here keeps the line and touches no Python object. So these threads wait neither for
 * the interpreter's lock nor for a slow receiver. A thread of Python takes the lines out
 * (python/bulkhead/log.py). */
#include "python/native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { MOST_LINES = 4096 }; /* of them that nobody has taken out yet; newer ones are dropped */

struct line {
    struct line *next;
    int level; /* bh_log_level */
    char text[];
};

struct bhi_py_log {
    atomic_int refs;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct line *first, **last; /* lock */
    size_t count;               /* lock: lines from |first| on */
    size_t dropped;             /* lock: lines since the last that were taken out */
    bool ended;                 /* lock: there will be no more */
    int fd; /* lock: an eventfd, readable if take() has something; -1: not asked for */
};

struct log {
    PyObject base;
    struct bhi_py_log *log;
};

static void free_lines(struct line *line) {
    while (line) {
        struct line *next = line->next;
        free(line);
        line = next;
    }
}

void bhi_py_log_unref(struct bhi_py_log *log) {
    if (log && atomic_fetch_sub(&log->refs, 1) == 1) {
        free_lines(log->first);
        pthread_cond_destroy(&log->more);
        pthread_mutex_destroy(&log->lock);
        if (log->fd >= 0) {
            close(log->fd);
        }
        free(log);
    }
}

/* The lock is held: wakes whoever waits for lines. */
static void wake(struct bhi_py_log *log) {
    pthread_cond_signal(&log->more);
    if (log->fd >= 0) {
        eventfd_write(log->fd, 1);
    }
}

void bhi_py_log_line(bh_log_level level, const char *text, void *user) {
    struct bhi_py_log *log = user;
    const size_t size = strlen(text) + 1;
    struct line *line = malloc(sizeof *line + size);
    if (line) {
        *line = (struct line){.level = (int)level};
        memcpy(line->text, text, size);
    }
    pthread_mutex_lock(&log->lock);
    if (line && log->count < MOST_LINES) {
        *log->last = line;
        log->last = &line->next;
        log->count++;
        line = NULL;
    } else {
        log->dropped++;
    }
    wake(log);
    pthread_mutex_unlock(&log->lock);
    free(line);
}

void bhi_py_log_end(struct bhi_py_log *log) {
    pthread_mutex_lock(&log->lock);
    log->ended = true;
    wake(log);
    pthread_mutex_unlock(&log->lock);
}

struct bhi_py_log *bhi_py_log_of(PyObject *object) {
    struct bhi_py_log *log = ((struct log *)object)->log;
    atomic_fetch_add(&log->refs, 1);
    return log;
}

/* Waits for lines, and takes them out: [(bh_log_level, text), …]; None: there will be no more. */
static PyObject *log_take(PyObject *object, PyObject *unused) {
    struct bhi_py_log *log = ((struct log *)object)->log;
    struct line *first;
    size_t dropped;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&log->lock);
    while (!log->first && !log->dropped && !log->ended) {
        pthread_cond_wait(&log->more, &log->lock);
    }
    first = log->first;
    dropped = log->dropped;
    log->first = NULL;
    log->last = &log->first;
    log->count = log->dropped = 0;
    if (log->fd >= 0 && !log->ended) {
        eventfd_t count;
        eventfd_read(log->fd, &count);
    }
    pthread_mutex_unlock(&log->lock);
    Py_END_ALLOW_THREADS
    if (!first && !dropped) {
        Py_RETURN_NONE;
    }
    PyObject *list = PyList_New(0);
    for (const struct line *line = first; line && list; line = line->next) {
        bhi_py_append(&list, Py_BuildValue("(iN)", line->level, bhi_py_text(line->text)));
    }
    free_lines(first);
    if (list && dropped) {
        char text[80];
        snprintf(text, sizeof text, "%zu later lines are lost: the log was not read", dropped);
        bhi_py_append(&list, Py_BuildValue("(is)", BH_LOG_WARNING, text));
    }
    return list;
}

static PyObject *log_fileno(PyObject *object, PyObject *unused) {
    struct bhi_py_log *log = ((struct log *)object)->log;
    (void)unused;
    pthread_mutex_lock(&log->lock);
    if (log->fd < 0) {
        const bool some = log->first || log->dropped || log->ended;
        log->fd = eventfd(some, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    const int fd = log->fd;
    pthread_mutex_unlock(&log->lock);
    return fd < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(fd);
}

/* (level, text): as the library calls it; for tests. */
static PyObject *log_put(PyObject *object, PyObject *args) {
    int level;
    const char *text;
    if (!PyArg_ParseTuple(args, "is:_put", &level, &text)) {
        return NULL;
    }
    bhi_py_log_line((bh_log_level)level, text, ((struct log *)object)->log);
    Py_RETURN_NONE;
}

static PyObject *log_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)kwargs;
    if (!PyArg_ParseTuple(args, ":Log")) {
        return NULL;
    }
    struct log *self = bhi_py_new(type);
    if (!self) {
        return NULL;
    }
    struct bhi_py_log *log = self->log = calloc(1, sizeof *log);
    if (!log) {
        Py_DECREF((PyObject *)self);
        return PyErr_NoMemory();
    }
    atomic_init(&log->refs, 1);
    log->fd = -1;
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->more, NULL);
    log->last = &log->first;
    return (PyObject *)self;
}

static void log_dealloc(PyObject *object) {
    bhi_py_log_unref(((struct log *)object)->log);
    bhi_py_free(object);
}

static PyMethodDef methods[] = {
    {"take", log_take, METH_NOARGS, NULL},
    {"fileno", log_fileno, METH_NOARGS, NULL},
    {"_put", log_put, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, log_new},
    {Py_tp_dealloc, log_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};
PyType_Spec bhi_py_log_spec = {
    .name = "bulkhead._native.Log",
    .basicsize = sizeof(struct log),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
