/* "PTX": text that names kernels of the driver's own, one statement a line:
 *
 *     .version 8.0
 *     .target sm_90
 *     .entry scale(u64, u64, f32, u32)
 *     .body saxpy
 */
#include "fake_cuda.h"

#include <stdio.h>
#include <string.h>

#include "add.cubin.h"
#include "assert.cubin.h"
#include "counter.cubin.h"
#include "endless.cubin.h"
#include "fill.cubin.h"
#include "hang.cubin.h"
#include "null_read.cubin.h"
#include "saxpy.cubin.h"
#include "trap.cubin.h"
#include "wild_write.cubin.h"

enum { NEWEST_VERSION = 808 };

static const struct {
    const char *name;
    const unsigned char *cubin;
} bodies[] = {
#define ROW(name) {#name, fake_cubin_##name}
    ROW(add),  ROW(assert), ROW(counter), ROW(endless),    ROW(fill),
    ROW(hang), ROW(saxpy),  ROW(trap),    ROW(wild_write), {"illegal", fake_cubin_null_read},
#undef ROW
};

struct entry {
    char name[sizeof((CUfunction)0)->name];
    uint32_t sizes[16];
    uint32_t count;
};

static CUresult add_body(CUmodule module, const struct entry *entry, const char *body) {
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        if (strcmp(bodies[i].name, body) != 0) {
            continue;
        }
        const char *kernel = strcmp(body, "illegal") == 0 ? "null_read" : body;
        CUfunction function;
        FAKE_CHECK(fake_module_add_image(module, bodies[i].cubin));
        FAKE_CHECK(fake_module_add_function(module, kernel, entry->name, &function));
        bool same = function->parameter_count == entry->count;
        for (uint32_t at = 0; same && at < entry->count; at++) {
            same = function->parameters[at].size == entry->sizes[at];
        }
        return same ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
    }
    return CUDA_ERROR_INVALID_PTX;
}

/* ".entry NAME(u64, f32)" */
static bool read_entry(const char *line, struct entry *out) {
    int length = 0;
    *out = (struct entry){0};
    if (sscanf(line, ".entry %127[A-Za-z0-9_$] (%n", out->name, &length) != 1 || length == 0) {
        return false;
    }
    for (line += length; *line != ')'; line += length) {
        char kind;
        unsigned bits;
        length = 0;
        if (out->count == 16 ||
            sscanf(line, out->count ? " , %c%u %n" : " %c%u %n", &kind, &bits, &length) != 2 ||
            length == 0 || !strchr("busf", kind) || bits < 8 || bits > 64 ||
            (bits & (bits - 1)) != 0) {
            return false;
        }
        out->sizes[out->count++] = bits / 8;
    }
    return line[1] == '\0';
}

struct reader {
    CUmodule module;
    bool has_version, has_entry; /* the entry waits for its body */
    struct entry entry;
};

static CUresult read_line(struct reader *reader, const char *line) {
    unsigned major, minor;
    char word[64];
    if (!reader->has_version) {
        if (sscanf(line, ".version %u.%u", &major, &minor) != 2 || major > 99 || minor > 99) {
            return CUDA_ERROR_INVALID_PTX;
        }
        reader->has_version = true;
        return major * 100 + minor > NEWEST_VERSION ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                                                    : CUDA_SUCCESS;
    }
    if (sscanf(line, ".target sm_%u", &major) == 1) {
        return major <= FAKE_CUDA_ARCH ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
    }
    if (strcmp(line, ".address_size 64") == 0) {
        return CUDA_SUCCESS;
    }
    if (!reader->has_entry && read_entry(line, &reader->entry)) {
        reader->has_entry = true;
        return CUDA_SUCCESS;
    }
    if (reader->has_entry && sscanf(line, ".body %63s", word) == 1) {
        reader->has_entry = false;
        return add_body(reader->module, &reader->entry, word);
    }
    return CUDA_ERROR_INVALID_PTX;
}

CUresult fake_ptx_load(CUmodule module, const char *text, char *log, size_t log_bytes) {
    struct reader reader = {.module = module};
    CUresult result = CUDA_SUCCESS;
    unsigned number = 0;
    char line[256] = "";
    module->closed = true;
    while (result == CUDA_SUCCESS && *text) {
        const size_t length = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line),
                 text + strspn(text, " \t"));
        line[strcspn(line, "\n")] = '\0';
        text += length + (text[length] == '\n');
        number++;
        char *comment = strstr(line, "//");
        size_t end = comment ? (size_t)(comment - line) : strlen(line);
        while (end > 0 && strchr(" \t\r", line[end - 1])) {
            end--;
        }
        line[end] = '\0';
        if (end > 0) {
            result = read_line(&reader, line);
        }
    }
    if (result == CUDA_SUCCESS && reader.has_entry) {
        result = CUDA_ERROR_INVALID_PTX;
    }
    if (result == CUDA_ERROR_INVALID_PTX) {
        snprintf(log, log_bytes,
                 "ptxas application ptx input, line %u; fatal   : Parsing error near '%s': syntax"
                 " error\nptxas fatal   : Ptx assembly aborted due to errors",
                 number, line);
    }
    return result;
}
