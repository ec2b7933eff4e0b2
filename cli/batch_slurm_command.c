/* The command that continues a batch, whole, as a shell takes it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/owner.h"
#include "batch/slurm/shard.h"
#include "batch/slurm/whole.h"
#include "cli/batch_slurm.h"
#include "tool/text.h"

static const char plain[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";

char *bhi_batch_slurm_word(const char *text) {
    const bool is_plain = *text && !text[strspn(text, plain)];
    return is_plain ? strdup(text) : bhi_slurm_shard_quote(text);
}

/* Adds " ", |before| and |text|, as one word. */
static void put(FILE *stream, const char *before, const char *text) {
    BHI_AUTO_FREE char *whole = bhi_whole_text("%s%s", before, text);
    BHI_AUTO_FREE char *word = whole ? bhi_batch_slurm_word(whole) : NULL;
    fprintf(stream, " %s", word ? word : text);
}

static char *end(FILE *stream, char **text) {
    const bool good = stream && fputs(" --resume", stream) >= 0;
    if (!stream || fclose(stream) != 0 || !good) {
        free(*text);
        return NULL;
    }
    return *text;
}

char *bhi_batch_slurm_command(const struct bhi_args *args) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream) {
        fprintf(stream, "%s batch", program_invocation_name);
    }
    for (size_t i = 0; stream && i < args->operand_count; i++) {
        put(stream, "", args->operands[i]);
    }
    for (size_t i = 0; stream && i < args->item_count; i++) {
        const struct bhi_arg *item = &args->items[i];
        if (item->option == BHI_BATCH_RESUME) {
            continue;
        }
        BHI_AUTO_FREE char *name =
            bhi_whole_text("--%s%s", bhi_options[item->option].name, item->value ? "=" : "");
        put(stream, name ? name : "", item->value ? item->value : "");
    }
    return end(stream, &text);
}

char *bhi_batch_slurm_command_of(const struct bhi_slurm_array *array, const char *state) {
    char *text = NULL, shards[24];
    size_t size = 0;
    BHI_AUTO_FREE char *here = getcwd(NULL, 0);
    BHI_AUTO_FREE char *real = realpath(state, NULL);
    FILE *stream = open_memstream(&text, &size);
    if (stream && (!here || strcmp(here, array->cwd) != 0)) {
        fputs("cd", stream);
        put(stream, "", array->cwd);
        fputs(" && ", stream);
    }
    if (stream) {
        snprintf(shards, sizeof shards, "%u", array->shards);
        fprintf(stream, "%s batch", program_invocation_name);
        put(stream, "", array->jobs);
        put(stream, "--executor=", "slurm");
        put(stream, "--shards=", shards);
        put(stream, "--state=", real ? real : state);
    }
    for (size_t i = 0; stream && array->sbatch_options[i]; i++) {
        put(stream, "--sbatch-option=", array->sbatch_options[i]);
    }
    for (size_t i = 0; stream && array->batch_options[i]; i++) {
        put(stream, "", array->batch_options[i]);
    }
    return end(stream, &text);
}

void bhi_batch_slurm_tell_command(char *command) {
    const size_t size = command ? strlen(command) + 8 : 0; /* whole, however long it is */
    BHI_AUTO_FREE char *line = size ? malloc(size) : NULL;
    if (line) {
        fprintf(stderr, "bulkhead batch: to continue: %s\n", bhi_text_clean(line, size, command));
    }
    free(command);
}
