#include "chaos/history/fault.h"

#include <string.h>

const char *const bhi_fault_names[BHI_FAULT_KINDS + 1] = {
    [BHI_FAULT_KILL] = "kill",       [BHI_FAULT_SEGV] = "segv",
    [BHI_FAULT_STOP] = "stop",       [BHI_FAULT_HANG] = "hang",
    [BHI_FAULT_OOM] = "oom",         [BHI_FAULT_GARBAGE] = "garbage",
    [BHI_FAULT_CLOSE] = "close",     [BHI_FAULT_ZYGOTE] = "zygote",
    [BHI_FAULT_SLOW] = "slow",       [BHI_FAULT_FULL] = "full",
    [BHI_FAULT_DEVICE] = "device",   [BHI_FAULT_UNGUARDED] = "unguarded",
    [BHI_FAULT_ILLEGAL] = "illegal", [BHI_FAULT_KINDS] = NULL,
};

const char *bhi_fault_name(enum bhi_fault_kind kind) {
    return kind < BHI_FAULT_KINDS ? bhi_fault_names[kind] : "unknown";
}

static bool parse_one(const char *name, size_t length, uint32_t *set) {
    for (uint32_t kind = 0; kind < BHI_FAULT_KINDS; kind++) {
        if (strlen(bhi_fault_names[kind]) == length &&
            !memcmp(bhi_fault_names[kind], name, length)) {
            *set |= 1u << kind;
            return true;
        }
    }
    return false;
}

bool bhi_fault_parse(const char *list, uint32_t *out_set, struct bhi_complaint *complaint) {
    uint32_t set = 0;
    for (const char *name = list;;) {
        size_t length = strcspn(name, ",");
        if (!parse_one(name, length, &set)) {
            return bhi_refuse(
                complaint,
                "'%.*s' is not a fault: use kill, segv, stop, hang, oom, garbage, close, "
                "zygote, slow, full, device, unguarded, illegal, separated by commas",
                (int)(length < 64 ? length : 64), name);
        }
        if (!name[length]) {
            break;
        }
        name += length + 1;
    }
    *out_set = set;
    return true;
}
