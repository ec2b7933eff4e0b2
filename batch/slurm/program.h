/* Runs a program of Slurm and reads what it prints. What it prints is input from outside: its size
 * and its time are bounded. */
#ifndef BHI_BATCH_SLURM_PROGRAM_H
#define BHI_BATCH_SLURM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/complaint.h"

struct bhi_program_result {
    bool started;     /* false: it is not in PATH, or could not be started; |error| says why */
    bool in_time;     /* false: it was killed before its end, or it printed too much */
    bool cut_off;     /* it was killed because a signal asks for the end */
    int status;       /* exit status; 128 plus the signal that ended it */
    char *out;        /* standard output, with a zero byte behind it; owned */
    size_t size;      /* of |out| */
    char error[4000]; /* the first bytes of standard error, or why it did not start */
};

/* Runs |arguments|, found in PATH, until it ends or |limit_ns| has passed; with |ends_at_signal|
 * also until a signal asks for the end (interrupt.h). Then it is killed, with its process group: at
 * many sites sbatch is a script around the program. Variables by which users change what Slurm's
 * programs print or select are removed from its environment. A terminal's signal does not reach its
 * group. |kept_fd| (-1: none) stays open in it. Free the result in any case. */
void bhi_program_run(const char *const *arguments, int kept_fd, uint64_t limit_ns,
                     bool ends_at_signal, struct bhi_program_result *out_result);
void bhi_program_free(struct bhi_program_result *result);

#endif
