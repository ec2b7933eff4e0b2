#include "tool/options.h"

const struct bhi_option bhi_options[BHI_OPTION_COUNT] = {
#define BHI_OPTION(command, id, name, value, count, text) {name, value, BHI_##count, text},
#include "tool/options.def"
};
