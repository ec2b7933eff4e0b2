/* Makes a kernel from a file. The compiler runs in a worker, and a signal ends the wait. */
#include "base/format.h"
#include "request/kernel_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request/launch.h"
#include "tool/complain.h"
#include "tool/ending.h"
#include "tool/exit_status.h"
#include "tool/session.h"
#include "tool/task.h"
#include "tool/text.h"

enum { LOG_SIZE = 33 << 10 };

struct compile {
    bh_context *context;
    bh_glsl_source source;
    const bh_kernel_options *options;
    bh_kernel *kernel;
    bh_status status;
    bh_detail detail;
    char log[LOG_SIZE];
};

static void run_compile(void *argument) {
    struct compile *compile = argument;
    compile->status = bh_kernel_create_glsl(compile->context, &compile->source, compile->options,
                                            &compile->kernel, &compile->detail);
}

/* Prints a log line by line, cleaned, because a source can put anything into it. */
static void print_log(const char *log) {
    char line[1024], clean[1024];
    while (*log) {
        size_t length = strcspn(log, "\n");
        bhi_format(line, sizeof line, "%.*s", length > 1000 ? 1000 : (int)length, log);
        fprintf(stderr, "%s\n", bhi_text_clean(clean, sizeof clean, line));
        log += length + (log[length] == '\n');
    }
}

static int end_compile(const char *command, const char *path, struct compile *compile,
                       bh_kernel **out_kernel) {
    bhi_text_name_includes(compile->log, "(-I)");
    print_log(compile->log);
    bhi_ending_log(compile->log);
    if (compile->status == BH_OK) {
        *out_kernel = compile->kernel;
        return BHI_EXIT_READY;
    }
    bh_detail *detail = &compile->detail;
    if (compile->status == BH_COMPILE_FAILED && compile->log[0]) {
        snprintf(detail->message, sizeof detail->message, "it does not compile");
    }
    const char *why = bhi_text_without_name(detail->message, compile->source.name);
    memmove(detail->message, why, strlen(why) + 1);
    return bhi_session_fail(command, path, compile->status, detail);
}

static int make_source(const char *command, const struct bhi_kernel_file *file,
                       bh_context **context, const bh_kernel_options *options,
                       bh_kernel **out_kernel) {
    struct compile *compile = calloc(1, sizeof *compile);
    int exit_status = BHI_EXIT_ENVIRON;
    if (compile) {
        compile->context = *context;
        compile->options = options;
        bhi_kernel_file_source(file, &compile->source);
        compile->source.log = compile->log;
        compile->source.log_size = sizeof compile->log;
    }
    if (!compile) {
        bhi_complain(command, "out of memory");
        bhi_ending_blame(BH_NO_MEMORY);
    } else if (bhi_task_run(command, context, run_compile, compile, &exit_status)) {
        exit_status = end_compile(command, file->path, compile, out_kernel);
    } else {
        (void)bh_kernel_release(compile->kernel);
    }
    free(compile);
    return exit_status;
}

/* The library names the field of its options; here it is an option of the command. */
static int refuse_entry(const char *command, const char *entry) {
    char what[128];
    bh_detail detail = {.message = "the entry point of GLSL is main; leave --entry out"};
    bhi_format(what, sizeof what, "--entry %.100s", entry);
    return bhi_session_fail(command, what, BH_INVALID_ARGUMENT, &detail);
}

int bhi_kernel_file_make(const char *command, const struct bhi_kernel_file *file,
                         bh_context **context, const bh_kernel_options *options,
                         bh_kernel **out_kernel) {
    const enum bhi_language language = bhi_kernel_file_language(file);
    if (language == BHI_LANGUAGE_GLSL && options->entry && strcmp(options->entry, "main") != 0) {
        return refuse_entry(command, options->entry);
    }
    if (language == BHI_LANGUAGE_GLSL || language == BHI_LANGUAGE_HLSL) {
        return make_source(command, file, context, options, out_kernel);
    }
    if (file->source.given) {
        bhi_complain(command, "%s is SPIR-V: -D and -I are for GLSL (.comp, .glsl) and HLSL",
                     file->path);
        return BHI_EXIT_USAGE;
    }
    bh_detail detail = {0};
    bh_status status =
        bh_kernel_create_spirv(*context, file->code, file->size, options, out_kernel, &detail);
    if (status == BH_OK) {
        return BHI_EXIT_READY;
    }
    const char *why = bhi_text_without_call(detail.message);
    memmove(detail.message, why, strlen(why) + 1);
    if (detail.reason == BH_REASON_NOT_SPIRV) { /* perhaps it was not meant to be */
        bhi_text_append(detail.message, sizeof detail.message,
                        "; GLSL needs a name that ends in .comp or .glsl, HLSL one in .hlsl, or "
                        "--language");
    }
    return bhi_session_fail(command, file->path, status, &detail);
}
