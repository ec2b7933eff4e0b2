#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/task/task.h"
#include "request/code.h"
#include "request/language.h"

bool bhi_task_read(const char *path, struct bhi_task *out_task, int *out_errno,
                   struct bhi_complaint *complaint) {
    void *text;
    size_t size;
    struct bhi_complaint inner;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup("");
    bool good = false;
    if (bhi_language_of_name(path) != BHI_LANGUAGE_UNKNOWN) {
        free(folder);
        *out_errno = 0;
        return bhi_refuse(complaint,
                          "%.300s: it has the name of a kernel; a task is a JSON file, "
                          "and comes before the candidates",
                          path);
    }
    if (!folder) {
        *out_errno = 0;
        return bhi_refuse(complaint, "out of memory");
    }
    if (!bhi_code_read(path, &text, &size, out_errno, &inner)) {
        free(folder);
        return bhi_refuse(complaint, "%.300s: %.600s", path, inner.text);
    }
    if (strlen(text) != size) {
        bhi_refuse(complaint, "%.300s: not JSON: it contains a NUL byte", path);
    } else {
        good = bhi_task_parse(path, folder, text, out_task, complaint);
    }
    *out_errno = 0;
    free(text);
    free(folder);
    return good;
}
