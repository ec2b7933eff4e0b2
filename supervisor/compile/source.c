#include "supervisor/compile/source.h"
#include "base/detail.h"
#include "base/text.h"
#include "ipc/compile.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/kernel/kernel.h"

#include <ctype.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE_NS (60ull * 1000000000)
#define MEMORY      (1ull << 30)
#define MIN_MEMORY  (64ull << 20) /* that of bh_stream_options.memory_limit */
#define MAX_ENTRY   255u          /* that of bh_kernel_options.entry */

#define REFUSE(name, ...)                                                                          \
    BHI_FAIL(detail, call, BH_REASON_ARGUMENT, name, .text = BHI_SAY(__VA_ARGS__))

static size_t length_of(const char *text, size_t length) {
    return length ? length : strlen(text);
}

static const char *name_of(const bh_source *source) {
    return source->name && source->name[0]        ? source->name
           : source->language == BH_LANGUAGE_HLSL ? "kernel.hlsl"
           : source->language == BH_LANGUAGE_CUDA ? "kernel.cu"
                                                  : "kernel.comp";
}

/* -- the caller's arguments ------------------------------------------------------------------- */

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

static bh_status check_defines(const bh_source *source, const char *call, bh_detail *detail) {
    if (source->define_count && !source->defines) {
        return BHI_FAIL(detail, call, BH_REASON_NULL, "source.defines");
    }
    if (source->define_count > BHI_COMPILE_MAX_DEFINES) {
        return BHI_FAIL(detail, call, BH_REASON_OVER, "source.define_count",
                        .value = source->define_count, .limit = BHI_COMPILE_MAX_DEFINES);
    }
    for (uint32_t i = 0; i < source->define_count; i++) {
        const bh_source_define *define = &source->defines[i];
        if (!define->name || !is_identifier(define->name)) {
            return REFUSE(BHI_SAY("source.defines[%u].name", i), "is %s%.64s",
                          define->name ? "not an identifier: " : "NULL",
                          define->name ? define->name : "");
        }
        if (define->value && strpbrk(define->value, "\r\n")) {
            return REFUSE(BHI_SAY("source.defines[%u].value", i), "(%.64s) is more than one line",
                          define->name);
        }
    }
    return BH_OK;
}

static bh_status check_includes(const bh_source *source, const char *call, bh_detail *detail) {
    if (source->include_count && !source->includes) {
        return BHI_FAIL(detail, call, BH_REASON_NULL, "source.includes");
    }
    if (source->include_count > BHI_COMPILE_MAX_INCLUDES) {
        return BHI_FAIL(detail, call, BH_REASON_OVER, "source.include_count",
                        .value = source->include_count, .limit = BHI_COMPILE_MAX_INCLUDES);
    }
    for (uint32_t i = 0; i < source->include_count; i++) {
        const bh_source_include *include = &source->includes[i];
        if (!include->name || !include->name[0] || !include->text) {
            return REFUSE(BHI_SAY("source.includes[%u].%s", i, include->text ? "name" : "text"),
                          "is %s", include->text && include->name ? "empty" : "NULL");
        }
    }
    return BH_OK;
}

/* |entry| is in a bh_kernel_options; NULL: the source's counts. */
static bh_status take_entry(bh_source *source, const char *entry, const char *call,
                            bh_detail *detail) {
    const char *field = entry ? "options.entry" : "source.entry";
    source->entry = entry ? entry : source->entry;
    if (source->entry && source->language == BH_LANGUAGE_GLSL &&
        strcmp(source->entry, "main") != 0) {
        return REFUSE(field, "is '%.64s'; GLSL's entry point is main", source->entry);
    }
    if (source->entry && strlen(source->entry) > MAX_ENTRY) {
        return BHI_FAIL(detail, call, BH_REASON_TOO_LONG, field, .limit = MAX_ENTRY);
    }
    return BH_OK;
}

static bh_status take_given(const bh_source *given, bh_source *source, const char *call,
                            bh_detail *detail) {
    if (!given) {
        return BHI_FAIL(detail, call, BH_REASON_NULL, "source");
    }
    BHI_TRY(bhi_layout_take(BHI_OURS(bh_source), source, given, call, "source", detail));
    if (!source->text) {
        return BHI_FAIL(detail, call, BH_REASON_NULL, "source.text");
    }
    source->deadline_ns = source->deadline_ns ? source->deadline_ns : DEADLINE_NS;
    source->memory_limit = source->memory_limit ? source->memory_limit : MEMORY;
    source->tenant = source->tenant ? source->tenant : "";
    if (source->language == BH_LANGUAGE_GUESS) {
        const char *ending = strrchr(name_of(source), '.');
        source->language = ending && !strcmp(ending, ".hlsl") ? BH_LANGUAGE_HLSL
                           : ending && !strcmp(ending, ".cu") ? BH_LANGUAGE_CUDA
                                                              : BH_LANGUAGE_GLSL;
    }
    if (source->language < BH_LANGUAGE_GLSL || source->language > BH_LANGUAGE_CUDA) {
        return BHI_FAIL(
            detail, call, BH_REASON_ARGUMENT, "source.language", .value = source->language,
            .text = BHI_SAY("%u is neither GLSL, HLSL nor CUDA C++", (unsigned)source->language));
    }
    if (source->options && source->language != BH_LANGUAGE_CUDA) {
        return REFUSE("source.options", "are NVRTC's, and the source is not CUDA C++");
    }
    if (source->log && !source->log_size) {
        return BHI_FAIL(detail, call, BH_REASON_ZERO, "source.log_size");
    }
    if (strlen(source->tenant) >= BHI_TENANT) {
        return BHI_FAIL(detail, call, BH_REASON_TOO_LONG, "source.tenant", .limit = BHI_TENANT - 1);
    }
    if (source->memory_limit < MIN_MEMORY) {
        return REFUSE("source.memory_limit", "is %llu, less than 64 MiB",
                      (unsigned long long)source->memory_limit);
    }
    BHI_TRY(check_defines(source, call, detail));
    return check_includes(source, call, detail);
}

/* Makes each name one clean line: lines of the compiler's log begin with the name of a file, and a
 * name with a line end could look like a line of the log. The compiler cleans the names in the
 * source, too, before it compares them with these (worker/compiler/glsl.c). Returns the block of
 * memory that holds all names. NULL: out of memory. */
static void *clean_names(bh_source *source) {
    size_t bytes = source->include_count * sizeof *source->includes + strlen(name_of(source)) + 1;
    for (uint32_t i = 0; i < source->include_count; i++) {
        bytes += strlen(source->includes[i].name) + 1;
    }
    bh_source_include *includes = malloc(bytes);
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
            source->name = at;
        } else {
            includes[i] = source->includes[i];
            includes[i].name = at;
        }
        at += length + 1;
    }
    source->includes = source->include_count ? includes : NULL;
    return includes;
}

/* -- the request ------------------------------------------------------------------------------ */

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

static uint64_t put_all(uint8_t *at, const bh_source *source) {
    struct writer writer = {.at = at, .bytes = sizeof(struct bhi_compile_call)};
    const char *entry = source->entry ? source->entry : "";
    const char *options = source->options ? source->options : "";
    put(&writer, source->name, strlen(source->name));
    put(&writer, source->text, length_of(source->text, source->length));
    put(&writer, entry, strlen(entry));
    put(&writer, options, strlen(options));
    for (uint32_t i = 0; i < source->define_count; i++) {
        const char *value = source->defines[i].value ? source->defines[i].value : "";
        put(&writer, source->defines[i].name, strlen(source->defines[i].name));
        put(&writer, value, strlen(value));
    }
    for (uint32_t i = 0; i < source->include_count; i++) {
        const bh_source_include *include = &source->includes[i];
        put(&writer, include->name, strlen(include->name));
        put(&writer, include->text, length_of(include->text, include->length));
    }
    return writer.bytes;
}

static bh_status make_request(struct bhi_compile_source *source, const char *call,
                              bh_detail *detail) {
    const bh_source *given = &source->given;
    source->bytes = put_all(NULL, given);
    if (source->bytes > BHI_COMPILE_MAX_SOURCE) {
        return BHI_FAIL(detail, call, BH_REASON_TOO_LARGE,
                        "the size of the source with its defines and includes",
                        .place = given->name, .value = source->bytes,
                        .limit = BHI_COMPILE_MAX_SOURCE);
    }
    source->request = calloc(1, source->bytes);
    if (!source->request) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    const struct bhi_compile_call request = {
        .bytes = source->bytes,
        .defines = given->define_count,
        .includes = given->include_count,
        .optimize = !given->unoptimized,
        .language = given->language == BH_LANGUAGE_HLSL   ? BHI_COMPILE_HLSL
                    : given->language == BH_LANGUAGE_CUDA ? BHI_COMPILE_CUDA
                                                          : BHI_COMPILE_GLSL,
    };
    memcpy(source->request, &request, sizeof request);
    (void)put_all(source->request, given);
    return BH_OK;
}

/* The request says how long it is, and what follows has a fixed size. */
static void hash_source(struct bhi_compile_source *source) {
    static const unsigned char domain[] = "bulkhead source 1";
    const uint64_t memory = source->given.memory_limit;
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, sizeof source->hash);
    crypto_generichash_update(&state, domain, sizeof domain);
    crypto_generichash_update(&state, source->request, source->bytes);
    crypto_generichash_update(&state, (const unsigned char *)&memory, sizeof memory);
    crypto_generichash_final(&state, source->hash, sizeof source->hash);
}

bh_status bhi_compile_source_take(struct bhi_compile_source *source, const bh_source *given,
                                  const bh_kernel_options *options, bh_kernel_options *out_options,
                                  const char *call, bh_detail *detail) {
    *source = (struct bhi_compile_source){0};
    BHI_TRY(take_given(given, &source->given, call, detail));
    if (out_options) {
        BHI_TRY(bhi_kernel_take_options(
            options,
            source->given.language == BH_LANGUAGE_CUDA ? BHI_KERNEL_IMAGE : BHI_KERNEL_SPIRV, call,
            out_options, detail));
    }
    BHI_TRY(take_entry(&source->given, out_options ? out_options->entry : NULL, call, detail));
    source->names = clean_names(&source->given);
    if (!source->names) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    BHI_TRY(make_request(source, call, detail));
    hash_source(source);
    return BH_OK;
}

void bhi_compile_source_fini(struct bhi_compile_source *source) {
    free(source->names);
    free(source->request);
}
