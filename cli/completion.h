/* The completion of the command line by shells. */
#ifndef BHI_CLI_COMPLETION_H
#define BHI_CLI_COMPLETION_H

#include <stdbool.h>
#include <stdio.h>

/* Prints the script for |shell|: bash, zsh or fish. False: it is none of these. */
bool bhi_completion_print(FILE *stream, const char *shell);

#endif
