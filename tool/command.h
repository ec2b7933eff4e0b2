/* A command: its operands, its options (options.def), and all text of its help. */
#ifndef BHI_TOOL_COMMAND_H
#define BHI_TOOL_COMMAND_H

#include <stddef.h>

#include "tool/options.h"

struct bhi_example {
    const char *line, *text;
};

struct bhi_section {
    const char *title, *text; /* a line of |text| that begins with a blank is not wrapped */
};

struct bhi_command {
    enum bhi_command_id id;
    const char *name;
    const char *operand; /* name of its operand; NULL: none */
    size_t least_operands, most_operands;
    const char *summary;     /* one line for the list of commands */
    const char *description; /* paragraphs, separated by an empty line */
    const struct bhi_section *sections;
    size_t section_count;
    const struct bhi_example *examples;
    size_t example_count;
};

#endif
