#include "tool/options.h"

const struct bhi_option bhi_options[BHI_OPTION_COUNT] = {
#define BHI_OPTION(command, id, name, value, count, text) {name, value, BHI_##count, text},
#include "tool/options.def"
};

static const unsigned char option_owner[BHI_OPTION_COUNT] = {
#define BHI_OPTION(command, id, name, value, count, text) BHI_COMMAND_##command,
#include "tool/options.def"
};

size_t bhi_command_options(enum bhi_command_id command, size_t *out_first) {
    size_t first = 0, end;
    while (first < BHI_OPTION_COUNT && option_owner[first] != command) {
        first++;
    }
    for (end = first; end < BHI_OPTION_COUNT && option_owner[end] == command;) {
        end++;
    }
    *out_first = first;
    return end;
}

const char *bhi_option_name(const struct bhi_option *option, int which) {
    /* People who know CUDA call it that. */
    const char *other = option == &bhi_options[BHI_RUN_GROUPS] ? "grid" : NULL;
    return which == 0 ? option->name : which == 1 ? other : NULL;
}
