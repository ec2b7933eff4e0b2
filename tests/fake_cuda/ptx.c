/* "PTX": text that names kernels of the driver's own.
 *
 *     .version 8.0
 *     .target sm_90
 *     .entry scale(.u64, .u64, .f32, .u32) .body saxpy
 *
 * or as a compiler writes it, with code in braces: that is not read, the entry's name chooses. "nothing" has
 * whatever parameters the text gives it. To compile "takes_minutes" does not end. */
#include "fake_cuda.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "add.cubin.h"
#include "assert.cubin.h"
#include "chaos_work.cubin.h"
#include "counter.cubin.h"
#include "endless.cubin.h"
#include "fill.cubin.h"
#include "four_kilobytes.cubin.h"
#include "hang.cubin.h"
#include "increment.cubin.h"
#include "nothing.cubin.h"
#include "null_read.cubin.h"
#include "saxpy.cubin.h"
#include "shared_sum.cubin.h"
#include "trap.cubin.h"
#include "warm_up.cubin.h"
#include "wild_write.cubin.h"

#define NEWEST_VERSION 8.8

static const struct {
    const char *name, *kernel;
    const unsigned char *cubin;
} bodies[] = {
#define ROW(name, kernel) {#name, #kernel, fake_cubin_##kernel}
    ROW(add, add),
    ROW(assert, assert),
    ROW(bulkhead_warm_up, warm_up),
    ROW(chaos_hang, endless),
    ROW(chaos_illegal, null_read),
    ROW(chaos_work, chaos_work),
    ROW(counter, counter),
    ROW(endless, endless),
    ROW(fill, fill),
    ROW(four_kilobytes, four_kilobytes),
    ROW(hang, hang),
    ROW(illegal, null_read),
    ROW(saxpy, saxpy),
    ROW(trap, trap),
    ROW(wild_write, wild_write),
    ROW(increment, increment),
    ROW(nothing, nothing),
    ROW(null_read, null_read),
    ROW(shared_sum, shared_sum),
#undef ROW
};

enum { TOKEN = 1024 };

struct reader {
    CUmodule module;
    const char *at;
    unsigned line;
    char token[TOKEN];      /* a word, or another character; "": the end */
    char unresolved[TOKEN]; /* a function that nobody has; "": none */
    char too_large[TOKEN];  /* an entry with too many bytes of parameters; "": none */
};

/* Skips blanks and comments. */
static void skip(struct reader *reader) {
    for (;;) {
        const char *begin = reader->at;
        if (strncmp(begin, "//", 2) == 0) {
            reader->at += strcspn(begin, "\n");
        } else if (strncmp(begin, "/*", 2) == 0) {
            const char *end = strstr(begin + 2, "*/");
            reader->at = end ? end + 2 : begin + strlen(begin);
        } else if (isspace((unsigned char)*begin)) {
            reader->at++;
        } else {
            return;
        }
        for (const char *at = begin; at < reader->at; at++) {
            reader->line += *at == '\n';
        }
    }
}

static void next(struct reader *reader) {
    size_t length = 0;
    skip(reader);
    while (length + 1 < sizeof reader->token &&
           (isalnum((unsigned char)reader->at[length]) ||
            (reader->at[length] && strchr("._$%", reader->at[length])))) {
        length++;
    }
    length += length == 0 && *reader->at != '\0';
    memcpy(reader->token, reader->at, length);
    reader->token[length] = '\0';
    reader->at += length;
}

static bool accept(struct reader *reader, const char *token) {
    const bool same = strcmp(reader->token, token) == 0;
    if (same) {
        next(reader);
    }
    return same;
}

/* ".u64" and the like: its bytes; 0: it is no type */
static uint32_t read_type(struct reader *reader) {
    const char *type = reader->token;
    if (type[0] != '.' || !type[1] || !strchr("busf", type[1])) {
        return 0;
    }
    char *end;
    const unsigned long bits = strtoul(type + 2, &end, 10);
    const bool good = *end == '\0' && bits >= 8 && bits <= 64 && (bits & (bits - 1)) == 0;
    next(reader);
    return good ? (uint32_t)bits / 8 : 0;
}

struct parameters {
    struct fake_cuda_parameter *at; /* owned */
    uint32_t count, bytes;
};

static CUresult add_body(CUmodule module, const char *body, const char *name,
                         const struct parameters *parameters) {
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        if (strcmp(bodies[i].name, body) != 0) {
            continue;
        }
        CUfunction function;
        const bool own = bodies[i].cubin == fake_cubin_nothing;
        FAKE_CHECK(fake_module_use_image(module, bodies[i].cubin));
        FAKE_CHECK(fake_module_add_function(module, bodies[i].kernel, name,
                                            own ? parameters->count : 0, &function));
        if (own && parameters->count > 0) {
            memcpy(function->own, parameters->at, parameters->count * sizeof function->own[0]);
            function->parameters = function->own;
            function->parameter_count = parameters->count;
            function->parameter_bytes = parameters->bytes;
        }
        FAKE_REQUIRE(function->parameter_count == parameters->count, INVALID_PTX);
        for (uint32_t at = 0; at < parameters->count; at++) {
            FAKE_REQUIRE(function->parameters[at].size == parameters->at[at].size, INVALID_PTX);
        }
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_PTX;
}

/* A number; 0: it is none. */
static uint32_t read_number(struct reader *reader) {
    char *end;
    const unsigned long number = strtoul(reader->token, &end, 10);
    const bool good = end > reader->token && *end == '\0' && number <= UINT16_MAX;
    next(reader);
    return good ? (uint32_t)number : 0;
}

/* ".u64", or as a compiler writes it: ".param .u64 name", ".param .align 4 .b8 name[12]". */
static CUresult read_parameter(struct reader *reader, struct parameters *parameters) {
    const bool named = accept(reader, ".param");
    uint32_t alignment = 0, size, count = 1;
    FAKE_REQUIRE(!accept(reader, ".align") || (alignment = read_number(reader)) > 0, INVALID_PTX);
    FAKE_REQUIRE((size = read_type(reader)) > 0, INVALID_PTX);
    if (named) {
        next(reader);
    }
    if (named && accept(reader, "[")) {
        FAKE_REQUIRE((count = read_number(reader)) > 0 && accept(reader, "]"), INVALID_PTX);
    }
    alignment = alignment > 0 ? alignment : size;
    if (parameters->count % 64 == 0) {
        void *more = realloc(parameters->at, (parameters->count + 64) * sizeof parameters->at[0]);
        FAKE_REQUIRE(more, OUT_OF_MEMORY);
        parameters->at = more;
    }
    const uint32_t offset = (parameters->bytes + alignment - 1) / alignment * alignment;
    parameters->at[parameters->count++] =
        (struct fake_cuda_parameter){.offset = offset, .size = size * count};
    parameters->bytes = offset + size * count;
    return parameters->bytes <= FAKE_CUDA_PARAMETER_BYTES ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult read_parameters(struct reader *reader, const char *name,
                                struct parameters *parameters) {
    FAKE_REQUIRE(accept(reader, "("), INVALID_PTX);
    while (!accept(reader, ")")) {
        FAKE_REQUIRE(parameters->count == 0 || accept(reader, ","), INVALID_PTX);
        const CUresult result = read_parameter(reader, parameters);
        if (result == CUDA_ERROR_INVALID_VALUE) {
            snprintf(reader->too_large, sizeof reader->too_large, "%s", name);
        }
        FAKE_REQUIRE(result != CUDA_ERROR_INVALID_VALUE, INVALID_PTX);
        FAKE_CHECK(result);
    }
    return CUDA_SUCCESS;
}

/* ".maxntid 256, 1, 1": it is not kept to. */
static CUresult skip_directives(struct reader *reader) {
    while (accept(reader, ".maxntid") || accept(reader, ".reqntid") ||
           accept(reader, ".minnctapersm")) {
        do {
            FAKE_REQUIRE(read_number(reader) > 0, INVALID_PTX);
        } while (accept(reader, ","));
    }
    return CUDA_SUCCESS;
}

/* After the parameters of the entry |name|. */
static CUresult read_body(struct reader *reader, const char *name,
                          const struct parameters *parameters) {
    char body[TOKEN];
    FAKE_CHECK(skip_directives(reader));
    snprintf(body, sizeof body, "%s", name);
    if (accept(reader, ".body")) {
        memcpy(body, reader->token, sizeof body);
    } else {
        FAKE_REQUIRE(strcmp(reader->token, "{") == 0, INVALID_PTX);
        for (unsigned depth = 1; depth > 0;) {
            next(reader);
            FAKE_REQUIRE(reader->token[0] != '\0', INVALID_PTX);
            depth += strcmp(reader->token, "{") == 0;
            depth -= strcmp(reader->token, "}") == 0;
        }
    }
    while (strcmp(name, "takes_minutes") == 0) {
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
    FAKE_CHECK(add_body(reader->module, body, name, parameters));
    next(reader);
    return CUDA_SUCCESS;
}

/* After ".entry". */
static CUresult read_entry(struct reader *reader) {
    struct parameters parameters = {0};
    char name[TOKEN];
    memcpy(name, reader->token, sizeof name);
    next(reader);
    CUresult result = read_parameters(reader, name, &parameters);
    if (result == CUDA_SUCCESS) {
        result = read_body(reader, name, &parameters);
    }
    free(parameters.at);
    return result;
}

/* After ".extern": shared memory of the launch, or a function, of which the driver has some. Those of
 * the library with which kernels launch kernels (cudadevrt) it lacks. */
static CUresult read_extern(struct reader *reader) {
    static const char *const known[] = {"vprintf", "__assertfail", "malloc", "free"};
    bool found = !accept(reader, ".func");
    if (!found && accept(reader, "(")) {
        while (!accept(reader, ")")) {
            FAKE_REQUIRE(reader->token[0] != '\0', INVALID_PTX);
            next(reader);
        }
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        found |= strcmp(reader->token, known[i]) == 0;
    }
    if (!found) {
        memcpy(reader->unresolved, reader->token, sizeof reader->unresolved);
    }
    while (!accept(reader, ";")) {
        FAKE_REQUIRE(reader->token[0] != '\0', INVALID_PTX);
        next(reader);
    }
    return CUDA_SUCCESS;
}

static CUresult read_module(struct reader *reader) {
    next(reader);
    FAKE_REQUIRE(accept(reader, ".version"), INVALID_PTX);
    FAKE_REQUIRE(isdigit((unsigned char)reader->token[0]), INVALID_PTX);
    FAKE_REQUIRE(strtod(reader->token, NULL) <= NEWEST_VERSION, UNSUPPORTED_PTX_VERSION);
    next(reader);
    while (reader->token[0] != '\0') {
        if (accept(reader, ".target")) {
            FAKE_REQUIRE(strncmp(reader->token, "sm_", 3) == 0 &&
                             strtoul(reader->token + 3, NULL, 10) <= FAKE_CUDA_ARCH,
                         INVALID_PTX);
            next(reader);
        } else if (accept(reader, ".address_size")) {
            FAKE_REQUIRE(accept(reader, "64"), INVALID_PTX);
        } else if (accept(reader, ".extern")) {
            FAKE_CHECK(read_extern(reader));
        } else if (!accept(reader, ".visible")) {
            FAKE_REQUIRE(accept(reader, ".entry"), INVALID_PTX);
            FAKE_CHECK(read_entry(reader));
        }
    }
    return reader->unresolved[0] == '\0' ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

CUresult fake_ptx_load(CUmodule module, const char *text, char *log, size_t log_bytes) {
    struct reader reader = {.module = module, .at = text, .line = 1};
    module->closed = true;
    CUresult result = read_module(&reader);
    if (reader.unresolved[0] != '\0' && reader.token[0] == '\0') {
        snprintf(log, log_bytes, "ptxas fatal   : Unresolved extern function '%s'",
                 reader.unresolved);
    } else if (reader.too_large[0] != '\0') {
        snprintf(
            log, log_bytes,
            "ptxas error   : Entry function '%s' uses too much parameter space (0x%x bytes max)",
            reader.too_large, FAKE_CUDA_PARAMETER_BYTES);
    } else if (result == CUDA_ERROR_INVALID_PTX) {
        snprintf(log, log_bytes,
                 "ptxas application ptx input, line %u; fatal   : Parsing error near '%s': syntax"
                 " error\nptxas fatal   : Ptx assembly aborted due to errors",
                 reader.line, reader.token);
    }
    return result;
}
