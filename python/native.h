/* What the files of the extension module share. The module is written in the stable ABI of Python
 * 3.11 and uses only the public API of libbulkhead.
 *
 * Locks. The global interpreter lock guards the Python objects. What other threads of the process
 * reach without it is guarded apart: a storage by its context's |views_lock|, and the life of what
 * can be closed by a bhi_py_handle. Each is held for a few instructions, and never while the
 * interpreter's lock is awaited.
 *
 * Names. The public classes are written in Python (python/bulkhead/) and derive from the types
 * here. |bhi_py| has the classes of which this module makes objects. */
#ifndef BHI_PYTHON_NATIVE_H
#define BHI_PYTHON_NATIVE_H

#ifndef Py_LIMITED_API
#error "Py_LIMITED_API must be 0x030b0000"
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <bulkhead/array.h>
#include <bulkhead/bulkhead.h>
#include <bulkhead/cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* -- the module ---------------------------------------------------------------------------------
 */

/* What the Python side has installed, and the types of this module. All are set once. */
struct bhi_py_module {
    PyTypeObject *context, *stream, *buffer, *kernel, *module, *event; /* the types here */
    PyTypeObject *bound, *launch, *mapping, *template_, *queue, *tensor, *log, *judge, *cuda_view;
    PyTypeObject *new_stream, *new_buffer, *new_kernel, *new_module,
        *new_event;            /* the Python classes */
    PyObject *make_error;      /* (status, message, errno, cause, signal, why) -> exception */
    PyObject *make_poison;     /* (event or None, status, message, why) -> exception */
    PyObject *make_view_error; /* (message) -> exception */
    PyObject *make_type_error; /* (message) -> exception */
    PyObject *explain_name;    /* (kernel, name) -> text */
    PyObject *to_seconds;      /* (duration, name) -> float, or None: no limit */
    PyObject *take_array;      /* (context, call, name, array) -> Buffer */
    unsigned long main_thread; /* the system's number of the thread that handles signals */
};
extern struct bhi_py_module bhi_py;

extern PyType_Spec bhi_py_context_spec, bhi_py_stream_spec, bhi_py_buffer_spec, bhi_py_mapping_spec,
    bhi_py_kernel_spec, bhi_py_module_spec, bhi_py_event_spec, bhi_py_bound_spec,
    bhi_py_launch_spec, bhi_py_template_spec, bhi_py_queue_spec, bhi_py_log_spec,
    bhi_py_tensor_spec, bhi_py_judge_spec, bhi_py_cuda_view_spec;
/* Functions of the module. */
typedef PyObject *bhi_py_function(PyObject *module, PyObject *args);
bhi_py_function bhi_py_stream_create, bhi_py_kernel_create, bhi_py_module_compile,
    bhi_py_template_create, bhi_py_tensor_take, bhi_py_make_bound, bhi_py_buffer_at,
    bhi_py_buffer_create, bhi_py_buffer_wrap, bhi_py_buffer_load, bhi_py_buffer_progress,
    bhi_py_buffer_assign, bhi_py_buffer_cuda_device, bhi_py_buffer_map_cuda,
    bhi_py_buffer_write_cuda, bhi_py_file_tensors, bhi_py_examine;

/* Makes an object of |type|, a class that the Python side has installed or a type of this module;
 * all fields are 0. */
void *bhi_py_new(PyTypeObject *type);
/* Frees the memory of an object, and drops its reference to its type. For tp_dealloc. */
void bhi_py_free(PyObject *self);
/* Appends |item|, which it takes over. If there is none, or no room for it, clears *list. */
void bhi_py_append(PyObject **list, PyObject *item);
/* Returns a tuple; NULL: an exception is set. */
PyObject *bhi_py_numbers(const uint64_t *numbers, size_t count);
/* A function pointer with keywords as PyMethodDef wants it. */
#define BHI_PY_METHOD(function) ((PyCFunction)(void (*)(void))(function))

/* -- errors -------------------------------------------------------------------------------------
 */

/* Each sets an exception, and returns NULL, which is false, too. Formats are those of PyUnicode_FromFormat. */
PyObject *bhi_py_fail(bh_status status, const bh_detail *detail);
/* For the code of a verdict whose event is not at hand. */
PyObject *bhi_py_fail_poison(bh_status status, const bh_detail *detail);
PyObject *bhi_py_refuse(bh_status status, const char *format, ...);
PyObject *bhi_py_refuse_as(PyObject *make, const char *format, ...);
#define bhi_py_refuse_type(...) bhi_py_refuse_as(bhi_py.make_type_error, __VA_ARGS__)
#define bhi_py_refuse_view(...) bhi_py_refuse_as(bhi_py.make_view_error, __VA_ARGS__)
/* A text of the library, which may have been cut within a character. */
PyObject *bhi_py_text(const char *bytes);
/* Gives the exception that is set, of a compile, the compiler's log, which it takes over. */
void bhi_py_add_log(PyObject *log);
/* For an event that is POISONED. |event| is a Python object. */
PyObject *bhi_py_fail_event(PyObject *event);

/* -- handles ------------------------------------------------------------------------------------
 */

/* Says whether an object of the library may be used. Whoever uses it enters and leaves; whoever
 * closes it prevents new uses. The last of all of them frees the object, exactly once. */
struct bhi_py_handle {
    atomic_llong state; /* how many use it; plus CLOSED when it was closed */
};
/* Returns false if the handle was closed. */
bool bhi_py_enter(struct bhi_py_handle *handle);
/* Returns true if the caller must free the object now. */
bool bhi_py_leave(struct bhi_py_handle *handle);
bool bhi_py_close(struct bhi_py_handle *handle);
bool bhi_py_closed(struct bhi_py_handle *handle);

/* -- waiting ------------------------------------------------------------------------------------
 */

/* Converts a timeout: None, seconds, or a text such as "500ms". For "O&" of PyArg_Parse…. */
int bhi_py_to_timeout(PyObject *value, void *out_ns);
/* The same of the argument |name|. Returns false with an exception set. */
bool bhi_py_to_duration(PyObject *value, const char *name, uint64_t *out_ns);
uint64_t bhi_py_now_ns(void);

/* One wait of the library, of at most |timeout_ns|. Called without the interpreter's lock. */
typedef bh_status (*bhi_py_wait)(void *argument, uint64_t timeout_ns, bh_detail *detail);
/* Waits in such pieces that signals are handled in time. Returns false with an exception set if a
 * signal handler raised one. */
bool bhi_py_await(bhi_py_wait wait, void *argument, uint64_t timeout_ns, bh_status *out_status,
                  bh_detail *detail);

/* A call of the library that blocks and takes no timeout. It owns all that it uses. */
struct bhi_py_task {
    bh_status (*run)(struct bhi_py_task *task); /* called without the interpreter's lock */
    void (*drop)(
        struct bhi_py_task *task); /* frees what it has, without that lock; NULL: nothing */
    bh_status status;
    bh_detail detail;
    bool failed; /* the exception that is set is of |status| */
    atomic_int refs;
    atomic_uint state;                       /* futex word (wait.c) */
    bool apart;                              /* it runs in a thread of its own */
    void (*asked)(struct bhi_py_task *task); /* what it wants of the thread that waits for it */
};
/* Makes a struct of |size| bytes that begins with a task; the rest is 0. NULL: an exception is set. */
void *bhi_py_task_new(size_t size, bh_status (*run)(struct bhi_py_task *task),
                      void (*drop)(struct bhi_py_task *task));
enum bhi_py_gil {
    BHI_PY_HOLDS,      /* the GIL: it is short, and nobody may close anything meanwhile */
    BHI_PY_TAKES_TIME, /* without the GIL, in this thread */
    BHI_PY_BLOCKS,     /* the same, in another thread if this one handles signals */
};
/* Runs the task. Returns false with an exception set if it failed, or if a signal handler raised
 * one; then it ends by itself. The caller drops its reference by bhi_py_task_unref in any case. */
bool bhi_py_task_run(struct bhi_py_task *task, enum bhi_py_gil manner);
void bhi_py_task_unref(struct bhi_py_task *task);
/* For task->run: calls |asked| with the interpreter's lock, in the thread that called
 * bhi_py_task_run, so that signals interrupt it there. Returns false, and has not called it, if that thread
 * has left because of a signal. */
bool bhi_py_task_ask(struct bhi_py_task *task, void (*asked)(struct bhi_py_task *task));
/* Waits until the task has run, whatever signals come. Without the interpreter's lock. */
void bhi_py_task_join(struct bhi_py_task *task);

/* -- contexts -----------------------------------------------------------------------------------
 */

struct bhi_py_context {
    PyObject base;
    bh_context *context; /* until it is deallocated */
    struct bhi_py_handle handle;
    unsigned forks; /* how often the process had forked when it was made */
    bool made;
    struct bhi_py_log *log;        /* referenced; NULL: nobody wants it */
    pthread_mutex_t views_lock;    /* the views of the storages of this context; submissions */
    struct bhi_py_storage *viewed; /* views_lock: those with views */
};
/* Returns false with an exception set if the context is closed or belongs to the parent process. */
bool bhi_py_context_check(struct bhi_py_context *context);
/* What Context._stats returns. */
PyObject *bhi_py_stats(bh_context *context);
/* Counts the forks from now on. */
void bhi_py_watch_forks(void);
/* Returns whether this process is a forked child of the one that made the context. */
bool bhi_py_context_forked(const struct bhi_py_context *context);

/* -- log ----------------------------------------------------------------------------------------
 */

/* Lines of a context's log, until a thread of Python takes them out. */
struct bhi_py_log;
/* Returns that of a Log, with a reference for the caller. */
struct bhi_py_log *bhi_py_log_of(PyObject *object);
void bhi_py_log_unref(struct bhi_py_log *log);
/* A bh_log_callback; |user| is the bhi_py_log. */
void bhi_py_log_line(bh_log_level level, const char *text, void *user);
/* There will be no more lines. */
void bhi_py_log_end(struct bhi_py_log *log);

/* -- options ------------------------------------------------------------------------------------
 */

enum bhi_py_field_type {
    BHI_PY_U32,
    BHI_PY_U64,
    BHI_PY_LIMIT,
    BHI_PY_INT,
    BHI_PY_F64,
    BHI_PY_BOOL,
    BHI_PY_TEXT
};
/* A field of a struct of options. */
struct bhi_py_field {
    const char *name;
    size_t offset;
    enum bhi_py_field_type type;
};
/* Sets the fields that |values|, a dict, has. Texts are str or bytes, and stay the dict's. Returns
 * false with an exception set. */
bool bhi_py_set_fields(void *options, const struct bhi_py_field *fields, size_t count,
                       PyObject *values, const char *what);
/* The bytes of a text, which is str or bytes and keeps them, for the argument |name| of |what|.
 * NULL: an exception is set. */
const char *bhi_py_utf8(PyObject *value, const char *what, const char *name, Py_ssize_t *out_size);
/* The same of a text that has no NUL in it. */
const char *bhi_py_utf8_text(PyObject *value, const char *what, const char *name);
#define BHI_PY_COUNT(array) (sizeof(array) / sizeof(array)[0])

/* -- types of elements --------------------------------------------------------------------------
 */

struct bhi_py_dtype {
    const char *name;    /* as NumPy names it */
    const char *short_;  /* as kernels and the command name it */
    const char *format;  /* of the buffer protocol */
    const char *typestr; /* of __array_interface__ */
    uint32_t size;
    uint8_t dlpack_code, dlpack_bits;
};
enum { BHI_PY_DTYPES = BH_DTYPE_F8_E8M0 + 1 };
extern const struct bhi_py_dtype bhi_py_dtypes[BHI_PY_DTYPES];
/* Finds the type that DLPack describes by a code and bits; BH_DTYPE_NONE: there is none. */
bh_dtype bhi_py_dtype_of_dlpack(uint32_t code, uint32_t bits);
/* Finds the type of a format of the buffer protocol. NULL means bytes. Returns false, with a text
 * that says why, if there is none. */
bool bhi_py_dtype_of_format(const char *format, Py_ssize_t itemsize, bh_dtype *out_dtype,
                            const char **out_why);

/* -- buffers ------------------------------------------------------------------------------------
 */

/* A buffer of the library and its views. Several Buffer objects can share one. */
struct bhi_py_storage {
    atomic_int refs;
    struct bhi_py_context *context; /* a reference, of Python */
    bh_buffer *buffer;
    void *pointer;                       /* the host's mapping; NULL: not mapped yet */
    uint64_t size;                       /* bytes */
    struct bhi_py_storage *next, **link; /* context's views_lock: in |viewed| */
    uint32_t views;    /* context's views_lock: memoryviews, NumPy arrays and the like */
    uint32_t writable; /* context's views_lock: those of |views| that may be written */
    bh_event *writer;  /* context's views_lock: the newest submission that writes it, referenced */
    PyObject *stream;  /* of a buffer in device memory, a reference; NULL */
};
void bhi_py_storage_ref(struct bhi_py_storage *storage);
void bhi_py_storage_unref(struct bhi_py_storage *storage); /* the interpreter's lock is held */
/* Takes over a reference to |buffer|. NULL: an exception is set, and |buffer| is released. */
struct bhi_py_storage *bhi_py_storage_new(struct bhi_py_context *context, bh_buffer *buffer,
                                          PyObject *stream);

/* Returns the storage that a view shows at these bytes, which the caller unrefs; NULL: none. */
struct bhi_py_storage *bhi_py_storage_find(struct bhi_py_context *context, uintptr_t address,
                                           uint64_t bytes);

struct bhi_py_buffer {
    PyObject base;
    struct bhi_py_storage *storage; /* while |handle| is open or used */
    struct bhi_py_handle handle;
    bh_dtype dtype;
    uint32_t rank;
    uint64_t offset;   /* bytes from the beginning of the storage */
    uint64_t bytes;    /* from |offset| on */
    Py_ssize_t *shape; /* |rank| elements, and then as many strides in bytes */
    PyObject *shape_tuple;
};
/* Returns the storage, which the caller unrefs; NULL: an exception is set. */
struct bhi_py_storage *bhi_py_buffer_use(PyObject *object, const char *what);
/* Makes a Buffer of |storage|, to which it adds a reference. */
PyObject *bhi_py_buffer_new(struct bhi_py_storage *storage, bh_dtype dtype, uint32_t rank,
                            const uint64_t *shape, uint64_t offset);
/* Begins a view of a storage: waits until the content is good. |writable|: a bh_map_intent other
 * than BH_MAP_READ may be used. Without |out_cuda| the storage is in host memory, and gets its
 * pointer. Returns false with an exception set. */
bool bhi_py_view_begin(struct bhi_py_storage *storage, bh_map_intent intent, uint64_t timeout_ns,
                       bh_cuda_view **out_cuda);
void bhi_py_view_end(struct bhi_py_storage *storage, bool writable);
/* views_lock is held: |event| is the newest writer. */
void bhi_py_storage_written(struct bhi_py_storage *storage, bh_event *event);
PyObject *bhi_py_buffer_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);

/* -- events -------------------------------------------------------------------------------------
 */

struct bhi_py_event {
    PyObject base;
    bh_event *event; /* referenced */
    struct bhi_py_context *context;
    bh_module *module; /* referenced: the event is that of its compile; NULL */
    /* A use whose content was poisoned when the event was submitted, for the message. */
    PyObject *lost_name; /* a reference; NULL: there is none */
    uint64_t lost_to;    /* the id of the event that poisoned it */
    bool lost_output;    /* the submission writes it, too */
};
/* Makes an Event, which takes over a reference to |event|, also if it fails. */
PyObject *bhi_py_event_new(struct bhi_py_context *context, bh_event *event);

/* -- streams ------------------------------------------------------------------------------------
 */

struct bhi_py_stream {
    PyObject base;
    bh_stream *stream;
    struct bhi_py_handle handle;
    struct bhi_py_context *context;
    uint64_t deadline_ns; /* of submissions that set none */
};
/* Returns false with an exception set if it is closed. Ends with bhi_py_stream_leave. */
bool bhi_py_stream_enter(struct bhi_py_stream *stream);
void bhi_py_stream_leave(struct bhi_py_stream *stream);

/* -- kernels ------------------------------------------------------------------------------------
 */

/* What a launch can give by name: a binding, or a push constant. */
struct bhi_py_parameter {
    PyObject *name;
    PyObject *type;  /* as the kernel declares it */
    bool is_binding; /* false: a push constant */
    /* a binding */
    uint32_t set, binding;
    uint32_t count; /* buffers of it */
    uint32_t first; /* its place among all buffers of the kernel */
    bool array;     /* it is declared as an array of buffers */
    bh_access access;
    uint32_t takes; /* bits: the element types that may be bound */
    /* a push constant */
    bh_dtype dtype;
    uint32_t offset, stride, step, length, width;
};

struct bhi_py_kernel {
    PyObject base;
    bh_kernel *kernel;
    struct bhi_py_handle handle;
    struct bhi_py_context *context;
    bool cuda;       /* it has an image: its parameters have no names, only their order */
    bool reflected;  /* what follows is set; of an image |positions| */
    PyObject *names; /* dict: name -> index of a parameter */
    struct bhi_py_parameter *parameters;
    uint32_t parameter_count;
    uint32_t buffer_count; /* of all bindings */
    uint32_t push_size;
    uint32_t local_size[3];
    /* The parameters of an image in their order. NULL: it does not say what they are. */
    struct bhi_py_position *positions;
    uint32_t position_count;
    bool arranges;        /* launches give its _arrange() their arguments */
    uint64_t most_blocks; /* of a grid; 0: any */
};
/* One of them: |dtype| NONE means |bytes| of any type. */
struct bhi_py_position {
    bh_dtype dtype;
    uint32_t bytes;
};
PyObject *bhi_py_kernel_inspect(PyObject *self, PyObject *unused);
PyObject *bhi_py_kernel_set_parameters(PyObject *self, PyObject *args);
PyObject *bhi_py_kernel_set_positions(PyObject *self, PyObject *args);
/* Makes a Kernel, which takes over a reference to |kernel|, also if it fails. */
PyObject *bhi_py_kernel_new(struct bhi_py_context *context, bh_kernel *kernel, bool cuda);
/* Specialization constants of a list [(id, size, bits), …], which the caller frees. Returns false
 * with an exception set. */
bool bhi_py_specializations(PyObject *list, bh_specialization **out, uint32_t *out_count);
bool bhi_py_kernel_enter(struct bhi_py_kernel *kernel);
void bhi_py_kernel_leave(struct bhi_py_kernel *kernel);

/* -- sources ------------------------------------------------------------------------------------
 */

/* Copies the tuple (text, name, entry, tenant, {unoptimized, language, deadline, memory}, defines,
 * includes, options) of the call |what|; the source owns all of its texts. Returns false with an exception
 * set, and |source| empty. */
bool bhi_py_source_init(bh_source *source, const char *what, PyObject *tuple);
void bhi_py_source_fini(bh_source *source);
/* What the compiler has said of a module's source: a text. */
PyObject *bhi_py_source_log(bh_module *module);

/* -- submissions --------------------------------------------------------------------------------
 */

/* A storage that a submission uses. */
struct bhi_py_use {
    struct bhi_py_storage *storage;
    bool writes;
    bool reads; /* the submission is poisoned if the content is */
};
/* Submits, unless a view forbids it. Returns the Event; NULL: an exception is set. |what| names the
 * call, |name_use| an argument for the message about a view. */
PyObject *bhi_py_submit(struct bhi_py_stream *stream, const bh_submit_info *info,
                        const struct bhi_py_use *uses, size_t use_count, const char *what,
                        PyObject *(*name_use)(void *user, size_t index), void *user);

/* How to submit, as every call that submits takes it. {0} is a valid start. */
struct bhi_py_manner {
    bh_event **waits; /* owned; the events are referenced by |after| */
    uint32_t wait_count;
    PyObject *after; /* a reference, a tuple; NULL */
    uint64_t deadline_ns;
    bool alone, timed;
};
/* Sets one of after, deadline, alone, timed. Returns 1, 0 if |name| is none of them, or -1 with an
 * exception set. */
int bhi_py_manner_set(struct bhi_py_manner *manner, PyObject *name, PyObject *value,
                      const char *what);
/* Sets those of |values|, a dict or NULL. Returns false with an exception set. */
bool bhi_py_manner_set_all(struct bhi_py_manner *manner, PyObject *values, const char *what);
void bhi_py_manner_apply(const struct bhi_py_manner *manner, bh_submit_info *info);
void bhi_py_manner_fini(struct bhi_py_manner *manner);

/* -- launches -----------------------------------------------------------------------------------
 */

enum { BHI_PY_FEW = 8, BHI_PY_FEW_PARAMETERS = 16, BHI_PY_FEW_PUSH = 128 };
/* A dispatch of a kernel, from arguments that are given by name, or of an image in their order. */
struct bhi_py_dispatch {
    struct bhi_py_kernel *kernel; /* a reference */
    uint32_t groups[3];           /* 0: not given yet */
    uint32_t block[3];            /* 0: the kernel's */
    uint32_t shared_bytes;
    uint32_t given_count;    /* of the kernel's parameters */
    bool *given;             /* by parameter */
    bh_binding *bindings;    /* |buffer_count| */
    struct bhi_py_use *uses; /* the same; storages are referenced */
    uint32_t buffer_count;
    uint8_t *push;
    uint32_t push_size; /* whole words */
    struct bhi_py_manner manner;
    /* what these point to, if it has room */
    bool few_given[BHI_PY_FEW_PARAMETERS];
    bh_binding few_bindings[BHI_PY_FEW];
    struct bhi_py_use few_uses[BHI_PY_FEW];
    uint64_t few_push[BHI_PY_FEW_PUSH / 8];
};
/* Each returns false with an exception set. A dispatch that was begun has to be ended, also after a
 * failure. It must stay where it is. */
bool bhi_py_dispatch_init(struct bhi_py_dispatch *dispatch, PyObject *kernel);
void bhi_py_dispatch_fini(struct bhi_py_dispatch *dispatch);
/* Is it an array of another library, or what exports memory as one? */
bool bhi_py_is_array(PyObject *value);
/* Binds |value|, a Buffer or what out() or read() gives, or an array that is only read, as element
 * |element| of the parameter. */
bool bhi_py_dispatch_bind(struct bhi_py_dispatch *dispatch,
                          const struct bhi_py_parameter *parameter, uint32_t element,
                          PyObject *value);
/* Sets all arguments of an image's kernel: a sequence of them. */
bool bhi_py_dispatch_set_positions(struct bhi_py_dispatch *dispatch, PyObject *value);
/* Sets an argument, or an option: a parameter of the kernel, grid, groups, block, shared, args, or a
 * manner. */
bool bhi_py_dispatch_set(struct bhi_py_dispatch *dispatch, PyObject *name, PyObject *value);
/* Checks that everything is given. */
bool bhi_py_dispatch_check(const struct bhi_py_dispatch *dispatch);
bh_command bhi_py_dispatch_command(const struct bhi_py_dispatch *dispatch);
/* Names a use for a message; |user| is the dispatch. */
PyObject *bhi_py_dispatch_name(void *user, size_t index);

/* Stores a number at |at| as |dtype|. |name| is for the message. */
bool bhi_py_number_store(PyObject *value, bh_dtype dtype, uint8_t *at, PyObject *name,
                         const char *what);

PyObject *bhi_py_stream_launch(PyObject *self, PyObject *const *args, Py_ssize_t count,
                               PyObject *names);
PyObject *bhi_py_stream_prepare(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                PyObject *names);
PyObject *bhi_py_stream_submit(PyObject *self, PyObject *args, PyObject *kwargs);

#endif
