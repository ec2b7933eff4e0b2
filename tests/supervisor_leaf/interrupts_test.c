/* Which processor takes a device's interrupts, as the kernel's files say, and who keeps off it. */
#include "harness.h"
#include "supervisor/worker/interrupts.h"

#include <unistd.h>

#define ADDRESS "0000:65:00.0"

static void vector(const char *root, unsigned irq, const char *counts, const char *processors) {
    bht_put("msix\n", "%s/sys/bus/pci/devices/" ADDRESS "/msi_irqs/%u", root, irq);
    bht_put(counts, "%s/sys/kernel/irq/%u/per_cpu_count", root, irq);
    bht_put(processors, "%s/proc/irq/%u/effective_affinity_list", root, irq);
}

TEST(the_busiest_vector_counts) {
    const char *root = bht_folder();
    BHT_EQ(bhi_interrupts_processor(root, ADDRESS), -1); /* no such device */
    vector(root, 43, "0,0,0,0\n", "1\n");
    BHT_EQ(bhi_interrupts_processor(root, ADDRESS), -1); /* none so far */
    vector(root, 44, "14,0,0,0\n", "0\n");
    vector(root, 42, "5,0,108,0\n", "2\n");
    vector(root, 45, "0,0,0,99\n", "3\n");
    bht_put("not a number\n", "%s/sys/bus/pci/devices/" ADDRESS "/msi_irqs/power", root);
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
