#include "request/kernel_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/text.h"
#include "tool/text.h"

static void compile(struct bhi_kernel_make *make) {
    const struct bhi_kernel_file *file = make->file;
    bh_source source = {.struct_size = sizeof source};
    source.text = file->code;
    source.length = file->size;
    source.name = strcmp(file->path, "-") ? file->path : "stdin";
    source.defines = file->source.defines;
    source.define_count = file->source.define_count;
    source.includes = file->source.includes;
    source.include_count = file->source.include_count;
    source.language = (bh_language)bhi_kernel_file_language(file);
    source.deadline_ns = file->deadline_ns;
    source.options = file->source.options;
    source.log = make->log;
    source.log_size = sizeof make->log;
    make->status = bh_kernel_create_source(make->context, &source, make->options, &make->kernel,
                                           &make->detail);
}

/* "PATH:4: …" becomes "line 4: …" where the reader knows which file it is. */
static void quote(struct bhi_kernel_make *make) {
    const char *path = make->file->path;
    const size_t named = strlen(path);
    size_t length;
    const char *line = bhi_text_first_error(make->log, strlen(make->log), &length);
    const char *place = "";
    if (make->words->log == BHI_LOG_IS_QUOTED_HERE && !strncmp(line, path, named) &&
        line[named] == ':') {
        const size_t blanks = strspn(line + named + 1, " ");
        line += named + 1 + blanks;
        length -= named + 1 + blanks;
        place = *line >= '0' && *line <= '9' ? "line " : "";
    }
    bhi_format(make->detail.message, sizeof make->detail.message, "it does not compile: %s%.*s",
               place, (int)(length < 400 ? length : 400), line);
}

static void explain(struct bhi_kernel_make *make) {
    bh_detail *detail = &make->detail;
    const char *name = make->options->name;
    if (make->status == BH_COMPILE_FAILED && make->log[0]) {
        snprintf(detail->message, sizeof detail->message, "it does not compile");
        if (make->words->log != BHI_LOG_IS_SHOWN) {
            quote(make);
        }
        return;
    }
    const char *path = strcmp(make->file->path, "-") ? make->file->path : "stdin";
    const char *why = bhi_text_without_name(detail->message, name ? name : path);
    why = bhi_text_without_name(why, path);
    memmove(detail->message, why, strlen(why) + 1);
    if (detail->reason == BH_REASON_NOT_SPIRV) { /* perhaps it was not meant to be */
        bhi_text_append(detail->message, sizeof detail->message,
                        make->file->takes_cuda
                            ? "; a source needs a name that ends in .comp, .glsl, .hlsl or .cu"
                            : "; a source needs a name that ends in .comp, .glsl or .hlsl");
        bhi_text_append(detail->message, sizeof detail->message, make->words->otherwise);
    }
}

/* The library names the fields of its options; here the user knows options of the front end. */
static bool refuse(struct bhi_kernel_make *make) {
    const struct bhi_kernel_words *words = make->words;
    const char *entry = make->options->entry;
    bh_detail *detail = &make->detail;
    if (bhi_kernel_file_language(make->file) == BHI_LANGUAGE_GLSL && entry &&
        strcmp(entry, "main") != 0) {
        bhi_format(detail->message, sizeof detail->message,
                   "%s is %.100s: the entry point of GLSL is main; leave %s out", words->entry,
                   entry, words->entry);
    } else if (make->file->source.given && !bhi_kernel_file_is_source(make->file)) {
        bhi_format(detail->message, sizeof detail->message, "it is %s: %s are for sources",
                   bhi_kernel_file_language(make->file) == BHI_LANGUAGE_IMAGE ? "an image for CUDA"
                                                                              : "SPIR-V",
                   words->source);
    } else if (make->file->source.options &&
               bhi_kernel_file_language(make->file) != BHI_LANGUAGE_CUDA) {
        bhi_format(detail->message, sizeof detail->message,
                   "--compile-options are NVRTC's, for CUDA C++ (.cu)");
    } else {
        return false;
    }
    make->status = detail->status = BH_INVALID_ARGUMENT;
    return true;
}

void bhi_kernel_make(struct bhi_kernel_make *make) {
    if (refuse(make)) {
        return;
    }
    if (bhi_kernel_file_is_source(make->file)) {
        compile(make);
    } else {
        const bool image = bhi_kernel_file_language(make->file) == BHI_LANGUAGE_IMAGE;
        make->status = (image ? bh_kernel_create_image : bh_kernel_create_spirv)(
            make->context, make->file->code, make->file->size, make->options, &make->kernel,
            &make->detail);
    }
    if (make->status != BH_OK) {
        explain(make);
    }
}

bh_status bhi_kernel_types_ask(bh_kernel *kernel, uint64_t deadline_ns,
                               struct bhi_kernel_types **out_types, bh_detail *detail) {
    const bh_inspect_options options = {.struct_size = sizeof options, .deadline_ns = deadline_ns};
    bh_inspection *said = calloc(1, sizeof *said);
    bh_status status = BH_NO_MEMORY;
    *out_types = NULL;
    if (said) {
        said->struct_size = sizeof *said;
        status = bh_kernel_inspect(kernel, &options, said, detail);
    }
    if (status == BH_OK && !(*out_types = bhi_kernel_types_take(said))) {
        status = BH_NO_MEMORY;
    }
    free(said);
    return status;
}
