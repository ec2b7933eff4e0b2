/* bulkhead compile: a source's SPIR-V or PTX, into a file. */
#include <bulkhead/bulkhead.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/mains.h"
#include "cli/run/steps.h"
#include "request/kernel_maker.h"
#include "request/outname.h"
#include "tool/args.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/outfile.h"
#include "tool/session.h"
#include "tool/values.h"

static const char command[] = "compile";

struct compile {
    struct bhi_kernel_file file;
    void *source; /* owned */
    const char *entry, *path;
    struct bhi_outfile out;
    bh_context *context;
    bh_kernel *kernel;
    void *code; /* owned */
    size_t size;
};

static bool take_item(void *user, const struct bhi_arg *item, struct bhi_complaint *complaint) {
    struct compile *compile = user;
    return item->option == BHI_COMPILE_O
               ? bhi_parse_text(item->value, "name", &compile->path, complaint)
               : bhi_kernel_file_take(&compile->file, &compile->entry, item, complaint);
}

static int refuse_source(const struct compile *compile, const char *why) {
    return bhi_complain_usage(command, "SOURCE %s: %s", compile->file.path, why);
}

static int take_arguments(struct compile *compile, const struct bhi_args *args) {
    struct bhi_complaint complaint;
    int error;
    if (!bhi_args_each(args, take_item, compile, &complaint)) {
        return bhi_complain_usage(command, "%s; see bulkhead compile --help", complaint.text);
    }
    compile->file.path = args->operands[0];
    compile->file.takes_cuda = true;
    if (bhi_kernel_file_read(&compile->file, &compile->source, &error, &complaint) != BH_OK) {
        return bhi_interrupt_signal() ? bhi_interrupt_exit_status()
                                      : refuse_source(compile, complaint.text);
    }
    if (!bhi_kernel_file_is_source(&compile->file)) {
        return refuse_source(compile,
                             bhi_kernel_file_is_cuda(&compile->file) ? "it is compiled already"
                             : bhi_language_is_spirv(compile->file.code, compile->file.size)
                                 ? "it is SPIR-V already"
                                 : "it is taken for SPIR-V: GLSL needs a name that ends in .comp "
                                   "or .glsl, HLSL one in .hlsl, CUDA one in .cu, or --language");
    }
    return BHI_EXIT_READY;
}

static int refuse_output(const struct compile *compile, const char *why) {
    return bhi_complain_usage(command, "-o %s: %s", compile->path, why);
}

static int write_code(struct compile *compile) {
    struct bhi_complaint complaint;
    bh_detail detail = {0};
    bh_status status = bh_kernel_code(compile->kernel, NULL, 0, &compile->size, &detail);
    if (status == BH_OK && !(compile->code = malloc(compile->size))) {
        return bhi_complain_memory(command);
    }
    if (status == BH_OK) {
        status =
            bh_kernel_code(compile->kernel, compile->code, compile->size, &compile->size, &detail);
    }
    if (status != BH_OK) {
        return bhi_session_fail(command, compile->file.path, status, &detail);
    }
    if (bhi_outfile_write(&compile->out, NULL, 0, compile->code, compile->size, &complaint) &&
        bhi_outfile_seal(&compile->out, &complaint) &&
        bhi_outfile_commit(&compile->out, &complaint)) {
        return BHI_EXIT_READY;
    }
    (void)refuse_output(compile, complaint.text);
    return BHI_EXIT_ENVIRON;
}

static bool is_source(const struct compile *compile) {
    struct stat source, out;
    return stat(compile->file.path, &source) == 0 && stat(compile->path, &out) == 0 &&
           S_ISREG(out.st_mode) && source.st_dev == out.st_dev && source.st_ino == out.st_ino;
}

static int run(struct compile *compile, bool verbose) {
    struct bhi_complaint complaint;
    int exit_status;
    char name[64];
    if (is_source(compile)) {
        return refuse_output(compile, "it is the source");
    }
    if (!bhi_outname_check(compile->path, bhi_kernel_file_is_cuda(&compile->file) ? "ptx" : "spv",
                           &complaint)) {
        return refuse_output(compile, complaint.text);
    }
    if (!bhi_outfile_open(bhi_outfile_is_stdout(compile->path) ? "-" : compile->path, 0,
                          &compile->out, &complaint)) {
        return refuse_output(compile, complaint.text);
    }
    compile->context = bhi_session_open(command, verbose, NULL, &exit_status);
    if (!compile->context) {
        return exit_status;
    }
    bh_kernel_options options = {.struct_size = sizeof options};
    bhi_kernel_file_name(compile->file.path, name);
    options.name = name;
    options.entry = compile->entry;
    exit_status = bhi_kernel_file_make(command, &compile->file, &compile->context, &options,
                                       &compile->kernel);
    return exit_status ?: write_code(compile);
}

int bhi_compile_main(const struct bhi_args *args) {
    struct compile compile = {.out = BHI_OUTFILE_CLOSED};
    int exit_status = take_arguments(&compile, args);
    if (exit_status == BHI_EXIT_READY) {
        exit_status = run(&compile, bhi_args_has(args, BHI_COMPILE_VERBOSE));
    }
    bhi_complain_cancelled(command, exit_status, "");
    bhi_outfile_abandon(&compile.out);
    bh_kernel_release(compile.kernel);
    bh_context_destroy(compile.context);
    bhi_source_free(&compile.file.source);
    free(compile.source);
    free(compile.code);
    return exit_status;
}
