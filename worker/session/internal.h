/* A session's state, shared by session.c (the lane) and control.c (the messages). */
#ifndef BHI_WORKER_SESSION_INTERNAL_H
#define BHI_WORKER_SESSION_INTERNAL_H

#include "base/futex.h"
#include "worker/compiler/compiler.h"
#include "worker/loader/loader.h"
#include "worker/sentinel.h"
#include "worker/session/config.h"

#define BHI_SESSION_BATCH 64u /* records handed to the backend at once; at most BHI_ERROR_SLOTS */

struct bhi_session {
    struct bhi_session_config config;
    /* config.kind decides which one is used; the others are NULL. */
    struct bhi_backend *backend;
    struct bhi_loader *loader;
    struct bhi_compiler *compiler;
    struct bhi_sentinel_device *sentinel;
    struct bhi_spin spin;
    uint32_t control_handled; /* messages handled, modulo 2^32 */
    uint32_t requests_owed;   /* to make memory: no record runs before they have come */
    uint64_t next_seq;
    uint64_t completed;      /* the seq of the last record that was published */
    uint64_t notified_at;    /* the last lane.notify_at for which the doorbell was rung */
    uint64_t rung_completed; /* `completed` when the doorbell was last rung */
    uint64_t record_ns;      /* average time of the latest records */
    uint64_t lines_ns;       /* when the budget of lines for the log is full again */
    /* Specialization constants that wait for their kernel_create. */
    struct bhi_spec_constant constants[256];
    uint32_t constant_count;
    uint64_t constants_kernel;
    /* Copies that have begun (ahead.c): how many, and the lane's bytes from the tail to the end of
     * the last one. While a batch runs, it lies at the tail, and |batch| is its length. */
    uint32_t ahead, batch;
    uint64_t ahead_bytes;
    uint64_t passed_seq; /* the next record, which cannot begin before what runs has ended; or 0 */
    /* The batch that runs now. */
    const struct bhi_lane_record *records[BHI_SESSION_BATCH];
    struct bhi_result results[BHI_SESSION_BATCH];
    struct bhi_error errors[BHI_SESSION_BATCH];
    struct bhi_msg_kernel_binding bindings[256];
};

/* Says that |seq| starts. Returns true if it was withdrawn before: then it must not run. */
bool bhi_session_announce(struct bhi_session *session, uint64_t seq);
/* Begins the copies that follow in the lane, as far as nothing that runs is in their way; as
 * bhi_backend_config.meanwhile. */
void bhi_session_look_ahead(void *session);
/* The record that is to run alone has a fault (chaos.c). The first comes before it runs, and returns
 * false if it must not; the second takes what bhi_backend_run has returned, and returns the same. */
bool bhi_session_chaos_lets(struct bhi_session *session);
bool bhi_session_chaos_answers(struct bhi_session *session, bool alive);
/* Waits for the next control message and handles it. Returns 0 or a worker exit code. */
int bhi_session_control(struct bhi_session *session);
/* Sends, and waits while the supervisor does not read. Returns 0 or an exit code. */
int bhi_session_send(struct bhi_session *session, const struct bhi_message *message);
/* Sends the memory of the abort words, if a sentinel can use it. Call it before filter B, which
 * forbids sendmsg(). */
int bhi_session_announce_words(struct bhi_session *session);
/* Sends the reflections of kernels that were prepared since the last call. */
int bhi_session_send_reflections(struct bhi_session *session);

#endif
