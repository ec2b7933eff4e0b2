/* What the library does on its own thread: starting a zygote, a worker, harvesting, burying,
 * starting again; with the Nth allocation, mapping, descriptor, process or message of that thread
 * failing. What was submitted ends READY or with a typed verdict, the stream answers, and once the
 * fault is over it serves again: nothing that failed for want of memory ends it for ever. */
#include "redirect.h"
#include "scene.h"

#include <stdio.h>
#include <sys/wait.h>

struct scene {
    bh_context *context;
    bh_stream *stream, *other;
    bh_kernel *square, *gate;
    bh_buffer *x, *y, *z, *word;
    volatile uint32_t *open;
};

static char what[256];
/* A message that can never be sent is a deadline's business; one that is refused once is not. */
static uint64_t deadline_ns;

static void begin_with(struct scene *scene, bh_context_options options) {
    *scene = (struct scene){.context = fx_context_with(options, NULL)};
    scene->square = fx_kernel(scene->context, "square");
    scene->gate = fx_kernel(scene->context, "gate");
    scene->x = fx_words(scene->context, 64, 0);
    scene->y = fx_words(scene->context, 64, 0);
    scene->z = fx_words(scene->context, 64, 0);
    scene->word = fx_words(scene->context, 64, 0);
    scene->open = fx_pointer(scene->word);
}

static void begin(struct scene *scene) {
    bh_context_options options = fx_options();
    options.restart_budget = 4; /* while it lasts, nothing comes up: that has to show soon */
    begin_with(scene, options);
}

static void begin_served(struct scene *scene) {
    begin(scene);
    scene->stream = fx_stream(scene->context, "one", deadline_ns);
    scene->other = fx_stream(scene->context, "two", deadline_ns);
    fx_expect_healthy(scene->context, scene->stream);
    fx_expect_healthy(scene->context, scene->other);
}

/* The fault is over: what the stream gave up it takes up again when it is told to. */
static void recovers(struct scene *scene, bh_stream *stream) {
    if (!stream) {
        return;
    }
    bh_detail detail = {0};
    bh_status status = bh_stream_wait_ready(stream, FX_SECONDS, &detail);
    if (status == BH_TIMEOUT) {
        BHT_FAIL("%s: neither served nor unavailable", what);
    }
    bht_check_detail(status, &detail, what);
    BHT_EQ(bh_stream_reset(stream, NULL), BH_OK);
    status = bh_stream_wait_ready(stream, FX_SECONDS, &detail);
    if (status != BH_OK) {
        BHT_FAIL("%s: after the fault, and after a reset: %s", what, detail.message);
    }
    fx_expect_healthy(scene->context, stream);
}

static void end(struct scene *scene) {
    bh_stream_release(scene->stream);
    bh_stream_release(scene->other);
    bh_kernel_release(scene->square);
    bh_kernel_release(scene->gate);
    bh_buffer_release(scene->x);
    bh_buffer_release(scene->y);
    bh_buffer_release(scene->z);
    bh_buffer_release(scene->word);
    uint64_t began = bht_now_ns();
    bh_context_destroy(scene->context);
    uint64_t took_ms = (bht_now_ns() - began) / FX_MS;
    /* "A few milliseconds a worker": what is missing is not waited for until patience ends. */
    if (took_ms > 5 * BHT_SECOND_MS) {
        BHT_FAIL("%s: bh_context_destroy took %llu ms", what, (unsigned long long)took_ms);
    }
    size_t children = bht_count_children(getpid());
    if (children) {
        BHT_FAIL("%s: %zu children are left", what, children);
    }
}

/* With a spare that knows nothing yet. */
static void begin_spare(struct scene *scene) {
    bh_context_options options = fx_options();
    options.restart_budget = 4;
    options.spares = 1;
    options.spare_kernels = 16;
    begin_with(scene, options);
    scene->stream = fx_stream(scene->context, "one", deadline_ns);
    fx_expect_healthy(scene->context, scene->stream);
    WAIT_UNTIL(bht_says(scene->context, "spare worker ", ", ready"), 20000);
}

/* -- what is done while something fails ------------------------------------------------------- */

static void square_once(struct scene *scene, bh_stream *stream) {
    bh_event *event = fx_square(stream, scene->square, scene->x, scene->y);
    bht_end(event, what);
}

/* Zygote and worker start, kernel and buffers are introduced, a job runs. */
static void first_job(struct scene *scene) {
    scene->stream = fx_stream(scene->context, "one", deadline_ns);
    square_once(scene, scene->stream);
}

/* What bh_kernel_reflect asks for comes in messages. */
static void reflect(struct scene *scene) {
    static bh_kernel_info info = {.struct_size = sizeof info};
    bh_detail detail = {0};
    bh_kernel *kernel = fx_kernel(scene->context, "add");
    bh_status status = bh_kernel_reflect(kernel, scene->stream, FX_SECONDS, &info, &detail);
    bht_check_detail(status, &detail, what);
    bh_kernel_release(kernel);
}

/* The gate runs, or has come to nothing: then there is nothing to be killed. */
static bh_event *start_gate(struct scene *scene) {
    *scene->open = 0;
    bh_event *running = fx_gate(scene->stream, scene->gate, scene->word);
    WAIT_UNTIL(scene->open[1] == 1 || bh_event_query(running) != BH_EVENT_PENDING, 20000);
    return running;
}

static void worker_dies(struct scene *scene) {
    bh_event *running = start_gate(scene); /* on a fresh worker once it has ended one (T2) */
    pid_t pid = bh_stream_worker_pid(scene->stream);
    bh_event *next = fx_square(scene->stream, scene->square, scene->x, scene->y);
    bh_event *elsewhere = fx_square(scene->other, scene->square, scene->x, scene->z);
    if (pid > 0) { /* while something fails, there may be none */
        kill(pid, SIGKILL);
    }
    bh_status status = bht_end(running, what);
    if (status == BH_OK) {
        BHT_FAIL("%s: a killed worker's job counts as done", what);
    }
    bht_end(next, what);
    bht_end(elsewhere, what);
}

/* One stream's end releases the other's next: the reactor does that. */
static void across_streams(struct scene *scene) {
    bh_event *first = fx_square(scene->stream, scene->square, scene->x, scene->y);
    bh_event *second = fx_square(scene->other, scene->square, scene->y, scene->z);
    bh_event *third = fx_square(scene->stream, scene->square, scene->z, scene->x);
    bht_end(third, what);
    bht_end(second, what);
    bht_end(first, what);
}

static void zygote_dies(struct scene *scene) {
    pid_t zygote = fx_parent(fx_ready(scene->stream));
    bh_event *running = start_gate(scene);
    kill(zygote, SIGKILL);
    if (bht_end(running, what) == BH_OK) {
        BHT_FAIL("%s: a killed worker's job counts as done", what);
    }
    square_once(scene, scene->stream);
    square_once(scene, scene->other);
}

/* A spare is told a kernel and learns it, the stream's worker dies, and the spare takes over. The
 * next spare starts. */
static void a_spare_learns(struct scene *scene) {
    square_once(scene, scene->stream);
    square_once(scene, scene->stream);
    WAIT_UNTIL(bht_fired() || bht_says(scene->context, "spare worker ", "1 known kernel"), 20000);
    const pid_t pid = bh_stream_worker_pid(scene->stream);
    if (pid > 0) { /* it may have been killed meanwhile, for want of a message */
        kill(pid, SIGKILL);
    }
    square_once(scene, scene->stream);
    WAIT_UNTIL(bht_fired() || bht_says(scene->context, "spare worker ", ""), 20000);
}

/* -- the loop ---------------------------------------------------------------------------------- */

struct act {
    const char *name;
    void (*begin)(struct scene *scene);
    void (*run)(struct scene *scene);
    bool afresh;                  /* a new context for each N */
    unsigned expected[BHT_KINDS]; /* how many calls of each kind there are at least */
};

static void sweep(const struct act *act, struct bht_fault fault) {
    unsigned fired = 0;
    struct scene scene;
    bool begun = false;
    deadline_ns = fault.lasting ? BHT_SECOND_MS * FX_MS : BH_FOREVER;
    const unsigned dense = fault.lasting ? 2 : act->afresh ? 16 : 6, part = 4;
    for (fault.nth = bht_walk_first((unsigned)fault.kind + fault.lasting, dense, part);;
         fault.nth = bht_walk_next(fault.nth, dense, part)) {
        if (!begun) {
            act->begin(&scene);
        }
        begun = true;
        snprintf(what, sizeof what, "%s, %s %u%s", act->name, bht_kind_name(fault.kind), fault.nth,
                 fault.lasting ? " and all later ones" : "");
        BHT_LT(fault.nth, 5000);
        bht_arm(fault);
        act->run(&scene);
        bool failed = bht_disarm();
        fired += failed;
        size_t length = strlen(what);
        snprintf(what + length, sizeof what - length, " (%s)", bht_where());
        recovers(&scene, scene.stream);
        recovers(&scene, scene.other);
        /* The warden that serves now; those before it are reaped as soon as they are gone. A zygote
         * whose warden was killed dies by itself, and comes to us instead of init. */
        uint64_t by = bht_now_ns() + 3 * BHT_SECOND_MS * FX_MS;
        while (bht_count_children(getpid()) > 1 && bht_now_ns() < by) {
            (void)waitpid(-1, NULL, WNOHANG);
            bht_poll_pause();
        }
        if (bht_count_children(getpid()) > 1) {
            BHT_FAIL("%s: a child is left", what);
        }
        if (act->afresh || !failed) {
            end(&scene);
            begun = false;
        }
        if (!failed) {
            break;
        }
    }
    if (fired < bht_walk_least(act->expected[fault.kind])) {
        BHT_FAIL("%s: only %u calls of kind %s, at least %u were there once", act->name, fired,
                 bht_kind_name(fault.kind), bht_walk_least(act->expected[fault.kind]));
    }
}

static void sweep_kind(const struct act *act, int kind) {
    /* What lasts brings restarts and deadlines: long to wait for. */
    for (int lasting = 0; lasting < 1 + (bht_nightly() || act->afresh); lasting++) {
        sweep(act, (struct bht_fault){.kind = kind, .side = BHT_OTHER_THREADS, .lasting = lasting});
    }
}

/* One test for each kind of call. */
#define ACT(name, first, is_afresh, ...)                                                           \
    static const struct act act_##name = {#name, first, name, is_afresh, {__VA_ARGS__}};           \
    TEST_WITH(name##_nth_allocation, 200, 0) {                                                     \
        sweep_kind(&act_##name, BHT_ALLOCATION);                                                   \
    }                                                                                              \
    TEST_WITH(name##_nth_mapping, 200, 0) {                                                        \
        sweep_kind(&act_##name, BHT_MAPPING);                                                      \
    }                                                                                              \
    TEST_WITH(name##_nth_descriptor, 200, 0) {                                                     \
        sweep_kind(&act_##name, BHT_DESCRIPTOR);                                                   \
    }                                                                                              \
    TEST_WITH(name##_nth_process, 200, 0) {                                                        \
        sweep_kind(&act_##name, BHT_PROCESS);                                                      \
    }                                                                                              \
    TEST_WITH(name##_nth_send, 200, 0) {                                                           \
        sweep_kind(&act_##name, BHT_SEND);                                                         \
    }

/*  what            beginning  afresh  allocation, mapping, descriptor, process, send: at least */
ACT(first_job, begin, true, 4, 4, 8, 3, 3)
ACT(reflect, begin_served, false, 1, 0, 0, 0, 2)
ACT(worker_dies, begin_served, false, 4, 4, 4, 0, 3)
ACT(across_streams, begin_served, false, 0, 0, 0, 0, 0)
ACT(zygote_dies, begin_served, false, 4, 4, 8, 3, 3)
ACT(a_spare_learns, begin_spare, true, 4, 4, 4, 0, 3)
