/* What a compiler answers (ipc/compile.h), whatever the language. */
#ifndef BHI_WORKER_COMPILER_ANSWER_H
#define BHI_WORKER_COMPILER_ANSWER_H

#include "ipc/compile.h"
#include <stddef.h>

/* Keeps the first lines of the log, as many as fit behind what it has. */
void bhi_answer_log(struct bhi_compile_answer *answer, const char *text);
/* Keeps the code, if |code| has room for it. */
void bhi_answer_code(struct bhi_compile_answer *answer, const void *bytes, size_t length,
                     void *code, uint64_t room);

#endif
