/* bh_kernel_create_glsl: has a source compiled by a worker that serves this one call. The answer is
 * in a buffer that the worker can write at any time, so each byte is copied once. The module in the
 * answer is not parsed here. */
#include "base/copy_once.h"
#include "base/detail.h"
#include "base/owner.h"
#include "base/text.h"
#include "ipc/commands.h"
#include "ipc/compile.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/compile/compiler.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/kernel/kernel.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL        "bh_kernel_create_glsl"
#define DEADLINE_NS (60ull * 1000000000)
#define FIRST_CODE  (192u << 10) /* room for the module at the first attempt; enough for most */

BH_API void bh_glsl_source_init_sized(bh_glsl_source *source, size_t size) {
    static const bh_glsl_source defaults = {.optimize = true, .deadline_ns = DEADLINE_NS};
    bhi_layout_init(source, size, &defaults, sizeof defaults);
}

/* -- the caller's arguments ------------------------------------------------------------------- */

static size_t length_of(const char *text, size_t length) {
    return length ? length : strlen(text);
}

static bool is_identifier(const char *name) {
    if (!isalpha((unsigned char)name[0]) && name[0] != '_') {
        return false;
    }
    for (const char *c = name; *c; c++) {
        if (!isalnum((unsigned char)*c) && *c != '_') {
            return false;
        }
    }
    return true;
}

static bh_status check_defines(const bh_glsl_source *source, bh_detail *detail) {
    if (source->define_count && !source->defines) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        CALL ": source.defines is NULL, source.define_count %u",
                        source->define_count);
    }
    if (source->define_count > BHI_COMPILE_MAX_DEFINES) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, CALL ": source.define_count %u is over %u",
                        source->define_count, BHI_COMPILE_MAX_DEFINES);
    }
    for (uint32_t i = 0; i < source->define_count; i++) {
        const bh_glsl_define *define = &source->defines[i];
        if (!define->name || !is_identifier(define->name)) {
            return bhi_fail(
                detail, BH_INVALID_ARGUMENT, 0, CALL ": source.defines[%u].name is %s%.64s", i,
                define->name ? "not an identifier: " : "NULL", define->name ? define->name : "");
        }
        if (define->value && strpbrk(define->value, "\r\n")) {
            return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                            CALL ": source.defines[%u].value (%.64s) is more than one line", i,
                            define->name);
        }
    }
    return BH_OK;
}

static bh_status check_includes(const bh_glsl_source *source, bh_detail *detail) {
    if (source->include_count && !source->includes) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        CALL ": source.includes is NULL, source.include_count %u",
                        source->include_count);
    }
    if (source->include_count > BHI_COMPILE_MAX_INCLUDES) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, CALL ": source.include_count %u is over %u",
                        source->include_count, BHI_COMPILE_MAX_INCLUDES);
    }
    for (uint32_t i = 0; i < source->include_count; i++) {
        if (!source->includes[i].name || !source->includes[i].name[0] ||
            !source->includes[i].text) {
            return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, CALL ": source.includes[%u].%s is %s",
                            i, source->includes[i].text ? "name" : "text",
                            source->includes[i].text && source->includes[i].name ? "empty"
                                                                                 : "NULL");
        }
    }
    return BH_OK;
}

static bh_status take_source(const bh_glsl_source *given, bh_glsl_source *source,
                             bh_detail *detail) {
    if (!given) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, CALL ": source is NULL");
    }
    bh_glsl_source_init(source);
    bh_status status =
        bhi_layout_take_options(BHI_OURS(bh_glsl_source), source, given, CALL, "source", detail);
    if (status != BH_OK) {
        return status;
    }
    if (!source->text) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, CALL ": source.text is NULL");
    }
    source->deadline_ns = source->deadline_ns ? source->deadline_ns : DEADLINE_NS;
    if ((uint32_t)source->language > BH_LANGUAGE_HLSL) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        CALL ": source.language %u is not a bh_language",
                        (unsigned)source->language);
    }
    if (source->log && !source->log_size) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        CALL ": source.log_size is 0: an empty text needs 1 byte");
    }
    status = check_defines(source, detail);
    return status == BH_OK ? check_includes(source, detail) : status;
}

static bh_status take_options(const bh_glsl_source *source, const bh_kernel_options *given,
                              bh_kernel_options *options, bh_detail *detail) {
    bh_status status = bhi_kernel_take_options(given, CALL, options, detail);
    if (status == BH_OK && source->language == BH_LANGUAGE_GLSL && options->entry &&
        strcmp(options->entry, "main") != 0) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        CALL ": options.entry is '%.64s'; GLSL's entry point is main",
                        options->entry);
    }
    return status;
}

/* -- the request ------------------------------------------------------------------------------ */

static const char *name_of(const bh_glsl_source *source) {
    return source->name && source->name[0] ? source->name : "kernel.comp";
}

/* Appends texts one after another. If |at| is NULL, only counts bytes. */
struct writer {
    uint8_t *at;
    uint64_t bytes;
};

static void put(struct writer *writer, const char *text, size_t length) {
    uint64_t bytes = bhi_compile_text_bytes(length), prefix = length;
    if (writer->at) { /* the memory is zero, so NUL and padding are there already */
        memcpy(writer->at + writer->bytes, &prefix, sizeof prefix);
        memcpy(writer->at + writer->bytes + sizeof prefix, text, length);
    }
    writer->bytes += bytes;
}

static uint64_t put_all(uint8_t *at, const bh_glsl_source *source, const char *entry) {
    struct writer writer = {.at = at, .bytes = sizeof(struct bhi_compile_call)};
    put(&writer, name_of(source), strlen(name_of(source)));
    put(&writer, source->text, length_of(source->text, source->length));
    put(&writer, entry, strlen(entry));
    for (uint32_t i = 0; i < source->define_count; i++) {
        const char *value = source->defines[i].value ? source->defines[i].value : "";
        put(&writer, source->defines[i].name, strlen(source->defines[i].name));
        put(&writer, value, strlen(value));
    }
    for (uint32_t i = 0; i < source->include_count; i++) {
        const bh_glsl_include *include = &source->includes[i];
        put(&writer, include->name, strlen(include->name));
        put(&writer, include->text, length_of(include->text, include->length));
    }
    return writer.bytes;
}

static bh_status make_request(bh_context *context, const bh_glsl_source *source, const char *entry,
                              struct bh_buffer **out, bh_detail *detail) {
    uint64_t bytes = put_all(NULL, source, entry);
    if (bytes > BHI_COMPILE_MAX_SOURCE) {
        return bhi_fail(detail, BH_TOO_LARGE, 0,
                        CALL ": %s with its defines and includes takes %llu bytes, over %u",
                        name_of(source), (unsigned long long)bytes, BHI_COMPILE_MAX_SOURCE);
    }
    bh_status status = bhi_buffer_make(context, bytes, CALL, out, detail);
    if (status != BH_OK) {
        return status;
    }
    const struct bhi_compile_call request = {
        .bytes = bytes,
        .defines = source->define_count,
        .includes = source->include_count,
        .optimize = source->optimize,
        .language = source->language == BH_LANGUAGE_HLSL ? BHI_COMPILE_HLSL : BHI_COMPILE_GLSL,
    };
    memcpy((*out)->pointer, &request, sizeof request);
    (void)put_all((*out)->pointer, source, entry);
    return BH_OK;
}

/* -- the compile ------------------------------------------------------------------------------ */

static bh_status run(bh_context *context, const bh_glsl_source *source, struct bh_buffer *request,
                     struct bh_buffer *answer, bh_detail *detail) {
    const struct bhi_cmd_compile command = {
        .header = {.type = BHI_CMD_COMPILE, .size = sizeof command},
        .source = request->id,
        .answer = answer->id,
    };
    const struct bhi_internal_submission internal = {
        .call = CALL,
        .command = &command,
        .size = sizeof command,
        .reads = request,
        .fills = answer,
        .deadline_ns = source->deadline_ns,
        .failure_uncounted = true,
    };
    return bhi_compiler_ask(context, &internal, name_of(source), detail);
}

/* -- the answer ------------------------------------------------------------------------------- */

/* Copies the log; what may not be shown becomes '?'. If not all of it fits into |size|, copies
 * whole lines only. */
static void take_log(char *out, size_t size, const struct bhi_compile_answer *head) {
    uint32_t bytes = head->log_bytes < sizeof head->log ? head->log_bytes : sizeof head->log;
    bhi_text_sanitise(out, size, head->log, bytes);
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

/* Returns the first line of the log with an error; the first line if there is none. Cuts the log
 * after it. */
static const char *first_error(char *log) {
    char *line = log;
    for (char *at = log; *at; at += strcspn(at, "\n") + 1) {
        size_t length = strcspn(at, "\n");
        char *error = strstr(at, "error: ");
        if (error && error < at + length) {
            line = at;
            break;
        }
        if (!at[length]) {
            break;
        }
    }
    line[strcspn(line, "\n")] = '\0';
    return line[0] ? line : "the compiler refused the source and gave no reason";
}

static bh_status take_answer(const struct bh_buffer *answer, const bh_glsl_source *source,
                             void **out_code, uint64_t *out_bytes, bh_detail *detail) {
    BHI_AUTO_FREE struct bhi_compile_answer *head = malloc(sizeof *head);
    BHI_AUTO_FREE char *log = malloc(BHI_COMPILE_LOG + 1);
    *out_code = NULL;
    if (!head || !log) {
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, CALL);
    }
    bhi_copy_once(head, answer->pointer, sizeof *head);
    const uint64_t room = answer->size - sizeof *head;
    *out_bytes = head->code_bytes;
    if (source->log) {
        take_log(source->log, source->log_size, head);
    }
    take_log(log, BHI_COMPILE_LOG + 1, head);
    if (head->refused) {
        return bhi_fail(detail, BH_COMPILE_FAILED, 0, CALL ": %.440s", first_error(log));
    }
    if (head->code_bytes > room) {
        return BH_OK; /* the caller makes more room, or fails if that was done before */
    }
    if (!(*out_code = malloc(head->code_bytes + 1))) {
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, CALL);
    }
    bhi_copy_once(*out_code, (const uint8_t *)answer->pointer + sizeof *head, head->code_bytes);
    return BH_OK;
}

/* Compiles with room for |room| bytes of code. If the module is larger, *out_code is NULL.
 * *out_bytes is the size of the module. */
static bh_status compile(bh_context *context, const bh_glsl_source *source,
                         struct bh_buffer *request, uint64_t room, void **out_code,
                         uint64_t *out_bytes, bh_detail *detail) {
    struct bh_buffer *answer;
    bh_status status =
        bhi_buffer_make(context, sizeof(struct bhi_compile_answer) + room, CALL, &answer, detail);
    if (status != BH_OK) {
        return status;
    }
    status = run(context, source, request, answer, detail);
    if (status == BH_OK) {
        status = take_answer(answer, source, out_code, out_bytes, detail);
    }
    bh_buffer_release(answer);
    return status;
}

static bh_status make_kernel(bh_context *context, const bh_glsl_source *source, const void *code,
                             uint64_t bytes, const bh_kernel_options *options,
                             bh_kernel **out_kernel, bh_detail *detail) {
    bh_kernel_options named = *options;
    named.entry = NULL; /* the compiler has renamed the entry point to main */
    if (!named.name) {
        named.name = name_of(source);
    }
    if (!bhi_kernel_is_module(code, bytes)) {
        return bhi_fail(detail, BH_PROTOCOL, 0,
                        CALL ": %.200s: the output of the compiler is not a module",
                        name_of(source));
    }
    return bh_kernel_create_spirv(context, code, bytes, &named, out_kernel, detail);
}

/* Makes each name one clean line: lines of the compiler's log begin with the name of a file, and a
 * name with a line end could look like a line of the log. The compiler cleans the names in the
 * source, too, before it compares them with these (worker/compiler/glsl.c). Returns the block of
 * memory that holds all names of |out|. NULL: out of memory. */
static void *clean_names(const bh_glsl_source *source, bh_glsl_source *out) {
    *out = *source;
    size_t bytes = source->include_count * sizeof *source->includes + strlen(name_of(source)) + 1;
    for (uint32_t i = 0; i < source->include_count; i++) {
        bytes += strlen(source->includes[i].name) + 1;
    }
    bh_glsl_include *includes = malloc(bytes);
    if (!includes) {
        return NULL;
    }
    char *at = (char *)(includes + source->include_count);
    for (uint32_t i = 0; i <= source->include_count; i++) {
        const bool last = i == source->include_count;
        const char *name = last ? name_of(source) : source->includes[i].name;
        const size_t length = strlen(name);
        bhi_text_line(at, length + 1, name, length);
        if (last) {
            out->name = at;
        } else {
            includes[i] = source->includes[i];
            includes[i].name = at;
        }
        at += length + 1;
    }
    out->includes = source->include_count ? includes : NULL;
    return includes;
}

static bh_status create(bh_context *context, const bh_glsl_source *source,
                        const bh_kernel_options *options, bh_kernel **out_kernel,
                        bh_detail *detail) {
    if (source->log) {
        source->log[0] = '\0';
    }
    struct bh_buffer *request;
    bh_status status =
        make_request(context, source, options->entry ? options->entry : "", &request, detail);
    if (status != BH_OK) {
        return status;
    }
    void *code = NULL;
    uint64_t bytes = 0, room = FIRST_CODE;
    status = compile(context, source, request, room, &code, &bytes, detail);
    if (status == BH_OK && !code && bytes <= BHI_COMPILE_MAX_CODE) {
        room = (bytes + 7) & ~7ull;
        status = compile(context, source, request, room, &code, &bytes, detail);
    }
    if (status == BH_OK && !code && bytes > BHI_COMPILE_MAX_CODE) {
        status = bhi_fail(detail, BH_COMPILE_FAILED, 0,
                          CALL ": %.200s: the module takes %llu bytes, over %u", name_of(source),
                          (unsigned long long)bytes, BHI_COMPILE_MAX_CODE);
    } else if (status == BH_OK && !code) {
        status = bhi_fail(detail, BH_PROTOCOL, 0,
                          CALL ": %.200s: the compiler gave an impossible answer", name_of(source));
    }
    if (status == BH_OK) {
        status = make_kernel(context, source, code, bytes, options, out_kernel, detail);
    }
    free(code);
    bh_buffer_release(request);
    return status;
}

BH_API bh_status bh_kernel_create_glsl(bh_context *context, const bh_glsl_source *given,
                                       const bh_kernel_options *given_options,
                                       bh_kernel **out_kernel, bh_detail *detail) {
    if (!out_kernel) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, CALL ": out_kernel is NULL");
    }
    *out_kernel = NULL;
    bh_glsl_source source, clean;
    bh_kernel_options options;
    bh_status status = bhi_context_check(context, CALL, detail);
    if (status == BH_OK) {
        status = take_source(given, &source, detail);
    }
    if (status == BH_OK) {
        status = take_options(&source, given_options, &options, detail);
    }
    if (status == BH_OK) {
        status = bhi_callback_check(CALL, detail);
    }
    if (status != BH_OK) {
        return status;
    }
    BHI_AUTO_FREE void *names = clean_names(&source, &clean);
    if (!names) {
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, CALL);
    }
    return create(context, &clean, &options, out_kernel, detail);
}
