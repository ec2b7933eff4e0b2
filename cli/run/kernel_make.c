/* Makes a kernel from a file for a command. The compiler runs in a worker, and a signal ends the
 * wait. */
#include "base/format.h"
#include "cli/run/steps.h"
#include "request/kernel_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/complain.h"
#include "tool/ending.h"
#include "tool/exit_status.h"
#include "tool/session.h"
#include "tool/task.h"
#include "tool/text.h"
#include "tool/values.h"

static const struct bhi_kernel_words words = {
    .entry = "--entry", .source = "-D and -I", .otherwise = ", or --language"};

static void run_make(void *argument) {
    bhi_kernel_make(argument);
}

/* Prints a log line by line, cleaned, because a source can put anything into it. */
static void print_log(const char *log) {
    char line[1024], clean[1024];
    while (*log) {
        size_t length = strcspn(log, "\n");
        bhi_format(line, sizeof line, "%.*s", length > 1000 ? 1000 : (int)length, log);
        fprintf(stderr, "%s\n", bhi_text_clean(clean, sizeof clean, line));
        log += length + (log[length] == '\n');
    }
}

bool bhi_kernel_file_take(struct bhi_kernel_file *file, const char **entry,
                          const struct bhi_arg *item, struct bhi_complaint *complaint) {
    const char *name = bhi_options[item->option].name, *value = item->value;
    if (!strcmp(name, "entry")) {
        return bhi_parse_text(value, "name", entry, complaint);
    }
    if (!strcmp(name, "D")) {
        const size_t length = strcspn(value, "=");
        return bhi_source_define(&file->source, value, length,
                                 value[length] ? value + length + 1 : NULL, complaint);
    }
    if (!strcmp(name, "I")) {
        return bhi_source_include(&file->source, value, complaint);
    }
    if (!strcmp(name, "compile-options")) {
        return bhi_parse_text(value, "text", &file->source.options, complaint);
    }
    if (!strcmp(name, "language")) {
        return bhi_language_parse(value, &file->language, complaint);
    }
    return strcmp(name, "compile-deadline") != 0 ||
           bhi_parse_duration(value, &file->deadline_ns, complaint);
}

int bhi_kernel_file_make(const char *command, const struct bhi_kernel_file *file,
                         bh_context **context, const bh_kernel_options *options,
                         bh_kernel **out_kernel) {
    struct bhi_kernel_make *make = calloc(1, sizeof *make);
    int exit_status = BHI_EXIT_READY;
    if (!make) {
        return bhi_complain_memory(command);
    }
    make->words = &words;
    make->context = *context;
    make->file = file;
    make->options = options;
    if (bhi_task_run(command, context, run_make, make, &exit_status)) {
        print_log(make->log);
        bhi_ending_log(make->log);
        *out_kernel = make->kernel;
        exit_status = make->status == BH_OK
                          ? BHI_EXIT_READY
                          : bhi_session_fail(command, file->path, make->status, &make->detail);
    } else {
        bh_kernel_release(make->kernel);
    }
    free(make);
    return exit_status;
}
