#include "cli/run/steps.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

#include "base/format.h"
#include "tool/device_list.h"
#include "tool/exit_status.h"
#include "tool/session.h"

int bhi_run_fetch_limits(struct bhi_run *run) {
    int exit_status = BHI_EXIT_READY;
    struct bhi_device_list list;
    if (run->limits.selector[0] ||
        bhi_device_list_ask(run->request.command, &run->context, &list, &exit_status) != BH_OK) {
        return exit_status;
    }
    const bh_device_info *device = bhi_device_list_select(&list, run->request.device);
    if (device) {
        bhi_format(run->limits.selector, sizeof run->limits.selector, "%s", device->selector);
        (void)bhi_device_list_limits(&list, run->request.device, &run->limits.storage_range,
                                     &run->limits.storage_alignment);
    }
    bhi_device_list_free(&list);
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
