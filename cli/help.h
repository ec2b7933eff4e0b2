/* Help as text, as a Markdown page and as a manual page. All of it comes from the tables. */
#ifndef BHI_CLI_HELP_H
#define BHI_CLI_HELP_H

#include <stdio.h>

#include "cli/commands.h"

void bhi_help_overview(FILE *stream);
void bhi_help_command(FILE *stream, const struct bhi_command *command);

#endif
