/* Describes a module for a person who wants to run it. No device is asked: whether a device accepts
 * the module is a separate question. */
#ifndef BHI_WORKER_COMPILER_INSPECT_H
#define BHI_WORKER_COMPILER_INSPECT_H

#include "ipc/inspection.h"
#include "worker/backend.h"

/* Fills in |out| for |code|, which has |words| words. With |guarded| it also writes the guarded
 * module's text to |text|, which has |room| bytes, if it fits. Returns false if there is no answer;
 * |error| says why. An error in the module is an answer. */
bool bhi_inspect(const uint32_t *code, size_t words, const char *entry,
                 const struct bhi_spec_constant *constants, uint32_t constant_count, bool guarded,
                 struct bhi_inspection *out, char *text, uint64_t room, struct bhi_error *error);

#endif
