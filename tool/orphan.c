#include "tool/orphan.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* Reads a file of /proc, and returns its length. */
static size_t read_file(pid_t pid, const char *name, char *out, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    const size_t length = file ? fread(out, 1, size - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    out[length] = 0;
    return length;
}

bool bhi_process_title(pid_t pid, char out[BHI_PROCESS_TITLE], bool *out_ours) {
    char text[512];
    const size_t length = read_file(pid, "cmdline", text, sizeof text);
    const char *slash = strrchr(text, '/');
    const char *role = text + strlen(text) + 1;
    const char *program = slash ? slash + 1 : text;
    *out_ours = (begins(program, "bulkhead-warden") || begins(program, "bulkhead-worker")) &&
                role < text + length;
    if (*out_ours) {
        bhi_text_line(out, BHI_PROCESS_TITLE, role, strlen(role));
        return true;
    }
    const size_t name = read_file(pid, "comm", text, sizeof text);
    bhi_text_line(out, BHI_PROCESS_TITLE, text, name ? name - 1 : 0); /* without the newline */
    return name > 0;
}

bool bhi_process_is_orphan(const struct bhi_process_tree *all, pid_t pid) {
    char title[BHI_PROCESS_TITLE];
    bool ours;
    const struct bhi_process *process = bhi_process_tree_find(all, pid);
    if (!process || strchr("ZX", process->state) || !bhi_process_title(pid, title, &ours) ||
        !ours ||
        !(begins(title, "worker of ") || begins(title, "spare worker") ||
          begins(title, "sentinel"))) {
        return false;
    }
    /* Up to the first that is none of ours. One outside of our pid namespace is not seen. */
    do {
        process = bhi_process_tree_find(all, process->parent);
        if (!process || !bhi_process_title(process->pid, title, &ours)) {
            return false;
        }
    } while (ours && !begins(title, "warden"));
    return !ours;
}
