/* The table of commands: what the program can do, and everything its help says. */
#ifndef BHI_TOOL_COMMANDS_H
#define BHI_TOOL_COMMANDS_H

#include <stddef.h>

#include "tool/options.h"

enum bhi_command_id {
    BHI_COMMAND_RUN,
    BHI_COMMAND_INSPECT,
    BHI_COMMAND_EVAL,
    BHI_COMMAND_BATCH,
    BHI_COMMAND_CHAOS,
    BHI_COMMAND_DEVICES,
    BHI_COMMAND_DOCTOR,
    BHI_COMMAND_COMPLETION,
    BHI_COMMAND_VERSION,
    BHI_COMMAND_HELP,
    BHI_COMMANDS
};

struct bhi_example {
    const char *line, *text;
};

struct bhi_section {
    const char *title, *text; /* lines of |text| that begin with a blank are shown as they are */
};

struct bhi_args;

struct bhi_command {
    const char *name;
    const char *operand; /* name of its operand; NULL: none */
    size_t least_operands, most_operands;
    const char *summary;     /* one line for the list of commands */
    const char *description; /* paragraphs, separated by an empty line */
    const struct bhi_section *sections;
    size_t section_count;
    const struct bhi_example *examples;
    size_t example_count;
    int (*run)(const struct bhi_args *args); /* returns an exit status */
};

extern const struct bhi_command bhi_commands[BHI_COMMANDS];

/* The options of |command|: *out_first to below the returned number. */
size_t bhi_command_options(enum bhi_command_id command, size_t *out_first);
enum bhi_command_id bhi_command_id(const struct bhi_command *command);
/* NULL: there is none. */
const struct bhi_command *bhi_command_find(const char *name);
/* "; did you mean '...'?" of the command that is near to |name|, or nothing. Returns |out|. */
const char *bhi_command_hint(const char *name, char out[160]);

int bhi_run_main(const struct bhi_args *args);
int bhi_inspect_main(const struct bhi_args *args);
int bhi_eval_main(const struct bhi_args *args);
int bhi_batch_main(const struct bhi_args *args);
int bhi_chaos_main(const struct bhi_args *args);
int bhi_devices_main(const struct bhi_args *args);
int bhi_doctor_main(const struct bhi_args *args);
int bhi_completion_main(const struct bhi_args *args);
int bhi_version_main(const struct bhi_args *args);
int bhi_help_main(const struct bhi_args *args);

#endif
