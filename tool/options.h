/* The table of options, apart from the commands: what only parses their values needs no command. */
#ifndef BHI_TOOL_OPTIONS_H
#define BHI_TOOL_OPTIONS_H

#include <stddef.h>

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

enum bhi_option_count { BHI_ONCE, BHI_REQUIRED, BHI_MANY };

struct bhi_option {
    const char *name;
    const char *value; /* NULL: takes none */
    enum bhi_option_count count;
    const char *text;
};

/* One number for each option of each command: BHI_RUN_GROUPS. Its place in bhi_options. */
enum bhi_option_id {
#define BHI_OPTION(command, id, name, value, count, text) BHI_##command##_##id,
#include "tool/options.def"
    BHI_OPTION_COUNT
};

extern const struct bhi_option bhi_options[BHI_OPTION_COUNT];

/* The options of |command|: *out_first to below the returned number. */
size_t bhi_command_options(enum bhi_command_id command, size_t *out_first);

/* "--", or "-" of an option that is one letter. */
static inline const char *bhi_option_dashes(const struct bhi_option *option) {
    return option->name[1] ? "--" : "-";
}

#endif
