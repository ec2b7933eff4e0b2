#include "batch/journal/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

size_t bhi_host_span(const char *text) {
    return strspn(text, allowed);
}

static const char *tidy(char *name) {
    for (size_t at = bhi_host_span(name); name[at]; at += bhi_host_span(name + at)) {
        name[at] = '-';
    }
    return name;
}

const char *bhi_host_name(char out[BHI_HOST_NAME]) {
    if (gethostname(out, BHI_HOST_NAME) != 0 || !*out) {
        strcpy(out, "unnamed");
    }
    out[BHI_HOST_NAME - 1] = '\0'; /* a longer name is cut without a NUL */
    return tidy(out);
}

const char *bhi_host_machine(char out[BHI_HOST_NAME]) {
    const char *node = getenv("SLURMD_NODENAME");
    if (!node || !*node) {
        return bhi_host_name(out);
    }
    snprintf(out, BHI_HOST_NAME, "%s", node);
    return tidy(out);
}
