/* bulkhead run.
 *
 * The order: refuse what can be refused without a worker; start the worker, while a loader parses
 * the headers of the inputs and reads them; look up given names in what the kernel declares, and
 * compare its types with the arrays; compile the kernel, and compare what it binds with what was
 * given; when the inputs are loaded, run it.
 */
#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "cli/run/steps.h"
#include "request/command_line.h"
#include "request/image.h"
#include "request/kernel_maker.h"
#include "request/like.h"
#include "request/missing.h"
#include "request/names.h"
#include "request/push.h"
#include "request/run.h"
#include "request/types.h"
#include "tool/args.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/session.h"
#include "tool/task.h"
#include "tool/text.h"

/* The kernel is compiled already; this is the limit for the message with its bindings. */
static const uint64_t reflect_limit_ns = 10000000000u;

static int make_kernel(struct bhi_run *run) {
    const struct bhi_run_request *request = &run->request;
    bh_kernel_options options;
    const struct bhi_kernel_file file = {.path = request->kernel_path,
                                         .code = run->code,
                                         .size = run->code_size,
                                         .language = request->language,
                                         .source = request->source,
                                         .deadline_ns = request->compile_deadline_ns,
                                         .takes_cuda = true};

    bhi_run_request_kernel_options(request, &options);
    return bhi_kernel_file_make(request->command, &file, &run->context, &options, &run->kernel);
}

struct inspecting {
    bh_kernel *kernel;
    uint64_t deadline_ns;
    struct bhi_kernel_types *types; /* owned */
    bh_status status;
    bh_detail detail;
};

static void inspect(void *argument) {
    struct inspecting *inspecting = argument;
    inspecting->status = bhi_kernel_types_ask(inspecting->kernel, inspecting->deadline_ns,
                                              &inspecting->types, &inspecting->detail);
}

/* Resolves names, and compares the inspected types with the arrays. */
static int match_types(struct bhi_run *run, const struct bhi_kernel_types *types) {
    struct bhi_complaint why, complaint;
    if (!bhi_run_resolve_names(&run->request, types, "--", &complaint) ||
        (!run->request.reinterpret &&
         !bhi_run_match_order(&run->request, types, "--", "--reinterpret", &complaint))) {
        return bhi_run_refused(run, BH_BINDING_MISMATCH, &complaint);
    }
    const struct bhi_run_binding *given =
        run->request.reinterpret
            ? NULL
            : bhi_run_find_mismatch(&run->request, types, "--reinterpret", &why);
    if (!given) {
        return BHI_EXIT_READY;
    }
    bhi_refuse(&complaint, "--%s %.300s: %.600s", given->option, given->text, why.text);
    return bhi_run_refused(run, BH_BINDING_MISMATCH, &complaint);
}

static int refuse_unknown_types(struct bhi_run *run, struct inspecting *inspecting) {
    bh_detail detail = inspecting->detail;
    const bool mine =
        inspecting->status == BH_LIMIT_EXCEEDED || inspecting->status == BH_COMPILE_FAILED;
    const bool named = bhi_run_has_names(&run->request);
    bhi_format(detail.message, sizeof detail.message, "%s%.380s%s%s",
               mine ? "its declared types cannot be determined: " : "",
               bhi_text_without_name(inspecting->detail.message, run->request.kernel_name),
               mine ? "; --reinterpret runs it without checking types" : "",
               mine && named ? ", and needs numbers instead of names" : "");
    return bhi_session_fail(run->request.command, run->request.kernel_path, inspecting->status,
                            &detail);
}

/* A worker without a device parses the module, while the worker with the device still starts. */
static int check_types(struct bhi_run *run) {
    int exit_status = BHI_EXIT_READY;
    if (run->request.image || /* it declares none */
        ((run->request.reinterpret ||
          (run->request.binding_count == 0 && run->request.push.size == 0)) &&
         !bhi_run_has_names(&run->request))) {
        return BHI_EXIT_READY;
    }
    struct inspecting inspecting = {.kernel = run->kernel,
                                    .deadline_ns = run->request.compile_deadline_ns};
    if (bhi_task_run(run->request.command, &run->context, inspect, &inspecting, &exit_status)) {
        if (inspecting.status == BH_OK) {
            exit_status = match_types(run, inspecting.types);
        } else if (inspecting.status != BH_INVALID_KERNEL) { /* the device's worker reports it */
            exit_status = refuse_unknown_types(run, &inspecting);
        }
    }
    free(inspecting.types);
    return exit_status;
}

static int take_likes(struct bhi_run *run) {
    struct bhi_complaint complaint;
    return bhi_run_take_likes(&run->request, "--", &complaint)
               ? BHI_EXIT_READY
               : bhi_run_refused(run, BH_INVALID_ARGUMENT, &complaint);
}

/* -- the compiled kernel ------------------------------------------------------------------------ */

/* Returns the bindings of the compiled kernel in the form of an inspection; NULL: out of memory. */
static struct bhi_kernel_types *types_of(const bh_kernel_info *info) {
    struct bhi_kernel_types *types =
        calloc(1, sizeof *types + info->binding_count * sizeof types->types[0]);
    for (uint32_t i = 0; types && i < info->binding_count; i++) {
        const bh_kernel_binding *from = &info->bindings[i];
        struct bhi_kernel_type *to = &types->types[types->count++];
        to->slot = (struct bhi_slot){from->set, from->binding, 0};
        to->count = from->count;
        to->kind = from->kind;
        to->access = from->access;
        snprintf(to->name, sizeof to->name, "%s", from->name);
    }
    if (types) {
        types->push_size = info->push_size;
    }
    return types;
}

static bool refuse_unknown(const struct bhi_run_binding *given,
                           const struct bhi_kernel_types *types, struct bhi_complaint *complaint) {
    char list[512] = "", one[BHI_DECLARED];
    if (types->count == 0) {
        return bhi_refuse(complaint, "--%s %s: the kernel has no bindings", given->option,
                          given->text);
    }
    for (uint32_t i = 0; i < types->count; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                 bhi_kernel_type_describe(&types->types[i], BHI_WHOLE_BINDING, one));
    }
    return bhi_refuse(complaint, "--%s %.200s: the kernel has no binding %s; it has %s",
                      given->option, given->text, bhi_slot_describe(given->slot, false).text, list);
}

static bool match_push(const struct bhi_run_request *request, const bh_kernel_info *info,
                       struct bhi_complaint *complaint) {
    uint32_t wanted = (info->push_size + 3) / 4 * 4; /* rounded up as --push does */
    if (request->push.size == wanted) {
        return true;
    }
    if (wanted == 0) {
        return bhi_refuse(complaint, "--push: the kernel has no push constants");
    }
    if (request->push.size == 0) {
        return bhi_refuse(complaint, "--push is missing: the kernel has %u bytes of push constants",
                          wanted);
    }
    return bhi_refuse(complaint,
                      "--push: %u bytes given, the kernel has %u bytes of push constants",
                      request->push.size, wanted);
}

static bool match_access(const struct bhi_run_request *request,
                         const struct bhi_kernel_types *types, struct bhi_complaint *complaint) {
    char described[BHI_DECLARED];
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *given = &request->bindings[i];
        const struct bhi_kernel_type *wanted = bhi_kernel_types_find(types, given->slot);
        if (!wanted) {
            return refuse_unknown(given, types, complaint);
        }
        bhi_kernel_type_describe(wanted, given->slot.element, described);
        if ((given->access & BH_ACCESS_WRITE) && wanted->access == BH_ACCESS_READ) {
            return bhi_refuse(complaint, "--%s %s: the kernel does not write %s; use --in",
                              given->option, given->text, described);
        }
        if (given->access == BH_ACCESS_READ && wanted->access == BH_ACCESS_WRITE) {
            return bhi_refuse(complaint, "--%s %s: the kernel does not read %s; use --out",
                              given->option, given->text, described);
        }
    }
    return true;
}

/* Refuses a missing binding, one that the kernel does not have, an output that the kernel only
 * reads, an input that it only writes, and push constants of another size. */
static bool match_request(const struct bhi_run_request *request, const bh_kernel_info *info,
                          struct bhi_complaint *complaint) {
    struct bhi_kernel_types *types = types_of(info);
    const bool matches = types ? bhi_run_check_missing(request, types, "--", complaint) &&
                                     match_access(request, types, complaint) &&
                                     match_push(request, info, complaint)
                               : bhi_refuse(complaint, "out of memory");
    free(types);
    return matches;
}

/* Compares the request with the bindings of the compiled kernel. */
static int match(struct bhi_run *run) {
    struct bhi_complaint complaint;
    bh_detail detail = {0};
    int exit_status = BHI_EXIT_READY;
    bh_kernel_info *info = calloc(1, sizeof *info);
    if (!info) {
        return bhi_run_out_of_memory(run);
    }
    info->struct_size = sizeof *info;
    bh_status status = bh_kernel_reflect(run->kernel, run->stream, reflect_limit_ns, info, &detail);
    if (status != BH_OK) {
        exit_status =
            bhi_session_fail(run->request.command, run->request.kernel_path, status, &detail);
    } else if (!(run->request.image ? bhi_run_match_parameters : match_request)(&run->request, info,
                                                                                &complaint)) {
        exit_status = bhi_run_refused(run, BH_BINDING_MISMATCH, &complaint);
    }
    free(info);
    return exit_status;
}

/* Refuses a kernel that the stream's device cannot run; its worker is ready. */
static int check_driver(struct bhi_run *run) {
    char selector[48];
    struct bhi_complaint why, complaint;
    if (bh_stream_device(run->stream, selector) != BH_OK || !selector[0] ||
        bhi_run_check_driver(&run->request, selector, "--", &why)) {
        return BHI_EXIT_READY;
    }
    bhi_refuse(&complaint, "KERNEL %.300s: %.600s", run->request.kernel_path, why.text);
    return bhi_run_refused(run, BH_INVALID_ARGUMENT, &complaint);
}

/* -- the whole ---------------------------------------------------------------------------------- */

static int check_files(struct bhi_run *run) {
    struct bhi_complaint complaint;
    struct bhi_complaint inner;
    int error;
    struct bhi_kernel_file file = {
        .path = run->request.kernel_path, .language = run->request.language, .takes_cuda = true};
    const bh_status status = bhi_kernel_file_read(&file, &run->code, &error, &inner);
    run->code_size = file.size;
    bhi_run_note_language(&run->request, bhi_kernel_file_language(&file));
    if (status != BH_OK || !bhi_run_check_image(&run->request, run->request.device, "--", &inner)) {
        bhi_refuse(&complaint, "KERNEL %.300s: %.600s", run->request.kernel_path, inner.text);
        return bhi_run_refused(run, status == BH_OK ? BH_INVALID_ARGUMENT : status, &complaint);
    }
    if (!bhi_run_open_stdin(&run->request, &complaint)) {
        return bhi_run_refused(run, BH_LOAD_FAILED, &complaint);
    }
    return bhi_run_check_overlap(run);
}

int bhi_run_main(const struct bhi_args *args) {
    struct bhi_complaint complaint;
    struct bhi_run *run = calloc(1, sizeof *run);
    int exit_status;

    if (!run) {
        return bhi_complain_memory("run");
    }
    bhi_run_begin(run);
    if (!bhi_run_request_parse(args, &run->request, &complaint)) {
        run->request.json = bhi_args_has(args, BHI_RUN_JSON); /* also after the bad one */
        return bhi_run_misused(run, &complaint);
    }
    exit_status = check_files(run) ?: bhi_run_open_context(run) ?: bhi_run_start_worker(run) ?:
                  bhi_run_check_sizes(run) ?: bhi_run_choose_memory(run) ?: bhi_run_load_all(run) ?:
                  take_likes(run) ?: bhi_run_check_sizes(run) ?: bhi_run_open_all(run) ?:
                  make_kernel(run) ?: check_types(run) ?: bhi_run_fill_all(run) ?:
                  bhi_run_await_worker(run) ?: check_driver(run) ?: bhi_run_compile(run) ?: match(run) ?:
                  bhi_run_await_all(run) ?: bhi_run_submit_all(run) ?: bhi_run_write_all(run);
    return bhi_run_end(run, exit_status);
}
