/* Help as text, as a Markdown page and as a manual page. All of it comes from the tables. */
#include <bulkhead/bulkhead.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/mains.h"
#include "tool/args.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/text.h"

enum { MARGIN = 2, OPTION_TEXT = 6 };

static const char overview[] =
    "Runs GPU compute kernels that may crash or hang, in sandboxed worker processes.";

static const char standard_output[] =
    "If the reader of standard output goes away (as in bulkhead inspect k.spv | head -n 1), a "
    "command that has succeeded ends by SIGPIPE, without a message, as other programs do. A shell "
    "shows this as status 141. A command that has failed keeps its status. Any other write error, "
    "such as a full disk, is status 3; so is a closed pipe if SIGPIPE is ignored.";

static const struct bhi_section environment[] = {
    {"BULKHEAD_WORKER", "Path of the bulkhead-worker program. Default: the one beside or "
                        "below the library's folder, otherwise the installed one."},
    {"BULKHEAD_WORKER_ID", "If the command runs as root: user and group id of the workers outside "
                           "their sandbox. Default: 1900000000 and up."},
    {"XDG_RUNTIME_DIR",
     "Parent of the private folder for sockets; ignored if others can write "
     "to it, or if its path is longer than 56 bytes or not UTF-8. Default: /tmp."},
    {"COLUMNS", "The width of text and progress for people. Default: the terminal's, or 80. Tables "
                "in a file or a pipe have whole lines."},
    {"NO_COLOR", "Switches colours off, even on a terminal."},
};

/* "bulkhead run KERNEL --groups X[,Y[,Z]] [OPTION]..." */
static void print_usage_line(FILE *stream, const struct bhi_command *command) {
    size_t first;
    size_t end = bhi_command_options(command->id, &first);
    fprintf(stream, "bulkhead %s", command->name);
    if (command->operand) {
        fprintf(stream, command->least_operands ? " %s" : " [%s]", command->operand);
    }
    for (size_t i = first; i < end; i++) {
        if (bhi_options[i].count == BHI_REQUIRED) {
            fprintf(stream, " %s%s %s", bhi_option_dashes(&bhi_options[i]), bhi_options[i].name,
                    bhi_options[i].value);
        }
    }
    fprintf(stream, " [OPTION]...");
}

static void option_name(const struct bhi_option *option, char *out, size_t capacity) {
    snprintf(out, capacity, "%s%s%s%s", bhi_option_dashes(option), option->name,
             option->value ? " " : "", option->value ? option->value : "");
}

static const char *count_note(const struct bhi_option *option) {
    return option->count == BHI_MANY       ? " May be given more than once."
           : option->count == BHI_REQUIRED ? " Required."
                                           : "";
}

static void print_option(FILE *stream, const struct bhi_option *option) {
    char name[96], text[1024];
    option_name(option, name, sizeof name);
    snprintf(text, sizeof text, "%s%s", option->text, count_note(option));
    fprintf(stream, "%*s%s\n", MARGIN, "", name);
    bhi_text_wrap(stream, text, OPTION_TEXT, bhi_text_width(stream));
}

/* Calls |line| for each line of |text|; |verbatim| if the line begins with a blank. */
static void each_line(FILE *stream, const char *text,
                      void (*line)(FILE *stream, const char *text, bool verbatim)) {
    char copy[2048];
    while (*text) {
        size_t length = strcspn(text, "\n");
        snprintf(copy, sizeof copy, "%.*s", (int)length, text);
        line(stream, copy, copy[0] == ' ');
        text += length + (text[length] == '\n');
    }
}

/* Prints a line of a table: what does not fit goes on below the last column. */
static void table_line(FILE *stream, const char *text) {
    enum { LEAST = 20 }; /* columns for the text */
    char head[128];
    const int width = bhi_text_width(stream);
    size_t begin = strspn(text, " ");
    const char *gap = strstr(text + begin, "  ");
    if (gap && begin < 4) {
        begin = (size_t)(gap - text) + strspn(gap, " ");
    }
    if ((int)strlen(text) <= width || begin >= sizeof head || (int)begin + LEAST > width) {
        fprintf(stream, "%s\n", text);
        return;
    }
    snprintf(head, sizeof head, "%.*s", (int)begin, text);
    bhi_text_hang(stream, head, text + begin, (int)begin, width);
}

/* Returns the length of the first word of |text|, which may have quotes, with the blanks before it. */
static size_t word_length(const char *text) {
    size_t length = strspn(text, " ");
    for (bool quoted = false; text[length] && (quoted || text[length] != ' '); length++) {
        quoted ^= text[length] == '\'';
    }
    return length;
}

/* Prints a command that can be pasted: a line that goes on ends in a backslash. */
static void print_example(FILE *stream, const char *line) {
    const int width = bhi_text_width(stream) - (int)strlen(" \\");
    int column = fprintf(stream, "%*s", MARGIN, "");
    while (*line) {
        const int length = (int)word_length(line);
        if (column + length > width + (line[length] ? 0 : 2) && column > OPTION_TEXT) {
            column = fprintf(stream, " \\\n%*s", OPTION_TEXT - 1, "") - 3;
        }
        column += fprintf(stream, "%.*s", length, line);
        line += length;
    }
    fputc('\n', stream);
}

static void plain_line(FILE *stream, const char *text, bool verbatim) {
    if (verbatim || !*text) {
        table_line(stream, text);
    } else {
        bhi_text_wrap(stream, text, MARGIN, bhi_text_width(stream));
    }
}

void bhi_help_overview(FILE *stream) {
    char head[32];
    fprintf(stream, "Usage: bulkhead COMMAND [ARGUMENT]...\n\n");
    bhi_text_wrap(stream, overview, 0, bhi_text_width(stream));
    fprintf(stream, "\nCommands:\n");
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        snprintf(head, sizeof head, "  %-10s", bhi_commands[i].name);
        bhi_text_hang(stream, head, bhi_commands[i].summary, 14, bhi_text_width(stream));
    }
    fprintf(stream, "\nExamples:\n");
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        print_example(stream, bhi_commands[i].examples[0].line);
    }
    fprintf(stream, "\nEnvironment:\n");
    for (size_t i = 0; i < sizeof environment / sizeof environment[0]; i++) {
        snprintf(head, sizeof head, "  %s", environment[i].title);
        bhi_text_hang(stream, head, environment[i].text, 22, bhi_text_width(stream));
    }
    fprintf(stream, "\n'bulkhead COMMAND --help' explains one command.\n");
}

void bhi_help_command(FILE *stream, const struct bhi_command *command) {
    size_t first;
    size_t end = bhi_command_options(command->id, &first);

    fprintf(stream, "Usage: ");
    print_usage_line(stream, command);
    fprintf(stream, "\n\n");
    bhi_text_wrap(stream, command->description, 0, bhi_text_width(stream));
    fprintf(stream, "\nOptions:\n");
    for (size_t i = first; i < end; i++) {
        print_option(stream, &bhi_options[i]);
    }
    fprintf(stream, "  --help\n      Prints this help.\n");
    for (size_t i = 0; i < command->section_count; i++) {
        fprintf(stream, "\n%s:\n", command->sections[i].title);
        each_line(stream, command->sections[i].text, plain_line);
    }
    fprintf(stream, "\nExamples:\n");
    for (size_t i = 0; i < command->example_count; i++) {
        print_example(stream, command->examples[i].line);
        bhi_text_wrap(stream, command->examples[i].text, OPTION_TEXT, bhi_text_width(stream));
    }
}

static void markdown_line(FILE *stream, const char *text, bool verbatim) {
    /* Two blanks become the four that begin a code block. */
    fprintf(stream, verbatim ? "  %s\n" : "%s\n", text);
}

static void print_markdown(FILE *stream) {
    fprintf(stream,
            "# The bulkhead command\n\n"
            "Generated by `bulkhead help --markdown` from the tables that parse the command "
            "line.\n\n%s\n\n",
            overview);
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        fprintf(stream, "- [`bulkhead %s`](#bulkhead-%s): %s\n", bhi_commands[i].name,
                bhi_commands[i].name, bhi_commands[i].summary);
    }
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        const struct bhi_command *command = &bhi_commands[i];
        size_t first;
        size_t end = bhi_command_options((enum bhi_command_id)i, &first);
        fprintf(stream, "\n## bulkhead %s\n\n    ", command->name);
        print_usage_line(stream, command);
        fprintf(stream, "\n\n%s\n\n### Options\n\n", command->description);
        for (size_t k = first; k < end; k++) {
            char name[96];
            option_name(&bhi_options[k], name, sizeof name);
            fprintf(stream, "- `%s`: %s%s\n", name, bhi_options[k].text,
                    count_note(&bhi_options[k]));
        }
        fprintf(stream, "- `--help`: Prints this help.\n");
        for (size_t k = 0; k < command->section_count; k++) {
            fprintf(stream, "\n### %s\n\n", command->sections[k].title);
            each_line(stream, command->sections[k].text, markdown_line);
        }
        fprintf(stream, "\n### Examples\n");
        for (size_t k = 0; k < command->example_count; k++) {
            fprintf(stream, "\n%s\n\n    %s\n", command->examples[k].text,
                    command->examples[k].line);
        }
    }
    fprintf(stream, "\n## Standard output\n\n%s\n", standard_output);
    fprintf(stream, "\n## Environment\n\n");
    for (size_t i = 0; i < sizeof environment / sizeof environment[0]; i++) {
        fprintf(stream, "- `%s`: %s\n", environment[i].title, environment[i].text);
    }
}

/* Prints text as roff: a '\', or a '.' or ''' at the beginning, would be a request, and '-' a
 * hyphen. */
static void roff(FILE *stream, const char *text) {
    if (*text == '.' || *text == '\'') {
        fputs("\\&", stream);
    }
    for (; *text; text++) {
        if (*text == '\\') {
            fputs("\\e", stream);
        } else if (*text == '-') {
            fputs("\\-", stream);
        } else {
            fputc(*text, stream);
        }
    }
}

static void man_line(FILE *stream, const char *text, bool verbatim) {
    if (!*text) {
        fputs(".PP\n", stream);
        return;
    }
    if (verbatim) {
        fputs(".nf\n", stream);
    }
    roff(stream, text);
    fputs(verbatim ? "\n.fi\n" : "\n", stream);
}

static void man_item(FILE *stream, const char *name, const char *text, const char *note) {
    fputs(".TP\n\\fB", stream);
    roff(stream, name);
    fputs("\\fR\n", stream);
    roff(stream, text);
    roff(stream, note);
    fputs("\n", stream);
}

static void print_man(FILE *stream) {
    fprintf(stream, ".TH BULKHEAD 1 \"\" \"bulkhead %d.%d.%d\" \"User Commands\"\n",
            BH_VERSION_MAJOR, BH_VERSION_MINOR, BH_VERSION_PATCH);
    fputs(".SH NAME\nbulkhead \\- run GPU compute kernels in sandboxed worker processes\n"
          ".SH SYNOPSIS\n",
          stream);
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        print_usage_line(stream, &bhi_commands[i]);
        fputs(i + 1 < BHI_COMMANDS ? "\n.br\n" : "\n", stream);
    }
    fputs(".SH DESCRIPTION\n", stream);
    roff(stream, overview);
    fputs("\n", stream);
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        const struct bhi_command *command = &bhi_commands[i];
        size_t first;
        size_t end = bhi_command_options((enum bhi_command_id)i, &first);
        fprintf(stream, ".SH BULKHEAD %s\n", command->name);
        roff(stream, command->description);
        fputs("\n.SS Options\n", stream);
        for (size_t k = first; k < end; k++) {
            char name[96];
            option_name(&bhi_options[k], name, sizeof name);
            man_item(stream, name, bhi_options[k].text, count_note(&bhi_options[k]));
        }
        man_item(stream, "--help", "Prints this help.", "");
        for (size_t k = 0; k < command->section_count; k++) {
            fprintf(stream, ".SS %s\n", command->sections[k].title);
            each_line(stream, command->sections[k].text, man_line);
        }
        fputs(".SS Examples\n", stream);
        for (size_t k = 0; k < command->example_count; k++) {
            man_item(stream, command->examples[k].line, command->examples[k].text, "");
        }
    }
    fputs(".SH STANDARD OUTPUT\n", stream);
    roff(stream, standard_output);
    fputs("\n.SH ENVIRONMENT\n", stream);
    for (size_t i = 0; i < sizeof environment / sizeof environment[0]; i++) {
        man_item(stream, environment[i].title, environment[i].text, "");
    }
}

int bhi_help_main(const struct bhi_args *args) {
    if (bhi_args_has(args, BHI_HELP_MARKDOWN)) {
        print_markdown(stdout);
    } else if (bhi_args_has(args, BHI_HELP_MAN)) {
        print_man(stdout);
    } else if (args->operand_count == 0) {
        bhi_help_overview(stdout);
    } else {
        const struct bhi_command *command = bhi_command_find(args->operands[0]);
        if (!command) {
            char hint[160];
            (void)bhi_command_hint(args->operands[0], hint);
            return bhi_complain_usage("help", "there is no command '%s'%s%s bulkhead help",
                                      args->operands[0], hint, hint[0] ? " See" : "; see");
        }
        bhi_help_command(stdout, command);
    }
    return BHI_EXIT_READY;
}
