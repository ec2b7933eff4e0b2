/* Named steps for tests to act at, compiled into the test build of libbulkhead only
 * (BHI_STEP_POINTS=1, tests/fault): the shipped library has none of it. |object| is what the step
 * is about; the name says of which type it is:
 *   lane_half_written, lane_written      struct bhi_lane: a record is half copied; copied and not
 *                                        published
 *   submission_published                 struct bhi_worker: it can run, nobody has been woken
 *   descriptor_due, descriptor_sent      struct bhi_worker: of a buffer or a kernel
 *   control_sent                         struct bhi_worker: the message is with libzmq
 *   libzmq_is_due, libzmq_starts         bh_context: before descriptors are held open for its
 *                                        threads; after they were given back
 *   warden_started, zygote_told          struct bhi_zygote: before and after the start message
 *   spawn_requested                      struct bhi_worker: nothing is known of a process yet
 *   spawn_answered, hello, ready         struct bhi_worker: as the message comes in
 *   result_read                          struct bhi_worker: taken over, its event is still pending
 *   event_due                            struct bh_event: the verdict is complete, not published
 *   worker_due                           struct bhi_worker: confirmed dead, nothing is judged yet
 *   worker_left                          struct bhi_worker: its stream goes on without it
 *   doorbell                             struct bhi_worker: epoll has reported its doorbell
 *   replica_made                         bh_stream: its copies are queued, and nothing uses it yet
 *   piece_due                            bh_buffer: a piece of its bytes is about to be queued
 * Some are passed with the context's lock held: what acts there must not call the library. */
#ifndef BHI_BASE_STEP_POINT_H
#define BHI_BASE_STEP_POINT_H

#if BHI_STEP_POINTS
void bhi_step_point(const char *name, void *object);
#define BHI_STEP_POINT(name, object) bhi_step_point(name, object)
#else
#define BHI_STEP_POINTS              0
#define BHI_STEP_POINT(name, object) ((void)0)
#endif

#endif
