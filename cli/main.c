/* bulkhead: the command-line program.
 *
 * main finds the command, checks its words against the tables and runs it. A command returns an
 * exit status (exit_status.h); it has printed its results on stdout and its complaints on stderr.
 */
#include <string.h>

#include "args.h"
#include "commands.h"
#include "exit_status.h"
#include "help.h"
#include "interrupt.h"
#include "text.h"

static int run_command(const struct bhi_command *command, char **words, size_t word_count) {
    struct bhi_complaint complaint;
    struct bhi_args args;
    int status = BHI_EXIT_READY;

    if (!bhi_args_parse(command, words, word_count, &args, &complaint)) {
        bhi_complain(command->name, "%s; see bulkhead %s --help", complaint.text, command->name);
        return BHI_EXIT_USAGE;
    }
    if (args.help)
        bhi_help_command(stdout, command);
    else
        status = command->run(&args);
    bhi_args_free(&args);
    /* A result that could not be written is no success; a worse status stays. */
    if (!bhi_text_flush(command->name) && status == BHI_EXIT_READY)
        status = BHI_EXIT_ENVIRON;
    return status;
}

int main(int argc, char **argv) {
    bhi_interrupt_watch();
    if (argc < 2) {
        bhi_help_overview(stderr);
        return BHI_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        name = "help";
    else if (!strcmp(name, "--version"))
        name = "version";
    const struct bhi_command *command = bhi_command_find(name);
    if (!command) {
        bhi_complain(NULL,
                     name[0] == '-' ? "unknown option '%s'; see bulkhead --help"
                                    : "there is no command '%s'; see bulkhead --help",
                     name);
        return BHI_EXIT_USAGE;
    }
    return run_command(command, argv + 2, (size_t)argc - 2);
}
