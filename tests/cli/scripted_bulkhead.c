/* libbulkhead as a script: the API that the command-line program uses, without workers or devices,
 * answering what the environment says. So every status of status.def can be seen through the
 * program, and what it does with it.
 *
 *   SCRIPT_<CALL>=STATUS     context, stream, ready, buffer, kernel, prepare (its event),
 *                            reflect, inspect, submit, event, map,
 *                            devices, doctor: what that call answers; default OK
 *   SCRIPT_TEMPLATE, SCRIPT_OUTPUT, SCRIPT_SOURCE=STATUS   what bh_template_... answer
 *   SCRIPT_FILE, SCRIPT_LOAD=STATUS   what bh_buffer_from_file answers, how the load ends
 *   SCRIPT_FILE_HANG=1       bh_buffer_from_file returns when the context is destroyed
 *   SCRIPT_GLSL_HANG=1       bh_kernel_create_glsl, bh_kernel_inspect return when the context is
 *                            destroyed
 *   SCRIPT_GLSL_LOG=TEXT     what the compiler says
 *   SCRIPT_LOAD_HANG=1       loads stay pending until they are cancelled
 *   SCRIPT_LOAD_UNTIL=PATH   loads stay pending, half done, until there is such a file
 *   SCRIPT_UNTIMED=N         of the Nth submission no device time is known; others: N * 0.1 ms
 *   SCRIPT_FAIL_AT=N         SCRIPT_EVENT holds for the Nth submission only (from 1)
 *   SCRIPT_HANG=1            events stay pending until they are cancelled
 *   SCRIPT_PREPARE_HANG=1    the compile's event stays pending until it is cancelled
 *   SCRIPT_BINDINGS=0.0:r:x,0.1:w:y   what the kernel binds (r, w, rw; u: uniform)
 *   SCRIPT_PUSH=8            its bytes of push constants
 *   SCRIPT_OPTIONS=1         what bh_stream_create and the compiler are given goes to standard error
 *   SCRIPT_MESSAGE=TEXT      of verdicts and details
 *
 * The kernel copies its first readable binding to each writable one, byte by byte, over and over. */
#include <bulkhead/bulkhead.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool/npy_file.h"

struct bh_context {
    int unused;
};
struct bh_stream {
    uint64_t submissions;
};
struct bh_buffer {
    uint64_t size;
    uint8_t *bytes;
    bh_status content;
    bool from_file;
    bh_array_info array;
};
struct bh_kernel {
    char name[64];
};
struct bh_event {
    bool pending;
    const char *until; /* there is a file of this name; NULL: nothing of the kind */
    bh_verdict verdict;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards pending, closed */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool closed;

static const struct {
    bh_status status;
    const char *name, *text, *advice;
    bh_status_class class_;
} statuses[] = {
#define BH_STATUS(name, value, class_, text, advice)                                               \
    {BH_##name, #name, text, advice, BH_STATUS_CLASS_##class_},
#include "base/status.def"
#undef BH_STATUS
};

static size_t find(bh_status status) {
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (statuses[i].status == status) {
            return i;
        }
    }
    abort();
}

const char *bh_status_name(bh_status status) {
    return statuses[find(status)].name;
}

const char *bh_status_text(bh_status status) {
    return statuses[find(status)].text;
}

const char *bh_status_advice(bh_status status) {
    return statuses[find(status)].advice;
}

bh_status_class bh_status_classify(bh_status status) {
    return statuses[find(status)].class_;
}

static const char *message(void) {
    const char *text = getenv("SCRIPT_MESSAGE");
    return text ? text : "as scripted";
}

/* What the script says about |call|. */
static bh_status answer(const char *call, bh_detail *detail) {
    const char *name = getenv(call);
    if (!name) {
        return BH_OK;
    }
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (strcmp(statuses[i].name, name) != 0) {
            continue;
        }
        if (detail && statuses[i].status != BH_OK) {
            detail->status = statuses[i].status;
            snprintf(detail->message, sizeof detail->message, "%s", message());
        }
        return statuses[i].status;
    }
    fprintf(stderr, "script: no status %s\n", name);
    abort();
}

void bh_context_options_init_sized(bh_context_options *options, size_t size) {
    *options = (bh_context_options){.struct_size = size};
}

bh_status bh_context_create(const bh_context_options *options, bh_context **out_context,
                            bh_detail *detail) {
    bh_status status = answer("SCRIPT_CONTEXT", detail);
    if (status == BH_OK) {
        *out_context = calloc(1, sizeof **out_context);
    }
    if (options->log) {
        options->log(BH_LOG_INFO, "scripted\033[31m log", options->log_user);
    }
    return status;
}

bh_status bh_context_destroy(bh_context *context) {
    pthread_mutex_lock(&lock);
    closed = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    free(context);
    return BH_OK;
}

void bh_stream_options_init_sized(bh_stream_options *options, size_t size) {
    *options =
        (bh_stream_options){.struct_size = size, .deadline_ns = 10000000000u, .grace_ns = 250};
}

bh_status bh_stream_create(bh_context *context, const bh_stream_options *options,
                           bh_stream **out_stream, bh_detail *detail) {
    (void)context;
    if (options->device && strstr(options->device, "bad")) {
        snprintf(detail->message, sizeof detail->message, "no such selector");
        return BH_INVALID_ARGUMENT;
    }
    if (getenv("SCRIPT_OPTIONS")) {
        fprintf(stderr, "stream: compile %llu, grace %llu, tenant '%s'\n",
                (unsigned long long)options->compile_deadline_ns,
                (unsigned long long)options->grace_ns, options->tenant ? options->tenant : "");
    }
    bh_status status = answer("SCRIPT_STREAM", detail);
    if (status == BH_OK) {
        *out_stream = calloc(1, sizeof **out_stream);
    }
    return status;
}

bh_status bh_stream_wait_ready(bh_stream *stream, uint64_t timeout_ns, bh_detail *detail) {
    (void)stream;
    (void)timeout_ns;
    return answer("SCRIPT_READY", detail);
}

bh_status bh_stream_release(bh_stream *stream) {
    free(stream);
    return BH_OK;
}

bh_status bh_buffer_create(bh_context *context, uint64_t size, bh_buffer **out_buffer,
                           bh_detail *detail) {
    (void)context;
    bh_status status = answer("SCRIPT_BUFFER", detail);
    if (status != BH_OK) {
        return status;
    }
    *out_buffer = calloc(1, sizeof **out_buffer);
    (*out_buffer)->size = size;
    (*out_buffer)->bytes = calloc(1, size + 1);
    return BH_OK;
}

void bh_buffer_options_init_sized(bh_buffer_options *options, size_t size) {
    *options = (bh_buffer_options){.struct_size = size};
}

bh_status bh_buffer_create_with(bh_context *context, uint64_t size,
                                const bh_buffer_options *options, bh_buffer **out_buffer,
                                bh_detail *detail) {
    (void)options;
    return bh_buffer_create(context, size, out_buffer, detail);
}

bh_memory bh_buffer_memory(const bh_buffer *buffer) {
    (void)buffer;
    return BH_MEMORY_HOST;
}

void bh_file_source_init_sized(bh_file_source *source, size_t size) {
    *source = (bh_file_source){.struct_size = size};
}

bh_status bh_buffer_from_file(bh_context *context, const bh_file_source *source,
                              bh_buffer **out_buffer, bh_detail *detail) {
    struct bhi_npy_file file;
    struct bhi_complaint complaint;
    bh_status status = answer("SCRIPT_FILE", detail);
    if (status != BH_OK) {
        return status;
    }
    if (getenv("SCRIPT_FILE_HANG")) {
        pthread_mutex_lock(&lock);
        while (!closed) {
            pthread_cond_wait(&changed, &lock);
        }
        pthread_mutex_unlock(&lock);
        snprintf(detail->message, sizeof detail->message, "the path is %s", source->path);
        return detail->status = BH_CLOSED;
    }
    if (getenv("SCRIPT_OPTIONS")) {
        fprintf(stderr, "file: tenant '%s'\n", source->tenant ? source->tenant : "");
    }
    if (!bhi_npy_file_open(source->path, &file, &complaint)) {
        snprintf(detail->message, sizeof detail->message, "bh_buffer_from_file: %s: %.400s",
                 source->path, complaint.text);
        return detail->status = BH_LOAD_FAILED;
    }
    status = bh_buffer_create(context, file.array.bytes, out_buffer, detail);
    if (status == BH_OK) {
        bh_buffer *buffer = *out_buffer;
        buffer->array.dtype = file.array.dtype;
        buffer->array.rank = file.array.dimensions;
        memcpy(buffer->array.shape, file.array.shape, sizeof file.array.shape);
        if (!bhi_npy_file_read(&file, buffer->bytes, &complaint)) {
            abort();
        }
        buffer->from_file = true;
    }
    bhi_npy_file_close(&file);
    return status;
}

bh_status bh_buffer_array_sized(const bh_buffer *buffer, bh_array_info *out_info, size_t info_size,
                                bh_detail *detail) {
    (void)info_size, (void)detail;
    *out_info = buffer->array;
    return BH_OK;
}

uint64_t bh_buffer_size(const bh_buffer *buffer) {
    return buffer->size;
}

bh_status bh_buffer_load_progress(bh_buffer *buffer, uint64_t *out_done, uint64_t *out_total,
                                  bh_detail *detail) {
    (void)detail;
    *out_done = buffer->size / 2;
    *out_total = buffer->size;
    return BH_OK;
}

bh_status bh_buffer_load_event(bh_buffer *buffer, bh_event **out_event, bh_detail *detail) {
    (void)detail;
    if (!buffer->from_file) {
        return BH_INVALID_ARGUMENT;
    }
    bh_event *event = calloc(1, sizeof *event);
    event->verdict.status = answer("SCRIPT_LOAD", NULL);
    event->verdict.exit_code = -1;
    if (event->verdict.status != BH_OK) {
        snprintf(event->verdict.message, sizeof event->verdict.message, "%s", message());
    }
    event->until = getenv("SCRIPT_LOAD_UNTIL");
    event->pending = getenv("SCRIPT_LOAD_HANG") || event->until;
    *out_event = event;
    return BH_OK;
}

bh_status bh_buffer_map(bh_buffer *buffer, bh_map_intent intent, uint64_t timeout_ns,
                        void **out_pointer, bh_detail *detail) {
    (void)timeout_ns;
    bh_status status = intent == BH_MAP_READ ? answer("SCRIPT_MAP", detail) : BH_OK;
    *out_pointer = buffer->bytes;
    return status;
}

bh_status bh_buffer_release(bh_buffer *buffer) {
    if (buffer) {
        free(buffer->bytes);
    }
    free(buffer);
    return BH_OK;
}

void bh_kernel_options_init_sized(bh_kernel_options *options, size_t size) {
    *options = (bh_kernel_options){.struct_size = size};
}

bh_status bh_kernel_create_spirv(bh_context *context, const void *code, size_t code_size,
                                 const bh_kernel_options *options, bh_kernel **out_kernel,
                                 bh_detail *detail) {
    (void)context;
    (void)code;
    (void)code_size;
    bh_status status = answer("SCRIPT_KERNEL", detail);
    if (status != BH_OK) {
        return status;
    }
    *out_kernel = calloc(1, sizeof **out_kernel);
    snprintf((*out_kernel)->name, sizeof(*out_kernel)->name, "%s", options->name);
    return BH_OK;
}

void bh_glsl_source_init_sized(bh_glsl_source *source, size_t size) {
    *source = (bh_glsl_source){.struct_size = size};
}

bh_status bh_kernel_create_glsl(bh_context *context, const bh_glsl_source *source,
                                const bh_kernel_options *options, bh_kernel **out_kernel,
                                bh_detail *detail) {
    if (getenv("SCRIPT_OPTIONS")) {
        fprintf(stderr, "source: compile %llu\n", (unsigned long long)source->deadline_ns);
    }
    if (getenv("SCRIPT_GLSL_LOG")) {
        snprintf(source->log, source->log_size, "%s", getenv("SCRIPT_GLSL_LOG"));
    }
    if (getenv("SCRIPT_GLSL_HANG")) {
        pthread_mutex_lock(&lock);
        while (!closed) {
            pthread_cond_wait(&changed, &lock);
        }
        pthread_mutex_unlock(&lock);
        return detail->status = BH_CONTEXT_CLOSED;
    }
    return bh_kernel_create_spirv(context, source->text, source->length, options, out_kernel,
                                  detail);
}

void bh_inspect_options_init_sized(bh_inspect_options *options, size_t size) {
    *options = (bh_inspect_options){.struct_size = size};
}

bh_status bh_kernel_inspect_sized(bh_kernel *kernel, const bh_inspect_options *options,
                                  bh_inspection *out_inspection, size_t inspection_size,
                                  bh_detail *detail) {
    (void)inspection_size;
    (void)kernel;
    *out_inspection = (bh_inspection){0};
    if (getenv("SCRIPT_GLSL_HANG")) {
        pthread_mutex_lock(&lock);
        while (!closed) {
            pthread_cond_wait(&changed, &lock);
        }
        pthread_mutex_unlock(&lock);
        return detail->status = BH_CONTEXT_CLOSED;
    }
    /* A disassembly that needs a second try. */
    const size_t length = (1 << 20) + 10;
    if (options && options->guarded) {
        out_inspection->text_bytes = length;
        size_t there = options->text_size - 1 < length ? options->text_size - 1 : length;
        memset(options->text, '.', there);
        options->text[there] = '\0';
    }
    return answer("SCRIPT_INSPECT", detail);
}

void bh_kernel_hash(const bh_kernel *kernel, uint8_t out_hash[32]) {
    (void)kernel;
    memset(out_hash, 0xAB, 32);
}

bh_status bh_kernel_release(bh_kernel *kernel) {
    free(kernel);
    return BH_OK;
}

/* -- templates: all outputs are like the first input --------------------------------------------
 */

struct bh_template {
    int unused;
};

void bh_description_init_sized(bh_description *description, size_t size) {
    *description = (bh_description){.struct_size = size, .lanes = 1};
}

bh_status bh_buffer_set_description(bh_buffer *buffer, const bh_description *description,
                                    bh_detail *detail) {
    (void)buffer;
    (void)description;
    (void)detail;
    return BH_OK;
}

/* All are bytes. */
bh_status bh_buffer_description(bh_buffer *buffer, bh_description *out_description,
                                bh_detail *detail) {
    (void)detail;
    out_description->kind = BH_NUMBER_UINT;
    out_description->bits = 8;
    out_description->rank = 1;
    out_description->shape[0] = buffer->size;
    return BH_OK;
}

void bh_template_call_fini(bh_template_call *call) {
    bh_kernel_release(call->command.kernel);
}

void bh_template_options_init_sized(bh_template_options *options, size_t size) {
    *options = (bh_template_options){.struct_size = size};
}

bh_status bh_template_create(bh_context *context, const bh_template_options *options,
                             bh_template **out_template, bh_detail *detail) {
    (void)context;
    if (getenv("SCRIPT_OPTIONS")) {
        fprintf(stderr, "template: compile %llu\n",
                (unsigned long long)options->compile_deadline_ns);
    }
    bh_status status = answer("SCRIPT_TEMPLATE", detail);
    if (status == BH_OK) {
        *out_template = calloc(1, sizeof **out_template);
    }
    return status;
}

bh_status bh_template_release(bh_template *template_) {
    free(template_);
    return BH_OK;
}

bh_status bh_template_output_sized(bh_template *template_, const bh_argument *arguments,
                                   uint32_t argument_count, size_t argument_size, const char *name,
                                   bh_description *out_description, bh_detail *detail) {
    (void)argument_size;
    (void)template_;
    (void)argument_count;
    (void)name;
    out_description->kind = BH_NUMBER_FLOAT;
    out_description->bits = 32;
    out_description->rank = 1;
    out_description->shape[0] = bh_buffer_size(arguments[0].buffer) / 4;
    return answer("SCRIPT_OUTPUT", detail);
}

bh_status bh_template_source_sized(bh_template *template_, const bh_argument *arguments,
                                   uint32_t argument_count, size_t argument_size, char *text,
                                   size_t size, size_t *out_length, bh_detail *detail) {
    (void)argument_size;
    (void)template_;
    (void)arguments;
    (void)argument_count;
    *out_length = (size_t)snprintf(text, size, "as scripted\n");
    return answer("SCRIPT_SOURCE", detail);
}

bh_status bh_template_prepare_sized(bh_template *template_, const bh_argument *arguments,
                                    uint32_t argument_count, size_t argument_size,
                                    const uint32_t *groups, bh_template_call *out_call,
                                    size_t command_size, size_t binding_size, bh_detail *detail) {
    (void)argument_size;
    (void)command_size;
    (void)binding_size;
    (void)template_;
    (void)arguments;
    (void)argument_count;
    (void)groups;
    *out_call = (bh_template_call){.command = {.groups = {1, 1, 1}, .push_size = 4}};
    const bh_kernel_options options = {.name = "eval"};
    return bh_kernel_create_spirv(NULL, NULL, 0, &options, &out_call->command.kernel, detail);
}

static void reflect_bindings(bh_kernel_info *info) {
    const char *text = getenv("SCRIPT_BINDINGS");
    while (text && *text) {
        bh_kernel_binding *binding = &info->bindings[info->binding_count++];
        char access[8] = "", name[64] = "";
        sscanf(text, "%u.%u:%7[^:]:%63[^,]", &binding->set, &binding->binding, access, name);
        binding->count = 1;
        binding->kind = access[0] == 'u' ? BH_BINDING_UNIFORM_BUFFER : BH_BINDING_STORAGE_BUFFER;
        binding->access = !strcmp(access, "w")    ? BH_ACCESS_WRITE
                          : !strcmp(access, "rw") ? BH_ACCESS_READ_WRITE
                                                  : BH_ACCESS_READ;
        memcpy(binding->name, name, sizeof name);
        text += strcspn(text, ",");
        text += *text == ',';
    }
}

bh_status bh_kernel_prepare(bh_kernel *kernel, bh_stream *stream, bh_event **out_event,
                            bh_detail *detail) {
    (void)stream;
    (void)detail;
    bh_event *event = calloc(1, sizeof *event);
    bh_verdict *verdict = &event->verdict;
    verdict->status = answer("SCRIPT_PREPARE", NULL);
    verdict->exit_code = -1;
    verdict->event = verdict->origin = 40;
    verdict->worker_pid = 4321;
    snprintf(verdict->kernel_name, sizeof verdict->kernel_name, "%s", kernel->name);
    if (verdict->status != BH_OK) {
        snprintf(verdict->message, sizeof verdict->message, "%s", message());
    }
    event->pending = getenv("SCRIPT_PREPARE_HANG");
    *out_event = event;
    return BH_OK;
}

bh_status bh_kernel_reflect_sized(bh_kernel *kernel, bh_stream *stream, uint64_t timeout_ns,
                                  bh_kernel_info *out_info, size_t info_size, bh_detail *detail) {
    (void)info_size;
    (void)kernel;
    (void)stream;
    (void)timeout_ns;
    bh_status status = answer("SCRIPT_REFLECT", detail);
    if (status != BH_OK) {
        return status;
    }
    memset(out_info, 0, sizeof *out_info);
    reflect_bindings(out_info);
    out_info->push_size = getenv("SCRIPT_PUSH") ? (uint32_t)atoi(getenv("SCRIPT_PUSH")) : 0;
    return BH_OK;
}

static void run_kernel(const bh_command *command) {
    const bh_buffer *from = NULL;
    for (uint32_t i = 0; i < command->binding_count && !from; i++) {
        if (command->bindings[i].access & BH_ACCESS_READ) {
            from = command->bindings[i].buffer;
        }
    }
    for (uint32_t i = 0; i < command->binding_count; i++) {
        bh_buffer *to = command->bindings[i].buffer;
        if (!(command->bindings[i].access & BH_ACCESS_WRITE) || !from || from->size == 0) {
            continue;
        }
        for (uint64_t k = 0; k < to->size; k++) {
            to->bytes[k] = from->bytes[k % from->size];
        }
    }
}

bh_status bh_submit_sized(bh_stream *stream, const bh_submit_info *info, size_t info_size,
                          size_t command_size, size_t binding_size, bh_event **out_event,
                          bh_detail *detail) {
    (void)info_size;
    (void)command_size;
    (void)binding_size;
    bh_status status = answer("SCRIPT_SUBMIT", detail);
    if (status != BH_OK) {
        return status;
    }
    uint64_t number = ++stream->submissions;
    const char *fail_at = getenv("SCRIPT_FAIL_AT");
    bh_event *event = calloc(1, sizeof *event);
    bh_verdict *verdict = &event->verdict;
    if (!fail_at || (uint64_t)atoi(fail_at) == number) {
        verdict->status = answer("SCRIPT_EVENT", NULL);
    }
    verdict->executed = verdict->status == BH_OK ? BH_EXECUTED_YES : BH_EXECUTED_UNKNOWN;
    verdict->signal = verdict->status == BH_WORKER_SIGNAL ? 11 : 0;
    verdict->exit_code = -1;
    verdict->event = verdict->origin = 40 + number;
    verdict->worker_pid = 4321;
    verdict->submitted_ns = 1000000;
    verdict->started_ns = 2000000;
    verdict->ended_ns = 3500000;
    const char *untimed = getenv("SCRIPT_UNTIMED");
    if (info->flags & BH_SUBMIT_TIMED && !(untimed && (uint64_t)atoi(untimed) == number)) {
        verdict->device_ns = number * 100000;
    }
    snprintf(verdict->kernel_name, sizeof verdict->kernel_name, "%s",
             info->commands[0].kernel->name);
    bh_kernel_hash(info->commands[0].kernel, verdict->kernel_hash);
    if (verdict->status != BH_OK) {
        snprintf(verdict->message, sizeof verdict->message, "%s", message());
    }
    if (verdict->status == BH_OK) {
        run_kernel(&info->commands[0]);
    }
    event->pending = getenv("SCRIPT_HANG");
    *out_event = event;
    return BH_OK;
}

bh_status bh_event_wait(bh_event *event, uint64_t timeout_ns) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&lock);
    while (event->pending && pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until) == 0)
        ;
    if (event->until && access(event->until, F_OK) == 0) {
        event->pending = false;
    }
    bh_status status = event->pending ? BH_TIMEOUT : event->verdict.status;
    pthread_mutex_unlock(&lock);
    return status;
}

bh_status bh_event_verdict_sized(bh_event *event, bh_verdict *out_verdict, size_t verdict_size) {
    (void)verdict_size;
    *out_verdict = event->verdict;
    return event->pending ? BH_PENDING : BH_OK;
}

bh_status bh_event_cancel(bh_event *event) {
    pthread_mutex_lock(&lock);
    if (event->pending) {
        event->verdict.status = BH_CANCELLED;
    }
    event->pending = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return BH_OK;
}

bh_status bh_event_release(bh_event *event) {
    free(event);
    return BH_OK;
}

bh_status bh_devices_sized(bh_context *context, bh_device_info *out_devices, size_t capacity,
                           size_t device_size, size_t *out_count, bh_detail *detail) {
    (void)device_size;
    static const char *const names[] = {"Scripted One, not bad", "Scripted Two\033[31m",
                                        "Other, not bad"};
    (void)context;
    bh_status status = answer("SCRIPT_DEVICES", detail);
    *out_count = 3;
    for (size_t i = 0; status == BH_OK && i < 3 && i < capacity; i++) {
        bh_device_info *device = &out_devices[i];
        memset(device, 0, sizeof *device);
        snprintf(device->selector, sizeof device->selector, "script:%zu", i);
        snprintf(device->name, sizeof device->name, "%s", names[i]);
        snprintf(device->driver, sizeof device->driver, "scripted");
        snprintf(device->driver_info, sizeof device->driver_info, "1.2.3");
        device->device_type = (uint32_t)i + 2;
        device->api_version = 1u << 22 | 3u << 12 | 230;
        device->memory_bytes = UINT64_C(3) << 30;
        device->uuid[15] = 0x0F;
        device->feature_count = 2;
        device->features[0] = "shaderInt64";
        device->features[1] = "robustBufferAccess2";
    }
    return status;
}

/* SCRIPT_TRACE=aeu: allowed, answered with an error, unknown. */
bh_status bh_trace_driver_sized(bh_context *context, const char *device, bh_trace *out_trace,
                                size_t trace_size, bh_traced_call *out_calls, size_t capacity,
                                size_t call_size, size_t *out_count, bh_detail *detail) {
    (void)trace_size;
    (void)call_size;
    (void)context;
    const char *calls = getenv("SCRIPT_TRACE");
    memset(out_trace, 0, sizeof *out_trace);
    snprintf(out_trace->driver, sizeof out_trace->driver, "%s", device ? device : "script");
    snprintf(out_trace->version, sizeof out_trace->version, "Script 1.0\033[31m");
    snprintf(out_trace->made_for, sizeof out_trace->made_for, "Script 0.*");
    out_trace->complete = out_trace->tried = true;
    *out_count = calls ? strlen(calls) : 0;
    for (size_t i = 0; i < *out_count && i < capacity; i++) {
        memset(&out_calls[i], 0, sizeof out_calls[i]);
        snprintf(out_calls[i].phase, sizeof out_calls[i].phase, "%s", i ? "running" : "device");
        snprintf(out_calls[i].call, sizeof out_calls[i].call, "ioctl");
        snprintf(out_calls[i].arguments, sizeof out_calls[i].arguments, "SIOCGIFNAME");
        out_calls[i].count = 3;
        out_calls[i].judgement = calls[i] == 'u'   ? BH_CALL_UNKNOWN
                                 : calls[i] == 'e' ? BH_CALL_ANSWERED
                                                   : BH_CALL_ALLOWED;
        out_calls[i].error = calls[i] == 'e' ? 2 : 0;
        out_trace->unknown += calls[i] == 'u';
    }
    return answer("SCRIPT_TRACED", detail);
}

/* SCRIPT_CHECKS=hhab: holds, absent, broken; a capital is required. */
bh_status bh_doctor_sized(bh_context *context, bh_check *out_checks, size_t capacity,
                          size_t check_size, size_t *out_count, bh_detail *detail) {
    (void)check_size;
    (void)context;
    const char *checks = getenv("SCRIPT_CHECKS");
    bh_status status = answer("SCRIPT_DOCTOR", detail);
    *out_count = checks ? strlen(checks) : 0;
    for (size_t i = 0; status == BH_OK && i < *out_count && i < capacity; i++) {
        bh_check *check = &out_checks[i];
        char letter = checks[i];
        memset(check, 0, sizeof *check);
        snprintf(check->group, sizeof check->group, "%s", i % 2 ? "sandbox" : "kernel");
        snprintf(check->name, sizeof check->name, "check %zu", i);
        check->required = letter < 'a';
        letter |= 0x20;
        check->result = letter == 'h'   ? BH_CHECK_HOLDS
                        : letter == 'b' ? BH_CHECK_BROKEN
                                        : BH_CHECK_ABSENT;
        snprintf(check->text, sizeof check->text, "what was tried");
        if (check->result != BH_CHECK_HOLDS) {
            snprintf(check->advice, sizeof check->advice, "enable it");
        }
    }
    return status;
}
