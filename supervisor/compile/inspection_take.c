#include "supervisor/compile/inspection_take.h"
#include "base/text.h"

#include <string.h>

static void take_text(char out[64], const char from[BHI_INSPECT_NAME]) {
    _Static_assert(BHI_INSPECT_NAME == 64, "compiler and caller agree");
    bhi_text_line(out, 64, from, BHI_INSPECT_NAME);
}

static bool counts_fit(const struct bhi_inspection *from) {
    return from->entries <= BHI_INSPECT_ENTRIES && from->bindings <= BHI_INSPECT_BINDINGS &&
           from->members <= BHI_INSPECT_MEMBERS && from->constants <= BHI_INSPECT_CONSTANTS &&
           from->capabilities <= BHI_INSPECT_CAPABILITIES && from->push_bytes <= UINT32_MAX - 3 &&
           from->text_bytes <= BHI_INSPECT_MAX_TEXT;
}

static bool take_binding(const struct bhi_inspected_binding *from, bh_inspected_binding *out) {
    if (from->set > 31 || from->binding > 65535 || from->kind < BH_BINDING_STORAGE_BUFFER ||
        from->kind > BH_BINDING_UNIFORM_BUFFER || from->access < BH_ACCESS_READ ||
        from->access > BH_ACCESS_READ_WRITE || from->count < 1 ||
        from->count > BHI_INSPECT_BINDINGS || from->measured > 1) {
        return false;
    }
    out->set = from->set;
    out->binding = from->binding;
    out->kind = (bh_binding_kind)from->kind;
    out->access = (bh_access)from->access;
    out->count = from->count;
    out->measured = from->measured;
    take_text(out->type, from->type);
    take_text(out->name, from->name);
    return true;
}

static bool take_constant(const struct bhi_inspected_constant *from, bh_inspected_constant *out) {
    bool known = (from->dtype >= BH_DTYPE_F16 && from->dtype <= BH_DTYPE_U64) ||
                 from->dtype == BH_DTYPE_BOOL;
    out->constant_id = from->constant_id;
    out->dtype = known ? (bh_dtype)from->dtype : BH_DTYPE_NONE;
    out->bits = from->bits;
    take_text(out->name, from->name);
    return known;
}

bool bhi_inspection_take(const struct bhi_inspection *from, bh_inspection *out) {
    memset(out, 0, sizeof *out);
    if (!counts_fit(from)) {
        return false;
    }
    out->spirv_version = from->spirv_version & 0xffff;
    memcpy(out->local_size, from->local_size, sizeof out->local_size);
    out->shared_bytes = from->shared_bytes;
    out->entry_count = from->entries;
    for (uint32_t i = 0; i < from->entries; i++) {
        take_text(out->entries[i], from->entry[i]);
    }
    out->binding_count = from->bindings;
    for (uint32_t i = 0; i < from->bindings; i++) {
        if (!take_binding(&from->binding[i], &out->bindings[i])) {
            return false;
        }
    }
    out->push_size = from->push_bytes;
    out->member_count = from->members;
    for (uint32_t i = 0; i < from->members; i++) {
        out->members[i].offset = from->member[i].offset;
        out->members[i].stride = from->member[i].stride;
        out->members[i].step = from->member[i].step;
        take_text(out->members[i].type, from->member[i].type);
        take_text(out->members[i].name, from->member[i].name);
    }
    out->constant_count = from->constants;
    for (uint32_t i = 0; i < from->constants; i++) {
        if (!take_constant(&from->constant[i], &out->constants[i])) {
            return false;
        }
    }
    out->capability_count = from->capabilities;
    for (uint32_t i = 0; i < from->capabilities; i++) {
        take_text(out->capabilities[i], from->capability[i]);
    }
    out->guard_set = from->guard_set;
    out->guard_binding = from->guard_binding;
    out->loops = from->loops;
    out->left_alone = from->left_alone;
    out->covered = from->covered;
    out->lowered = from->lowered;
    out->polled = from->polled;
    out->clamps = from->clamps;
    out->zeroed = from->zeroed;
    out->text_bytes = from->text_bytes;
    return true;
}
