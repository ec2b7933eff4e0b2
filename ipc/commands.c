#include "ipc/commands.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MAX_SET     31u
#define MAX_BINDING 65535u
#define MAX_ELEMENT 255u

/* The structs have no padding: checking every field checks every byte. */
#define SIZE_U64(name, min, max, doc) +8u
#define SIZE_U32(name, min, max, doc) +4u
#define BHI_COMMAND(name, NAME, type, doc)                                                         \
    _Static_assert(sizeof(struct bhi_cmd_##name) ==                                                \
                           sizeof(struct bhi_cmd_header)                                           \
                               BHI_COMMAND_FIELDS_##NAME(SIZE_U64, SIZE_U32) &&                    \
                       sizeof(struct bhi_cmd_##name) % 8 == 0,                                     \
                   #name " has padding");
#include "base/format.h"
#include "ipc/commands.def"
_Static_assert(sizeof(struct bhi_cmd_binding) == 40, "a binding has no padding");

struct check {
    char *why;
    size_t why_size;
    uint32_t index; /* of the command in its record */
    const char *command;
    bool failed;
};

static void __attribute__((format(printf, 3, 4))) refuse(struct check *c, const char *field,
                                                         const char *format, ...) {
    if (c->failed) {
        return;
    }
    c->failed = true;
    if (!c->why || c->why_size == 0) {
        return;
    }
    char detail[128];
    va_list args;
    va_start(args, format);
    bhi_vformat(detail, sizeof detail, format, args);
    va_end(args);
    snprintf(c->why, c->why_size, "command %u, %s%s%s: %s", c->index, c->command,
             field[0] ? "." : "", field, detail);
}

static void check_range(struct check *c, const char *field, uint64_t value, uint64_t min,
                        uint64_t max) {
    if (value < min || value > max) {
        refuse(c, field, "%llu is not in %llu..%llu", (unsigned long long)value,
               (unsigned long long)min, (unsigned long long)max);
    }
}

#define CHECK_FIELD(name, min, max, doc) check_range(c, #name, m->name, min, max);
#define BHI_COMMAND(name, NAME, type, doc)                                                         \
    static void check_fields_##name(struct check *c, const struct bhi_cmd_##name *m) {             \
        BHI_COMMAND_FIELDS_##NAME(CHECK_FIELD, CHECK_FIELD)                                        \
    }
#include "ipc/commands.def"

static const struct {
    const char *name; /* NULL: there is no such command */
    size_t size;      /* without what follows the struct */
} commands[] = {
#define BHI_COMMAND(name, NAME, number, doc) [number] = {#name, sizeof(struct bhi_cmd_##name)},
#include "ipc/commands.def"
};

static bool exists(uint32_t type) {
    return type < sizeof commands / sizeof commands[0] && commands[type].name;
}

const char *bhi_command_name(uint32_t type) {
    return exists(type) ? commands[type].name : "unknown";
}

const struct bhi_cmd_binding *bhi_cmd_bindings(const struct bhi_cmd_dispatch *dispatch) {
    return (const void *)(dispatch + 1);
}

const uint8_t *bhi_cmd_push(const struct bhi_cmd_dispatch *dispatch) {
    return (const void *)(bhi_cmd_bindings(dispatch) + dispatch->binding_count);
}

size_t bhi_cmd_dispatch_size(uint32_t binding_count, uint32_t push_size) {
    return sizeof(struct bhi_cmd_dispatch) + binding_count * sizeof(struct bhi_cmd_binding) +
           (((size_t)push_size + 7) & ~(size_t)7);
}

/* Checks what the table cannot express: sizes of the tails, and relations between fields. */

static void check_dispatch(struct check *c, const struct bhi_cmd_dispatch *m) {
    if (m->push_size % 4 != 0) {
        refuse(c, "push_size", "%u is not a multiple of 4", m->push_size);
    }
    if (!m->block_x != !m->block_y || !m->block_x != !m->block_z ||
        (!m->block_x && m->shared_bytes)) {
        refuse(c, "block", "%u, %u, %u, with %u shared bytes", m->block_x, m->block_y, m->block_z,
               m->shared_bytes);
    }
    if (c->failed) {
        return;
    }
    const size_t size = bhi_cmd_dispatch_size(m->binding_count, m->push_size);
    if (m->header.size != size) {
        refuse(c, "size", "%u, it takes %zu", m->header.size, size);
    }
    const struct bhi_cmd_binding *b = bhi_cmd_bindings(m);
    for (uint32_t i = 0; i < m->binding_count && !c->failed; i++) {
        check_range(c, "binding.buffer", b[i].buffer, 1, UINT64_MAX);
        check_range(c, "binding.set", b[i].set, 0, MAX_SET);
        check_range(c, "binding.binding", b[i].binding, 0, MAX_BINDING);
        check_range(c, "binding.access", b[i].access & ~4u, 1, 3); /* 4: it is optional */
        check_range(c, "binding.element", b[i].element, 0, MAX_ELEMENT);
        if (b[i].offset > UINT64_MAX - b[i].size) {
            refuse(c, "binding.offset", "offset and size overflow");
        }
    }
    /* The bytes between the push constants and the next multiple of 8. */
    const uint8_t *push = bhi_cmd_push(m);
    for (uint32_t i = m->push_size; !c->failed && i % 8 != 0; i++) {
        if (push[i] != 0) {
            refuse(c, "push", "the padding is not zero");
        }
    }
}

static void check_copy(struct check *c, const struct bhi_cmd_copy *m) {
    if (m->src_offset > UINT64_MAX - m->bytes) {
        refuse(c, "src_offset", "offset and bytes overflow");
    } else if (m->dst_offset > UINT64_MAX - m->bytes) {
        refuse(c, "dst_offset", "offset and bytes overflow");
    } else if (m->src == m->dst && m->src_offset < m->dst_offset + m->bytes &&
               m->dst_offset < m->src_offset + m->bytes) {
        refuse(c, "bytes", "the ranges overlap");
    }
}

static void check_fill(struct check *c, const struct bhi_cmd_fill *m) {
    if (m->dst_offset % 4 != 0) {
        refuse(c, "dst_offset", "not a multiple of 4");
    } else if (m->bytes % 4 != 0) {
        refuse(c, "bytes", "not a multiple of 4");
    } else if (m->dst_offset > UINT64_MAX - m->bytes) {
        refuse(c, "dst_offset", "offset and bytes overflow");
    }
}

static void check_load(struct check *c, const struct bhi_cmd_load *m) {
    if (m->offset > INT64_MAX - m->bytes) {
        refuse(c, "offset", "offset and bytes overflow");
    }
}

/* Checks the command at |bytes|, of which |left| are in the record. Returns its size. */
static size_t check_command(struct check *c, const uint8_t *bytes, uint64_t left) {
    const struct bhi_cmd_header *header = (const void *)bytes;
    if (left < sizeof *header) {
        refuse(c, "", "the record ends before it");
        return 0;
    }
    const size_t fixed = exists(header->type) ? commands[header->type].size : 0;
    c->command = bhi_command_name(header->type);
    if (fixed == 0) {
        refuse(c, "type", "%u", header->type);
    } else if (header->reserved != 0) {
        refuse(c, "reserved", "%u is not 0", header->reserved);
    } else if (header->size % 8 != 0 || header->size < fixed || header->size > left) {
        refuse(c, "size", "%u (fixed part %zu, left in the record %llu)", header->size, fixed,
               (unsigned long long)left);
    }
    if (c->failed) {
        return 0;
    }
    switch (header->type) {
#define BHI_COMMAND(name, NAME, number, doc)                                                       \
    case number:                                                                                   \
        check_fields_##name(c, (const void *)bytes);                                               \
        break;
#include "ipc/commands.def"
    }
    if (c->failed) {
        return 0;
    }
    if (header->type == BHI_CMD_DISPATCH) {
        check_dispatch(c, (const void *)bytes);
    } else if (header->size != fixed) {
        refuse(c, "size", "%u, it takes %zu", header->size, fixed);
    } else if (header->type == BHI_CMD_COPY) {
        check_copy(c, (const void *)bytes);
    } else if (header->type == BHI_CMD_FILL) {
        check_fill(c, (const void *)bytes);
    } else if (header->type == BHI_CMD_LOAD) {
        check_load(c, (const void *)bytes);
    }
    return header->size;
}

int bhi_record_check(const struct bhi_lane_record *record, uint64_t bytes, char *why,
                     size_t why_size) {
    struct check c = {why, why_size, 0, "record", false};
    if (why && why_size) {
        why[0] = '\0';
    }
    if (bytes < sizeof *record || record->size != bytes || bytes % 8 != 0) {
        refuse(&c, "size", "not %llu", (unsigned long long)bytes);
        return -EPROTO;
    }
    check_range(&c, "seq", record->seq, 1, UINT64_MAX);
    check_range(&c, "command_count", record->command_count, 0, UINT32_MAX);
    check_range(&c, "flags", record->flags, 0, BHI_RECORD_FLAGS);
    const uint8_t *at = (const uint8_t *)(record + 1);
    uint64_t left = bytes - sizeof *record;
    for (uint32_t i = 0; i < record->command_count && !c.failed; i++) {
        c.index = i;
        c.command = "command";
        size_t size = check_command(&c, at, left);
        at += size;
        left -= size;
    }
    if (!c.failed && left != 0) {
        c.command = "record";
        refuse(&c, "", "%llu bytes left over", (unsigned long long)left);
    }
    return c.failed ? -EPROTO : 0;
}

const struct bhi_cmd_header *bhi_record_first(const struct bhi_lane_record *record) {
    return record->command_count ? (const void *)(record + 1) : NULL;
}

const struct bhi_cmd_header *bhi_record_next(const struct bhi_lane_record *record,
                                             const struct bhi_cmd_header *command) {
    const uint8_t *next = (const uint8_t *)command + command->size;
    return next < (const uint8_t *)record + record->size ? (const void *)next : NULL;
}
