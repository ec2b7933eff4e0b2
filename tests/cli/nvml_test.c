/* tool/nvml.c with libraries that say what the test wants (fake_nvml.c). The one that is found is
 * found as the real one is: LD_LIBRARY_PATH leads to it. */

#include "harness.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/nvml.h"

#define PCI "0000:65:00.0"
#define MIB (UINT64_C(1) << 20)

static char why[BHI_NVML_WHY];
static struct bhi_nvml_reading reading;

/* Another library of this name, which is the one that is found from now on. */
static void use(const char *path) {
    if (!dlopen(path, RTLD_NOW)) {
        BHT_FAIL("%s", dlerror());
    }
}

static bool look_at(const char *pci) {
    struct bhi_nvml *nvml = bhi_nvml_open(why);
    if (!nvml) {
        BHT_FAIL("%s", why);
    }
    BHT_STR_EQ(why, "");
    const bool found = bhi_nvml_read(nvml, pci, &reading);
    bhi_nvml_close(nvml);
    return found;
}

static void look(void) {
    BHT_TRUE(look_at(PCI));
}

static void set(const char *name, const char *value) {
    BHT_EQ(setenv(name, value, 1), 0);
}

TEST(all_of_it) {
    set("FAKE_NVML_BUSY", "42");
    set("FAKE_NVML_COMPUTE_LIST", "11:1048576 12:2097152");
    set("FAKE_NVML_GRAPHICS_LIST", "13:- 12:3145728 11:524288");
    look();
    BHT_STR_EQ(reading.why, "");
    BHT_TRUE(reading.memory_known && reading.reserved_known);
    BHT_EQ(reading.total, 8192 * MIB);
    BHT_EQ(reading.used, 4 * MIB);
    BHT_EQ(reading.reserved, 512 * MIB);
    BHT_TRUE(reading.utilisation_known);
    BHT_EQ(reading.utilisation, 42);
    BHT_TRUE(reading.processes_known);
    BHT_EQ(reading.process_count, 3); /* each once, with what it has in the list that says more */
    BHT_EQ(reading.processes[0].pid, 11);
    BHT_EQ(reading.processes[0].bytes, MIB);
    BHT_EQ(reading.processes[1].pid, 12);
    BHT_EQ(reading.processes[1].bytes, 3 * MIB);
    BHT_EQ(reading.processes[2].pid, 13);
    BHT_TRUE(!reading.processes[2].bytes_known);
}

TEST(nobody) {
    look();
    BHT_STR_EQ(reading.why, "");
    BHT_TRUE(reading.processes_known);
    BHT_EQ(reading.process_count, 0);
}

/* Stopped in the end, also where nothing is known. */
TEST(it_is_stopped) {
    set("FAKE_NVML_ENDS", "1");
    const pid_t child = fork();
    if (child == 0) {
        (void)look_at("elsewhere");
        _exit(0);
    }
    int status;
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_TRUE(WIFEXITED(status));
    BHT_EQ(WEXITSTATUS(status), 77);
}

/* -- what is not known -------------------------------------------------------------------------
 */

TEST(an_old_driver) {
    use(BHT_OLD_NVML);
    set("FAKE_NVML_COMPUTE_LIST", "11:1048576");
    look();
    BHT_TRUE(reading.memory_known && !reading.reserved_known);
    BHT_EQ(reading.used, 516 * MIB);
    BHT_TRUE(!reading.utilisation_known);
    BHT_STR_EQ(reading.why, "utilisation: the driver's libnvidia-ml.so.1 is too old for it");
    BHT_TRUE(reading.processes_known);
    BHT_EQ(reading.process_count, 1);
    BHT_EQ(reading.processes[0].pid, 11);
}

TEST(something_else_of_that_name) {
    use(BHT_EMPTY_NVML);
    BHT_TRUE(!bhi_nvml_open(why));
    BHT_STR_EQ(why, "libnvidia-ml.so.1 has no nvmlInit_v2");
}

TEST(errors) {
    set("FAKE_NVML_INIT", "9");
    BHT_TRUE(!bhi_nvml_open(why));
    BHT_STR_EQ(why, "nvmlInit: Scripted Error (9)");
    unsetenv("FAKE_NVML_INIT");

    BHT_TRUE(!look_at("0000:66:00.0"));
    BHT_STR_EQ(reading.why, "the device: Not Found (6)");
    BHT_TRUE(!look_at(""));
    BHT_STR_EQ(reading.why, "the device's PCI address is not known");

    set("FAKE_NVML_MEMORY2", "3"); /* the older call still works */
    look();
    BHT_STR_EQ(reading.why, "");
    BHT_TRUE(reading.memory_known && !reading.reserved_known);
    set("FAKE_NVML_MEMORY", "4");
    look();
    BHT_STR_EQ(reading.why, "memory: Scripted Error (4)");
    BHT_TRUE(!reading.memory_known && reading.utilisation_known && reading.processes_known);
    unsetenv("FAKE_NVML_MEMORY2");

    set("FAKE_NVML_UTILISATION", "3");
    set("FAKE_NVML_GRAPHICS", "3");
    set("FAKE_NVML_COMPUTE_LIST", "11:1048576");
    look();
    BHT_STR_EQ(reading.why, "utilisation: Scripted Error (3)");
    BHT_TRUE(reading.memory_known && !reading.utilisation_known && reading.processes_known);
    BHT_EQ(reading.process_count, 1); /* a GPU without graphics */
    set("FAKE_NVML_UTILISATION", "0");
    set("FAKE_NVML_COMPUTE", "3"); /* neither list */
    look();
    BHT_STR_EQ(reading.why, "processes: Scripted Error (3)");
    BHT_TRUE(!reading.processes_known);
    set("FAKE_NVML_GRAPHICS", "0");
    set("FAKE_NVML_GRAPHICS_LIST", "12:1048576");
    set("FAKE_NVML_COMPUTE", "15");
    look();
    BHT_STR_EQ(reading.why, "processes: Scripted Error (15)");
    BHT_TRUE(!reading.processes_known);
    BHT_EQ(reading.process_count, 0);
}

TEST(absurd_numbers) {
    set("FAKE_NVML_USED", "8589934593"); /* of 8589934592 */
    look();
    BHT_STR_EQ(reading.why,
               "memory: it reports 8589934593 bytes used and 536870912 reserved of 8589934592");
    BHT_TRUE(!reading.memory_known && !reading.reserved_known);
    BHT_EQ(reading.total, 0);
    set("FAKE_NVML_USED", "0");
    set("FAKE_NVML_RESERVED", "18446744073709551615");
    look();
    BHT_TRUE(!reading.memory_known);
    set("FAKE_NVML_RESERVED", "0");
    set("FAKE_NVML_TOTAL", "0");
    look();
    BHT_TRUE(!reading.memory_known);
    unsetenv("FAKE_NVML_TOTAL");

    set("FAKE_NVML_BUSY", "101");
    look();
    BHT_STR_EQ(reading.why, "utilisation: it reports 101 percent");
    BHT_TRUE(reading.memory_known && !reading.utilisation_known);
    set("FAKE_NVML_BUSY", "100");

    set("FAKE_NVML_COMPUTE_LIST", "11:8589934593"); /* more than there is */
    look();
    BHT_STR_EQ(reading.why, "");
    BHT_EQ(reading.process_count, 1);
    BHT_TRUE(!reading.processes[0].bytes_known);
    static const char *const pids[] = {"0:1", "2147483648:1", "7:1 4294967295:1"};
    for (size_t i = 0; i < sizeof pids / sizeof *pids; i++) {
        set("FAKE_NVML_COMPUTE_LIST", pids[i]);
        look();
        BHT_TRUE(!reading.processes_known);
        BHT_EQ(reading.process_count, 0);
        BHT_STR_HAS(reading.why, "processes: it reports one with the number ");
    }
}

TEST(too_many_processes) {
    char list[16384] = "";
    for (int i = 1, used = 0; i <= BHI_NVML_PROCESSES; i++) {
        used += snprintf(list + used, sizeof list - (size_t)used, "%d:1 ", i);
    }
    set("FAKE_NVML_COMPUTE_LIST", list);
    look();
    BHT_TRUE(reading.processes_known);
    BHT_EQ(reading.process_count, BHI_NVML_PROCESSES);
    set("FAKE_NVML_GRAPHICS_LIST", "1:2 256:2");
    look();
    BHT_TRUE(reading.processes_known);
    set("FAKE_NVML_GRAPHICS_LIST", "257:2");
    look();
    BHT_TRUE(!reading.processes_known);
    BHT_STR_EQ(reading.why, "processes: it reports more than 256");
    set("FAKE_NVML_GRAPHICS_LIST", "");
    strcat(list, "257:1");
    set("FAKE_NVML_COMPUTE_LIST", list);
    look();
    BHT_TRUE(!reading.processes_known);
    BHT_STR_EQ(reading.why, "processes: it reports 257");
    set("FAKE_NVML_COMPUTE_LIST", "1:1"); /* and claims to have written more than fits */
    set("FAKE_NVML_COUNT", "4294967295");
    look();
    BHT_TRUE(!reading.processes_known);
    BHT_STR_EQ(reading.why, "processes: it reports 4294967295");
}

int main(int argc, char **argv) {
    const char *path = getenv("LD_LIBRARY_PATH");
    if (!path || !strstr(path, BHT_NVML)) { /* the dynamic linker reads it at the start */
        char longer[4096];
        snprintf(longer, sizeof longer, BHT_NVML "%s%s", path ? ":" : "", path ? path : "");
        setenv("LD_LIBRARY_PATH", longer, 1);
        execv("/proc/self/exe", argv);
        perror("execv");
        return 1;
    }
    return bht_main(argc, argv, NULL, 0);
}
