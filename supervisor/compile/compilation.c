/* The answer of a compiler is in a buffer that the compiler can write at any time, so each byte is
 * copied once. The module in it is not parsed here. */
#include "supervisor/compile/compilation.h"
#include "base/check.h"
#include "base/copy_once.h"
#include "base/detail.h"
#include "base/owner.h"
#include "base/share.h"
#include "base/text.h"
#include "ipc/commands.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/compile/compiler.h"
#include "supervisor/context/payload.h"
#include "supervisor/event/event.h"
#include "supervisor/kernel/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is kept; tenants share both (base/share.h), so that one keeps half at most. */
#define MOST_KEPT  128u
#define MOST_BYTES (64u << 20)

void bhi_compilations_init(struct bhi_compilations *table) {
    pthread_mutex_init(&table->lock, NULL);
    bhi_list_init(&table->ages);
    table->count = 0;
    table->bytes = 0;
}

void bhi_compilations_fini(struct bhi_compilations *table) {
    BHI_CHECK(!table->count);
    pthread_mutex_destroy(&table->lock);
}

/* -- what is kept: lock held ------------------------------------------------------------------ */

static uint64_t kept_bytes(const struct bhi_compilation *compilation) {
    return compilation->code_bytes + (compilation->log ? strlen(compilation->log) : 0);
}

static void unref(struct bhi_compilation *compilation) {
    if (--compilation->refs) {
        return;
    }
    bh_buffer_release(compilation->answer);
    bhi_event_unref(compilation->event);
    free(compilation->name);
    free(compilation->log);
    free(compilation->code);
    free(compilation);
}

static void forget(struct bhi_compilations *table, struct bhi_compilation *compilation) {
    if (!bhi_list_empty(&compilation->age)) {
        bhi_list_remove(&compilation->age);
        table->count--;
        table->bytes -= kept_bytes(compilation);
        unref(compilation);
    }
}

static struct bhi_compilation *of_age(struct bhi_list *node) {
    return BHI_CONTAINER(node, struct bhi_compilation, age);
}

/* What a tenant has. */
struct part {
    uint32_t count;
    uint64_t bytes;
};

static struct part part_of(const struct bhi_compilations *table, const char *tenant) {
    struct part part = {0};
    BHI_LIST_EACH(node, &table->ages) {
        const struct bhi_compilation *compilation = of_age(node);
        if (strcmp(compilation->tenant, tenant) == 0) {
            part.count++;
            part.bytes += kept_bytes(compilation);
        }
    }
    return part;
}

/* Returns what |tenant| has not used for the longest time; NULL: it has nothing. */
static struct bhi_compilation *oldest_of(const struct bhi_compilations *table, const char *tenant) {
    BHI_LIST_EACH(node, &table->ages) {
        if (strcmp(of_age(node)->tenant, tenant) == 0) {
            return of_age(node);
        }
    }
    return NULL;
}

/* Returns the oldest one of the tenant that has most. */
static struct bhi_compilation *oldest_of_most(const struct bhi_compilations *table) {
    struct bhi_compilation *found = NULL;
    uint64_t most = 0;
    BHI_LIST_EACH(node, &table->ages) {
        const struct part part = part_of(table, of_age(node)->tenant);
        const uint64_t by_count = part.count * (uint64_t)(MOST_BYTES / MOST_KEPT);
        const uint64_t size = by_count > part.bytes ? by_count : part.bytes;
        if (size > most) {
            most = size;
            found = of_age(node);
        }
    }
    return found;
}

/* A tenant makes room with what it has itself. One that has nothing gets room from the one that has
 * most: where there are many tenants, those that are gone would keep out those that come. */
static void keep(struct bhi_compilations *table, struct bhi_compilation *compilation) {
    const uint64_t bytes = kept_bytes(compilation);
    for (;;) {
        const struct part own = part_of(table, compilation->tenant);
        if (bhi_share_allows(own.count, 1, table->count, MOST_KEPT) &&
            bhi_share_allows(own.bytes, bytes, table->bytes, MOST_BYTES)) {
            break;
        }
        struct bhi_compilation *last = oldest_of(table, compilation->tenant);
        forget(table, last ? last : oldest_of_most(table));
    }
    bhi_list_append(&table->ages, &compilation->age);
    table->count++;
    table->bytes += bytes;
    compilation->refs++;
}

void bhi_compilations_drop(bh_context *context) {
    struct bhi_compilations *table = context->compilations;
    pthread_mutex_lock(&table->lock);
    BHI_LIST_EACH_SAFE(node, &table->ages)
    forget(table, of_age(node));
    pthread_mutex_unlock(&table->lock);
}

/* Returns true if a caller that wants the event, or not, may share the compilation. */
static bool can_share(const struct bhi_compilation *compilation, const bh_source *given,
                      bool wants_event) {
    if (bhi_event_state(compilation->event) == BH_EVENT_PENDING) {
        return !wants_event && !compilation->cancellable &&
               compilation->deadline_ns == given->deadline_ns;
    }
    return bhi_event_state(compilation->event) == BH_EVENT_READY || compilation->refused;
}

static struct bhi_compilation *find(struct bhi_compilations *table,
                                    const struct bhi_compile_source *source, bool wants_event) {
    BHI_LIST_EACH_SAFE(node, &table->ages) {
        struct bhi_compilation *compilation = of_age(node);
        if (memcmp(compilation->hash, source->hash, sizeof source->hash) == 0 &&
            strcmp(compilation->tenant, source->given.tenant) == 0 &&
            can_share(compilation, &source->given, wants_event)) {
            bhi_list_remove(&compilation->age);
            bhi_list_append(&table->ages, &compilation->age);
            compilation->refs++;
            return compilation;
        }
    }
    return NULL;
}

/* -- start ------------------------------------------------------------------------------------ */

static struct bhi_compilation *make(const struct bhi_compile_source *source) {
    const bh_source *given = &source->given;
    struct bhi_compilation *compilation = calloc(1, sizeof *compilation);
    char *name = strdup(given->name);
    if (!compilation || !name) {
        free(compilation);
        free(name);
        return NULL;
    }
    bhi_list_init(&compilation->age);
    compilation->refs = 1;
    compilation->name = name;
    compilation->deadline_ns = given->deadline_ns;
    compilation->memory_limit = given->memory_limit;
    compilation->cuda = given->language == BH_LANGUAGE_CUDA;
    snprintf(compilation->tenant, sizeof compilation->tenant, "%s", given->tenant);
    memcpy(compilation->hash, source->hash, sizeof compilation->hash);
    return compilation;
}

static struct bhi_compiler_request request_of(const struct bhi_compilation *compilation,
                                              const char *call) {
    return (struct bhi_compiler_request){
        .subject = compilation->name,
        .tenant = compilation->tenant,
        .driver = compilation->cuda ? BHI_NVRTC : NULL,
        .memory = compilation->memory_limit,
        .internal = {.call = call,
                     .fills = compilation->answer,
                     .deadline_ns = compilation->deadline_ns,
                     .failure_uncounted = true},
    };
}

/* The answer has room for the largest module: only those pages take memory that the compiler
 * writes. */
static bh_status start(bh_context *context, struct bhi_compilation *compilation,
                       const struct bhi_compile_source *source, const char *call,
                       bh_detail *detail) {
    struct bh_buffer *request;
    BHI_TRY(bhi_buffer_make(context, source->bytes, call, &request, detail));
    memcpy(request->pointer, source->request, source->bytes);
    bh_status status =
        bhi_buffer_make(context, sizeof(struct bhi_compile_answer) + BHI_COMPILE_MAX_CODE, call,
                        &compilation->answer, detail);
    if (status == BH_OK) {
        const struct bhi_cmd_compile command = {
            .header = {.type = BHI_CMD_COMPILE, .size = sizeof command},
            .source = request->id,
            .answer = compilation->answer->id,
        };
        struct bhi_named_source named;
        memcpy(named.hash, source->hash, sizeof named.hash);
        bhi_text_line(named.name, sizeof named.name, compilation->name, strlen(compilation->name));
        struct bhi_compiler_request asked = request_of(compilation, call);
        asked.internal.command = &command;
        asked.internal.size = sizeof command;
        asked.internal.reads = request;
        asked.internal.source = &named;
        status = bhi_compiler_start(context, &asked, &compilation->event, detail);
    }
    bh_buffer_release(request);
    return status;
}

/* Gives the caller a reference to the event. It may have one of an earlier call already. */
static void give_event(struct bhi_compilation *compilation, bh_event **out_event) {
    struct bh_event *event = compilation->event;
    compilation->cancellable = true;
    if (atomic_fetch_add(&event->handle.count, 1) == 0) {
        bhi_event_ref(event); /* for all that the caller gets */
    }
    *out_event = event;
}

bh_status bhi_compilation_obtain(bh_context *context, const struct bhi_compile_source *source,
                                 const char *call, bh_event **out_event,
                                 struct bhi_compilation **out, bh_detail *detail) {
    struct bhi_compilations *table = context->compilations;
    bh_status status = BH_OK;
    pthread_mutex_lock(&table->lock); /* until it is in the table: others find it */
    struct bhi_compilation *compilation = find(table, source, out_event);
    if (!compilation && !(compilation = make(source))) {
        status = BHI_FAIL(detail, call, BH_REASON_MEMORY);
    } else if (!compilation->event) {
        status = start(context, compilation, source, call, detail);
        if (status == BH_OK) {
            keep(table, compilation);
        } else {
            unref(compilation);
        }
    }
    if (status == BH_OK && out_event) {
        give_event(compilation, out_event);
    }
    pthread_mutex_unlock(&table->lock);
    *out = status == BH_OK ? compilation : NULL;
    return status;
}

/* -- the answer ------------------------------------------------------------------------------- */

/* Copies a log; what may not be shown becomes '?'. If not all of it fits into |size|, copies whole
 * lines only. */
static void copy_log(char *out, size_t size, const char *log, size_t bytes) {
    bhi_text_sanitise(out, size, log, bytes);
    size_t length = strlen(out);
    if (length + 4 < size) { /* a character has at most 4 bytes, so none was cut off */
        return;
    }
    while (length > 0 && out[length - 1] != '\n') {
        length--;
    }
    if (length) { /* if not even one line fits, its beginning stays */
        out[length] = '\0';
    }
}

size_t bhi_compilation_log(const struct bhi_compilation *compilation, char *out, size_t size) {
    struct bhi_compilations *table = compilation->event->context->compilations;
    pthread_mutex_lock(&table->lock);
    const char *log = compilation->log ? compilation->log : "";
    pthread_mutex_unlock(&table->lock); /* written once: it stays as it is */
    if (size) {
        copy_log(out, size, log, strlen(log));
    }
    return strlen(log);
}

/* |head| is our copy. |*out_code| is owned by the caller, whatever is returned. */
static bh_status take_code(const struct bhi_compilation *compilation,
                           const struct bhi_compile_answer *head, const char *call, void **out_code,
                           bh_detail *detail) {
    if (head->code_bytes > BHI_COMPILE_MAX_CODE) {
        return BHI_FAIL(detail, call, BH_REASON_MODULE_BYTES, compilation->name,
                        .value = head->code_bytes, .limit = BHI_COMPILE_MAX_CODE);
    }
    *out_code = malloc(head->code_bytes + 1);
    if (!*out_code) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    bhi_copy_once(*out_code, (const uint8_t *)compilation->answer->pointer + sizeof *head,
                  head->code_bytes);
    const bool fits = (compilation->cuda ? bhi_kernel_is_image
                                         : bhi_kernel_is_module)(*out_code, head->code_bytes);
    if (head->refused || !fits || !memchr(head->entry, '\0', sizeof head->entry) ||
        (compilation->cuda && (!head->entry[0] || !bhi_text_is_line(head->entry)))) {
        return BHI_FAIL(detail, call, BH_REASON_IMPOSSIBLE, compilation->name,
                        .subject = BH_SUBJECT_KERNEL, .text = "the compiler");
    }
    return BH_OK;
}

/* Did the compiler report that the source has errors? A refusal of the core, or a death, leaves no
 * answer. */
static bool has_errors(const bh_verdict *verdict) {
    return verdict->status == BH_COMPILE_FAILED && verdict->executed == BH_EXECUTED_UNKNOWN &&
           !verdict->signal && verdict->exit_code < 0;
}

/* Lock held; it has ended. */
static bh_status take(struct bhi_compilation *compilation, const char *call, bh_detail *detail) {
    const bh_verdict *verdict = &compilation->event->verdict;
    if (verdict->status != BH_OK && !has_errors(verdict)) {
        const struct bhi_compiler_request request = request_of(compilation, call);
        return bhi_compiler_report(compilation->event, &request, detail);
    }
    BHI_AUTO_FREE struct bhi_compile_answer *head = malloc(sizeof *head);
    BHI_AUTO_FREE char *log = malloc(sizeof head->log + 1);
    BHI_AUTO_FREE void *code = NULL;
    if (!head || !log) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    bhi_copy_once(head, compilation->answer->pointer, sizeof *head);
    copy_log(log, sizeof head->log + 1, head->log,
             head->log_bytes < sizeof head->log ? head->log_bytes : sizeof head->log);
    if (verdict->status == BH_OK) {
        BHI_TRY(take_code(compilation, head, call, &code, detail));
        compilation->code_bytes = head->code_bytes;
        compilation->version = head->version;
        memcpy(compilation->entry, head->entry, sizeof compilation->entry);
    }
    compilation->refused = verdict->status != BH_OK;
    compilation->code = BHI_STEAL(code);
    compilation->log = BHI_STEAL(log);
    bh_buffer_release(compilation->answer);
    compilation->answer = NULL;
    return BH_OK;
}

bh_status bhi_compilation_take(struct bhi_compilation *compilation, const char *call,
                               bh_detail *detail) {
    struct bhi_compilations *table = compilation->event->context->compilations;
    if (bhi_event_state(compilation->event) == BH_EVENT_PENDING) {
        return BHI_FAIL(detail, call, BH_REASON_COMPILING, compilation->name);
    }
    bh_status status = BH_OK;
    pthread_mutex_lock(&table->lock);
    if (compilation->answer) {
        const bool kept = !bhi_list_empty(&compilation->age);
        forget(table, compilation); /* the caller has a reference */
        status = take(compilation, call, detail);
        if (status == BH_OK && kept) {
            keep(table, compilation); /* with the bytes that it has now */
        }
    }
    pthread_mutex_unlock(&table->lock);
    if (status == BH_OK && compilation->refused) {
        const bh_verdict *verdict = &compilation->event->verdict;
        status = BHI_FAIL(detail, call, verdict->reason, verdict->subject_name,
                          .subject = verdict->subject, .status = BH_COMPILE_FAILED,
                          .said = verdict->message);
    }
    return status;
}

bh_status bhi_compilation_kernel(bh_context *context, const struct bhi_compilation *compilation,
                                 const bh_kernel_options *options, bh_kernel **out_kernel,
                                 bh_detail *detail) {
    bh_kernel_options named = *options;
    /* The compiler says what a kernel of CUDA is called, and has renamed any other to main. */
    named.entry = compilation->cuda ? compilation->entry : NULL;
    if (!named.name) {
        named.name = compilation->name;
    }
    return (compilation->cuda ? bh_kernel_create_image : bh_kernel_create_spirv)(
        context, compilation->code, compilation->code_bytes, &named, out_kernel, detail);
}

void bhi_compilation_unref(bh_context *context, struct bhi_compilation *compilation) {
    struct bhi_compilations *table = context->compilations;
    if (!compilation) {
        return;
    }
    pthread_mutex_lock(&table->lock);
    /* Nobody has looked at the answer, which has a descriptor: it is not kept. */
    if (compilation->refs == 2 && compilation->answer) {
        forget(table, compilation);
    }
    unref(compilation);
    pthread_mutex_unlock(&table->lock);
}
