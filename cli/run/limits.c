#include "cli/run/limits.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/format.h"
#include "tool/device_list.h"
#include "tool/exit_status.h"
#include "tool/session.h"
#include "tool/task.h"

struct asking {
    bh_context *context;
    struct bhi_device_list list;
    bh_status status;
    bh_detail detail;
};

static void ask(void *argument) {
    struct asking *asking = argument;
    asking->status = bhi_device_list_fetch(asking->context, &asking->list, &asking->detail);
}

int bhi_run_fetch_limits(struct bhi_run *run) {
    int exit_status = BHI_EXIT_READY;
    if (run->limits.selector[0]) {
        return BHI_EXIT_READY;
    }
    struct asking *asking = calloc(1, sizeof *asking);
    if (!asking) {
        return bhi_run_out_of_memory(run);
    }
    asking->context = run->context;
    if (bhi_task_run(run->request.command, &run->context, ask, asking, &exit_status)) {
        const bh_device_info *device =
            asking->status == BH_OK ? bhi_device_list_select(&asking->list, run->request.device)
                                    : NULL;
        if (asking->status != BH_OK) {
            exit_status =
                bhi_session_fail(run->request.command, NULL, asking->status, &asking->detail);
        }
        if (device) {
            bhi_format(run->limits.selector, sizeof run->limits.selector, "%s", device->selector);
            (void)bhi_device_list_limits(&asking->list, run->request.device,
                                         &run->limits.storage_range,
                                         &run->limits.storage_alignment);
        }
    }
    bhi_device_list_free(&asking->list);
    free(asking);
    return exit_status;
}

/* Returns the bytes of the array if known, else the least that the file's size proves: no header is
 * longer than HEADER. */
static uint64_t bytes_of(const struct bhi_run_binding *binding, bool *out_is_file) {
    enum { HEADER = BHI_NPY_MAX_PREAMBLE + BHI_NPY_MAX_HEADER };
    struct stat status;
    *out_is_file = !binding->array.bytes;
    if (binding->array.bytes) {
        return binding->array.bytes;
    }
    if (!binding->in_path || binding->tensor || bhi_run_is_stdin(binding) ||
        stat(binding->in_path, &status) != 0 || !S_ISREG(status.st_mode)) {
        return 0;
    }
    return status.st_size > HEADER ? (uint64_t)status.st_size - HEADER : 0;
}

static int refuse(const struct bhi_run *run, const struct bhi_run_binding *binding, uint64_t bytes,
                  bool is_file) {
    char what[400];
    bh_detail detail = {.status = BH_LIMIT_EXCEEDED};
    bhi_format(what, sizeof what, "--%s %.300s", binding->option, binding->text);
    bhi_format(detail.message, sizeof detail.message,
               "%s%llu bytes, %s binds %llu at most (max_storage_range); bulkhead eval computes in "
               "pieces",
               is_file ? "over " : "", (unsigned long long)bytes, run->limits.selector,
               (unsigned long long)run->limits.storage_range);
    return bhi_session_fail(run->request.command, what, BH_LIMIT_EXCEEDED, &detail);
}

int bhi_run_check_sizes(struct bhi_run *run) {
    int exit_status = BHI_EXIT_READY;
    for (uint32_t i = 0; i < run->request.binding_count && exit_status == BHI_EXIT_READY; i++) {
        const struct bhi_run_binding *binding = &run->request.bindings[i];
        bool is_file;
        const uint64_t bytes = bytes_of(binding, &is_file);
        if (bytes <= BHI_RANGE_OF_ALL) {
            continue;
        }
        exit_status = bhi_run_fetch_limits(run);
        if (exit_status == BHI_EXIT_READY && run->limits.selector[0] &&
            bytes > run->limits.storage_range) {
            exit_status = refuse(run, binding, bytes, is_file);
        }
    }
    return exit_status;
}
