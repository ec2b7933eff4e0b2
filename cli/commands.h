/* The table of commands, for their help and their completion. What runs them is in main.c: a
 * command knows the table, and the table knows no command. */
#ifndef BHI_CLI_COMMANDS_H
#define BHI_CLI_COMMANDS_H

#include "tool/command.h"

extern const struct bhi_command bhi_commands[BHI_COMMANDS];

/* NULL: there is none. */
const struct bhi_command *bhi_command_find(const char *name);
/* "; did you mean '...'?" of the command that is near to |name|, or nothing. Returns |out|. */
const char *bhi_command_hint(const char *name, char out[160]);

#endif
