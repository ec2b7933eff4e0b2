/* Says all that there is to say of a module: for a person who wants to run it. No device is asked:
 * whether one takes it is another question. */
#ifndef BHI_WORKER_COMPILER_INSPECT_H
#define BHI_WORKER_COMPILER_INSPECT_H

#include "ipc/inspection.h"
#include "worker/backend.h"

/* |code| is |words| long. |out| is filled in; with |guarded| the text goes to |text|, which has
 * |room| bytes, where it fits. False: there is no answer, |error| says why. What is wrong with the
 * module is an answer. */
bool bhi_inspect(const uint32_t *code, size_t words, const char *entry,
                 const struct bhi_spec_constant *constants, uint32_t constant_count, bool guarded,
                 struct bhi_inspection *out, char *text, uint64_t room, struct bhi_error *error);

#endif
