#include "request/overlap.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Identifies a regular file, whatever its name. */
struct file {
    bool known;
    dev_t device;
    ino_t inode;
};

/* Describes the file at |path|. For "-" it is the descriptor |standard|; NULL is no file. */
static struct file look(const char *path, int standard) {
    struct stat status;
    if (!path || (strcmp(path, "-") ? stat(path, &status) : fstat(standard, &status)) != 0 ||
        !S_ISREG(status.st_mode)) {
        return (struct file){.known = false};
    }
    return (struct file){.known = true, .device = status.st_dev, .inode = status.st_ino};
}

static bool same(const struct file *a, const struct file *b) {
    return a->known && b->known && a->device == b->device && a->inode == b->inode;
}

/* Returns true if the two have the same name: in an expression an output y may replace the input
 * y. */
static bool same_name(const struct bhi_run_binding *a, const struct bhi_run_binding *b) {
    const size_t length = strcspn(a->text, "=");
    return length == strcspn(b->text, "=") && !memcmp(a->text, b->text, length);
}

/* Returns true if the output is meant to replace |file|. */
static bool replaces(const struct bhi_run_request *request, const struct bhi_run_binding *output,
                     const struct file *file, const struct file *inputs, bool is_expression) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *input = &request->bindings[i];
        if (same(file, &inputs[i]) &&
            (input == output || (is_expression && same_name(input, output)))) {
            return true;
        }
    }
    return false;
}

const struct bhi_run_binding *bhi_run_find_overlap(const struct bhi_run_request *request,
                                                   const char *dashes,
                                                   struct bhi_complaint *complaint) {
    struct file inputs[BHI_MAX_BINDINGS];
    const bool is_expression = !strcmp(request->command, "eval");
    const struct file kernel = look(is_expression ? NULL : request->kernel_path, STDIN_FILENO);
    for (uint32_t i = 0; i < request->binding_count; i++) {
        inputs[i] = look(request->bindings[i].in_path, STDIN_FILENO);
    }
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *output = &request->bindings[i];
        const struct file file = look(output->out_path, STDOUT_FILENO);
        if (same(&file, &kernel)) {
            bhi_refuse(complaint, "the kernel is read from that file: name another one");
            return output;
        }
        if (replaces(request, output, &file, inputs, is_expression)) {
            continue;
        }
        for (uint32_t k = 0; k < request->binding_count; k++) {
            if (!same(&file, &inputs[k])) {
                continue;
            }
            bhi_refuse(complaint, "%s%s %.200s reads that file: %s%s%s", dashes,
                       request->bindings[k].option, request->bindings[k].text,
                       is_expression ? "only an output of that name may replace it"
                                     : "to replace it, use ",
                       is_expression ? "" : dashes, is_expression ? "" : "inout");
            return output;
        }
    }
    return NULL;
}
