#include "chaos/history/fault.h"

#include <stdio.h>
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

int bhi_name_find(const char *const *names, const char *name, size_t length) {
    for (int i = 0; names[i]; i++) {
        if (strlen(names[i]) == length && !memcmp(names[i], name, length)) {
            return i;
        }
    }
    return -1;
}

static bool refuse_name(const char *const *names, const char *what, const char *name, size_t length,
                        struct bhi_complaint *complaint) {
    char all[256];
    size_t used = 0;
    for (int i = 0; names[i] && used < sizeof all; i++) {
        used += (size_t)snprintf(all + used, sizeof all - used, "%s, ", names[i]);
    }
    return bhi_refuse(complaint, "'%.*s' is %s: use %sseparated by commas",
                      (int)(length < 64 ? length : 64), name, what, all);
}

bool bhi_names_parse(const char *list, const char *const *names, const char *what,
                     uint32_t *out_set, struct bhi_complaint *complaint) {
    uint32_t set = 0;
    for (const char *name = list;;) {
        const size_t length = strcspn(name, ",");
        const int found = bhi_name_find(names, name, length);
        if (found < 0) {
            return refuse_name(names, what, name, length, complaint);
        }
        set |= 1u << found;
        if (!name[length]) {
            break;
        }
        name += length + 1;
    }
    *out_set = set;
    return true;
}

bool bhi_fault_parse(const char *list, uint32_t *out_set, struct bhi_complaint *complaint) {
    return bhi_names_parse(list, bhi_fault_names, "not a fault", out_set, complaint);
}
