/* Storages: buffers of the library, shared by the Buffer objects and views that show them.
 *
 * A view is a memoryview, a NumPy array or a tensor. While there is one, no submission may write
 * the storage, and while there is one that may be written, no submission may use it. A view counts
 * before it waits for earlier submissions, and a submission looks at the counts and is submitted
 * under one lock: so none slips in between.
 */
#include "python/native.h"

#include <stdlib.h>

struct bhi_py_storage *bhi_py_storage_new(struct bhi_py_context *context, bh_buffer *buffer,
                                          PyObject *stream) {
    struct bhi_py_storage *storage = calloc(1, sizeof *storage);
    if (!storage) {
        bh_buffer_release(buffer);
        PyErr_NoMemory();
        return NULL;
    }
    atomic_init(&storage->refs, 1);
    storage->context = (struct bhi_py_context *)Py_NewRef((PyObject *)context);
    storage->buffer = buffer;
    storage->size = bh_buffer_size(buffer);
    storage->stream = stream ? Py_NewRef(stream) : NULL;
    return storage;
}

void bhi_py_storage_ref(struct bhi_py_storage *storage) {
    atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
}

void bhi_py_storage_unref(struct bhi_py_storage *storage) {
    if (atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    bh_event_release(storage->writer);
    bh_buffer_release(storage->buffer);
    Py_XDECREF(storage->stream);
    Py_DECREF((PyObject *)storage->context);
    free(storage);
}

void bhi_py_storage_written(struct bhi_py_storage *storage, bh_event *event) {
    bh_event *before = storage->writer;
    bh_event_retain(event);
    storage->writer = event;
    bh_event_release(before);
}

/* Sets the exception for content that is poisoned, or another failure of |status|. The buffer's
 * newest writer says more than the message of a failed map. */
static void fail_content(struct bhi_py_storage *storage, bh_status status,
                         const bh_detail *detail) {
    struct bhi_py_context *context = storage->context;
    bh_event *writer = NULL;
    if (!bhi_py_context_forked(context)) {
        pthread_mutex_lock(&context->views_lock);
        if (storage->writer && status != BH_TIMEOUT &&
            bh_event_wait(storage->writer, 0) == status) {
            writer = storage->writer;
            bh_event_retain(writer);
        }
        pthread_mutex_unlock(&context->views_lock);
    }
    PyObject *event = writer ? bhi_py_event_new(context, writer) : NULL;
    if (event) {
        bhi_py_fail_event(event);
        Py_DECREF(event);
    } else if (!writer) {
        bhi_py_fail_poison(status, detail);
    }
}

/* -- views --------------------------------------------------------------------------------------
 */

static void link_viewed(struct bhi_py_storage *storage) {
    struct bhi_py_context *context = storage->context;
    storage->next = context->viewed;
    storage->link = &context->viewed;
    if (storage->next) {
        storage->next->link = &storage->next;
    }
    context->viewed = storage;
}

static void unlink_viewed(struct bhi_py_storage *storage) {
    *storage->link = storage->next;
    if (storage->next) {
        storage->next->link = storage->link;
    }
}

struct bhi_py_storage *bhi_py_storage_find(struct bhi_py_context *context, uintptr_t address,
                                           uint64_t bytes) {
    struct bhi_py_storage *storage;
    pthread_mutex_lock(&context->views_lock);
    for (storage = context->viewed; storage; storage = storage->next) {
        const uintptr_t begin = (uintptr_t)storage->pointer;
        if (begin && address >= begin && address - begin <= storage->size &&
            bytes <= storage->size - (address - begin)) {
            bhi_py_storage_ref(storage);
            break;
        }
    }
    pthread_mutex_unlock(&context->views_lock);
    return storage;
}

struct map {
    bh_buffer *buffer;
    bh_map_intent intent;
    void *pointer;
    bh_cuda_view **cuda;
};

static bh_status wait_and_map(void *argument, uint64_t timeout_ns, bh_detail *detail) {
    struct map *map = argument;
    if (map->cuda) {
        return bh_cuda_view_create(map->buffer, map->intent, timeout_ns, map->cuda, detail);
    }
    return bh_buffer_map(map->buffer, map->intent, timeout_ns, &map->pointer, detail);
}

bool bhi_py_view_begin(struct bhi_py_storage *storage, bh_map_intent intent, uint64_t timeout_ns,
                       bh_cuda_view **out_cuda) {
    struct bhi_py_context *context = storage->context;
    const bool writable = intent != BH_MAP_READ;
    struct map map = {.buffer = storage->buffer, .intent = intent, .cuda = out_cuda};
    bh_status status;
    bh_detail detail;
    if (bhi_py_context_forked(context)) {
        bhi_py_context_check(context);
        return false;
    }
    pthread_mutex_lock(&context->views_lock);
    if (storage->views++ == 0) {
        link_viewed(storage);
    }
    storage->writable += writable;
    pthread_mutex_unlock(&context->views_lock);
    const bool awaited = bhi_py_await(wait_and_map, &map, timeout_ns, &status, &detail);
    if (!awaited || status != BH_OK) {
        bhi_py_view_end(storage, writable);
        if (awaited) {
            fail_content(storage, status, &detail);
        }
        return false;
    }
    if (!out_cuda) {
        storage->pointer = map.pointer;
    }
    return true;
}

void bhi_py_view_end(struct bhi_py_storage *storage, bool writable) {
    struct bhi_py_context *context = storage->context;
    const bool forked = bhi_py_context_forked(context);
    if (!forked) { /* else another thread of the parent may have had the lock */
        pthread_mutex_lock(&context->views_lock);
    }
    if (--storage->views == 0) {
        unlink_viewed(storage);
    }
    storage->writable -= writable;
    if (!forked) {
        pthread_mutex_unlock(&context->views_lock);
    }
}
