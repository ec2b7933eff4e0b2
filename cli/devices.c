#include <bulkhead/bulkhead.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/mains.h"
#include "tool/args.h"
#include "tool/device_list.h"
#include "tool/error_json.h"
#include "tool/exit_status.h"
#include "tool/json.h"
#include "tool/quantity.h"
#include "tool/session.h"
#include "tool/text.h"

static const char *type_name(uint32_t device_type) {
    static const char *const names[] = {"other", "integrated", "discrete", "virtual", "cpu"};
    return device_type < sizeof names / sizeof names[0] ? names[device_type] : "unknown";
}

static void api_text(uint32_t version, char out[32]) {
    snprintf(out, 32, "%u.%u.%u", version >> 22 & 0x7F, version >> 12 & 0x3FF, version & 0xFFF);
}

static json_t *device_json(const bh_device_info *device) {
    char uuid[33], api[32];
    for (int i = 0; i < 16; i++) {
        snprintf(uuid + 2 * i, 3, "%02x", device->uuid[i]);
    }
    api_text(device->api_version, api);

    json_t *features = json_array();
    for (uint32_t i = 0; i < device->feature_count && i < 64; i++) {
        json_array_append_new(features, bhi_json_text(device->features[i]));
    }
    json_t *groups = json_array();
    for (int i = 0; i < 3; i++) {
        json_array_append_new(groups, json_integer(device->max_groups[i]));
    }

    return BHI_JSON(
        {"selector", bhi_json_text(device->selector)}, {"name", bhi_json_text(device->name)},
        {"driver", bhi_json_text(device->driver)},
        {"driver_info", bhi_json_text(device->driver_info)},
        {"type", json_string(type_name(device->device_type))},
        {"vendor_id", json_integer(device->vendor_id)},
        {"device_id", json_integer(device->device_id)}, {"api_version", json_string(api)},
        {"driver_version", json_integer(device->driver_version)}, {"uuid", json_string(uuid)},
        {"memory_bytes", bhi_json_number(device->memory_bytes)},
        {"memory_total", bhi_json_number(device->memory_total)},
        {"memory_free", device->memory_known ? bhi_json_number(device->memory_free) : json_null()},
        {"pci", device->pci[0] ? bhi_json_text(device->pci) : json_null()}, {"max_groups", groups},
        {"max_group_invocations", json_integer(device->max_group_invocations)},
        {"max_shared_bytes", json_integer(device->max_shared_bytes)},
        {"max_push_bytes", json_integer(device->max_push_bytes)},
        {"max_storage_range", bhi_json_number(device->max_storage_range)},
        {"max_uniform_range", bhi_json_number(device->max_uniform_range)},
        {"storage_alignment", json_integer(device->storage_alignment)},
        {"uniform_alignment", json_integer(device->uniform_alignment)},
        {"import_alignment", bhi_json_number(device->import_alignment)}, {"features", features});
}

static void print_field(const char *label, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void print_field(const char *label, const char *format, ...) {
    enum { INDENT = 12 };
    char head[INDENT + 1], text[2400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    snprintf(head, sizeof head, "  %s", label);
    bhi_text_hang(stdout, head, text, INDENT, bhi_text_width(stdout));
}

static void print_device(const bh_device_info *device) {
    char name[256], driver[256], info[256], api[32], memory[BHI_QUANTITY], unused[BHI_QUANTITY];
    char features[2048] = "";
    size_t used = 0;
    api_text(device->api_version, api);
    bhi_quantity_bytes(memory, device->memory_total);
    printf("%s\n", bhi_text_clean(name, sizeof name, device->selector));
    print_field("name", "%s", bhi_text_clean(name, sizeof name, device->name));
    print_field("driver", "%s %s", bhi_text_clean(driver, sizeof driver, device->driver),
                bhi_text_clean(info, sizeof info, device->driver_info));
    print_field("type", "%s", type_name(device->device_type));
    print_field("API", "%s %s", bhi_device_is_cuda(device) ? "CUDA" : "Vulkan", api);
    if (device->memory_known) {
        print_field("memory", "%s, %s free", memory,
                    bhi_quantity_bytes(unused, device->memory_free));
    } else {
        print_field("memory", "%s", memory);
    }
    print_field("limits",
                "%u invocations and %u bytes of shared memory a workgroup, %u bytes of push "
                "constants\n%u x %u x %u workgroups, %s bound as one storage buffer",
                device->max_group_invocations, device->max_shared_bytes, device->max_push_bytes,
                device->max_groups[0], device->max_groups[1], device->max_groups[2],
                bhi_quantity_bytes(memory, device->max_storage_range));
    for (uint32_t i = 0; i < device->feature_count && i < 64 && used < sizeof features; i++) {
        used += (size_t)snprintf(features + used, sizeof features - used, "%s%s", i ? " " : "",
                                 bhi_text_clean(name, sizeof name, device->features[i]));
    }
    print_field("features", "%s", features);
}

static int show(const struct bhi_args *args) {
    int exit_status = BHI_EXIT_ENVIRON;
    struct bhi_device_list list = {0};
    bool as_json = bhi_args_has(args, BHI_DEVICES_JSON);
    bh_context *context =
        bhi_session_open("devices", bhi_args_has(args, BHI_DEVICES_VERBOSE), NULL, &exit_status);
    if (!context) {
        return exit_status;
    }
    const bh_status status = bhi_device_list_ask("devices", &context, &list, &exit_status);
    bh_context_destroy(context);
    if (status != BH_OK) {
        return exit_status;
    }
    if (as_json) {
        json_t *devices = json_array();
        for (size_t i = 0; i < list.count; i++) {
            json_array_append_new(devices, device_json(&list.devices[i]));
        }
        bhi_json_print(json_pack("{s:o}", "devices", devices));
    } else {
        for (size_t i = 0; i < list.count; i++) {
            if (i) {
                printf("\n");
            }
            print_device(&list.devices[i]);
        }
    }
    bhi_device_list_free(&list);
    return BHI_EXIT_READY;
}

int bhi_devices_main(const struct bhi_args *args) {
    return bhi_error_json(bhi_args_has(args, BHI_DEVICES_JSON), show, args);
}
