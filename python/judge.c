/* Judge: bh_judge of libbulkhead-judge. Each call runs on a thread of its own while the one that
 * handles signals waits; an exception of a signal handler cancels the judge, for good. */
#include "python/judge_case.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct judge {
    PyObject base;
    bh_judge *judge; /* NULL: __init__ has failed */
    struct bhi_py_handle handle;
    PyObject *reference; /* computes what is expected; NULL: the task says what does */
    PyObject *check;     /* says whether outputs are right; NULL: there is none for it */
};

/* Whose function this thread runs. */
static _Thread_local struct judge *inside;

/* Whoever leaves last, after close(), destroys it. */
static void leave(struct judge *self) {
    if (bhi_py_leave(&self->handle)) {
        Py_BEGIN_ALLOW_THREADS
        bh_judge_destroy(self->judge);
        Py_END_ALLOW_THREADS
    }
}

static bool enter(struct judge *self) {
    if (inside == self) {
        return bhi_py_refuse(BH_IN_CALLBACK, "the judge waits for the function that calls it");
    }
    if (self->judge && bhi_py_enter(&self->handle)) {
        return true;
    }
    return bhi_py_refuse(BH_CLOSED, "the judge was closed");
}

/* Ends calls of other threads first. */
static void destroy(struct judge *self) {
    if (!self->judge || bhi_py_closed(&self->handle)) {
        return;
    }
    const bool unused = bhi_py_close(&self->handle);
    Py_BEGIN_ALLOW_THREADS
    if (unused) {
        bh_judge_destroy(self->judge);
    } else {
        bh_judge_cancel(self->judge);
    }
    Py_END_ALLOW_THREADS
}

static void judge_dealloc(PyObject *object) {
    destroy((struct judge *)object);
    Py_XDECREF(((struct judge *)object)->reference);
    Py_XDECREF(((struct judge *)object)->check);
    bhi_py_free(object);
}

/* -- seeds --------------------------------------------------------------------------------------
 */

/* Takes a list of integers; the caller frees *out. */
static bool take_seeds(PyObject *list, uint64_t **out, size_t *out_count) {
    const Py_ssize_t count = PyList_Size(list);
    *out = calloc((size_t)count + 1, sizeof **out);
    *out_count = (size_t)count;
    if (!*out) {
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *seed = PyList_GetItem(list, i);
        PyObject *number = PyNumber_Index(seed);
        (*out)[i] = number ? PyLong_AsUnsignedLongLong(number) : 0;
        Py_XDECREF(number);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            return bhi_py_refuse(BH_INVALID_ARGUMENT,
                                 "judge: seed: %R is no integer from 0 to 2**64 - 1", seed);
        }
    }
    return true;
}

static PyObject *judge_seeds(PyObject *object, PyObject *unused) {
    struct judge *self = (struct judge *)object;
    size_t count = 0;
    (void)unused;
    if (!enter(self)) {
        return NULL;
    }
    (void)!bh_judge_seeds(self->judge, NULL, 0, &count);
    uint64_t *seeds = calloc(count + 1, sizeof *seeds);
    (void)!bh_judge_seeds(self->judge, seeds, seeds ? count : 0, &count);
    leave(self);
    if (!seeds) {
        return PyErr_NoMemory();
    }
    PyObject *tuple = bhi_py_numbers(seeds, count);
    free(seeds);
    return tuple;
}

/* -- create -------------------------------------------------------------------------------------
 */

static bh_status refer(const bh_judge_case *one, bh_detail *detail, void *unused);
static bh_status check(const bh_judge_case *one, char message[BH_JUDGE_MESSAGE], void *unused);

/* (name, path or None, code or None). Texts are bytes. */
static bool take_baseline(PyObject *tuple, bh_judge_candidate *out) {
    Py_ssize_t path_size = 0, size = 0;
    *out = (bh_judge_candidate){.struct_size = sizeof *out};
    if (!PyArg_ParseTuple(tuple, "yz#z#", &out->name, &out->path, &path_size, &out->code, &size)) {
        return false;
    }
    if ((out->path && strlen(out->path) != (size_t)path_size) || (out->code && !size)) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "judge: baseline: %s",
                             out->code ? "there is no code in it" : "the path has a NUL in it");
    }
    out->size = (size_t)size;
    return true;
}

/* (options, seeds, reference or None, check or None, baseline or None) */
static int judge_init(PyObject *object, PyObject *args, PyObject *kwargs) {
    static const struct bhi_py_field fields[] = {
        {"task_path", offsetof(bh_judge_options, task_path), BHI_PY_TEXT},
        {"task_text", offsetof(bh_judge_options, task_text), BHI_PY_TEXT},
        {"folder", offsetof(bh_judge_options, folder), BHI_PY_TEXT},
        {"device", offsetof(bh_judge_options, device), BHI_PY_TEXT},
        {"timed", offsetof(bh_judge_options, timed), BHI_PY_BOOL},
        {"warm", offsetof(bh_judge_options, warm), BHI_PY_BOOL},
        {"all_processors", offsetof(bh_judge_options, all_processors), BHI_PY_BOOL},
        {"guard_cost", offsetof(bh_judge_options, guard_cost), BHI_PY_BOOL},
        {"timed_runs", offsetof(bh_judge_options, timed_runs), BHI_PY_U32},
        {"slower_than", offsetof(bh_judge_options, slower_than), BHI_PY_F64},
        {"strict", offsetof(bh_judge_options, strict), BHI_PY_BOOL},
        {"share_workers", offsetof(bh_judge_options, share_workers), BHI_PY_BOOL},
        {"parallel", offsetof(bh_judge_options, parallel), BHI_PY_U32},
        {"state", offsetof(bh_judge_options, state), BHI_PY_TEXT},
        {"resume", offsetof(bh_judge_options, resume), BHI_PY_BOOL},
        {"html", offsetof(bh_judge_options, html), BHI_PY_TEXT},
    };
    struct judge *self = (struct judge *)object;
    PyObject *values, *seeds, *reference, *checks, *given;
    bh_judge_candidate baseline;
    bh_judge_options options = {.struct_size = sizeof options};
    bh_detail detail;
    bh_status status;
    uint64_t *numbers = NULL;
    (void)kwargs;
    if (self->judge) {
        PyErr_SetString(PyExc_RuntimeError, "Judge: __init__ was called before");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "O!O!OOO:Judge", &PyDict_Type, &values, &PyList_Type, &seeds,
                          &reference, &checks, &given) ||
        (given != Py_None && !take_baseline(given, &baseline)) ||
        !bhi_py_set_fields(&options, fields, BHI_PY_COUNT(fields), values, "judge") ||
        !take_seeds(seeds, &numbers, &options.seed_count)) {
        free(numbers);
        return -1;
    }
    options.seeds = numbers;
    options.baseline = given != Py_None ? &baseline : NULL;
    if (reference != Py_None) {
        self->reference = Py_NewRef(reference);
        options.reference = refer;
    }
    if (checks != Py_None) {
        self->check = Py_NewRef(checks);
        options.check = check;
    }
    Py_BEGIN_ALLOW_THREADS
    status = bh_judge_create(&options, &self->judge, &detail);
    Py_END_ALLOW_THREADS
    free(numbers);
    if (status != BH_OK) {
        bhi_py_fail(status, &detail);
        return -1;
    }
    return 0;
}

/* -- calls --------------------------------------------------------------------------------------
 */

struct call {
    struct bhi_py_task task;
    bh_judge *judge;
    bh_judge_candidate candidate; /* {0}: only prepare */
    bh_judgement judgement;
    struct judge *owner;
    const bh_judge_case *one;        /* for which the reference or the check is called */
    char *message;                   /* of the check; NULL: it is the reference */
    PyObject *raised;                /* what it has raised; owned */
    bool repeats;                    /* |judgement| is given */
    bh_judge_arrays *arrays;         /* of the run that it names; owned */
    char sizes[BH_JUDGE_SIZES][256]; /* of its timings */
};

/* Of this thread, while it runs. */
static _Thread_local struct call *running;

/* The exception that is set. */
static PyObject *take_exception(void) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) {
        PyException_SetTraceback(value, trace);
    }
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
}

/* Takes what the function has returned. */
static bool take_answer(const struct call *call, PyObject *answer) {
    Py_ssize_t size;
    const char *text;
    if (!call->message) {
        return bhi_py_case_take(call->one, answer);
    }
    if (answer == Py_None) {
        return true;
    }
    if (!(text = PyUnicode_AsUTF8AndSize(answer, &size))) {
        return false;
    }
    PyOS_snprintf(call->message, BH_JUDGE_MESSAGE, "%s", *text ? text : "it is wrong");
    return true;
}

/* With the interpreter's lock. */
static void call_function(struct bhi_py_task *task) {
    struct call *call = (struct call *)task;
    struct judge *self = call->owner, *const outer = inside;
    inside = self;
    PyObject *told = bhi_py_case_tell(call->one);
    PyObject *answer =
        told ? PyObject_CallObject(call->message ? self->check : self->reference, told) : NULL;
    if (!answer || !take_answer(call, answer)) {
        call->raised = take_exception();
    }
    Py_XDECREF(answer);
    Py_XDECREF(told);
    inside = outer;
}

static bh_status ask(const bh_judge_case *one, char *message) {
    struct call *call = running;
    call->one = one;
    call->message = message;
    const bool asked = !call->raised && bhi_py_task_ask(&call->task, call_function);
    return asked && !call->raised ? BH_OK : BH_INVALID_ARGUMENT;
}

static bh_status refer(const bh_judge_case *one, bh_detail *detail, void *unused) {
    (void)detail;
    (void)unused;
    return ask(one, NULL);
}

static bh_status check(const bh_judge_case *one, char message[BH_JUDGE_MESSAGE], void *unused) {
    (void)unused;
    return ask(one, message);
}

static bh_status run_call(struct bhi_py_task *task) {
    struct call *call = (struct call *)task;
    running = call;
    if (!call->candidate.path && !call->candidate.code) {
        return bh_judge_prepare(call->judge, &task->detail);
    }
    if (call->repeats) {
        return bh_judge_repeat(call->judge, &call->candidate, &call->judgement, &call->arrays,
                               &task->detail);
    }
    call->judgement.struct_size = sizeof call->judgement;
    const bh_status status =
        bh_judge_run(call->judge, &call->candidate, &call->judgement, &task->detail);
    for (size_t i = 0; status == BH_OK && i < call->judgement.timing_count; i++) {
        (void)bh_judge_size(call->judge, call->judgement.timings[i].size_index, call->sizes[i],
                            sizeof call->sizes[i]);
    }
    return status;
}

/* Raises what the reference has raised; the exception that is set is its cause, unless it has one. */
static void raise_from(PyObject *raised) {
    PyObject *error = take_exception(), *cause = PyException_GetCause(raised);
    if (cause) {
        Py_DECREF(cause);
        Py_XDECREF(error);
    } else {
        PyException_SetCause(raised, error);
    }
    PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
    Py_DECREF(raised);
}

/* An exception that is no error, such as KeyboardInterrupt, ends all judging, wherever it comes. */
static bool ends_all(const PyObject *raised) {
    return raised && !PyObject_IsInstance((PyObject *)raised, PyExc_Exception);
}

static void drop_call(struct bhi_py_task *task) {
    bh_judge_arrays_destroy(((struct call *)task)->arrays);
}

/* Runs it; |judgement|: the run that this names. NULL: an exception is set; otherwise the caller drops
 * the call. */
static struct call *make_call(struct judge *self, const bh_judge_candidate *candidate,
                              const bh_judgement *judgement) {
    if (!enter(self)) {
        return NULL;
    }
    struct call *call = bhi_py_task_new(sizeof *call, run_call, drop_call);
    if (!call) {
        leave(self);
        return NULL;
    }
    call->judge = self->judge;
    call->owner = self;
    call->candidate = *candidate;
    call->repeats = judgement;
    if (judgement) {
        call->judgement = *judgement;
    }
    const bool good = bhi_py_task_run(&call->task, BHI_PY_BLOCKS);
    if ((!good && !call->task.failed) || ends_all(call->raised)) { /* it uses what the caller has */
        Py_BEGIN_ALLOW_THREADS
        bh_judge_cancel(self->judge);
        bhi_py_task_join(&call->task);
        Py_END_ALLOW_THREADS
    }
    leave(self);
    PyObject *raised = call->raised;
    if (raised) { /* maybe in a look that was not needed */
        raise_from(raised);
    }
    if (!good || raised) {
        bhi_py_task_unref(&call->task);
    }
    return good && !raised ? call : NULL;
}

static PyObject *judge_prepare(PyObject *object, PyObject *unused) {
    const bh_judge_candidate none = {.struct_size = sizeof none};
    (void)unused;
    struct call *call = make_call((struct judge *)object, &none, NULL);
    if (!call) {
        return NULL;
    }
    bhi_py_task_unref(&call->task);
    Py_RETURN_NONE;
}

static PyObject *tell_time(const bh_judgement *judgement, size_t index, const char *size) {
    const bh_judge_timing *timing = &judgement->timings[index];
    return Py_BuildValue("(NKddddddddd(OOOO)s)", bhi_py_text(size),
                         (unsigned long long)timing->runs, timing->median_ns, timing->reference_ns,
                         timing->ratio, timing->low, timing->high, timing->noise, timing->drift,
                         timing->host_ns, timing->guard_ratio, timing->device ? Py_True : Py_False,
                         timing->cold ? Py_True : Py_False, timing->noisy ? Py_True : Py_False,
                         judgement->one_processor ? Py_True : Py_False,
                         bh_judge_doubt_name(timing->doubt));
}

static PyObject *times_of(const struct call *call) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < call->judgement.timing_count; i++) {
        bhi_py_append(&list, tell_time(&call->judgement, i, call->sizes[i]));
    }
    return list;
}

static PyObject *errors_of(const bh_judgement *judgement) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < judgement->error_count; i++) {
        const bh_judge_error *error = &judgement->errors[i];
        bhi_py_append(&list, Py_BuildValue("(NddK)", bhi_py_text(error->output), error->absolute,
                                           error->relative, (unsigned long long)error->ulp));
    }
    return list;
}

/* python/bulkhead/judging.py knows the order. */
static PyObject *tell(const struct call *call) {
    const bh_judgement *judgement = &call->judgement;
    return Py_BuildValue(
        "(iisNiOOOKKNNNNNKKKNNNy#)", (int)judgement->verdict, (int)judgement->status,
        bh_judge_verdict_name(judgement->verdict, judgement->status),
        bhi_py_text(judgement->message), (int)judgement->blame,
        judgement->deterministic ? Py_True : Py_False, judgement->located ? Py_True : Py_False,
        judgement->hidden ? Py_True : Py_False, (unsigned long long)judgement->runs,
        (unsigned long long)judgement->seed, bhi_py_text(judgement->size_text),
        bhi_py_text(judgement->output), bhi_py_numbers(judgement->index, judgement->rank),
        bhi_py_text(judgement->expected), bhi_py_text(judgement->got),
        (unsigned long long)judgement->ulp, (unsigned long long)judgement->wrong,
        (unsigned long long)judgement->elements, times_of(call), errors_of(judgement),
        bhi_py_text(judgement->fill), (const char *)judgement, (Py_ssize_t)sizeof *judgement);
}

/* What is behind the candidate in the arguments: what tell() has told of it, and whether it runs. */
struct told {
    const char *judgement;
    Py_ssize_t size;
    int runs;
};

/* A candidate of the arguments, and what it borrows; made is owned. */
struct given {
    bh_judge_candidate candidate;
    bh_source made; /* only entry, defines and includes count */
    bh_specialization *constants;
};

static void drop_given(struct given *given) {
    bhi_py_source_fini(&given->made);
    free(given->constants);
}

/* (name, path or None, code or None, language, source (python/source.c), constants[, judgement,
 * runs]); texts are bytes. The caller drops *out_given, if it is taken. */
static bool take_candidate(PyObject *args, struct given *out_given, struct told *out_told) {
    bh_judge_candidate *const out = &out_given->candidate;
    Py_ssize_t size = 0, path_size = 0;
    PyObject *source, *constants;
    int language;
    *out_given = (struct given){.candidate.struct_size = sizeof *out};
    if (!PyArg_ParseTuple(args, "yz#z#iO!O!|y#p:run", &out->name, &out->path, &path_size,
                          &out->code, &size, &language, &PyTuple_Type, &source, &PyList_Type,
                          &constants, &out_told->judgement, &out_told->size, &out_told->runs)) {
        return false;
    }
    if (out->path && strlen(out->path) != (size_t)path_size) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "judge: the path has a NUL in it");
    }
    if (out->code && !size) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "judge: %s: there is no code in it", out->name);
    }
    if (!bhi_py_source_init(&out_given->made, "judge", source)) {
        return false;
    }
    if (!bhi_py_specializations(constants, &out_given->constants, &out->specialization_count)) {
        bhi_py_source_fini(&out_given->made);
        return false;
    }
    out->size = (size_t)size;
    out->language = (bh_language)language;
    out->defines = out_given->made.defines;
    out->define_count = out_given->made.define_count;
    out->includes = out_given->made.includes;
    out->include_count = out_given->made.include_count;
    out->entry = out_given->made.entry;
    out->specializations = out_given->constants;
    return true;
}

/* (a candidate) -> what tell() makes. */
static PyObject *judge_run(PyObject *object, PyObject *args) {
    struct given given;
    struct told none = {.judgement = NULL};
    if (!take_candidate(args, &given, &none)) {
        return NULL;
    }
    struct call *call = make_call((struct judge *)object, &given.candidate, NULL);
    drop_given(&given);
    if (!call) {
        return NULL;
    }
    PyObject *told = tell(call);
    bhi_py_task_unref(&call->task);
    return told;
}

static PyObject *arrays_of(const bh_judge_arrays *arrays, bh_judge_part part) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < bh_judge_arrays_count(arrays, part); i++) {
        bh_judge_view array = {.struct_size = sizeof array};
        bh_detail detail;
        if (bh_judge_arrays_get(arrays, part, i, &array, &detail) != BH_OK) {
            Py_DECREF(list);
            return bhi_py_fail(detail.status, &detail);
        }
        bhi_py_append(&list,
                      Py_BuildValue("(NiNN)", bhi_py_text(array.name), (int)array.dtype,
                                    bhi_py_numbers(array.shape, array.rank),
                                    PyBytes_FromStringAndSize(array.data, (Py_ssize_t)array.size)));
    }
    return list;
}

/* (a candidate, its judgement, whether it runs) -> (inputs, expected, actual), lists of (name, dtype,
 * shape, elements). */
static PyObject *judge_repeat(PyObject *object, PyObject *args) {
    struct given given;
    bh_judgement judgement;
    struct told told = {.judgement = NULL};
    if (!take_candidate(args, &given, &told)) {
        return NULL;
    }
    if (!told.judgement || (size_t)told.size != sizeof judgement) {
        drop_given(&given);
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "judge: this is no judgement");
    }
    memcpy(&judgement, told.judgement, sizeof judgement);
    if (!told.runs) {
        judgement.verdict = BH_JUDGE_FAILED; /* what is expected is known nevertheless */
    }
    struct call *call = make_call((struct judge *)object, &given.candidate, &judgement);
    drop_given(&given);
    if (!call) {
        return NULL;
    }
    PyObject *parts = Py_BuildValue("(NNN)", arrays_of(call->arrays, BH_JUDGE_INPUTS),
                                    arrays_of(call->arrays, BH_JUDGE_EXPECTED),
                                    arrays_of(call->arrays, BH_JUDGE_ACTUAL));
    bhi_py_task_unref(&call->task);
    return parts;
}

/* Takes a list of bytes; the caller frees *out, which borrows them. */
static bool take_names(PyObject *list, const char ***out) {
    const Py_ssize_t count = PyList_Size(list);
    *out = calloc((size_t)count + 1, sizeof **out);
    for (Py_ssize_t i = 0; *out && i < count; i++) {
        if (!((*out)[i] = PyBytes_AsString(PyList_GetItem(list, i)))) {
            return false;
        }
    }
    return *out || PyErr_NoMemory();
}

/* (names, what tell() has told of each, whether errors rank) */
static PyObject *judge_page(PyObject *object, PyObject *args) {
    struct judge *self = (struct judge *)object;
    const char **names = NULL, *judgements;
    PyObject *list;
    Py_ssize_t size;
    int by_error;
    bh_detail detail;
    if (!PyArg_ParseTuple(args, "O!y#p:page", &PyList_Type, &list, &judgements, &size, &by_error)) {
        return NULL;
    }
    const size_t count = (size_t)PyList_Size(list);
    if ((size_t)size != count * sizeof(bh_judgement)) {
        return bhi_py_refuse(BH_INVALID_ARGUMENT, "judge: these are no judgements");
    }
    if (!take_names(list, &names) || !enter(self)) {
        free(names);
        return NULL;
    }
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = bh_judge_page(self->judge, names, (const bh_judgement *)judgements, count,
                           by_error ? BH_JUDGE_BY_ERROR : BH_JUDGE_BY_TIME, &detail);
    Py_END_ALLOW_THREADS
    free(names);
    leave(self);
    if (status != BH_OK) {
        return bhi_py_fail(status, &detail);
    }
    Py_RETURN_NONE;
}

static PyObject *judge_cancel(PyObject *object, PyObject *unused) {
    struct judge *self = (struct judge *)object;
    (void)unused;
    if (self->judge && bhi_py_enter(&self->handle)) {
        Py_BEGIN_ALLOW_THREADS
        bh_judge_cancel(self->judge);
        Py_END_ALLOW_THREADS
        leave(self);
    }
    Py_RETURN_NONE;
}

static PyObject *judge_close(PyObject *object, PyObject *unused) {
    (void)unused;
    destroy((struct judge *)object);
    Py_RETURN_NONE;
}

static PyObject *get_task(PyObject *object, void *unused) {
    struct judge *self = (struct judge *)object;
    (void)unused;
    if (!enter(self)) {
        return NULL;
    }
    PyObject *name = bhi_py_text(bh_judge_name(self->judge));
    leave(self);
    return name;
}

static PyObject *get_fixed_inputs(PyObject *object, void *unused) {
    struct judge *self = (struct judge *)object;
    (void)unused;
    if (!enter(self)) {
        return NULL;
    }
    PyObject *fixed = PyBool_FromLong(bh_judge_fixed_inputs(self->judge));
    leave(self);
    return fixed;
}

static PyObject *get_weak(PyObject *object, void *unused) {
    struct judge *self = (struct judge *)object;
    PyObject *list = PyList_New(0);
    char text[512];
    (void)unused;
    if (!list || !enter(self)) {
        Py_XDECREF(list);
        return NULL;
    }
    for (size_t i = 0; list && bh_judge_weakness(self->judge, i, text, sizeof text); i++) {
        bhi_py_append(&list, bhi_py_text(text));
    }
    leave(self);
    return list;
}

static PyObject *get_closed(PyObject *object, void *unused) {
    struct judge *self = (struct judge *)object;
    (void)unused;
    return PyBool_FromLong(!self->judge || bhi_py_closed(&self->handle));
}

static PyMethodDef methods[] = {
    {"prepare", judge_prepare, METH_NOARGS,
     "Make the inputs and run the reference; the first candidate does it otherwise."},
    {"_run", judge_run, METH_VARARGS, NULL},
    {"_repeat", judge_repeat, METH_VARARGS, NULL},
    {"_page", judge_page, METH_VARARGS, NULL},
    {"_seeds", judge_seeds, METH_NOARGS, NULL},
    {"cancel", judge_cancel, METH_NOARGS,
     "End all judging, for good: calls of other threads raise `Cancelled`."},
    {"close", judge_close, METH_NOARGS, "End all processes of the judge."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef attributes[] = {
    {"task", get_task, NULL, "The name of the task.", NULL},
    {"fixed_inputs", get_fixed_inputs, NULL,
     "Whether each run of a size has the same inputs: a kernel that only stores the results is\n"
     "CORRECT, too.",
     NULL},
    {"weak", get_weak, NULL,
     "What a kernel that computes nothing has right, a line for each output; empty before "
     "`prepare`.",
     NULL},
    {"closed", get_closed, NULL, "Whether it was closed.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_new, PyType_GenericNew}, {Py_tp_init, judge_init},   {Py_tp_dealloc, judge_dealloc},
    {Py_tp_methods, methods},       {Py_tp_getset, attributes}, {0, NULL},
};
PyType_Spec bhi_py_judge_spec = {
    .name = "bulkhead._native.Judge",
    .basicsize = sizeof(struct judge),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};
