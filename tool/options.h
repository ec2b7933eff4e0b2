/* The table of options. It is apart from the commands, so that code which only parses values needs
 * no command. */
#ifndef BHI_TOOL_OPTIONS_H
#define BHI_TOOL_OPTIONS_H

#include <stddef.h>

enum bhi_command_id {
    BHI_COMMAND_RUN,
    BHI_COMMAND_COMPILE,
    BHI_COMMAND_INSPECT,
    BHI_COMMAND_EVAL,
    BHI_COMMAND_BATCH,
    BHI_COMMAND_JUDGE,
    BHI_COMMAND_CHAOS,
    BHI_COMMAND_DEVICES,
    BHI_COMMAND_DOCTOR,
    BHI_COMMAND_COMPLETION,
    BHI_COMMAND_VERSION,
    BHI_COMMAND_HELP,
    BHI_COMMANDS
};

enum bhi_option_count { BHI_ONCE, BHI_REQUIRED, BHI_MANY };

struct bhi_option {
    const char *name;
    const char *value; /* name of its value; NULL: takes none */
    enum bhi_option_count count;
    const char *text;
};

/* A number for each option of each command, such as BHI_RUN_GROUPS: its index in bhi_options. */
enum bhi_option_id {
#define BHI_OPTION(command, id, name, value, count, text) BHI_##command##_##id,
#include "tool/options.def"
    BHI_OPTION_COUNT
};

extern const struct bhi_option bhi_options[BHI_OPTION_COUNT];

/* The options of |command|: those from *out_first to below the returned index. */
size_t bhi_command_options(enum bhi_command_id command, size_t *out_first);

/* Returns the names of an option one after the other, the usual one first; NULL after the last. */
const char *bhi_option_name(const struct bhi_option *option, int which);
/* "-" for an option of one letter, otherwise "--". */
static inline const char *bhi_option_dashes(const struct bhi_option *option) {
    return option->name[1] ? "--" : "-";
}

#endif
