/* bh_device_info.memory_total, memory_free and pci: what the driver says of its device's memory,
 * and no more than there is. The driver is fake_transfer.c, which says what the test writes. */
#include "fake_driver.h"
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIB  (UINT64_C(1) << 30)
#define PAGE 4096

/* Heap, budget, and what the process has itself. */
static void write_budget(uint64_t size, uint64_t budget, uint64_t usage) {
    char path[512];
    char text[64];
    snprintf(path, sizeof path, "%s", getenv("VK_DRIVER_FILES"));
    snprintf(strrchr(path, '/') + 1, 16, "budget");
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    BHT_GE(fd, 0);
    BHT_EQ(fchmod(fd, 0644), 0);
    BHT_EQ(ftruncate(fd, PAGE), 0);
    snprintf(text, sizeof text, "%020llu %020llu %020llu ", (unsigned long long)size,
             (unsigned long long)budget, (unsigned long long)usage);
    BHT_EQ(pwrite(fd, text, 63, 0), 63);
    close(fd);
}

static bh_device_info first_device(void) {
    static bh_device_info devices[8] = {{.struct_size = sizeof devices[0]}};
    size_t count = 0;
    BHT_EQ(bh_devices(fx_context(NULL), devices, 8, &count, NULL), BH_OK);
    BHT_EQ(count, 1);
    fx_release_all();
    return devices[0];
}

TEST(what_the_driver_says) {
    fake_driver_install(BHT_FAKE_TRANSFER);
    write_budget(8 * GIB, 6 * GIB, GIB); /* what it has itself is no loss to anybody else */
    bh_device_info device = first_device();
    BHT_EQ(device.memory_known, 1);
    BHT_EQ(device.memory_total, 8 * GIB);
    BHT_EQ(device.memory_bytes, 8 * GIB);
    BHT_EQ(device.memory_free, 5 * GIB);
    BHT_STR_EQ(device.pci, "0000:65:00.0");

    write_budget(8 * GIB, 2 * GIB, GIB);
    BHT_EQ(first_device().memory_free, GIB);
    write_budget(8 * GIB, GIB, 2 * GIB); /* others have taken what it could have had */
    device = first_device();
    BHT_EQ(device.memory_free, 0);
    BHT_EQ(device.memory_known, 1);
    write_budget(8 * GIB, 90 * GIB, 0);
    BHT_EQ(first_device().memory_free, 8 * GIB);
}

/* A GPU whose driver says nothing. */
TEST(a_silent_driver) {
    fake_driver_install(BHT_FAKE_TRANSFER);
    const bh_device_info device = first_device();
    BHT_EQ(device.device_type, 2);
    BHT_EQ(device.memory_known, 0);
    BHT_EQ(device.memory_free, 0);
    BHT_EQ(device.memory_total, device.memory_bytes);
    BHT_STR_EQ(device.pci, "");
}
