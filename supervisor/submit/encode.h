/* The lane record of a submission while it is built. */
#ifndef BHI_SUPERVISOR_SUBMIT_ENCODE_H
#define BHI_SUPERVISOR_SUBMIT_ENCODE_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stdint.h>

/* Limits of a command, and of a submission. */
#define BHI_MAX_BINDINGS 256u
#define BHI_MAX_COMMANDS 65536u

struct bhi_payload;

/* A replica that was made for the submission (supervisor/buffer/replica.h). */
struct bhi_made_replica {
    struct bh_buffer *of, *copy; /* both referenced */
    uint64_t version;            /* of |of|, which |copy| has */
    struct bh_buffer *mover; /* whose content moves there with the submission; NULL: it is read */
};

/* What a submission reads instead of buffers that its stream cannot use (D4). */
struct bhi_replicas {
    struct bh_buffer
        *wanted; /* needs a replica: make it, and encode again; referenced; NULL: none */
    struct bh_buffer *mover; /* the buffer that moves to that replica; NULL: it is only read */
    struct bhi_made_replica *made;
    uint32_t count, capacity;
};

/* What is being built. Nothing of it is visible to others before it is queued. */
struct bhi_encoder {
    struct bhi_payload *payload;
    bh_detail *detail;
    const char *call; /* the public function, for the detail */
    struct bhi_replicas *replicas;
    bool many;        /* the caller passed commands: details name which */
    uint32_t command; /* index */
    char place[32];   /* of refused arguments: "command 3" */
    char buffer_place[64];
};

/* Encode the next command of a caller. Lock held. A refusal names call and command. */
bh_status bhi_encode_command(struct bhi_encoder *encoder, const bh_command *command,
                             bh_context *context);
bh_status bhi_encode_prepare(struct bhi_encoder *encoder, struct bh_kernel *kernel);

/* Appends |bytes| zeroed bytes to the record. NULL: no memory. */
void *bhi_encode_append(struct bhi_payload *payload, uint64_t bytes);
/* Notes that a command uses a buffer. Lock held. False: no memory. */
bool bhi_encode_use(struct bhi_payload *payload, struct bh_buffer *buffer, bool reads, bool writes,
                    bool whole);

#endif
