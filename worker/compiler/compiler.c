#include "worker/compiler/compiler.h"

#include "base/futex.h"
#include "base/memfd.h"
#include "ipc/compile.h"
#include "worker/compiler/glsl.h"
#include "worker/compiler/inspect.h"
#include "worker/compiler/nvrtc.h"
#include "worker/error.h"

#include <bulkhead/bulkhead.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_BUFFERS 4 /* a compile uses two */

struct buffer {
    uint64_t id, size;
    void *pointer; /* NULL: the buffer could not be mapped */
    bool writable;
};

struct bhi_compiler {
    struct shaderc_compiler *glsl;
    void *nvrtc; /* NULL: this one compiles no CUDA C++ */
    struct buffer buffers[MAX_BUFFERS];
    size_t count;
};

struct bhi_compiler *bhi_compiler_create(void *nvrtc, struct bhi_error *error) {
    struct bhi_compiler *compiler = calloc(1, sizeof *compiler);
    if (compiler) {
        compiler->glsl = bhi_glsl_compiler_create();
    }
    if (!compiler || !compiler->glsl) {
        BHI_ERROR(error, BH_REASON_SYSTEM_STEP, "start the compiler", .sys_errno = ENOMEM);
        free(compiler);
        return NULL;
    }
    compiler->nvrtc = nvrtc;
    return compiler;
}

void bhi_compiler_destroy(struct bhi_compiler *compiler) {
    if (!compiler) {
        return;
    }
    while (compiler->count > 0) {
        bhi_compiler_detach(compiler, compiler->buffers[0].id);
    }
    bhi_glsl_compiler_destroy(compiler->glsl);
    free(compiler);
}

/* -- what it is given ------------------------------------------------------------------------- */

void bhi_compiler_attach(struct bhi_compiler *compiler, uint64_t id, int fd, uint64_t size,
                         enum bhi_attach access) {
    bhi_compiler_detach(compiler, id);
    if (compiler->count < MAX_BUFFERS) {
        struct buffer buffer = {
            .id = id, .size = size, .writable = access == BHI_ATTACH_WRITE, .pointer = NULL};
        if (bhi_memfd_verify(fd, size, 0) == 0) {
            const int protection = buffer.writable ? PROT_READ | PROT_WRITE : PROT_READ;
            void *at = mmap(NULL, bhi_page_round(size), protection, MAP_SHARED, fd, 0);
            buffer.pointer = at == MAP_FAILED ? NULL : at;
        }
        compiler->buffers[compiler->count++] = buffer;
    }
    close(fd);
}

void bhi_compiler_detach(struct bhi_compiler *compiler, uint64_t id) {
    for (size_t i = 0; i < compiler->count; i++) {
        struct buffer *buffer = &compiler->buffers[i];
        if (buffer->id == id) {
            if (buffer->pointer) {
                munmap(buffer->pointer, bhi_page_round(buffer->size));
            }
            *buffer = compiler->buffers[--compiler->count];
            return;
        }
    }
}

static const struct buffer *find(const struct bhi_compiler *compiler, uint64_t id, uint64_t least,
                                 bool writes, struct bhi_error *error) {
    for (size_t i = 0; i < compiler->count; i++) {
        const struct buffer *buffer = &compiler->buffers[i];
        if (buffer->id == id && buffer->pointer && buffer->size >= least &&
            (buffer->writable || !writes)) {
            return buffer;
        }
    }
    BHI_ERROR(error, BH_REASON_COMPILER,
              .text = writes ? "map the buffer for its answer" : "map the source");
    return NULL;
}

/* -- reading the request ---------------------------------------------------------------------- */

struct cursor {
    const uint8_t *at;
    uint64_t left;
};

static bool take_text(struct cursor *cursor, struct bhi_glsl_text *out) {
    uint64_t length;
    if (cursor->left < sizeof length) {
        return false;
    }
    memcpy(&length, cursor->at, sizeof length);
    if (length > BHI_COMPILE_MAX_SOURCE || bhi_compile_text_bytes(length) > cursor->left) {
        return false;
    }
    out->bytes = (const char *)cursor->at + sizeof length;
    out->length = (size_t)length;
    cursor->at += bhi_compile_text_bytes(length);
    cursor->left -= bhi_compile_text_bytes(length);
    return out->bytes[length] == '\0';
}

static bool take_pairs(struct cursor *cursor, struct bhi_glsl_pair *out, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (!take_text(cursor, &out[i].name) || !take_text(cursor, &out[i].text)) {
            return false;
        }
    }
    return true;
}

/* Some editors begin a file with a byte order mark, which no compiler here accepts. */
static void skip_mark(struct bhi_glsl_text *text) {
    static const char mark[] = "\xef\xbb\xbf";
    if (text->length >= sizeof mark - 1 && memcmp(text->bytes, mark, sizeof mark - 1) == 0) {
        text->bytes += sizeof mark - 1;
        text->length -= sizeof mark - 1;
    }
}

/* |pairs| has room for the highest allowed number. */
static bool read_request(const struct buffer *buffer, struct bhi_glsl_pair *pairs,
                         struct bhi_glsl *out) {
    struct bhi_compile_call request;
    memcpy(&request, buffer->pointer, sizeof request);
    if (request.bytes > buffer->size || request.bytes < sizeof request ||
        request.defines > BHI_COMPILE_MAX_DEFINES || request.includes > BHI_COMPILE_MAX_INCLUDES) {
        return false;
    }
    *out = (struct bhi_glsl){.defines = pairs,
                             .define_count = request.defines,
                             .includes = pairs + request.defines,
                             .include_count = request.includes,
                             .optimize = request.optimize != 0,
                             .hlsl = request.language == BHI_COMPILE_HLSL,
                             .cuda = request.language == BHI_COMPILE_CUDA};
    struct cursor cursor = {(const uint8_t *)buffer->pointer + sizeof request,
                            request.bytes - sizeof request};
    if (!take_text(&cursor, &out->name) || !take_text(&cursor, &out->text) ||
        !take_text(&cursor, &out->entry) || !take_text(&cursor, &out->options) ||
        !take_pairs(&cursor, pairs, request.defines + request.includes)) {
        return false;
    }
    skip_mark(&out->text);
    for (uint32_t i = 0; i < request.includes; i++) {
        skip_mark(&pairs[request.defines + i].text);
    }
    return true;
}

/* -- commands --------------------------------------------------------------------------------- */

/* The source has errors: the first is the submission's. */
static void refuse(const struct bhi_compile_answer *answer, struct bhi_error *error) {
    size_t length;
    const char *line = bhi_text_first_error(
        answer->log,
        answer->log_bytes < sizeof answer->log ? answer->log_bytes : sizeof answer->log, &length);
    if (length) {
        BHI_ERROR_SAY(error, BH_REASON_SOURCE, "%.*s", (int)length, line);
    } else {
        BHI_ERROR(error, BH_REASON_SOURCE,
                  .text = "the compiler refused the source and gave no reason");
    }
}

static bool compile(struct bhi_compiler *compiler, const struct bhi_cmd_compile *command,
                    struct bhi_error *error) {
    const struct buffer *source =
        find(compiler, command->source, sizeof(struct bhi_compile_call), false, error);
    const struct buffer *out =
        !source ? NULL
                : find(compiler, command->answer, sizeof(struct bhi_compile_answer), true, error);
    if (!out) {
        return false;
    }
    struct bhi_glsl_pair *pairs =
        calloc(BHI_COMPILE_MAX_DEFINES + BHI_COMPILE_MAX_INCLUDES, sizeof *pairs);
    struct bhi_glsl glsl;
    bool good = false;
    if (!pairs) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "the compiler");
    } else if (!read_request(source, pairs, &glsl)) {
        BHI_ERROR(error, BH_REASON_COMPILER, .text = "read the request");
    } else {
        struct bhi_compile_answer *answer = out->pointer;
        const uint64_t room = out->size - sizeof *answer;
        good = glsl.cuda ? bhi_nvrtc_compile(compiler->nvrtc, &glsl, answer, (char *)(answer + 1),
                                             room, error)
                         : bhi_glsl_compile(compiler->glsl, &glsl, answer, answer + 1, room, error);
        if (good && answer->refused) {
            refuse(answer, error);
            good = false;
        }
    }
    free(pairs);
    return good;
}

static bool reflect(struct bhi_compiler *compiler, const struct bhi_cmd_reflect *command,
                    struct bhi_error *error) {
    struct bhi_inspection_call request;
    const struct buffer *source = find(compiler, command->source, sizeof request, false, error);
    const struct buffer *out =
        !source ? NULL
                : find(compiler, command->answer, sizeof(struct bhi_inspection), true, error);
    if (!out) {
        return false;
    }
    memcpy(&request, source->pointer, sizeof request);
    request.entry[sizeof request.entry - 1] = '\0';
    const struct bhi_inspection_constant *given =
        (const void *)((const uint8_t *)source->pointer + sizeof request);
    struct bhi_spec_constant constants[BHI_INSPECT_CONSTANTS];
    const uint64_t left = source->size - sizeof request;
    if (request.constants > BHI_INSPECT_CONSTANTS || left < request.constants * sizeof *given ||
        request.code_bytes > left - request.constants * sizeof *given ||
        request.code_bytes % sizeof(uint32_t) != 0) {
        BHI_ERROR(error, BH_REASON_COMPILER, .text = "read the request");
        return false;
    }
    for (uint32_t i = 0; i < request.constants; i++) {
        constants[i] = (struct bhi_spec_constant){
            .constant_id = given[i].constant_id, .size = given[i].size, .bits = given[i].bits};
    }
    struct bhi_inspection *answer = out->pointer;
    const uint64_t room = out->size - sizeof *answer;
    const bool good = bhi_inspect((const void *)(given + request.constants),
                                  (size_t)request.code_bytes / sizeof(uint32_t), request.entry,
                                  constants, request.constants, request.guarded != 0, answer,
                                  (char *)(answer + 1), room, error);
    return good;
}

void bhi_compiler_run(struct bhi_compiler *compiler, const struct bhi_lane_record *record,
                      struct bhi_result *result, struct bhi_error *error) {
    *error = (struct bhi_error){.status = BH_OK, .command_index = BHI_NO_COMMAND};
    *result = (struct bhi_result){
        .seq = record->seq, .started_ns = bhi_now_ns(), .command_index = BHI_NO_COMMAND};
    bool good = true;
    for (const struct bhi_cmd_header *command = bhi_record_first(record); good && command;
         command = bhi_record_next(record, command)) {
        const void *body = command;
        if (command->type == BHI_CMD_COMPILE) {
            good = compile(compiler, body, error);
        } else if (command->type == BHI_CMD_REFLECT) {
            good = reflect(compiler, body, error);
        } else {
            BHI_ERROR_SAY(error, BH_REASON_COMPILER, "run %s", bhi_command_name(command->type));
            good = false;
        }
    }
    result->status = (uint32_t)error->status;
    result->executed = good ? BH_EXECUTED_YES : BH_EXECUTED_UNKNOWN;
    result->ended_ns = bhi_now_ns();
}
