#include "chaos/engine/sample.h"

#include "tool/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Returns the number of entries in the folder |path|, relative to |parent|, or -1 if it cannot be
 * read. */
static int count_entries(int parent, const char *path, const char *prefix, bool deep) {
    int count = 0;
    const int fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder) {
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            strncmp(entry->d_name, prefix, strlen(prefix)) != 0) {
            continue;
        }
        count++;
        const int below = deep ? count_entries(fd, entry->d_name, "", false) : 0;
        count += below > 0 ? below : 0; /* a subfolder may have gone by now */
    }
    closedir(folder);
    return count;
}

static bool resident_bytes(uint64_t *out_bytes) {
    unsigned long long size, resident;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file) {
        return false;
    }
    const bool read = fscanf(file, "%llu %llu", &size, &resident) == 2;
    fclose(file);
    *out_bytes = resident * (uint64_t)sysconf(_SC_PAGESIZE);
    return read;
}

bool bhi_sample_take(const char *runtime_parent, const struct bhi_history *history,
                     struct bhi_record *out_record) {
    char own[40];
    struct bhi_process_tree tree;
    uint64_t resident;
    const uint64_t records = history->count * sizeof *history->records;
    snprintf(own, sizeof own, "bulkhead-%d-", (int)getpid());
    const int descriptors = count_entries(AT_FDCWD, "/proc/self/fd", "", false);
    const int files = count_entries(AT_FDCWD, runtime_parent, own, true);
    if (descriptors < 1 || files < 0 || !resident_bytes(&resident) ||
        !bhi_process_tree_read(getpid(), &tree)) {
        return false;
    }
    *out_record = (struct bhi_record){.kind = BHI_RECORD_SAMPLE};
    out_record->sample.descriptors = (uint32_t)descriptors - 1; /* without that of this count */
    out_record->sample.files = (uint32_t)files;
    out_record->sample.processes = (uint32_t)tree.count;
    out_record->sample.rss_bytes = resident > records ? resident - records : 0;
    bhi_process_tree_free(&tree);
    return true;
}
