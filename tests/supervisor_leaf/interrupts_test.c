/* Which processor takes a device's interrupts, as the kernel's files say, and who keeps off it. */
#include "harness.h"
#include "supervisor/worker/interrupts.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ADDRESS "0000:65:00.0"

static void put(const char *root, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    BHT_TRUE(file);
    BHT_TRUE(fputs(text, file) >= 0);
    BHT_EQ(fclose(file), 0);
}

static void vector(const char *root, unsigned irq, const char *counts, const char *processors) {
    char name[128];
    snprintf(name, sizeof name, "sys/bus/pci/devices/" ADDRESS "/msi_irqs/%u", irq);
    put(root, name, "msix\n");
    snprintf(name, sizeof name, "sys/kernel/irq/%u/per_cpu_count", irq);
    put(root, name, counts);
    snprintf(name, sizeof name, "proc/irq/%u/effective_affinity_list", irq);
    put(root, name, processors);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at) {
    (void)info, (void)kind, (void)at;
    return remove(path);
}

TEST(the_busiest_vector_counts) {
    char root[] = "/tmp/bulkhead-interrupts-XXXXXX";
    BHT_TRUE(mkdtemp(root));
    BHT_EQ(bhi_interrupts_processor(root, ADDRESS), -1); /* no such device */
    vector(root, 43, "0,0,0,0\n", "1\n");
    BHT_EQ(bhi_interrupts_processor(root, ADDRESS), -1); /* none so far */
    vector(root, 44, "14,0,0,0\n", "0\n");
    vector(root, 42, "5,0,108,0\n", "2\n");
    vector(root, 45, "0,0,0,99\n", "3\n");
    put(root, "sys/bus/pci/devices/" ADDRESS "/msi_irqs/power", "not a number\n");
    BHT_EQ(bhi_interrupts_processor(root, ADDRESS), 2);
    /* It has moved: where it was before does not matter. */
    vector(root, 42, "5,0,108,1\n", "3\n");
    BHT_EQ(bhi_interrupts_processor(root, ADDRESS), 3);
    /* Several, or something else. */
    vector(root, 42, "5,0,108,1\n", "0-3\n");
    BHT_EQ(bhi_interrupts_processor(root, ADDRESS), -1);
    vector(root, 42, "5,0,108,1\n", "1,3\n");
    BHT_EQ(bhi_interrupts_processor(root, ADDRESS), -1);
    vector(root, 42, "5,0,108,1\n", "\n");
    BHT_EQ(bhi_interrupts_processor(root, ADDRESS), -1);
    BHT_EQ(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static cpu_set_t first(unsigned count) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned i = 0; i < count; i++) {
        CPU_SET(i, &set);
    }
    return set;
}

TEST(enough_processors_are_left) {
    cpu_set_t four = first(4), three = first(3), out;
    BHT_TRUE(bhi_interrupts_avoid(&four, 1, &out));
    BHT_EQ(CPU_COUNT(&out), 3);
    BHT_TRUE(!CPU_ISSET(1, &out) && CPU_ISSET(0, &out) && CPU_ISSET(3, &out));
    BHT_TRUE(!bhi_interrupts_avoid(&four, 7, &out)); /* it was kept off before */
    BHT_TRUE(!bhi_interrupts_avoid(&four, -1, &out));
    BHT_TRUE(!bhi_interrupts_avoid(&four, CPU_SETSIZE, &out));
    BHT_TRUE(!bhi_interrupts_avoid(&three, 1, &out));
}

TEST(an_unknown_device_changes_nothing) {
    cpu_set_t before, after;
    BHT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    bhi_interrupts_keep_off(getpid(), "ffff:ff:1f.7");
    BHT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    BHT_TRUE(CPU_EQUAL(&before, &after));
}
