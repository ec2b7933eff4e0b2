/* Which records may run as copies beside others (copy_jobs.h). */
#include "worker/vulkan/backend.h"

#include "base/check.h"
#include "base/futex.h"
#include "ipc/commands.h"

#include <bulkhead/bulkhead.h>

static bool overlap(const struct bhi_copy_range *a, const struct bhi_copy_range *b) {
    return a->buffer == b->buffer && a->begin < b->end && b->begin < a->end;
}

static bool in_range(const struct bhi_vk_buffer *buffer, uint64_t offset, uint64_t bytes) {
    return buffer && buffer->error.status == BH_OK && buffer->buffer != VK_NULL_HANDLE &&
           offset <= buffer->size && bytes <= buffer->size - offset;
}

/* Lists what the record reads and writes, if it has copies alone and all of them are valid. A
 * source that is read through a copy of the host counts as written: its copy is made anew, unless
 * its content never changes. Returns how many bytes it copies; 0: it is none of those records. */
static uint64_t list_ranges(const struct bhi_vk_backend *b, const struct bhi_lane_record *record,
                            struct bhi_copy_range ranges[2 * BHI_COPY_COMMANDS],
                            uint32_t *out_count) {
    uint64_t total = 0;
    uint32_t count = 0;
    *out_count = 0;
    if (record->command_count > BHI_COPY_COMMANDS) {
        return 0;
    }
    for (const struct bhi_cmd_header *command = bhi_record_first(record); command;
         command = bhi_record_next(record, command)) {
        const struct bhi_cmd_copy *copy = (const struct bhi_cmd_copy *)command;
        if (command->type != BHI_CMD_COPY) {
            return 0;
        }
        const struct bhi_vk_buffer *src = bhi_map_get(&b->buffers, copy->src);
        const struct bhi_vk_buffer *dst = bhi_map_get(&b->buffers, copy->dst);
        if (!in_range(src, copy->src_offset, copy->bytes) ||
            !in_range(dst, copy->dst_offset, copy->bytes) || !dst->writable) {
            return 0; /* bhi_backend_run says what is wrong */
        }
        ranges[count++] =
            (struct bhi_copy_range){copy->src, copy->src_offset, copy->src_offset + copy->bytes,
                                    src->source && !src->constant};
        ranges[count++] = (struct bhi_copy_range){copy->dst, copy->dst_offset,
                                                  copy->dst_offset + copy->bytes, true};
        total += copy->bytes;
    }
    *out_count = count;
    return total;
}

/* Can it run a second time, after it has run in part? That is so if nothing is overwritten that the
 * same or an earlier copy has read. */
static bool repeatable(const struct bhi_copy_range *ranges, uint32_t count) {
    for (uint32_t target = 1; target < count; target += 2) {
        for (uint32_t source = 0; source < target; source += 2) {
            if (overlap(&ranges[source], &ranges[target])) {
                return false;
            }
        }
    }
    return true;
}

/* As list_ranges, with the number of ranges as the result. */
static uint32_t examine(const struct bhi_vk_backend *b, const struct bhi_lane_record *record,
                        struct bhi_copy_range ranges[2 * BHI_COPY_COMMANDS]) {
    uint32_t count;
    if (b->copies.queue == VK_NULL_HANDLE || b->base.lost ||
        record->flags & (BHI_RECORD_TIMED | BHI_RECORD_CHAOS) ||
        list_ranges(b, record, ranges, &count) < BHI_COPY_LEAST || !repeatable(ranges, count)) {
        return 0;
    }
    return count;
}

bool bhi_vk_copies(const struct bhi_backend *backend, const struct bhi_lane_record *record) {
    const struct bhi_vk_backend *b = bhi_vk_const(backend);
    struct bhi_copy_range ranges[2 * BHI_COPY_COMMANDS];
    return examine(b, record, ranges) > 0;
}

static bool meets(const struct bhi_copy_range *ranges, uint32_t count,
                  const struct bhi_copy_range *other) {
    for (uint32_t i = 0; i < count; i++) {
        if ((ranges[i].write || other->write) && overlap(&ranges[i], other)) {
            return true;
        }
    }
    return false;
}

/* Does one of the ranges depend on what a command of |record|, on the compute queue, does? A buffer
 * that is bound for writing counts as written in all that is bound. */
static bool meets_record(const struct bhi_copy_range *ranges, uint32_t count,
                         const struct bhi_lane_record *record) {
    for (const struct bhi_cmd_header *command = bhi_record_first(record); command;
         command = bhi_record_next(record, command)) {
        if (command->type == BHI_CMD_DISPATCH) {
            const struct bhi_cmd_dispatch *dispatch = (const struct bhi_cmd_dispatch *)command;
            const struct bhi_cmd_binding *bindings = bhi_cmd_bindings(dispatch);
            for (uint32_t i = 0; i < dispatch->binding_count; i++) {
                const struct bhi_copy_range bound = {bindings[i].buffer, bindings[i].offset,
                                                     bindings[i].offset + bindings[i].size,
                                                     bindings[i].access & BH_ACCESS_WRITE};
                if (meets(ranges, count, &bound)) {
                    return true;
                }
            }
        } else if (command->type == BHI_CMD_COPY) {
            const struct bhi_cmd_copy *copy = (const struct bhi_cmd_copy *)command;
            const struct bhi_copy_range from = {copy->src, copy->src_offset,
                                                copy->src_offset + copy->bytes, false};
            const struct bhi_copy_range to = {copy->dst, copy->dst_offset,
                                              copy->dst_offset + copy->bytes, true};
            if (meets(ranges, count, &from) || meets(ranges, count, &to)) {
                return true;
            }
        } else if (command->type == BHI_CMD_FILL) {
            const struct bhi_cmd_fill *fill = (const struct bhi_cmd_fill *)command;
            const struct bhi_copy_range to = {fill->dst, fill->dst_offset,
                                              fill->dst_offset + fill->bytes, true};
            if (meets(ranges, count, &to)) {
                return true;
            }
        }
    }
    return false;
}

/* Would it overwrite what the job reads? Jobs run in order, so nothing else is in the way. */
static bool spoils(const struct bhi_copy_range *ranges, uint32_t count,
                   const struct bhi_copy_job *job) {
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t source = 0; ranges[i].write && source < job->range_count; source += 2) {
            if (overlap(&ranges[i], &job->ranges[source])) {
                return true;
            }
        }
    }
    return false;
}

bool bhi_vk_copy_room(const struct bhi_backend *backend) {
    const struct bhi_vk_backend *b = bhi_vk_const(backend);
    return b->copies.queue != VK_NULL_HANDLE && b->copies.count < BHI_COPY_JOBS;
}

/* Fills in the ranges of a job that can begin now. Returns how many; 0: it cannot. */
static uint32_t fit(const struct bhi_vk_backend *b, const struct bhi_lane_record *record,
                    struct bhi_copy_range ranges[2 * BHI_COPY_COMMANDS]) {
    const struct bhi_vk_copies *c = &b->copies;
    const uint32_t count = bhi_vk_copy_room(&b->base) ? examine(b, record, ranges) : 0;
    for (uint32_t i = 0; count && i < c->count; i++) {
        if (spoils(ranges, count, &c->jobs[(c->first + i) % BHI_COPY_JOBS])) {
            return 0;
        }
    }
    for (uint32_t i = 0; count && i < c->beside_count; i++) {
        if (meets_record(ranges, count, c->beside[c->beside_places[i]])) {
            return 0;
        }
    }
    return count;
}

bool bhi_vk_copy_fits(const struct bhi_backend *backend, const struct bhi_lane_record *record) {
    const struct bhi_vk_backend *b = bhi_vk_const(backend);
    struct bhi_copy_range ranges[2 * BHI_COPY_COMMANDS];
    return fit(b, record, ranges) > 0;
}

void bhi_vk_copy_begin(struct bhi_backend *backend, const struct bhi_lane_record *record) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    struct bhi_vk_copies *c = &b->copies;
    BHI_CHECK(c->count < BHI_COPY_JOBS);
    struct bhi_copy_job *job = &c->jobs[(c->first + c->count) % BHI_COPY_JOBS];
    *job = (struct bhi_copy_job){
        .record = record,
        .next = (const struct bhi_cmd_copy *)bhi_record_first(record),
        .started_ns = bhi_now_ns(),
        .error = {.status = BH_OK, .command_index = BHI_NO_COMMAND},
    };
    job->range_count = fit(b, record, job->ranges);
    BHI_CHECK(job->range_count > 0);
    c->count++;
}
