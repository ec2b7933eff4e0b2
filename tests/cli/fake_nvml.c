/* libnvidia-ml.so.1 as a script: one GPU, of which it says what the environment says.
 *
 *   FAKE_NVML_<CALL>=NUMBER   what a call answers that fails: INIT, MEMORY, MEMORY2, UTILISATION,
 *                             COMPUTE, GRAPHICS; the GPU is at 0000:65:00.0, all others are unknown
 *   FAKE_NVML_TOTAL, USED, RESERVED   bytes; default 8 GiB, 4 MiB, 512 MiB
 *   FAKE_NVML_BUSY=PERCENT    default 0
 *   FAKE_NVML_COMPUTE_LIST, GRAPHICS_LIST="PID:BYTES PID:BYTES"   BYTES of "-": not available
 *   FAKE_NVML_COUNT=N         says of each list that it has N elements
 *   FAKE_NVML_WORKERS=BYTES   each process on this machine that calls itself a worker, a spare
 *                             worker or a sentinel holds so many, and is listed
 *   FAKE_NVML_WORDS=BYTES     each memory "fake-words" that this process has a descriptor of holds
 *                             so many (tests/system/fake_transfer.c makes them)
 *   FAKE_NVML_DIRTY=A-B       from its Ath start to its Bth, USED is 1 GiB more and the GPU is
 *                             busy
 *   FAKE_NVML_ENDS=1          stopping it ends the program with status 77
 *
 * OLD: as drivers of some years ago. EMPTY: something else of that name. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A call of the library. */
#define CALL(type, name, ...)                                                                      \
    __attribute__((visibility("default"))) type name(__VA_ARGS__);                                 \
    type name(__VA_ARGS__)
#define MIB       (1ull << 20)
#define VERSION_2 (40u | 2u << 24)
#define TOO_SMALL 7
#define NOT_FOUND 6
#define INVALID   2

#ifdef EMPTY
CALL(int, nvmlNothing, void) {
    return 0;
}
#else

typedef struct gpu *gpu;

static unsigned long long number(const char *name, unsigned long long otherwise) {
    char whole[64];
    snprintf(whole, sizeof whole, "FAKE_NVML_%s", name);
    const char *text = getenv(whole);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static unsigned long long starts; /* the library stays loaded when it is closed */

CALL(int, nvmlInit_v2, void) {
    starts++;
    return (int)number("INIT", 0);
}

CALL(int, nvmlShutdown, void) {
    if (number("ENDS", 0)) {
        _exit(77);
    }
    return 0;
}

CALL(const char *, nvmlErrorString, int result) {
    return result == NOT_FOUND ? "Not Found" : "Scripted Error";
}

CALL(int, nvmlDeviceGetHandleByPciBusId_v2, const char *pci, gpu *out) {
    *out = (gpu)(void *)&number;
    return strcmp(pci, "0000:65:00.0") == 0 ? 0 : NOT_FOUND;
}

static bool is_dirty(void) {
    unsigned long long from, to;
    const char *text = getenv("FAKE_NVML_DIRTY");
    return text && sscanf(text, "%llu-%llu", &from, &to) == 2 && starts >= from && starts <= to;
}

/* -- processes ---------------------------------------------------------------------------------
 */

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};

struct list {
    struct process *out;
    unsigned room, count;
};

static void add(struct list *list, unsigned pid, unsigned long long bytes) {
    if (list->count < list->room) {
        list->out[list->count] = (struct process){.pid = pid, .bytes = bytes};
    }
    list->count++;
}

static bool is_worker(int proc, const char *pid) {
    char path[64], line[512];
    snprintf(path, sizeof path, "%s/cmdline", pid);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
    if (fd >= 0) {
        close(fd);
    }
    line[length > 0 ? length : 0] = 0;
    const char *title = line + strlen(line) + 1;
    return length > 0 && strstr(line, "bulkhead-worker") && title < line + length &&
           (!strncmp(title, "worker of", 9) || !strncmp(title, "spare", 5) ||
            !strncmp(title, "sentinel", 8));
}

static unsigned add_workers(struct list *list) {
    const unsigned long long bytes = number("WORKERS", 0);
    unsigned found = 0;
    DIR *proc = bytes ? opendir("/proc") : NULL;
    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        if (atoi(entry->d_name) > 0 && is_worker(dirfd(proc), entry->d_name)) {
            add(list, (unsigned)atoi(entry->d_name), bytes);
            found++;
        }
    }
    if (proc) {
        closedir(proc);
    }
    return found;
}

static int answer(const char *call, const char *scripted, bool workers, unsigned *count,
                  struct process *out) {
    struct list list = {.out = out, .room = *count};
    const char *text = getenv(scripted);
    for (int used = 0, end; text && *text; text += end) {
        unsigned pid;
        unsigned long long bytes = UINT64_MAX;
        end = 0;
        if (sscanf(text, " %u:%n", &pid, &used) < 1) {
            break;
        }
        end = used;
        if (sscanf(text + used, "%llu%n", &bytes, &end) == 1) {
            end += used;
        } else {
            end = used + 1; /* the "-" */
        }
        add(&list, pid, bytes);
    }
    if (workers) {
        (void)add_workers(&list);
    }
    *count = (unsigned)number("COUNT", list.count);
    const int error = (int)number(call, 0);
    return error ? error : *count > list.room && list.count > list.room ? TOO_SMALL : 0;
}

#ifdef OLD
#define COMPUTE  nvmlDeviceGetComputeRunningProcesses_v2
#define GRAPHICS nvmlDeviceGetGraphicsRunningProcesses_v2
#else
#define COMPUTE  nvmlDeviceGetComputeRunningProcesses_v3
#define GRAPHICS nvmlDeviceGetGraphicsRunningProcesses_v3
#endif

CALL(int, COMPUTE, gpu device, unsigned *count, struct process *out) {
    (void)device;
    return answer("COMPUTE", "FAKE_NVML_COMPUTE_LIST", false, count, out);
}

CALL(int, GRAPHICS, gpu device, unsigned *count, struct process *out) {
    (void)device;
    return answer("GRAPHICS", "FAKE_NVML_GRAPHICS_LIST", true, count, out);
}

/* -- memory ------------------------------------------------------------------------------------
 */

static unsigned long long words(void) {
    const unsigned long long bytes = number("WORDS", 0);
    unsigned long long sum = 0;
    char target[64];
    DIR *folder = bytes ? opendir("/proc/self/fd") : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        const ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        sum += strstr(target, "memfd:fake-words") ? bytes : 0;
    }
    if (folder) {
        closedir(folder);
    }
    return sum;
}

static unsigned long long in_use(void) {
    struct list none = {0};
    return number("USED", 4 * MIB) + words() + add_workers(&none) * number("WORKERS", 0) +
           (is_dirty() ? 1024 * MIB : 0);
}

struct memory_1 {
    unsigned long long total, unused, used;
};

CALL(int, nvmlDeviceGetMemoryInfo, gpu device, struct memory_1 *out) {
    (void)device;
    out->total = number("TOTAL", 8192 * MIB);
    out->used = in_use() + number("RESERVED", 512 * MIB);
    out->unused = out->total - out->used;
    return (int)number("MEMORY", 0);
}

#ifndef OLD

struct memory_2 {
    unsigned version;
    unsigned long long total, reserved, unused, used;
};

CALL(int, nvmlDeviceGetMemoryInfo_v2, gpu device, struct memory_2 *out) {
    (void)device;
    if (out->version != VERSION_2) {
        return INVALID;
    }
    out->total = number("TOTAL", 8192 * MIB);
    out->reserved = number("RESERVED", 512 * MIB);
    out->used = in_use();
    out->unused = out->total - out->reserved - out->used;
    return (int)number("MEMORY2", 0);
}

struct utilisation {
    unsigned gpu, memory;
};

CALL(int, nvmlDeviceGetUtilizationRates, gpu device, struct utilisation *out) {
    (void)device;
    out->gpu = (unsigned)number("BUSY", 0);
    out->gpu = is_dirty() ? 97 : out->gpu;
    out->memory = 0;
    return (int)number("UTILISATION", 0);
}

#endif
#endif
