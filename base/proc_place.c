#include "base/proc_place.h"
#include "base/folder.h"

#include <stdio.h>

DIR *bhi_proc_place_threads(const struct bhi_proc_place *place) {
    char path[32];
    snprintf(path, sizeof path, "%d/task", (int)place->pid);
    return bhi_folder_open(place->proc, path);
}
