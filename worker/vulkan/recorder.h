/* Putting the commands of a record into a command buffer: what they name is looked up and checked,
 * and where one depends on another there is a barrier. */
#ifndef BHI_WORKER_VULKAN_RECORDER_H
#define BHI_WORKER_VULKAN_RECORDER_H

#include "worker/vulkan/backend.h"

#define BHI_WORK_STAGES (VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT)
#define BHI_WORK_WRITES (VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT)
#define BHI_WORK_READS                                                                             \
    (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_UNIFORM_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT)
#define BHI_HOST_ACCESS (VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT)

/* All commands of |record|. On failure error->command_index is set, and some may have been
 * recorded already, unless |recorder| only checks. */
bool bhi_recorder_add(struct bhi_recorder *recorder, const struct bhi_lane_record *record);
/* The same with the timestamps that the record asks for. */
bool bhi_recorder_add_timed(struct bhi_recorder *recorder, const struct bhi_lane_record *record);
/* What was recorded so far has ended before what follows, and its writes can be seen there and by
 * the host. */
void bhi_recorder_settle(const struct bhi_recorder *recorder);
/* Anything for the device in it? Not if it only prepares kernels. */
bool bhi_record_has_work(const struct bhi_lane_record *record);

#endif
