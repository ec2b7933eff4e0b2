/* The options of bulkhead batch --executor slurm. */
#include <stdlib.h>
#include <string.h>

#include "batch/slurm/array.h"
#include "batch/slurm/sbatch_option.h"
#include "cli/batch_slurm.h"
#include "tool/values.h"

#define SECOND UINT64_C(1000000000)

void bhi_batch_slurm_init(struct bhi_batch_slurm *slurm) {
    *slurm = (struct bhi_batch_slurm){.poll_ns = 10 * SECOND, .patience_ns = 120 * SECOND};
}

bool bhi_batch_slurm_has(enum bhi_option_id option) {
    return option >= BHI_BATCH_EXECUTOR && option <= BHI_BATCH_ON_INTERRUPT;
}

bool bhi_batch_slurm_passes(enum bhi_option_id option) {
    return !bhi_batch_slurm_has(option) && option != BHI_BATCH_STATE &&
           option != BHI_BATCH_RESUME && option != BHI_BATCH_RETRY_FAILED &&
           option != BHI_BATCH_KEEP_GOING && option != BHI_BATCH_JSON && option != BHI_BATCH_HTML;
}

bool bhi_batch_slurm_records(enum bhi_option_id option) {
    return bhi_batch_slurm_passes(option) || option == BHI_BATCH_SBATCH_OPTION ||
           option == BHI_BATCH_PARTITION || option == BHI_BATCH_GRES || option == BHI_BATCH_TIME;
}

static bool parse_word(const char *value, const char *const *words, int *out_index,
                       struct bhi_complaint *complaint) {
    for (int i = 0; words[i]; i++) {
        if (!strcmp(words[i], value)) {
            *out_index = i;
            return true;
        }
    }
    return bhi_refuse(complaint, "it is %s or %s", words[0], words[1]);
}

bool bhi_batch_slurm_parse(struct bhi_batch_slurm *slurm, const struct bhi_arg *item,
                           struct bhi_complaint *complaint) {
    static const char *const executors[] = {"local", "slurm", NULL};
    static const char *const endings[] = {"cancel", "leave", NULL};
    const char *value = item->value;
    int index = 0;
    if (item->option != BHI_BATCH_EXECUTOR && !slurm->first) {
        slurm->first = bhi_options[item->option].name;
    }
    switch (item->option) {
    case BHI_BATCH_EXECUTOR:
        if (!parse_word(value, executors, &index, complaint)) {
            return false;
        }
        slurm->wanted = index == 1;
        return true;
    case BHI_BATCH_SHARDS:
        return bhi_parse_count(value, 1, BHI_ARRAY_SHARDS, &slurm->shards, complaint);
    case BHI_BATCH_POLL:
        return bhi_parse_finite_duration(value, &slurm->poll_ns, complaint) &&
               (slurm->poll_ns >= SECOND ||
                bhi_refuse(complaint, "it is 1s or longer: the controller serves others, too"));
    case BHI_BATCH_CONTROLLER_TIMEOUT:
        return bhi_parse_finite_duration(value, &slurm->patience_ns, complaint);
    case BHI_BATCH_NO_PROBE:
        return true;
    case BHI_BATCH_ON_INTERRUPT:
        if (!parse_word(value, endings, &index, complaint)) {
            return false;
        }
        slurm->on_interrupt = index ? BHI_INTERRUPT_LEAVES : BHI_INTERRUPT_CANCELS;
        return true;
    case BHI_BATCH_SBATCH_OPTION:
        return bhi_slurm_check_option(value, complaint);
    default: /* --partition, --gres, --time: the controller knows what they may be */
        return *value ? true : bhi_refuse(complaint, "it is empty");
    }
}

bool bhi_batch_slurm_check(const struct bhi_batch_slurm *slurm, const struct bhi_args *args,
                           struct bhi_complaint *complaint) {
    static const enum bhi_option_id refused[] = {
        BHI_BATCH_DRY_RUN,    BHI_BATCH_VERIFY,      BHI_BATCH_REDO, BHI_BATCH_HALT,
        BHI_BATCH_QUARANTINE, BHI_BATCH_CANCEL_FILE, BHI_BATCH_MKDIR};
    if (!slurm->wanted) {
        return !slurm->first || bhi_refuse(complaint, "--%s needs --executor slurm", slurm->first);
    }
    if (!slurm->shards) {
        return bhi_refuse(complaint, "--executor slurm needs --shards N");
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (bhi_args_has(args, refused[i])) {
            return bhi_refuse(complaint, "--%s is not for --executor slurm",
                              bhi_options[refused[i]].name);
        }
    }
    return true;
}
