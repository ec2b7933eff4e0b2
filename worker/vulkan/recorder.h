/* Writes the commands of a record into a command buffer: looks up and checks what they name, and
 * puts a barrier before a command that depends on an earlier one. */
#ifndef BHI_WORKER_VULKAN_RECORDER_H
#define BHI_WORKER_VULKAN_RECORDER_H

#include "worker/vulkan/backend.h"
#include "worker/vulkan/commands.h"

#define BHI_WORK_STAGES (VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT)
#define BHI_WORK_WRITES (VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT)
#define BHI_WORK_READS                                                                             \
    (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_UNIFORM_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT)
#define BHI_HOST_ACCESS (VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT)

/* Adds all commands of |record|. On failure error->command_index is set; some commands may have
 * been recorded already, unless |recorder| only checks. */
bool bhi_recorder_add(struct bhi_recorder *recorder, const struct bhi_lane_record *record);
/* The same, with the timestamps that the record asks for. */
bool bhi_recorder_add_timed(struct bhi_recorder *recorder, const struct bhi_lane_record *record);
/* Adds a barrier: commands before it have ended before later ones begin, and these and the host see
 * their writes. */
void bhi_recorder_settle(const struct bhi_recorder *recorder);

#endif
