#include "tool/nvml.h"
#include "base/format.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What follows is the interface of NVML, as its header nvml.h defines it. */
#define LIBRARY           "libnvidia-ml.so.1"
#define NOT_SUPPORTED     3 /* NVML_ERROR_NOT_SUPPORTED */
#define INSUFFICIENT_SIZE 7 /* NVML_ERROR_INSUFFICIENT_SIZE */
#define NOT_AVAILABLE     UINT64_MAX
#define MEMORY_VERSION_2  ((unsigned)sizeof(struct memory_2) | 2u << 24)

typedef struct gpu *gpu; /* nvmlDevice_t, opaque */

struct memory_1 { /* nvmlMemory_t */
    unsigned long long total, unused, used;
};

struct memory_2 { /* nvmlMemory_v2_t */
    unsigned version;
    unsigned long long total, reserved, unused, used;
};

struct utilisation { /* nvmlUtilization_t */
    unsigned gpu, memory;
};

struct process { /* nvmlProcessInfo_t */
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};

typedef int list_function(gpu device, unsigned *inout_count, struct process *out);

struct bhi_nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error)(int result);
    int (*find)(const char *pci, gpu *out_device);
    int (*memory_1)(gpu device, struct memory_1 *out);
    int (*memory_2)(gpu device, struct memory_2 *out);
    int (*utilisation)(gpu device, struct utilisation *out);
    list_function *compute, *graphics;
};

/* Each has two names: that of new drivers, and that of older ones, or NULL. */
static const struct symbol {
    const char *name, *older;
    size_t offset;
    bool needed;
} symbols[] = {
#define SYMBOL(member, name, older, needed) {name, older, offsetof(struct bhi_nvml, member), needed}
    SYMBOL(init, "nvmlInit_v2", NULL, true),
    SYMBOL(shutdown, "nvmlShutdown", NULL, true),
    SYMBOL(find, "nvmlDeviceGetHandleByPciBusId_v2", NULL, true),
    SYMBOL(error, "nvmlErrorString", NULL, false),
    SYMBOL(memory_1, "nvmlDeviceGetMemoryInfo", NULL, false),
    SYMBOL(memory_2, "nvmlDeviceGetMemoryInfo_v2", NULL, false),
    SYMBOL(utilisation, "nvmlDeviceGetUtilizationRates", NULL, false),
    SYMBOL(compute, "nvmlDeviceGetComputeRunningProcesses_v3",
           "nvmlDeviceGetComputeRunningProcesses_v2", false),
    SYMBOL(graphics, "nvmlDeviceGetGraphicsRunningProcesses_v3",
           "nvmlDeviceGetGraphicsRunningProcesses_v2", false),
#undef SYMBOL
};

/* Keeps the first reason. */
static void __attribute__((format(printf, 2, 3))) say(char why[BHI_NVML_WHY], const char *format,
                                                      ...) {
    va_list args;
    if (why[0]) {
        return;
    }
    va_start(args, format);
    bhi_vformat(why, BHI_NVML_WHY, format, args);
    va_end(args);
}

/* Returns false if a symbol is missing without which the others are of no use. */
static bool look_up(struct bhi_nvml *nvml, char why[BHI_NVML_WHY]) {
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        const struct symbol *symbol = &symbols[i];
        void *found = dlsym(nvml->library, symbol->name);
        if (!found && symbol->older) {
            found = dlsym(nvml->library, symbol->older);
        }
        if (!found && symbol->needed) {
            say(why, "%s has no %s", LIBRARY, symbol->name);
            return false;
        }
        memcpy((char *)nvml + symbol->offset, &found, sizeof found);
    }
    return true;
}

static const char *text_of(const struct bhi_nvml *nvml, int result) {
    const char *text = nvml->error ? nvml->error(result) : NULL;
    return text ? text : "an error";
}

struct bhi_nvml *bhi_nvml_open(char why[BHI_NVML_WHY]) {
    struct bhi_nvml *nvml = calloc(1, sizeof *nvml);
    why[0] = 0;
    if (!nvml) {
        say(why, "out of memory");
        return NULL;
    }
    nvml->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        const char *text = dlerror();
        say(why, "%.100s", text ? text : LIBRARY " cannot be loaded");
        free(nvml);
        return NULL;
    }
    bool good = look_up(nvml, why);
    if (good) {
        const int result = nvml->init();
        good = result == 0;
        if (!good) {
            say(why, "nvmlInit: %.80s (%d)", text_of(nvml, result), result);
        }
    }
    if (!good) {
        dlclose(nvml->library);
        free(nvml);
        return NULL;
    }
    return nvml;
}

void bhi_nvml_close(struct bhi_nvml *nvml) {
    if (nvml) {
        (void)nvml->shutdown();
        dlclose(nvml->library);
        free(nvml);
    }
}

/* A call that is missing counts as one that is not supported. */
static bool worked(const struct bhi_nvml *nvml, bool there, int result, const char *what,
                   struct bhi_nvml_reading *reading) {
    if (!there) {
        say(reading->why, "%s: the driver's %s is too old for it", what, LIBRARY);
    } else if (result != 0) {
        say(reading->why, "%s: %.80s (%d)", what, text_of(nvml, result), result);
    }
    return there && result == 0;
}

static void read_memory(const struct bhi_nvml *nvml, gpu device, struct bhi_nvml_reading *reading) {
    struct memory_2 memory = {.version = MEMORY_VERSION_2};
    if (nvml->memory_2 && nvml->memory_2(device, &memory) == 0) {
        reading->reserved_known = true;
    } else {
        struct memory_1 older = {0};
        const int result = nvml->memory_1 ? nvml->memory_1(device, &older) : 0;
        if (!worked(nvml, nvml->memory_1, result, "memory", reading)) {
            return;
        }
        memory = (struct memory_2){.total = older.total, .used = older.used};
    }
    if (!memory.total || memory.used > memory.total || memory.reserved > memory.total) {
        say(reading->why, "memory: it reports %llu bytes used and %llu reserved of %llu",
            memory.used, memory.reserved, memory.total);
        reading->reserved_known = false;
        return;
    }
    reading->memory_known = true;
    reading->total = memory.total;
    reading->used = memory.used;
    reading->reserved = memory.reserved;
}

static void read_utilisation(const struct bhi_nvml *nvml, gpu device,
                             struct bhi_nvml_reading *reading) {
    struct utilisation utilisation = {0};
    const int result = nvml->utilisation ? nvml->utilisation(device, &utilisation) : 0;
    if (!worked(nvml, nvml->utilisation, result, "utilisation", reading)) {
        return;
    }
    if (utilisation.gpu > 100) {
        say(reading->why, "utilisation: it reports %u percent", utilisation.gpu);
        return;
    }
    reading->utilisation_known = true;
    reading->utilisation = utilisation.gpu;
}

/* Adds a process. One that is in both lists is listed with the larger number. */
static bool add(struct bhi_nvml_reading *reading, const struct process *process) {
    const bool known = process->bytes != NOT_AVAILABLE &&
                       (!reading->memory_known || process->bytes <= reading->total);
    uint32_t i = 0;
    while (i < reading->process_count && reading->processes[i].pid != (int32_t)process->pid) {
        i++;
    }
    struct bhi_nvml_process *to = &reading->processes[i];
    if (i == BHI_NVML_PROCESSES) {
        say(reading->why, "processes: it reports more than %d", BHI_NVML_PROCESSES);
        return false;
    }
    if (i == reading->process_count) {
        reading->process_count++;
        *to = (struct bhi_nvml_process){.pid = (int32_t)process->pid};
    }
    if (known && (!to->bytes_known || process->bytes > to->bytes)) {
        to->bytes_known = true;
        to->bytes = process->bytes;
    }
    return true;
}

enum listed { LISTED, UNSUPPORTED, FAILED };

static enum listed list(const struct bhi_nvml *nvml, list_function *function, gpu device,
                        struct bhi_nvml_reading *reading) {
    /* Twice the room: the elements of one series of drivers were larger. */
    struct process processes[2 * BHI_NVML_PROCESSES];
    unsigned count = BHI_NVML_PROCESSES;
    const int result = function ? function(device, &count, processes) : 0;
    if (function && (result == INSUFFICIENT_SIZE || count > BHI_NVML_PROCESSES)) {
        say(reading->why, "processes: it reports %u", count);
        return FAILED;
    }
    if (function && result == NOT_SUPPORTED) {
        return UNSUPPORTED;
    }
    if (!worked(nvml, function, result, "processes", reading)) {
        return FAILED;
    }
    for (unsigned i = 0; i < count; i++) {
        if (!processes[i].pid || processes[i].pid > INT32_MAX) {
            say(reading->why, "processes: it reports one with the number %u", processes[i].pid);
            return FAILED;
        }
        if (!add(reading, &processes[i])) {
            return FAILED;
        }
    }
    return LISTED;
}

/* A GPU that has no graphics lists none of its processes apart. */
static void read_processes(const struct bhi_nvml *nvml, gpu device,
                           struct bhi_nvml_reading *reading) {
    const enum listed compute = list(nvml, nvml->compute, device, reading);
    const enum listed graphics = list(nvml, nvml->graphics, device, reading);
    if (compute == UNSUPPORTED && graphics == UNSUPPORTED) {
        say(reading->why, "processes: %.80s (%d)", text_of(nvml, NOT_SUPPORTED), NOT_SUPPORTED);
    }
    reading->processes_known =
        compute != FAILED && graphics != FAILED && (compute == LISTED || graphics == LISTED);
    if (!reading->processes_known) {
        reading->process_count = 0;
    }
}

bool bhi_nvml_read(const struct bhi_nvml *nvml, const char *pci,
                   struct bhi_nvml_reading *out_reading) {
    gpu device = NULL;
    *out_reading = (struct bhi_nvml_reading){0};
    if (!pci[0]) {
        say(out_reading->why, "the device's PCI address is not known");
        return false;
    }
    const int result = nvml->find(pci, &device);
    if (!worked(nvml, true, result, "the device", out_reading)) {
        return false;
    }
    read_memory(nvml, device, out_reading);
    read_utilisation(nvml, device, out_reading);
    read_processes(nvml, device, out_reading);
    return true;
}
