/* The form of a candidate, or of a reference's kernel: one kernel, or a plan of several. All files of
 * it are read here, before anything is compiled; their content is its identity. */
#ifndef BHI_JUDGE_CHECK_FORM_H
#define BHI_JUDGE_CHECK_FORM_H

#include "judge/check/outcome.h"
#include "judge/task/plan.h"
#include "request/kernel_file.h"
#include "tool/content_hash.h"

/* A kernel that is to be made. */
struct bhi_judged_form_kernel {
    struct bhi_kernel_file
        file;               /* with its code; borrows from what follows, the form and its plan */
    char *path;             /* owned; NULL: the candidate's */
    void *code;             /* owned; NULL: the candidate's, or the plan's */
    struct bhi_source read; /* what its plan includes; owned */
    bh_source_define
        *defines; /* those given to the form, and the plan's; owned, but not the texts */
    bh_source_include *includes; /* likewise */
    bh_specialization *specs;    /* likewise */
};

struct bhi_judged_form {
    void *code; /* of its own file; owned; NULL: in memory, or it could not be read */
    struct bhi_judge_plan *plan; /* owned; NULL: it has none */
    struct bhi_judged_form_kernel kernels[BHI_PLAN_KERNELS];
    size_t count;
    bool has_content; /* all of it could be read, also if it is no plan or no kernel */
    uint8_t content[BHI_CONTENT_HASH];
};

/* Reads the form of |file|, whose defines, includes, constants and entry point are for each of its
 * kernels. Files that a plan names are in the file's folder, or below, and no symbolic link leads
 * there; a candidate in memory names none. The form borrows |file|. Blocks. After a failure only
 * the content is known, and nothing is owned. */
bool bhi_judged_form_read(const struct bhi_kernel_file *file, const struct bhi_task *task,
                          struct bhi_judged_form *out, struct bhi_judge_outcome *outcome);
/* Frees all of it but the plan, if that was taken (NULL). */
void bhi_judged_form_free(struct bhi_judged_form *form);

#endif
