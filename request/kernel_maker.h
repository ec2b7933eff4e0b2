/* Makes a kernel from a file, for all front ends: they differ in what they call their options. */
#ifndef BHI_REQUEST_KERNEL_MAKER_H
#define BHI_REQUEST_KERNEL_MAKER_H

#include "request/kernel_file.h"
#include "request/types.h"

/* What the messages of a front end call what its user gives. */
struct bhi_kernel_words {
    const char *entry, *source; /* the options for the entry point; for defines and includes */
    const char *otherwise;      /* what says the language if the file's name does not; or "" */
    enum {
        BHI_LOG_IS_SHOWN,      /* messages need not repeat the compiler's first error */
        BHI_LOG_IS_QUOTED,     /* its first error is part of the message */
        BHI_LOG_IS_QUOTED_HERE /* the same, of a message that names the file: as "line 4: …" */
    } log;
};

enum { BHI_KERNEL_LOG = 33 << 10 };

struct bhi_kernel_make {
    const struct bhi_kernel_words *words;
    bh_context *context;
    const struct bhi_kernel_file *file; /* with its code, in a language that compiles */
    const bh_kernel_options *options;
    bh_kernel *kernel; /* the caller's */
    bh_status status;
    bh_detail detail; /* its message names neither a call nor the kernel */
    char log[BHI_KERNEL_LOG];
};

/* Makes the kernel: fills in what follows |options|, which is zero before. Blocks; only the end of
 * the context ends it early. */
void bhi_kernel_make(struct bhi_kernel_make *make);

/* Asks a worker what the kernel declares, and so whether it is valid. |deadline_ns| 0: the default.
 * The caller frees *out_types. Blocks; only the end of the context ends it early. */
bh_status bhi_kernel_types_ask(bh_kernel *kernel, uint64_t deadline_ns,
                               struct bhi_kernel_types **out_types, bh_detail *detail);

/* Makes the kernel for a command. Prints the compiler's messages to standard error. A signal ends the wait
 * and destroys the context: then *context is NULL. Returns an exit status, after it has reported
 * what went wrong. (cli/run/kernel_make.c) */
int bhi_kernel_file_make(const char *command, const struct bhi_kernel_file *file,
                         bh_context **context, const bh_kernel_options *options,
                         bh_kernel **out_kernel);

#endif
