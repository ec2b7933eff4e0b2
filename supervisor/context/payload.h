/* A submission in the supervisor: the core's part, the record for the lane, and the kernels or the
 * file that it keeps alive. */
#ifndef BHI_SUPERVISOR_CONTEXT_PAYLOAD_H
#define BHI_SUPERVISOR_CONTEXT_PAYLOAD_H

#include "core/submission.h"
#include "ipc/lane.h"

struct bhi_cmd_header;

/* A source that is compiled, for verdicts and quarantine. */
struct bhi_named_source {
    uint8_t hash[32];
    char name[64];
};

struct bhi_payload {
    struct bhi_submission submission; /* first */
    struct bh_kernel **kernels;       /* referenced, distinct */
    uint32_t kernel_count, kernel_capacity;
    bool remote;                     /* it uses device memory that only workers reach */
    bool borrows;                    /* it uses device memory that was made for another stream */
    struct bhi_file *file;           /* referenced; NULL: it is not about a file */
    uint64_t load_bytes;             /* that it reads of the file, besides the header */
    struct bhi_named_source *source; /* owned; NULL: it is no compile of a source */
    struct bhi_lane_record *record;
    size_t record_capacity;
};

static inline struct bhi_payload *bhi_payload_of(const struct bhi_submission *submission) {
    return BHI_CONTAINER(submission, struct bhi_payload, submission);
}

/* Returns the id of the kernel that |command| uses; 0: none. */
uint64_t bhi_command_kernel(const struct bhi_cmd_header *command);
/* Returns the index of the first command that uses kernel |id|; BH_NO_COMMAND: none. */
uint32_t bhi_payload_command(const struct bhi_payload *payload, uint64_t id);

#endif
