#include "tool/process_tree.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Returns what follows |key| in the text, or NULL. */
static const char *value_of(const char *text, const char *key) {
    const char *line = strstr(text, key);
    return line ? line + strlen(key) : NULL;
}

bool bhi_process_read(pid_t pid, struct bhi_process *out_process) {
    char path[40], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) {
        return false;
    }
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    const char *state = value_of(text, "\nState:\t"), *parent = value_of(text, "\nPPid:\t");
    const char *levels = value_of(text, "\nNSpid:\t");
    if (!state || !parent || !levels) {
        return false;
    }
    *out_process = (struct bhi_process){.pid = pid, .parent = (pid_t)atoi(parent), .state = *state};
    const char *end = strchrnul(levels, '\n');
    while (levels < end) {
        out_process->levels++;
        out_process->innermost = (pid_t)atoi(levels);
        levels += strcspn(levels, "\t\n");
        levels += *levels == '\t';
    }
    return true;
}

static bool add(struct bhi_process_tree *tree, size_t *capacity, const struct bhi_process *one) {
    if (!BHI_ARRAY_RESERVE(tree->processes, *capacity, tree->count + 1)) {
        return false;
    }
    tree->processes[tree->count++] = *one;
    return true;
}

static bool read_all(struct bhi_process_tree *tree) {
    size_t capacity = 0;
    bool ok = true;
    DIR *folder = opendir("/proc");
    if (!folder) {
        return false;
    }
    for (struct dirent *entry; ok && (entry = readdir(folder));) {
        struct bhi_process process;
        const int pid = atoi(entry->d_name);
        if (pid > 0 && bhi_process_read((pid_t)pid, &process)) {
            ok = add(tree, &capacity, &process);
        }
    }
    closedir(folder);
    return ok;
}

/* Keeps the processes below |root|: moves those to the front whose parents are there already,
 * generation by generation. */
static void keep_below(struct bhi_process_tree *tree, pid_t root) {
    struct bhi_process *all = tree->processes;
    size_t kept = 0, parent = 0;
    pid_t of = root;
    for (;;) {
        for (size_t i = kept; i < tree->count; i++) {
            if (all[i].parent == of) {
                const struct bhi_process child = all[i];
                all[i] = all[kept];
                all[kept++] = child;
            }
        }
        if (parent == kept) {
            break;
        }
        of = all[parent++].pid;
    }
    tree->count = kept;
}

bool bhi_process_tree_read(pid_t root, struct bhi_process_tree *out_tree) {
    *out_tree = (struct bhi_process_tree){0};
    if (!read_all(out_tree)) {
        bhi_process_tree_free(out_tree);
        return false;
    }
    keep_below(out_tree, root);
    return true;
}

void bhi_process_tree_free(struct bhi_process_tree *tree) {
    free(tree->processes);
    *tree = (struct bhi_process_tree){0};
}

const struct bhi_process *bhi_process_tree_find(const struct bhi_process_tree *tree, pid_t pid) {
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->processes[i].pid == pid) {
            return &tree->processes[i];
        }
    }
    return NULL;
}
