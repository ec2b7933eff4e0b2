/* What a process has: read from /proc. */
#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* SwiftShader keeps the memory of its code open as long as the process lives. */
static bool is_drivers(int folder, const char *name) {
    char target[64];
    const ssize_t length = readlinkat(folder, name, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    return strncmp(target, "/memfd:swiftshader_jit", strlen("/memfd:swiftshader_jit")) == 0;
}

static size_t count_entries(const char *path) {
    DIR *entries = opendir(path);
    if (!entries) {
        return 0;
    }
    size_t count = 0;
    struct dirent *entry;
    while ((entry = readdir(entries))) {
        count += entry->d_name[0] != '.' && !is_drivers(dirfd(entries), entry->d_name);
    }
    closedir(entries);
    return count;
}

size_t bht_count_descriptors(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    size_t count = count_entries(path);
    /* Of ourselves we also see the one that we look with. */
    return pid == getpid() && count > 0 ? count - 1 : count;
}

bool bht_maps(pid_t pid, const char *file) {
    char path[64], line[PATH_MAX + 128];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    BHT_TRUE(maps);
    while (fgets(line, sizeof line, maps)) {
        const char *name = strchr(line, '/');
        found |= name && !strncmp(name, file, strlen(file));
    }
    fclose(maps);
    return found;
}

/* Reads /proc/PID/stat. Returns false where there is no such process. */
static bool read_stat(pid_t pid, char *out_state, pid_t *out_parent) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) {
        return false;
    }
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    /* The name is in parentheses and may hold any character, also a parenthesis. */
    const char *end = strrchr(text, ')');
    int parent = 0;
    if (!end || sscanf(end + 1, " %c %d", out_state, &parent) != 2) {
        return false;
    }
    *out_parent = parent;
    return true;
}

char bht_process_state(pid_t pid) {
    char state;
    pid_t parent;
    return read_stat(pid, &state, &parent) ? state : 'X';
}

struct process {
    pid_t pid, parent;
    char state;
};

/* A snapshot of all processes. The caller frees it. */
static struct process *list_processes(size_t *out_count) {
    size_t count = 0, capacity = 256;
    struct process *list = malloc(capacity * sizeof *list);
    DIR *entries = opendir("/proc");
    if (!list || !entries) {
        BHT_FAIL("cannot list /proc");
    }
    struct dirent *entry;
    while ((entry = readdir(entries))) {
        struct process process = {.pid = (pid_t)strtol(entry->d_name, NULL, 10)};
        if (process.pid <= 0 || !read_stat(process.pid, &process.state, &process.parent)) {
            continue;
        }
        if (count == capacity) {
            capacity *= 2;
            struct process *grown = realloc(list, capacity * sizeof *list);
            if (!grown) {
                BHT_FAIL("out of memory");
            }
            list = grown;
        }
        list[count++] = process;
    }
    closedir(entries);
    *out_count = count;
    return list;
}

size_t bht_count_children(pid_t pid) {
    size_t count, children = 0;
    struct process *list = list_processes(&count);
    for (size_t i = 0; i < count; i++) {
        children += list[i].parent == pid;
    }
    free(list);
    return children;
}

size_t bht_descendants(pid_t pid, pid_t *out, size_t capacity) {
    size_t count, found = 0;
    struct process *list = list_processes(&count);
    bool *below = calloc(count + 1, sizeof *below);
    if (!below) {
        BHT_FAIL("out of memory");
    }
    /* Pids are in no useful order: go on until a round adds none. */
    for (bool added = true; added;) {
        added = false;
        for (size_t i = 0; i < count; i++) {
            bool is_below = list[i].parent == pid;
            for (size_t j = 0; j < count && !is_below; j++) {
                is_below = below[j] && list[j].pid == list[i].parent;
            }
            if (is_below && !below[i]) {
                below[i] = true;
                added = true;
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (below[i] && list[i].state != 'Z' && list[i].state != 'X') {
            if (found < capacity) {
                out[found] = list[i].pid;
            }
            found++;
        }
    }
    free(below);
    free(list);
    return found;
}

pid_t bht_descendant_called(pid_t pid, const char *name) {
    pid_t below[256];
    const size_t count = bht_descendants(pid, below, BHT_COUNT(below));
    for (size_t i = 0; i < count && i < BHT_COUNT(below); i++) {
        char path[64];
        char comm[32] = "";
        snprintf(path, sizeof path, "/proc/%d/comm", (int)below[i]);
        FILE *file = fopen(path, "re");
        bool found = file && fgets(comm, sizeof comm, file);
        comm[strcspn(comm, "\n")] = '\0'; /* a name may have spaces in it */
        found = found && strcmp(comm, name) == 0;
        if (file) {
            fclose(file);
        }
        if (found && bht_process_state(below[i]) != 'Z') {
            return below[i];
        }
    }
    return 0;
}

size_t bht_count_descendants(pid_t pid) {
    return bht_descendants(pid, NULL, 0);
}

size_t bht_count_processes(const char *name) {
    size_t count, found = 0;
    struct process *list = list_processes(&count);
    for (size_t i = 0; i < count; i++) {
        char path[64], text[4096];
        snprintf(path, sizeof path, "/proc/%d/cmdline", (int)list[i].pid);
        FILE *file = fopen(path, "re");
        if (!file || list[i].state == 'Z') {
            if (file) {
                fclose(file);
            }
            continue;
        }
        size_t length = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[length] = '\0';
        size_t word = strlen(text), wanted = strlen(name);
        found += word >= wanted && strcmp(text + word - wanted, name) == 0;
    }
    free(list);
    return found;
}

uint64_t bht_resident_bytes(pid_t pid) {
    char path[64];
    unsigned long long size = 0, resident = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) {
        return 0;
    }
    if (fscanf(file, "%llu %llu", &size, &resident) != 2) {
        resident = 0;
    }
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static FILE *open_proc(pid_t pid, const char *name) {
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return fopen(path, "re");
}

size_t bht_proc_lines(pid_t pid, const char *name, const char *words) {
    char line[1024];
    size_t count = 0;
    FILE *file = open_proc(pid, name);
    while (file && fgets(line, sizeof line, file)) {
        count += !!strstr(line, words);
    }
    if (file) {
        fclose(file);
    }
    return count;
}

long long bht_proc_number(pid_t pid, const char *name, const char *key, long long none) {
    char line[1024];
    FILE *file = open_proc(pid, name);
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        found = strncmp(line, key, strlen(key)) == 0;
    }
    if (file) {
        fclose(file);
    }
    return found ? strtoll(line + strlen(key), NULL, 10) : none;
}

/* Mappings with a name: files, memfds. Those of the allocator come and go as it likes. */
static size_t count_mappings(void) {
    FILE *file = fopen("/proc/self/maps", "re");
    if (!file) {
        return 0;
    }
    size_t count = 0;
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, file) > 0) {
        const char *name = strchr(line, '/');
        /* A library that is loaded at first use (NSS, a driver) stays: that is no leak. */
        count += name && !strstr(name, ".so");
    }
    free(line);
    fclose(file);
    return count;
}

struct bht_counts bht_count_self(void) {
    struct bht_counts counts;
    counts.blocks = bht_heap_blocks ? bht_heap_blocks() : 0;
    counts.mappings = count_mappings();
    counts.children = bht_count_children(getpid());
    counts.threads = count_entries("/proc/self/task");
    counts.descriptors = bht_count_descriptors(getpid());
    return counts;
}
