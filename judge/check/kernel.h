/* A kernel that is run for a task: made from its file, with what its module declares. */
#ifndef BHI_JUDGE_CHECK_KERNEL_H
#define BHI_JUDGE_CHECK_KERNEL_H

#include "judge/check/outcome.h"
#include "request/kernel_file.h"
#include "request/types.h"
#include "tool/content_hash.h"

struct bhi_judged_kernel {
    char name[64];
    bh_kernel *kernel;              /* owned */
    struct bhi_kernel_types *types; /* owned */
    bool has_content;               /* the file could be read, also if it is no kernel */
    uint8_t content[BHI_CONTENT_HASH];
};

/* Makes the kernel; reads the file unless |file| has the code. |trusted|: without the guard.
 * Blocks; only the end of the context ends it early. After a failure nothing is owned. */
bool bhi_judged_kernel_make(const struct bhi_kernel_file *file, bool trusted, bh_context *context,
                            struct bhi_judged_kernel *out, struct bhi_judge_outcome *outcome);
void bhi_judged_kernel_free(struct bhi_judged_kernel *kernel);

#endif
