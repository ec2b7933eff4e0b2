/* bulkhead batch --executor slurm: the jobs run as a job array on the machines of a Slurm cluster.
 * This process cuts, submits and follows; it needs no device. */
#ifndef BHI_CLI_BATCH_SLURM_H
#define BHI_CLI_BATCH_SLURM_H

#include <stdbool.h>
#include <stdint.h>

#include "batch/slurm/array.h"
#include "tool/args.h"
#include "tool/device_choice.h"

enum bhi_on_interrupt { BHI_INTERRUPT_ASKS, BHI_INTERRUPT_CANCELS, BHI_INTERRUPT_LEAVES };

/* The options that only this executor has. */
struct bhi_batch_slurm {
    bool wanted;       /* --executor slurm */
    const char *first; /* the first of the options below that was given; NULL: none */
    uint64_t shards, poll_ns, patience_ns;
    enum bhi_on_interrupt on_interrupt;
};

void bhi_batch_slurm_init(struct bhi_batch_slurm *slurm);
/* Is |option| one of these? */
bool bhi_batch_slurm_has(enum bhi_option_id option);
/* Do the shards' own `bulkhead batch` get |option|? */
bool bhi_batch_slurm_passes(enum bhi_option_id option);
/* Does array.json have it: as an option of those, or of sbatch? */
bool bhi_batch_slurm_records(enum bhi_option_id option);
bool bhi_batch_slurm_parse(struct bhi_batch_slurm *slurm, const struct bhi_arg *item,
                           struct bhi_complaint *complaint);
/* Refuses options that do not go together. */
bool bhi_batch_slurm_check(const struct bhi_batch_slurm *slurm, const struct bhi_args *args,
                           struct bhi_complaint *complaint);
/* If *device is "slurm", finds the device that Slurm gave to this task, and makes *device lead to
 * its selector in |out_selector| (NULL: the default device). Returns an exit status. */
int bhi_batch_slurm_device(bh_context *context, const char **device,
                           char out_selector[BHI_SELECTOR]);
/* Is there a file |name| in |folder|? If in doubt, there is. */
bool bhi_batch_slurm_has_file(const char *folder, const char *name);
/* |text| as one word of a shell, for people: quoted only where it has to be. The caller owns it;
 * NULL if memory ran out. */
char *bhi_batch_slurm_word(const char *text);
/* The command with |args| that continues the batch, as a shell takes it; the caller owns it, NULL
 * if memory ran out. */
char *bhi_batch_slurm_command(const struct bhi_args *args);
/* The same from what was submitted; with `cd` if that was in another folder. */
char *bhi_batch_slurm_command_of(const struct bhi_slurm_array *array, const char *state);
/* Prints "to continue: " and |command|, which it frees; nothing for NULL. */
void bhi_batch_slurm_tell_command(char *command);
/* Runs the batch; |args| were checked. Returns an exit status. */
int bhi_batch_slurm_run(const struct bhi_batch_slurm *slurm, const struct bhi_args *args,
                        const char *state);

/* -- a batch of which only the probe has been submitted: --status, --logs and --cancel ------- */

/* Has the folder |state| a probe, and no shards yet? */
bool bhi_batch_probe_waits(const char *state);
/* Has it a probe, beside the shards of an earlier submission? Says so on standard error. */
void bhi_batch_probe_note(const char *state);
/* --status. With --follow it returns when there is an array (*out_go_on: the shards can be
 * followed). Returns an exit status, as do the others. */
int bhi_batch_probe_status(const char *state, const struct bhi_args *args, bool *out_go_on);
int bhi_batch_probe_logs(const char *state, const struct bhi_args *args);
int bhi_batch_probe_cancel(const char *state);

#endif
