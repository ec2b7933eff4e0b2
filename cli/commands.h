/* The table of commands, for their help and completion. main.c has the functions that run them:
 * commands use the table, and the table uses no command. */
#ifndef BHI_CLI_COMMANDS_H
#define BHI_CLI_COMMANDS_H

#include "tool/command.h"

extern const struct bhi_command bhi_commands[BHI_COMMANDS];

/* Returns NULL if there is none. */
const struct bhi_command *bhi_command_find(const char *name);
/* Writes "; did you mean '...'?" with a command that is similar to |name|, or nothing. Returns
 * |out|. */
const char *bhi_command_hint(const char *name, char out[160]);

#endif
