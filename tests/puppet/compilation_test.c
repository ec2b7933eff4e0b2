/* Compilations (supervisor/compile/compilation.h): the answer of a compiler, which several threads
 * take and whose log they read while the compiler can still change it; and the bytes that are kept
 * of each tenant. */
#include "ipc/compile.h"
#include "puppet.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/compile/compilation.h"
#include "supervisor/compile/compiler.h"
#include "supervisor/compile/inspection_take.h"
#include "supervisor/event/event.h"

#include <pthread.h>
#include <stdio.h>

#define LOG "test.comp:1: warning: unused\n"

#define MIB UINT64_C(0x100000)

struct scene {
    bh_event *ended;
    struct bhi_compilation *compilation;
    struct bhi_compile_answer *answer; /* as the compiler sees it */
    _Atomic bool read;                 /* relaxed: it orders nothing, so that a race stays one */
};

static struct bhi_compilation *make(struct scene *s, const char *tenant) {
    struct bhi_compilation *compilation = calloc(1, sizeof *compilation);
    BHT_TRUE(compilation);
    bhi_list_init(&compilation->age);
    compilation->refs = 1;
    compilation->name = strdup("test.comp");
    snprintf(compilation->tenant, sizeof compilation->tenant, "%s", tenant);
    compilation->event = s->ended;
    bhi_event_ref(s->ended);
    return compilation;
}

/* Its compile has ended, and nobody has taken the module of so many bytes. */
static struct bhi_compile_answer *answer(struct scene *s, struct bhi_compilation *compilation,
                                         uint64_t bytes) {
    BHT_EQ(bh_buffer_create(puppet.context, sizeof *s->answer + bytes, NULL, &compilation->answer,
                            NULL),
           BH_OK);
    struct bhi_compile_answer *answer = compilation->answer->pointer;
    static const uint32_t module[] = {0x07230203, 0x00010000, 0, 1, 0};
    memcpy(answer + 1, module, sizeof module);
    answer->code_bytes = bytes;
    return answer;
}

static void set_up(struct scene *s) {
    struct bhi_worker *worker = puppet_serving();
    s->ended = puppet_submit();
    puppet_complete(worker, 1);
    BHT_EQ(bh_event_query(s->ended), BH_EVENT_READY);
    s->compilation = make(s, "");
    s->answer = answer(s, s->compilation, 64);
    s->answer->log_bytes = sizeof LOG - 1;
    memcpy(s->answer->log, LOG, sizeof LOG);
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
    __atomic_store_n(&s->answer->code_bytes, 64, __ATOMIC_RELAXED);
    return bhi_compilation_take(s->compilation, "second", NULL) == BH_OK ? NULL : "not taken";
}

/* ThreadSanitizer sees whether the first thread reads the log without the lock under which the
 * second one writes it. */
TEST(a_log_is_read_while_another_thread_takes_the_answer) {
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
    bhi_compilation_unref(puppet.context, s->compilation);
}

/* In the table, as what was obtained and, with |bytes|, taken. */
static struct bhi_compilation *keep(struct scene *s, const char *tenant, uint64_t bytes) {
    struct bhi_compilations *table = puppet.context->compilations;
    struct bhi_compilation *compilation = make(s, tenant);
    compilation->code_bytes = bytes;
    bhi_list_append(&table->ages, &compilation->age);
    table->count++;
    table->bytes += bytes;
    compilation->refs++;
    return compilation;
}

TEST(large_modules_push_out_none_of_another_tenant) {
    static struct scene scene;
    struct scene *s = &scene;
    set_up(s);
    struct bhi_compilations *table = puppet.context->compilations;
    struct bhi_compilation *quiet = keep(s, "quiet", MIB), *loud[5];
    for (size_t i = 0; i < BHT_COUNT(loud); i++) {
        loud[i] = keep(s, "loud", i < 3 ? 10 * MIB : 0);
    }
    for (size_t i = 3; i < BHT_COUNT(loud); i++) {
        (void)answer(s, loud[i], 2 * MIB);
    }
    /* 32 MiB of the 63 that |quiet| has left, and no more. */
    BHT_EQ(bhi_compilation_take(loud[3], "third", NULL), BH_OK);
    BHT_EQ(table->bytes, 33 * MIB);
    BHT_EQ(table->count, 6);
    BHT_EQ(bhi_compilation_take(loud[4], "fourth", NULL), BH_OK);
    BHT_EQ(table->bytes, 25 * MIB);
    BHT_EQ(table->count, 5);
    BHT_TRUE(bhi_list_empty(&loud[0]->age));
    BHT_TRUE(!bhi_list_empty(&quiet->age));
    bhi_compilation_unref(puppet.context, quiet);
    for (size_t i = 0; i < BHT_COUNT(loud); i++) {
        bhi_compilation_unref(puppet.context, loud[i]);
    }
    bhi_compilations_drop(puppet.context);
    bhi_compilation_unref(puppet.context, s->compilation);
}

/* A tenant that has nothing gets the room of what the one that has most has not used for the longest
 * time. */
TEST(the_oldest_of_the_tenant_that_has_most_makes_room) {
    for (size_t used = 0; used < 2; used++) { /* the first of them is used again */
        puppet_again();
        static struct scene scene;
        struct scene *s = &scene;
        set_up(s);
        struct bhi_compilation *loud[3], *first = keep(s, "first", MIB), *next, *again = NULL;
        for (size_t i = 0; i < BHT_COUNT(loud); i++) {
            loud[i] = keep(s, "loud", 21 * MIB);
        }
        if (used) {
            const struct bhi_compile_source source = {.given.tenant = "loud"};
            BHT_EQ(bhi_compilation_obtain(puppet.context, &source, "test", NULL, &again, NULL),
                   BH_OK);
            BHT_TRUE(again == loud[0]);
        }
        next = keep(s, "next", 0);
        (void)answer(s, next, 2 * MIB);
        BHT_EQ(bhi_compilation_take(next, "next", NULL), BH_OK);
        BHT_TRUE(!bhi_list_empty(&first->age));
        for (size_t i = 0; i < BHT_COUNT(loud); i++) {
            BHT_EQ(!bhi_list_empty(&loud[i]->age), i != used);
            bhi_compilation_unref(puppet.context, loud[i]);
        }
        bhi_compilation_unref(puppet.context, again);
        bhi_compilation_unref(puppet.context, first);
        bhi_compilation_unref(puppet.context, next);
        bhi_compilations_drop(puppet.context);
        bhi_compilation_unref(puppet.context, s->compilation);
    }
}

/* An answer takes a descriptor: it goes with the last who could take it. What was taken stays. */
TEST(an_answer_that_nobody_takes_is_not_kept) {
    static struct scene scene;
    struct scene *s = &scene;
    set_up(s);
    for (int taken = 0; taken < 2; taken++) {
        struct bhi_compilation *compilation = keep(s, "red", 0);
        (void)answer(s, compilation, 64);
        if (taken) {
            BHT_EQ(bhi_compilation_take(compilation, "test", NULL), BH_OK);
        }
        bhi_compilation_unref(puppet.context, compilation);
        BHT_EQ(puppet.context->compilations->count, taken);
    }
    bhi_compilations_drop(puppet.context);
    bhi_compilation_unref(puppet.context, s->compilation);
}

/* Who gets what was compiled before, or is compiled now: nobody of another tenant, nor with another
 * source; and while it is compiled, nobody whose wait another caller could end. */
TEST(who_shares_a_compilation) {
    static const struct {
        const char *tenant;
        uint8_t hash;
        uint64_t deadline_s;
        bool pending, held, wants; /* another caller has its event; this one wants it, too */
        bool shares;
    } rows[] = {
        {"red", 1, 5, false, false, false, true},  {"red", 1, 6, false, false, true, true},
        {"red", 1, 5, false, true, true, true},    {"blue", 1, 5, false, false, false, false},
        {"", 1, 5, false, false, false, false},    {"red", 2, 5, false, false, false, false},
        {"red", 1, 5, true, false, false, true},   {"red", 1, 6, true, false, false, false},
        {"red", 1, 5, true, true, false, false},   {"red", 1, 5, true, false, true, false},
        {"blue", 1, 5, true, false, false, false},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        static struct scene scene;
        struct scene *s = &scene;
        set_up(s);
        uint8_t request[64] = {0};
        struct bhi_compile_source source = {.request = request, .bytes = sizeof request};
        source.given = (bh_source){.struct_size = sizeof(bh_source)};
        source.given.name = "test.comp";
        source.given.tenant = "red";
        source.given.memory_limit = 64 * MIB;
        source.given.deadline_ns = 5 * FX_SECONDS;
        source.hash[31] = 1;
        bh_event *held = NULL, *event = NULL;
        struct bhi_compilation *first, *second;
        if (rows[i].pending) {
            BHT_EQ(bhi_compilation_obtain(puppet.context, &source, "first",
                                          rows[i].held ? &held : NULL, &first, NULL),
                   BH_OK);
            BHT_EQ(bhi_event_state(first->event), BH_EVENT_PENDING);
        } else {
            first = keep(s, "red", 0);
            first->hash[31] = 1;
            first->cancellable = rows[i].held;
        }
        source.given.tenant = rows[i].tenant;
        source.given.deadline_ns = rows[i].deadline_s * FX_SECONDS;
        source.hash[31] = rows[i].hash;
        BHT_EQ(bhi_compilation_obtain(puppet.context, &source, "second",
                                      rows[i].wants ? &event : NULL, &second, NULL),
               BH_OK);
        if ((first == second) != rows[i].shares) {
            BHT_FAIL("row %zu: it is %sshared", i, rows[i].shares ? "not " : "");
        }
        BHT_EQ(!event, !rows[i].wants);
        struct bh_event *all[] = {first->event, second->event};
        bhi_context_lock(puppet.context);
        for (int k = 0; k < 2; k++) {
            if (all[k]->submission) {
                bhi_submission_cancel(all[k]->submission);
            }
        }
        bhi_context_pump_unlock(puppet.context);
        bh_event_release(held);
        if (event == s->ended) { /* which the fixture releases, too */
            BHT_EQ(bhi_handle_drop(&event->handle), BHI_DROPPED);
        } else {
            bh_event_release(event);
        }
        bhi_compilation_unref(puppet.context, first);
        bhi_compilation_unref(puppet.context, second);
        bhi_compilations_drop(puppet.context);
        bhi_compilation_unref(puppet.context, s->compilation);
    }
}

/* -- what a compiler says, or does not live to say ----------------------------------------------- */

/* A source with errors has them each time; a compiler that died or was late may do better. */
TEST(a_compile_that_failed_is_shared_where_the_source_was_refused) {
    for (int refused = 0; refused < 2; refused++) {
        puppet_again();
        static struct scene scene;
        struct scene *s = &scene;
        set_up(s);
        bh_event *failed = puppet_submit();
        BHT_EQ(bh_event_cancel(failed), BH_OK);
        BHT_EQ(bh_event_query(failed), BH_EVENT_POISONED);
        uint8_t request[64] = {0};
        struct bhi_compile_source source = {.request = request, .bytes = sizeof request};
        source.given = (bh_source){.struct_size = sizeof(bh_source)};
        source.given.name = "test.comp";
        source.given.tenant = "red";
        source.given.memory_limit = 64 * MIB;
        source.given.deadline_ns = 5 * FX_SECONDS;
        struct bhi_compilation *first = keep(s, "red", 0), *second;
        bhi_event_unref(first->event);
        bhi_event_ref(failed);
        first->event = failed;
        first->refused = refused;
        BHT_EQ(bhi_compilation_obtain(puppet.context, &source, "second", NULL, &second, NULL),
               BH_OK);
        BHT_EQ(first == second, refused);
        bhi_context_lock(puppet.context);
        if (second->event->submission) {
            bhi_submission_cancel(second->event->submission);
        }
        bhi_context_pump_unlock(puppet.context);
        bhi_compilation_unref(puppet.context, first);
        bhi_compilation_unref(puppet.context, second);
        bhi_compilations_drop(puppet.context);
        bhi_compilation_unref(puppet.context, s->compilation);
    }
}

/* A compiler may write anything: a name that does not end would be read on behind it. */
TEST(the_name_of_a_kernel_ends_where_it_says) {
    static const char ptx[] = ".version 7.0\n.entry main() {}\n";
    static const struct {
        size_t length;
        char last;
        bh_status status;
    } rows[] = {{BHI_COMPILE_ENTRY - 1, 'x', BH_OK},
                {BHI_COMPILE_ENTRY, 'x', BH_PROTOCOL},
                {4, '\n', BH_PROTOCOL},
                {0, 0, BH_PROTOCOL}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        static struct scene scene;
        struct scene *s = &scene;
        set_up(s);
        s->compilation->cuda = true;
        s->answer->code_bytes = sizeof ptx;
        memcpy(s->answer + 1, ptx, sizeof ptx);
        s->answer->log[0] = '\0'; /* what follows the name: a text that would end it well */
        s->answer->log_bytes = 0;
        memset(s->answer->entry, 'x', rows[i].length);
        if (rows[i].length) {
            s->answer->entry[rows[i].length - 1] = rows[i].last;
        }
        const bh_status status = bhi_compilation_take(s->compilation, "test", NULL);
        if (status != rows[i].status) {
            BHT_FAIL("row %zu: %s", i, bh_status_name(status));
        }
        bhi_compilation_unref(puppet.context, s->compilation);
    }
}

/* What it says of a module is taken whole or not at all. */
TEST(an_inspection_is_within_its_limits) {
    static struct bhi_inspection good, from;
    static bh_inspection out;
    good.entries = good.members = good.capabilities = 1;
    good.bindings = BHI_INSPECT_BINDINGS;
    for (uint32_t i = 0; i < good.bindings; i++) {
        good.binding[i].set = 31;
        good.binding[i].binding = 65535;
        good.binding[i].kind = BH_BINDING_UNIFORM_BUFFER;
        good.binding[i].access = BH_ACCESS_READ_WRITE;
        good.binding[i].count = i ? 1 : BHI_INSPECT_BINDINGS;
    }
    good.constants = BHI_INSPECT_CONSTANTS;
    for (uint32_t i = 0; i < good.constants; i++) {
        good.constant[i].dtype = i ? BH_DTYPE_F16 + (i - 1) % (BH_DTYPE_U64 - BH_DTYPE_F16 + 1)
                                   : (uint32_t)BH_DTYPE_BOOL;
    }
    good.text_bytes = BHI_INSPECT_MAX_TEXT;
    BHT_TRUE(bhi_inspection_take(&good, &out));
    BHT_EQ(out.binding_count, BHI_INSPECT_BINDINGS);
#define IS_REFUSED(field, value)                                                                   \
    do {                                                                                           \
        from = good;                                                                               \
        from.field = (value);                                                                      \
        BHT_TRUE(!bhi_inspection_take(&from, &out));                                               \
    } while (0)
    IS_REFUSED(entries, BHI_INSPECT_ENTRIES + 1);
    IS_REFUSED(bindings, BHI_INSPECT_BINDINGS + 1);
    IS_REFUSED(members, BHI_INSPECT_MEMBERS + 1);
    IS_REFUSED(constants, BHI_INSPECT_CONSTANTS + 1);
    IS_REFUSED(capabilities, BHI_INSPECT_CAPABILITIES + 1);
    IS_REFUSED(push_bytes, UINT32_MAX - 2);
    IS_REFUSED(text_bytes, BHI_INSPECT_MAX_TEXT + 1);
    for (uint32_t i = 0; i < BHI_INSPECT_BINDINGS; i += BHI_INSPECT_BINDINGS - 1) {
        IS_REFUSED(binding[i].set, 32);
        IS_REFUSED(binding[i].binding, 65536);
        IS_REFUSED(binding[i].kind, BH_BINDING_STORAGE_BUFFER - 1u);
        IS_REFUSED(binding[i].kind, BH_BINDING_UNIFORM_BUFFER + 1);
        IS_REFUSED(binding[i].access, BH_ACCESS_READ - 1u);
        IS_REFUSED(binding[i].access, BH_ACCESS_READ_WRITE + 1);
        IS_REFUSED(binding[i].count, 0);
        IS_REFUSED(binding[i].count, BHI_INSPECT_BINDINGS + 1);
        IS_REFUSED(binding[i].measured, 2);
    }
    for (uint32_t i = 0; i < BHI_INSPECT_CONSTANTS; i += BHI_INSPECT_CONSTANTS - 1) {
        IS_REFUSED(constant[i].dtype, BH_DTYPE_NONE);
        IS_REFUSED(constant[i].dtype, 4000);
    }
}

/* How the compiler ended, and what its caller is told of the kernel. */
TEST(what_a_call_says_of_its_compilers_end) {
    static const struct {
        bh_verdict verdict;
        bh_status status, cause;
        bh_reason reason;
        uint64_t limit;
        int signal;
    } rows[] = {
        {{.status = BH_DEADLINE}, BH_COMPILE_FAILED, BH_DEADLINE, BH_REASON_COMPILE_DEADLINE, 7, 0},
        {{.status = BH_OUT_OF_HOST_MEMORY, .reason = BH_REASON_MEMORY_LIMIT},
         BH_COMPILE_FAILED,
         BH_OUT_OF_HOST_MEMORY,
         BH_REASON_MEMORY_LIMIT,
         9,
         0},
        {{.status = BH_WORKER_SIGNAL, .signal = 9, .blame = BH_BLAME_NONE},
         BH_WORKER_SIGNAL,
         BH_OK,
         BH_REASON_COMPILER_KILLED,
         0,
         9},
        {{.status = BH_WORKER_SIGNAL, .signal = 11, .blame = BH_BLAME_CERTAIN},
         BH_COMPILE_FAILED,
         BH_WORKER_SIGNAL,
         BH_REASON_COMPILER_CRASHED,
         0,
         11},
        {{.status = BH_WORKER_EXIT}, BH_COMPILE_FAILED, BH_WORKER_EXIT, BH_REASON_NONE, 0, 0},
        {{.status = BH_SECCOMP, .signal = 31},
         BH_COMPILE_FAILED,
         BH_SECCOMP,
         BH_REASON_NONE,
         0,
         31},
        {{.status = BH_COMPILE_FAILED}, BH_COMPILE_FAILED, BH_OK, BH_REASON_NONE, 0, 0},
        {{.status = BH_CANCELLED}, BH_CANCELLED, BH_OK, BH_REASON_NONE, 0, 0},
        {{.status = BH_ZYGOTE_LOST}, BH_ZYGOTE_LOST, BH_OK, BH_REASON_NONE, 0, 0},
    };
    const struct bhi_compiler_request request = {
        .subject = "test.comp", .memory = 9, .internal = {.call = "test", .deadline_ns = 7}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        struct bh_event event = {.verdict = rows[i].verdict};
        snprintf(event.verdict.message, sizeof event.verdict.message, "its own words");
        bh_detail detail = {0};
        if (bhi_compiler_report(&event, &request, &detail) != rows[i].status ||
            detail.cause != rows[i].cause || detail.reason != rows[i].reason ||
            detail.limit != rows[i].limit || detail.signal != rows[i].signal) {
            BHT_FAIL("row %zu: %s, because of %s, reason %d, limit %llu, signal %d", i,
                     bh_status_name(detail.status), bh_status_name(detail.cause),
                     (int)detail.reason, (unsigned long long)detail.limit, detail.signal);
        }
        BHT_STR_HAS(detail.message, rows[i].reason ? "test.comp" : "its own words");
    }
}
