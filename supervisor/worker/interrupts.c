#include "supervisor/worker/interrupts.h"
#include "base/owner.h"

#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A worker that may use fewer processors than this would wait for others more often than for
 * interrupts. */
#define LEAST_PROCESSORS 3

/* How many interrupts |irq| has had, on all processors. */
static uint64_t count(const char *root, unsigned irq) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/sys/kernel/irq/%u/per_cpu_count", root, irq);
    BHI_AUTO_FILE *file = fopen(path, "re");
    uint64_t sum = 0;
    unsigned long long one;
    while (file && fscanf(file, "%llu%*[,\n]", &one) == 1) {
        sum += one;
    }
    return sum;
}

/* Returns the processor that takes |irq|, or -1 if there are several. */
static int processor_of(const char *root, unsigned irq) {
    char path[PATH_MAX], line[64];
    snprintf(path, sizeof path, "%s/proc/irq/%u/effective_affinity_list", root, irq);
    BHI_AUTO_FILE *file = fopen(path, "re");
    int processor, rest = 0;
    if (!file || !fgets(line, sizeof line, file) || sscanf(line, "%d %n", &processor, &rest) != 1 ||
        line[rest] || processor < 0) {
        return -1;
    }
    return processor;
}

int bhi_interrupts_processor(const char *root, const char *address) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/msi_irqs", root, address);
    BHI_AUTO_DIR *vectors = opendir(path);
    uint64_t most = 0;
    int processor = -1;
    for (const struct dirent *entry; vectors && (entry = readdir(vectors));) {
        char *end;
        const unsigned long irq = strtoul(entry->d_name, &end, 10);
        if (end == entry->d_name || *end || irq > UINT_MAX) {
            continue;
        }
        const uint64_t had = count(root, (unsigned)irq);
        if (had > most) {
            most = had;
            processor = processor_of(root, (unsigned)irq);
        }
    }
    return processor;
}

bool bhi_interrupts_avoid(const cpu_set_t *from, int processor, cpu_set_t *out) {
    if (processor < 0 || processor >= CPU_SETSIZE || !CPU_ISSET((unsigned)processor, from) ||
        CPU_COUNT(from) <= LEAST_PROCESSORS) {
        return false;
    }
    *out = *from;
    CPU_CLR((unsigned)processor, out);
    return true;
}

void bhi_interrupts_keep_off(pid_t pid, const char *address) {
    cpu_set_t now, without;
    if (sched_getaffinity(pid, sizeof now, &now) == 0 &&
        bhi_interrupts_avoid(&now, bhi_interrupts_processor("", address), &without)) {
        (void)sched_setaffinity(pid, sizeof without, &without);
    }
}
