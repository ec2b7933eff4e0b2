/* The compiler: what a worker is that has no device and makes SPIR-V of a source, or says what a
 * module declares. It is given two buffers, the request and the one for its answer (compile.h,
 * inspection.h), and nothing else.
 *
 * A source is hostile: it may crash the compiler, take it over, or have it run for ever. So there
 * is a worker for each compile, which serves nobody else, and ends with it.
 */
#ifndef BHI_WORKER_COMPILER_COMPILER_H
#define BHI_WORKER_COMPILER_COMPILER_H

#include "ipc/commands.h"
#include "ipc/progress.h"
#include "worker/backend.h"

struct bhi_compiler;

/* NULL: |error| says why. */
struct bhi_compiler *bhi_compiler_create(struct bhi_error *error);
void bhi_compiler_destroy(struct bhi_compiler *compiler);

/* Takes |fd| over, also where it fails: what uses the id fails then. */
void bhi_compiler_attach(struct bhi_compiler *compiler, uint64_t buffer, int fd, uint64_t size,
                         enum bhi_attach access);
void bhi_compiler_detach(struct bhi_compiler *compiler, uint64_t buffer);

/* Runs a checked record. What is wrong with a source is the answer, not an error of the worker. */
void bhi_compiler_run(struct bhi_compiler *compiler, const struct bhi_lane_record *record,
                      struct bhi_result *result, struct bhi_error *error);

#endif
