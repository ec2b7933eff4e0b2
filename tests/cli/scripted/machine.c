/* What the machine has: devices, a driver's system calls, the doctor's checks. */
#include "script.h"
#include <bulkhead/device.h>
#include <bulkhead/doctor.h>
#include <bulkhead/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void wait_if_asked(void) {
    if (getenv("SCRIPT_MACHINE_HANG")) {
        script_wait_closed();
    }
}

bh_status bh_devices(bh_context *context, bh_device_info *out_devices, size_t capacity,
                     size_t *out_count, bh_detail *detail) {
    static const char *const names[] = {"Scripted One, not bad", "Scripted Two\033[31m",
                                        "Other, not bad"};
    wait_if_asked();
    bh_status status = script_answer("SCRIPT_DEVICES", detail);
    *out_count = 3;
    for (size_t i = 0; status == BH_OK && i < 3 && i < capacity; i++) {
        bh_device_info *device = &out_devices[i];
        memset(device, 0, sizeof *device);
        snprintf(device->selector, sizeof device->selector, "%s:%zu",
                 i == 2 && getenv("SCRIPT_CUDA") ? "cuda" : "script", i);
        snprintf(device->name, sizeof device->name, "%s", names[i]);
        snprintf(device->driver, sizeof device->driver, "scripted");
        snprintf(device->driver_info, sizeof device->driver_info, "1.2.3");
        device->device_type = (uint32_t)i + 2;
        device->api_version = 1u << 22 | 3u << 12 | 230;
        device->memory_bytes = UINT64_C(3) << 30;
        device->memory_total = UINT64_C(4) << 30;
        if (i == 0) {
            device->memory_known = 1;
            device->memory_free = UINT64_C(3) << 29;
            snprintf(device->pci, sizeof device->pci, "0000:65:00.0");
        }
        device->uuid[15] = 0x0F;
        device->feature_count = 2;
        device->features[0] = "shaderInt64";
        device->features[1] = "robustBufferAccess2";
    }
    return status;
}

/* SCRIPT_TRACE=aeu: allowed, answered with an error, unknown. */
bh_status bh_trace_driver(bh_context *context, const char *device, bh_trace *out_trace,
                          bh_traced_call *out_calls, size_t capacity, size_t *out_count,
                          bh_detail *detail) {
    wait_if_asked();
    const char *calls = getenv("SCRIPT_TRACE");
    memset(out_trace, 0, sizeof *out_trace);
    snprintf(out_trace->driver, sizeof out_trace->driver, "%s", device ? device : "script");
    snprintf(out_trace->version, sizeof out_trace->version, "Script 1.0\033[31m");
    snprintf(out_trace->made_for, sizeof out_trace->made_for, "Script 0.*");
    out_trace->complete = out_trace->tried = true;
    *out_count = calls ? strlen(calls) : 0;
    for (size_t i = 0; i < *out_count && i < capacity; i++) {
        memset(&out_calls[i], 0, sizeof out_calls[i]);
        snprintf(out_calls[i].phase, sizeof out_calls[i].phase, "%s", i ? "running" : "device");
        snprintf(out_calls[i].call, sizeof out_calls[i].call, "ioctl");
        snprintf(out_calls[i].arguments, sizeof out_calls[i].arguments, "SIOCGIFNAME");
        out_calls[i].count = 3;
        out_calls[i].judgement = calls[i] == 'u'   ? BH_CALL_UNKNOWN
                                 : calls[i] == 'e' ? BH_CALL_ANSWERED
                                                   : BH_CALL_ALLOWED;
        out_calls[i].error = calls[i] == 'e' ? 2 : 0;
        out_trace->unknown += calls[i] == 'u';
    }
    return script_answer("SCRIPT_TRACED", detail);
}

/* SCRIPT_CHECKS=hhab: holds, absent, broken; a capital is required. */
bh_status bh_doctor(bh_context *context, bh_check *out_checks, size_t capacity, size_t *out_count,
                    bh_detail *detail) {
    wait_if_asked();
    const char *checks = getenv("SCRIPT_CHECKS");
    bh_status status = script_answer("SCRIPT_DOCTOR", detail);
    *out_count = checks ? strlen(checks) : 0;
    for (size_t i = 0; status == BH_OK && i < *out_count && i < capacity; i++) {
        bh_check *check = &out_checks[i];
        char letter = checks[i];
        memset(check, 0, sizeof *check);
        snprintf(check->group, sizeof check->group, "%s", i % 2 ? "sandbox" : "kernel");
        snprintf(check->name, sizeof check->name, "check %zu", i);
        check->required = letter < 'a';
        letter |= 0x20;
        check->result = letter == 'h'   ? BH_CHECK_HOLDS
                        : letter == 'b' ? BH_CHECK_BROKEN
                                        : BH_CHECK_ABSENT;
        snprintf(check->text, sizeof check->text, "what was tried");
        if (check->result != BH_CHECK_HOLDS) {
            snprintf(check->advice, sizeof check->advice, "enable it");
        }
    }
    return status;
}
