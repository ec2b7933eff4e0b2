/* The command line of one command, checked against its options in options.def. */
#ifndef BHI_TOOL_ARGS_H
#define BHI_TOOL_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "tool/command.h"
#include "tool/text.h"

struct bhi_arg {
    enum bhi_option_id option;
    const char *value; /* NULL for an option without one */
};

struct bhi_args {
    const struct bhi_command *command;
    bool help;             /* --help was given; the other words were not checked */
    struct bhi_arg *items; /* options in the order given; owned */
    size_t item_count;
    const char **operands; /* owned array of borrowed strings */
    size_t operand_count;
};

/* Parses the words after the command's name. "--opt=value" and "--opt value" mean the same. Options
 * and operands may be mixed. "--" ends the options; "-" is an operand. After a failure the caller
 * owns nothing. */
bool bhi_args_parse(const struct bhi_command *command, char *const *words, size_t word_count,
                    struct bhi_args *out_args, struct bhi_complaint *complaint);
void bhi_args_free(struct bhi_args *args);

/* Calls |take| for each option. What it refuses is refused with the option and its value. */
typedef bool bhi_args_take(void *user, const struct bhi_arg *item, struct bhi_complaint *complaint);
bool bhi_args_each(const struct bhi_args *args, bhi_args_take *take, void *user,
                   struct bhi_complaint *complaint);

/* The value of an option; NULL if the option was not given. */
const char *bhi_args_value(const struct bhi_args *args, enum bhi_option_id option);
bool bhi_args_has(const struct bhi_args *args, enum bhi_option_id option);

#endif
