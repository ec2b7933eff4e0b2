#include "supervisor/event/callback.h"
#include "base/check.h"
#include "base/detail.h"
#include "base/futex.h"
#include "supervisor/context/context.h"
#include "supervisor/context/pump.h"
#include "supervisor/event/event.h"
#include "supervisor/event/observer.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

struct callback {
    struct bhi_observer observer;
    struct bhi_list link;   /* callbacks->due; lock */
    struct bh_event *event; /* referenced until the callback has returned */
    bh_event_callback call;
    void *user;
};

/* Lock held. */
static void wake(struct bhi_callbacks *callbacks) {
    if (!callbacks->asleep) {
        return;
    }
    callbacks->asleep = false;
    atomic_fetch_add(&callbacks->word, 1);
    bhi_futex_wake(&callbacks->word, false, 1);
}

/* Lock held. */
static void enqueue(struct callback *callback) {
    struct bhi_callbacks *callbacks = callback->event->context->callbacks;
    bhi_list_append(&callbacks->due, &callback->link);
    wake(callbacks);
}

static void callback_ended(struct bhi_observer *observer) {
    enqueue(BHI_CONTAINER(observer, struct callback, observer));
}

/* Returns the next due callback, or NULL when there will be none any more. */
static struct callback *next(bh_context *context) {
    struct bhi_callbacks *callbacks = context->callbacks;
    struct callback *callback = NULL;
    bhi_context_lock(context);
    while (bhi_list_empty(&callbacks->due) && !callbacks->stopping) {
        uint32_t seen = atomic_load(&callbacks->word);
        callbacks->asleep = true;
        bhi_context_unlock(context);
        bhi_futex_wait(&callbacks->word, seen, false, BHI_FOREVER);
        bhi_context_lock(context);
    }
    if (!bhi_list_empty(&callbacks->due)) {
        callback = BHI_CONTAINER(callbacks->due.next, struct callback, link);
        bhi_list_remove(&callback->link);
    }
    bhi_context_unlock(context);
    return callback;
}

static void *run(void *argument) {
    bh_context *context = argument;
    for (struct callback *callback; (callback = next(context));) {
        bhi_callback_enter(context);
        callback->call(callback->event, callback->user);
        bhi_callback_leave();
        bh_event_release(callback->event); /* the event's handle, for the callback */
        bhi_event_unref(callback->event);
        free(callback);
    }
    return NULL;
}

/* Starts the thread unless there is one. */
static bh_status start(bh_context *context, bh_detail *detail) {
    struct bhi_callbacks *callbacks = context->callbacks;
    pthread_mutex_lock(&callbacks->start_lock);
    /* Checked under start_lock. bh_context_destroy closes the context before it takes start_lock to
     * see whether there is a thread, so no thread starts after that. */
    bh_status status = bhi_context_check(context, "bh_event_on_end", detail);
    if (status == BH_OK && !callbacks->started) {
        /* The thread inherits this mask: it never runs a signal handler of the host. */
        sigset_t all, old;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        int error = pthread_create(&callbacks->thread, NULL, run, context);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (error) {
            status = BHI_FAIL(detail, "bh_event_on_end", BH_REASON_SYSTEM_CALL,
                              "the callback thread", .sys_errno = error);
        } else {
            pthread_setname_np(callbacks->thread, "bulkhead-cb");
        }
        callbacks->started = !error;
    }
    pthread_mutex_unlock(&callbacks->start_lock);
    return status;
}

BH_API bh_status bh_event_on_end(bh_event *event, bh_event_callback callback, void *user,
                                 bh_detail *detail) {
    if (!BHI_LIVE(event) || !callback) {
        return BHI_FAIL(detail, "bh_event_on_end", BHI_DEAD(event, "callback"));
    }
    bh_context *context = event->context;
    if (bhi_context_forked(context)) {
        return bhi_context_refuse("bh_event_on_end", detail);
    }
    bh_status status = start(context, detail);
    if (status != BH_OK) {
        return status;
    }
    struct callback *registration = malloc(sizeof *registration);
    if (!registration) {
        return BHI_FAIL(detail, "bh_event_on_end", BH_REASON_MEMORY);
    }
    *registration = (struct callback){
        .observer.ended = callback_ended, .event = event, .call = callback, .user = user};
    bhi_list_init(&registration->link);
    /* The caller may release its handle before the callback runs, so the callback gets a reference
     * of its own. */
    if (!bhi_handle_retain(&event->handle)) {
        free(registration);
        return BHI_FAIL(detail, "bh_event_on_end", BH_REASON_RELEASED, "event");
    }
    bhi_event_ref(event);
    bhi_context_lock(context);
    bool closed = context->closed;
    if (!closed && !bhi_event_observe(event, &registration->observer)) {
        enqueue(registration);
    }
    bhi_context_pump_unlock(context);
    if (!closed) {
        return BH_OK;
    }
    bh_event_release(event);
    bhi_event_unref(event);
    free(registration);
    return BHI_FAIL(detail, "bh_event_on_end", BH_REASON_DESTROYED);
}

void bhi_callbacks_init(struct bhi_callbacks *callbacks) {
    pthread_mutex_init(&callbacks->start_lock, NULL);
    bhi_list_init(&callbacks->due);
    atomic_init(&callbacks->word, 0);
}

void bhi_callbacks_stop(bh_context *context) {
    struct bhi_callbacks *callbacks = context->callbacks;
    /* Waits for a call of bh_event_on_end that found the context open and now starts the thread. */
    pthread_mutex_lock(&callbacks->start_lock);
    bool started = callbacks->started;
    pthread_mutex_unlock(&callbacks->start_lock);
    if (!started) {
        return;
    }
    bhi_context_lock(context);
    callbacks->stopping = true;
    wake(callbacks);
    bhi_context_unlock(context);
    pthread_join(callbacks->thread, NULL);
}

void bhi_callbacks_fini(struct bhi_callbacks *callbacks) {
    BHI_CHECK(bhi_list_empty(&callbacks->due));
    pthread_mutex_destroy(&callbacks->start_lock);
}
