#include "tool/device_choice.h"

#include "base/format.h"
#include "tool/device_list.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/session.h"
#include "tool/wait.h"

/* Creates a stream with |device| as its selector and waits until a worker is ready. */
static bh_status try_selector(bh_context *context, const char *device, bh_detail *detail) {
    bh_stream_options options = {.struct_size = sizeof options};
    bh_stream *stream = NULL;
    options.device = device;
    bh_status status = bh_stream_create(context, &options, &stream, detail);
    if (status == BH_OK) {
        status = bhi_wait_ready(stream, detail);
    }
    bh_stream_release(stream);
    return status;
}

bh_status bhi_device_find(bh_context *context, const char *device, char out_selector[BHI_SELECTOR],
                          bh_detail *detail) {
    const bh_device_info *info;
    struct bhi_device_list list;
    bh_status status = try_selector(context, device, detail);
    if (bhi_interrupt_signal()) {
        return BH_TIMEOUT;
    }
    if (status == BH_OK) {
        bhi_format(out_selector, BHI_SELECTOR, "%s", device);
    }
    if (status != BH_NO_DEVICE && status != BH_INVALID_ARGUMENT) {
        return status;
    }
    status = bhi_device_list_fetch(context, &list, detail);
    if (status != BH_OK) {
        return status;
    }
    status = bhi_device_list_find(&list, device, &info, detail);
    if (status == BH_OK) {
        bhi_format(out_selector, BHI_SELECTOR, "%s", info->selector);
    }
    bhi_device_list_free(&list);
    return status;
}

int bhi_device_choose(const char *command, bh_context *context, const char *device,
                      char out_selector[BHI_SELECTOR]) {
    bh_detail detail = {0};
    out_selector[0] = 0;
    if (!device) {
        return BHI_EXIT_READY;
    }
    const bh_status status = bhi_device_find(context, device, out_selector, &detail);
    if (bhi_interrupt_signal()) {
        return bhi_interrupt_exit_status();
    }
    return status == BH_OK ? BHI_EXIT_READY
                           : bhi_session_fail(command, "--device", status, &detail);
}
