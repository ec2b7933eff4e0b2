/* The answer of a compiler (supervisor/compile/compilation.h), which several threads take and whose
 * log they read, while the compiler can still change it. */
#include "ipc/compile.h"
#include "puppet.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/compile/compilation.h"
#include "supervisor/event/event.h"

#include <pthread.h>
#include <stdio.h>

#define LOG "test.comp:1: warning: unused\n"

struct scene {
    struct puppet p;
    bh_event *ended;
    struct bhi_compilation *compilation;
    struct bhi_compile_answer *answer; /* as the compiler sees it */
    _Atomic bool read;                 /* relaxed: it orders nothing, so that a race stays one */
};

/* A compile that has ended READY, and that nobody has taken. */
static void set_up(struct scene *s) {
    puppet_open(&s->p);
    struct bhi_worker *worker = puppet_serving(&s->p);
    s->ended = puppet_submit(&s->p);
    puppet_complete(worker, 1);
    BHT_EQ(bh_event_query(s->ended), BH_EVENT_READY);
    bh_buffer *answer = NULL;
    BHT_EQ(bh_buffer_create(s->p.context, sizeof *s->answer + 4096, &answer, NULL), BH_OK);
    s->answer = answer->pointer;
    s->answer->log_bytes = sizeof LOG - 1;
    memcpy(s->answer->log, LOG, sizeof LOG);
    static const uint32_t module[] = {0x07230203, 0x00010000, 0, 1, 0};
    memcpy(s->answer + 1, module, sizeof module);
    s->answer->code_bytes = sizeof module;
    s->compilation = calloc(1, sizeof *s->compilation);
    BHT_TRUE(s->compilation);
    bhi_list_init(&s->compilation->age);
    s->compilation->refs = 1;
    s->compilation->name = strdup("test.comp");
    s->compilation->event = s->ended;
    bhi_event_ref(s->ended);
    s->compilation->answer = answer;
}

static void tear_down(struct scene *s) {
    bhi_compilation_unref(s->p.context, s->compilation);
    bh_event_release(s->ended);
    puppet_close(&s->p);
}

/* The answer is too long for this thread. */
static void *takes_first(void *argument) {
    struct scene *s = argument;
    char log[64];
    const bool failed = bhi_compilation_take(s->compilation, "first", NULL) == BH_COMPILE_FAILED;
    const size_t length = bhi_compilation_log(s->compilation, log, sizeof log);
    atomic_store_explicit(&s->read, true, memory_order_relaxed);
    return failed && length == 0 ? NULL : "the answer was taken";
}

/* Then the compiler makes it shorter. */
static void *takes_second(void *argument) {
    struct scene *s = argument;
    while (!atomic_load_explicit(&s->read, memory_order_relaxed)) {
        sched_yield();
    }
    __atomic_store_n(&s->answer->code_bytes, 20, __ATOMIC_RELAXED);
    return bhi_compilation_take(s->compilation, "second", NULL) == BH_OK ? NULL : "not taken";
}

/* ThreadSanitizer sees whether the first thread reads the log without the lock under which the
 * second one writes it. */
static void a_log_is_read_while_another_thread_takes_the_answer(void) {
    static struct scene scene;
    struct scene *s = &scene;
    set_up(s);
    s->answer->code_bytes = BHI_COMPILE_MAX_CODE + 1;
    pthread_t threads[2];
    BHT_EQ(pthread_create(&threads[0], NULL, takes_first, s), 0);
    BHT_EQ(pthread_create(&threads[1], NULL, takes_second, s), 0);
    for (size_t i = 0; i < BHT_COUNT(threads); i++) {
        void *wrong;
        BHT_EQ(pthread_join(threads[i], &wrong), 0);
        if (wrong) {
            BHT_FAIL("thread %zu: %s", i, (const char *)wrong);
        }
    }
    char log[64];
    BHT_EQ(bhi_compilation_log(s->compilation, log, sizeof log), sizeof LOG - 1);
    BHT_STR_EQ(log, LOG);
    tear_down(s);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(a_log_is_read_while_another_thread_takes_the_answer),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
