#include "supervisor/context/payload.h"
#include "ipc/commands.h"

uint64_t bhi_command_kernel(const struct bhi_cmd_header *command) {
    if (command->type == BHI_CMD_DISPATCH) {
        return ((const struct bhi_cmd_dispatch *)(const void *)command)->kernel;
    }
    if (command->type == BHI_CMD_PREPARE) {
        return ((const struct bhi_cmd_prepare *)(const void *)command)->kernel;
    }
    return 0;
}

uint32_t bhi_payload_command(const struct bhi_payload *payload, uint64_t id) {
    const struct bhi_cmd_header *command = bhi_record_first(payload->record);
    for (uint32_t i = 0; command; i++) {
        if (bhi_command_kernel(command) == id) {
            return i;
        }
        command = bhi_record_next(payload->record, command);
    }
    return BH_NO_COMMAND;
}
