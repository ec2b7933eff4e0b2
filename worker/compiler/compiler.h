/* The compiler is a worker without a device. It compiles a source to SPIR-V or PTX, or describes what a
 * module declares. It gets two buffers, one with the request and one for its answer (compile.h,
 * inspection.h), and nothing else.
 *
 * A source is hostile: it may crash the compiler, compromise it, or keep it busy for ever. So each
 * compile has a worker of its own, which ends after it. */
#ifndef BHI_WORKER_COMPILER_COMPILER_H
#define BHI_WORKER_COMPILER_COMPILER_H

#include "ipc/commands.h"
#include "ipc/progress.h"
#include "worker/backend.h"

struct bhi_compiler;

/* |nvrtc|: the loaded library; NULL: none. Returns NULL on failure; |error| says why. */
struct bhi_compiler *bhi_compiler_create(void *nvrtc, struct bhi_error *error);
void bhi_compiler_destroy(struct bhi_compiler *compiler);

/* Takes |fd| over, also on failure: then every use of the id fails. */
void bhi_compiler_attach(struct bhi_compiler *compiler, uint64_t buffer, int fd, uint64_t size,
                         enum bhi_attach access);
void bhi_compiler_detach(struct bhi_compiler *compiler, uint64_t buffer);

/* Runs a checked record. An error in a source is part of the answer, not an error of the worker. */
void bhi_compiler_run(struct bhi_compiler *compiler, const struct bhi_lane_record *record,
                      struct bhi_result *result, struct bhi_error *error);

#endif
