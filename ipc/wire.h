/* Structs, encoder and decoder of the control messages, derived from messages.def. */
#ifndef BHI_IPC_WIRE_H
#define BHI_IPC_WIRE_H

#include "base/text.h"
#include <stddef.h>
#include <stdint.h>

#define BHI_WIRE_MAGIC   0x4248574du /* "MWHB" on the wire */
#define BHI_WIRE_VERSION 9u
#define BHI_WIRE_HEADER  12u
#define BHI_WIRE_MAX     4096u /* no message is larger */
#define BHI_TOKEN_BYTES  32u

/* Worker states as the supervisor sees them: the permission table of messages.def. */
enum bhi_worker_state_bit {
    BHI_WS_SPAWNING = 1u << 0, /* forked; its token has not come */
    BHI_WS_HELD = 1u << 1,     /* token accepted, starting its device */
    BHI_WS_RUNNING = 1u << 2,  /* ready: spare or bound */
    BHI_WS_ANY = 0xffu,
};

enum bhi_direction { BHI_W2S, BHI_S2W, BHI_S2Z, BHI_Z2S, BHI_S2O, BHI_O2S };

enum bhi_message_type {
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc) BHI_MSG_##NAME = type,
#include "ipc/messages.def"
};

/* struct bhi_msg_hello { uint32_t protocol; … char text[capacity]; … } — TEXT is
 * NUL-terminated after decoding, and must be before encoding. */
#define BHI_STRUCT_U32(name, min, max, doc)  uint32_t name;
#define BHI_STRUCT_U64(name, min, max, doc)  uint64_t name;
#define BHI_STRUCT_I32(name, min, max, doc)  int32_t name;
#define BHI_STRUCT_BLOB(name, length, doc)   uint8_t name[length];
#define BHI_STRUCT_TEXT(name, capacity, doc) char name[capacity];
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc)                                 \
    struct bhi_msg_##name {                                                                        \
        BHI_FIELDS_##NAME(BHI_STRUCT_U32, BHI_STRUCT_U64, BHI_STRUCT_I32, BHI_STRUCT_BLOB,         \
                          BHI_STRUCT_TEXT)                                                         \
    };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic" /* some have no fields */
#include "ipc/messages.def"

struct bhi_message {
    enum bhi_message_type type;
    union {
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc) struct bhi_msg_##name name;
#include "ipc/messages.def"
    };
};
#pragma GCC diagnostic pop

struct bhi_message_info {
    enum bhi_message_type type;
    enum bhi_direction direction;
    uint32_t states;
    uint32_t fds;
    const char *name;
    const char *doc;
};

/* NULL for an unknown type. */
const struct bhi_message_info *bhi_message_info(uint32_t type);
/* Writes |message| into |out| (|capacity| bytes). Returns the length; -EMSGSIZE if it does not fit;
 * -EINVAL if a field is out of its range: messages are checked when they are sent, too. */
int bhi_wire_encode(const struct bhi_message *message, uint8_t *out, size_t capacity);
/* Reads exactly one message that travels in |direction| and is permitted in |states| (bits).
 * Returns 0 or -EBADMSG (malformed), -EPROTO (well-formed, but not permitted here), and puts one
 * line that names message and field into |why| (may be NULL). |out| is zeroed on failure. */
int bhi_wire_decode(const uint8_t *bytes, size_t length, enum bhi_direction direction,
                    uint32_t states, struct bhi_message *out, char *why, size_t why_size);

#endif
