/* Lane commands as structs, and the walker that validates a record. From commands.def. */
#ifndef BHI_IPC_COMMANDS_H
#define BHI_IPC_COMMANDS_H

#include "ipc/lane.h"
#include <stddef.h>
#include <stdint.h>

enum bhi_command_type {
#define BHI_COMMAND(name, NAME, type, doc) BHI_CMD_##NAME = type,
#include "ipc/commands.def"
};

struct bhi_cmd_header {
    uint16_t type;
    uint16_t reserved; /* 0 */
    uint32_t size;     /* of the whole command, a multiple of 8 */
};

#define BHI_CMD_U64(name, min, max, doc) uint64_t name;
#define BHI_CMD_U32(name, min, max, doc) uint32_t name;
#define BHI_COMMAND(name, NAME, type, doc)                                                         \
    struct bhi_cmd_##name {                                                                        \
        struct bhi_cmd_header header;                                                              \
        BHI_COMMAND_FIELDS_##NAME(BHI_CMD_U64, BHI_CMD_U32)                                        \
    };
#include "ipc/commands.def"

/* Follows a dispatch, binding_count times. */
struct bhi_cmd_binding {
    uint64_t buffer;
    uint64_t offset;
    uint64_t size; /* bytes, > 0 unless the buffer is empty */
    uint32_t set;
    uint32_t binding;
    uint32_t access;  /* bh_access bits: 1 read, 2 write, 4 the kernel need not declare it */
    uint32_t element; /* of an array of buffers */
};

const char *bhi_command_name(uint32_t type);
/* The parts of a dispatch; valid after bhi_record_check(). */
const struct bhi_cmd_binding *bhi_cmd_bindings(const struct bhi_cmd_dispatch *dispatch);
const uint8_t *bhi_cmd_push(const struct bhi_cmd_dispatch *dispatch);
/* Size of a dispatch command with its tail. */
size_t bhi_cmd_dispatch_size(uint32_t binding_count, uint32_t push_size);
/* Validates a whole record: sizes, types, every field's range, exactly command_count commands, no
 * bytes left over. |bytes| is record->size, which the caller has checked against the ring. Returns
 * 0 or -EPROTO with one line in |why| (may be NULL). */
int bhi_record_check(const struct bhi_lane_record *record, uint64_t bytes, char *why,
                     size_t why_size);
/* First command of a checked record, and the one after |command| (NULL at the end). */
const struct bhi_cmd_header *bhi_record_first(const struct bhi_lane_record *record);
const struct bhi_cmd_header *bhi_record_next(const struct bhi_lane_record *record,
                                             const struct bhi_cmd_header *command);

#endif
