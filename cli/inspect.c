/* bulkhead inspect: what a kernel declares. For files of arrays see inspect_tensors.c. */
#include <bulkhead/bulkhead.h>
#include <stdlib.h>
#include <string.h>

#include "cli/inspect_print.h"
#include "cli/mains.h"
#include "cli/run/steps.h"
#include "request/kernel_maker.h"
#include "tool/args.h"
#include "tool/complain.h"
#include "tool/ending.h"
#include "tool/error_json.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/session.h"
#include "tool/task.h"
#include "tool/text.h"
#include "tool/values.h"

static const char command[] = "inspect";
static const size_t first_text = 1 << 20; /* room for a disassembly; most are shorter */

struct inspect {
    struct bhi_kernel_file file;
    void *code; /* owned */
    const char *entry;
    bh_specialization specs[256];
    uint32_t spec_count;
    bool guarded;
    bh_context *context;
    bh_kernel *kernel;
    char *text; /* owned; of the guarded module */
    size_t text_size;
    bh_inspection said;
    bh_status status;
    bh_detail detail;
};

static bool take_item(void *user, const struct bhi_arg *item, struct bhi_complaint *complaint) {
    struct inspect *inspect = user;
    inspect->guarded |= item->option == BHI_INSPECT_GUARDED;
    if (item->option != BHI_INSPECT_SPEC) {
        return bhi_kernel_file_take(&inspect->file, &inspect->entry, item, complaint);
    }
    if (inspect->spec_count == sizeof inspect->specs / sizeof inspect->specs[0]) {
        return bhi_refuse(complaint, "too many constants");
    }
    return bhi_parse_spec(item->value, &inspect->specs[inspect->spec_count++], complaint);
}

static int take_arguments(struct inspect *inspect, const struct bhi_args *args) {
    struct bhi_complaint complaint;
    int error;
    if (!bhi_args_each(args, take_item, inspect, &complaint)) {
        return bhi_complain_usage(command, "%s; see bulkhead inspect --help", complaint.text);
    }
    inspect->file.path = args->operands[0];
    inspect->file.takes_cuda = true;
    const bh_status status =
        bhi_kernel_file_read(&inspect->file, &inspect->code, &error, &complaint);
    if (status == BH_OK) {
        return BHI_EXIT_READY;
    }
    if (bhi_interrupt_signal()) {
        return bhi_interrupt_exit_status();
    }
    bhi_complain(command, "FILE %s: %s", inspect->file.path, complaint.text);
    bhi_ending_blame(status);
    return BHI_EXIT_USAGE;
}

static void ask(void *argument) {
    struct inspect *inspect = argument;
    bh_inspect_options options = {.struct_size = sizeof options};
    if (inspect->file.deadline_ns) {
        options.deadline_ns = inspect->file.deadline_ns;
    }
    options.guarded = inspect->guarded;
    options.text = inspect->text;
    options.text_size = inspect->text_size;
    inspect->said.struct_size = sizeof inspect->said;
    inspect->status =
        bh_kernel_inspect(inspect->kernel, &options, &inspect->said, &inspect->detail);
}

static bool grow_text(struct inspect *inspect, size_t size) {
    free(inspect->text);
    inspect->text = malloc(size);
    inspect->text_size = inspect->text ? size : 0;
    return inspect->text;
}

static int fail(struct inspect *inspect) {
    char *message = inspect->detail.message;
    char name[64];
    bhi_kernel_file_name(inspect->file.path, name);
    const char *why = bhi_text_without_name(message, name);
    memmove(message, why, strlen(why) + 1);
    return bhi_session_fail(command, inspect->file.path, inspect->status, &inspect->detail);
}

/* Inspects the kernel, and again with more room if the disassembly did not fit. */
static int ask_all(struct inspect *inspect) {
    int exit_status = BHI_EXIT_READY;
    if (inspect->guarded && !grow_text(inspect, first_text)) {
        return bhi_complain_memory(command);
    }
    for (;;) {
        if (!bhi_task_run(command, &inspect->context, ask, inspect, &exit_status)) {
            return exit_status;
        }
        if (inspect->status != BH_OK) {
            return fail(inspect);
        }
        if (!inspect->guarded || inspect->said.text_bytes < inspect->text_size) {
            return BHI_EXIT_READY;
        }
        if (!grow_text(inspect, inspect->said.text_bytes + 1)) {
            return bhi_complain_memory(command);
        }
    }
}

static int make_kernel(struct inspect *inspect, const char *name) {
    bh_kernel_options options = {.struct_size = sizeof options};
    options.name = name;
    options.entry = inspect->entry;
    options.specializations = inspect->specs;
    options.specialization_count = inspect->spec_count;
    return bhi_kernel_file_make(command, &inspect->file, &inspect->context, &options,
                                &inspect->kernel);
}

static void print(const struct inspect *inspect, const char *name, bool json) {
    /* A compiled module's entry point is main, whatever its name in the source. */
    const bool compiled = bhi_kernel_file_is_source(&inspect->file);
    struct bhi_inspected inspected = {.name = name,
                                      .entry =
                                          inspect->entry && !compiled ? inspect->entry : "main",
                                      .source_entry = compiled ? inspect->entry : NULL,
                                      .said = &inspect->said,
                                      .disassembly = inspect->text};
    bh_kernel_hash(inspect->kernel, inspected.hash);
    if (json) {
        bhi_inspect_print_json(&inspected);
    } else if (inspect->guarded) {
        bhi_inspect_print_guarded(&inspected);
    } else {
        bhi_inspect_print(&inspected);
    }
}

/* What NVRTC has made of a source. */
static int print_compiled(struct inspect *inspect, const char *name, bool json) {
    size_t size = 0;
    char begin[4] = "";
    inspect->status = bh_kernel_code(inspect->kernel, begin, sizeof begin, &size, &inspect->detail);
    if (inspect->status != BH_OK) {
        return fail(inspect);
    }
    bhi_inspect_print_image(name, bhi_language_image_kind(begin, sizeof begin), size, json);
    return BHI_EXIT_READY;
}

static int inspect_any(const struct bhi_args *args) {
    char name[64];
    const bool json = bhi_args_has(args, BHI_INSPECT_JSON);
    if (bhi_inspect_is_array(args->operands[0])) {
        return bhi_inspect_tensors(args);
    }
    struct inspect *inspect = calloc(1, sizeof *inspect);
    if (!inspect) {
        return bhi_complain_memory(command);
    }
    int exit_status = take_arguments(inspect, args);
    bhi_kernel_file_name(args->operands[0], name);
    const bool cuda = exit_status == BHI_EXIT_READY && bhi_kernel_file_is_cuda(&inspect->file);
    if (cuda && inspect->guarded) {
        exit_status = bhi_complain_usage(
            command, "--guarded: %s is for CUDA, whose kernels have no guard", args->operands[0]);
    } else if (cuda && !bhi_kernel_file_is_source(&inspect->file)) {
        bhi_inspect_print_image(name, bhi_language_image_kind(inspect->code, inspect->file.size),
                                inspect->file.size, json);
    } else if (exit_status == BHI_EXIT_READY) {
        inspect->context =
            bhi_session_open(command, bhi_args_has(args, BHI_INSPECT_VERBOSE), NULL, &exit_status);
    }
    if (inspect->context && (exit_status = make_kernel(inspect, name)) == BHI_EXIT_READY) {
        exit_status = cuda ? print_compiled(inspect, name, json) : ask_all(inspect);
    }
    if (inspect->context && exit_status == BHI_EXIT_READY && !cuda) {
        print(inspect, name, json);
    }
    bhi_complain_cancelled(command, exit_status, "");
    bh_kernel_release(inspect->kernel);
    bh_context_destroy(inspect->context);
    bhi_source_free(&inspect->file.source);
    free(inspect->code);
    free(inspect->text);
    free(inspect);
    return exit_status;
}

int bhi_inspect_main(const struct bhi_args *args) {
    return bhi_error_json(bhi_args_has(args, BHI_INSPECT_JSON), inspect_any, args);
}
