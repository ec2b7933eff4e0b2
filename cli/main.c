/* bulkhead: the command-line program.
 *
 * main finds the command, checks its arguments against the tables and runs it. A command prints its
 * results to stdout and its complaints to stderr, and returns an exit status (exit_status.h).
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/mains.h"
#include "cli/run/steps.h"
#include "tool/args.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"

static int (*const mains[BHI_COMMANDS])(const struct bhi_args *args) = {
    [BHI_COMMAND_RUN] = bhi_run_main,         [BHI_COMMAND_COMPILE] = bhi_compile_main,
    [BHI_COMMAND_INSPECT] = bhi_inspect_main, [BHI_COMMAND_EVAL] = bhi_eval_main,
    [BHI_COMMAND_BATCH] = bhi_batch_main,     [BHI_COMMAND_JUDGE] = bhi_judge_main,
    [BHI_COMMAND_CHAOS] = bhi_chaos_main,     [BHI_COMMAND_DEVICES] = bhi_devices_main,
    [BHI_COMMAND_DOCTOR] = bhi_doctor_main,   [BHI_COMMAND_COMPLETION] = bhi_completion_main,
    [BHI_COMMAND_VERSION] = bhi_version_main, [BHI_COMMAND_HELP] = bhi_help_main,
};

static int run_command(const struct bhi_command *command, char **words, size_t word_count) {
    struct bhi_complaint complaint;
    struct bhi_args args;
    int status = BHI_EXIT_READY;

    if (!bhi_args_parse(command, words, word_count, &args, &complaint)) {
        const size_t length = strlen(complaint.text);
        const bool asks = length > 0 && complaint.text[length - 1] == '?';
        return bhi_complain_usage(command->name, "%s%s bulkhead %s --help", complaint.text,
                                  asks ? " See" : "; see", command->name);
    }
    if (args.help) {
        bhi_help_command(stdout, command);
    } else {
        status = mains[command->id](&args);
    }
    bhi_args_free(&args);
    return bhi_text_flush(command->name, status);
}

/* If the caller has closed a standard stream, no file that we open may get its number: output would
 * go there. So a descriptor that can be neither read nor written takes the number. */
static bool hold_standard_streams(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv) {
    if (!hold_standard_streams()) {
        return bhi_complain_environ(NULL,
                                    "a standard stream is closed, and /dev/null cannot be opened");
    }
    bhi_interrupt_watch();
    if (argc < 2) {
        bhi_help_overview(stderr);
        return BHI_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
        name = "help";
    } else if (!strcmp(name, "--version")) {
        name = "version";
    }
    const struct bhi_command *command = bhi_command_find(name);
    if (!command) {
        char hint[160];
        (void)bhi_command_hint(name, hint);
        return bhi_complain_usage(NULL,
                                  name[0] == '-' ? "unknown option '%s'%s%s bulkhead --help"
                                                 : "there is no command '%s'%s%s bulkhead --help",
                                  name, hint, hint[0] ? " See" : "; see");
    }
    return run_command(command, argv + 2, (size_t)argc - 2);
}
