/* The driver's pipeline cache: what it is given to begin with, and what it leaves. */
#include "base/memfd.h"
#include "rig.h"
#include "worker/vulkan/backend.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROOM 65536u

#define ROOM 65536u

static struct bhi_cache_area *area;

static void drop(void) {
    if (area) {
        munmap(area, BHI_CACHE_AREA_HEADER + ROOM);
    }
}

BHT_AT_START(bht_around(NULL, drop))

/* Another rig, with an area. */
static void attach(const void *bytes, uint64_t count) {
    drop();
    rig_open(NULL);
    int fd = bhi_memfd_create("area", BHI_CACHE_AREA_HEADER + ROOM, 0);
    BHT_GE(fd, 0);
    area = mmap(NULL, BHI_CACHE_AREA_HEADER + ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    BHT_NE(area, MAP_FAILED);
    area->bytes = count;
    if (bytes) {
        memcpy((char *)area + BHI_CACHE_AREA_HEADER, bytes, count);
    }
    bhi_backend_cache_attach(rig.backend, fd, ROOM);
}

static void compile_and_save(void) {
    uint32_t *x = rig_buffer(1, 1024);
    uint32_t *y = rig_buffer(2, 1024);
    x[0] = 37;
    rig_kernel(1, CODE(add));
    rig_begin();
    rig_add(1, 1, 2, 5);
    rig_run_ok();
    BHT_EQ(y[0], 42);
    bhi_backend_cache_save(rig.backend, true);
}

TEST(what_is_compiled_is_left) {
    attach(NULL, 0);
    bhi_backend_cache_save(rig.backend, true);
    BHT_EQ(area->stamp, 0); /* nothing has been compiled */
    compile_and_save();
    BHT_EQ(area->stamp, 2);
    VkPhysicalDeviceProperties properties;
    bhi_vk(rig.backend)
        ->device.api.GetPhysicalDeviceProperties(bhi_vk(rig.backend)->device.physical, &properties);
    const uint64_t count = area->bytes;
    void *bytes = bht_own(malloc(count));
    memcpy(bytes, (const char *)area + BHI_CACHE_AREA_HEADER, count);
    BHT_TRUE(bhi_vk_cache_fits(&properties, bytes, count));
    bhi_backend_cache_save(rig.backend, true);
    BHT_EQ(area->stamp, 2); /* nothing is new */
    /* The next one begins with it. */
    attach(bytes, count);
    BHT_NE(bhi_vk(rig.backend)->cache.cache, VK_NULL_HANDLE);
    compile_and_save();
    BHT_EQ(area->stamp, 2);
    BHT_GE(area->bytes, count);
}

/* Only what carries this device's own header is shown to the driver. */
TEST(other_headers_do_not_fit) {
    VkPhysicalDeviceProperties properties = {.vendorID = 0x10de, .deviceID = 0x2335};
    memset(properties.pipelineCacheUUID, 0x5a, VK_UUID_SIZE);
    VkPipelineCacheHeaderVersionOne good = {.headerSize = sizeof good,
                                            .headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE,
                                            .vendorID = 0x10de,
                                            .deviceID = 0x2335};
    memset(good.pipelineCacheUUID, 0x5a, VK_UUID_SIZE);
    BHT_TRUE(bhi_vk_cache_fits(&properties, &good, sizeof good));
    for (size_t size = 0; size < sizeof good; size++) {
        BHT_TRUE(!bhi_vk_cache_fits(&properties, &good, size));
    }
    for (size_t bit = 0; bit < 8 * sizeof good; bit++) {
        VkPipelineCacheHeaderVersionOne bad = good;
        ((uint8_t *)&bad)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        BHT_TRUE(!bhi_vk_cache_fits(&properties, &bad, sizeof bad));
    }
}

TEST(garbage_is_as_good_as_nothing) {
    static const struct {
        uint64_t bytes;
        uint8_t fill;
    } cases[] = {{0, 0}, {1, 0xff}, {31, 0}, {32, 0}, {4096, 0xff}, {ROOM, 0x20}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static uint8_t bytes[ROOM];
        memset(bytes, cases[i].fill, ROOM);
        attach(bytes, cases[i].bytes);
        BHT_NE(bhi_vk(rig.backend)->cache.cache, VK_NULL_HANDLE);
        compile_and_save();
        BHT_EQ(area->stamp, 2);
    }
}

/* A length beyond the area, and an area that is none. */
TEST(lengths_are_checked) {
    static const uint64_t lengths[] = {UINT64_MAX, 1024 * ROOM};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        attach(NULL, lengths[i]);
        compile_and_save();
        BHT_EQ(area->stamp, 2);
    }
    rig_open(NULL);
    int fd = bhi_memfd_create("area", ROOM, 0);
    BHT_GE(fd, 0);
    bhi_backend_cache_attach(rig.backend, fd, ROOM); /* a page short */
    BHT_EQ(bhi_vk(rig.backend)->cache.area, NULL);
    compile_and_save();
}

/* -- while it is saved ---------------------------------------------------------------------------
 */

/* What stands in for the driver: how much there is, and what comes of taking it. */
static struct {
    size_t size;
    VkResult result;
    uint64_t stamp; /* while it was taken */
    int taken;
} driver;

static VKAPI_ATTR VkResult VKAPI_CALL get_data(VkDevice device, VkPipelineCache cache, size_t *size,
                                               void *data) {
    if (data) {
        BHT_EQ(*size, driver.size);
        driver.stamp = area->stamp;
        driver.taken++;
        memset(data, 0x77, *size);
        return driver.result;
    }
    *size = driver.size;
    return VK_SUCCESS;
}

static void save(size_t size, VkResult result) {
    driver.size = size;
    driver.result = result;
    bhi_vk(rig.backend)->cache.changed = true;
    bhi_backend_cache_save(rig.backend, true);
}

/* One that dies in there leaves an odd stamp: what it was writing is not stored. */
TEST(what_is_being_written_is_marked) {
    attach(NULL, 0);
    bhi_vk(rig.backend)->device.api.GetPipelineCacheData = get_data;
    save(ROOM, VK_SUCCESS);
    BHT_EQ(driver.stamp, 1);
    BHT_EQ(area->stamp, 2);
    BHT_EQ(area->bytes, ROOM);
    save(5, VK_SUCCESS);
    BHT_EQ(driver.stamp, 3);
    BHT_EQ(area->stamp, 4);
    BHT_EQ(area->bytes, 5);
    /* Too much, or nothing: what was saved last stays. */
    driver.taken = 0;
    save(ROOM + 1, VK_SUCCESS);
    save(0, VK_SUCCESS);
    BHT_EQ(driver.taken, 0);
    BHT_EQ(area->stamp, 4);
    /* The driver has failed in there: that is torn, until the next time. */
    save(6, VK_INCOMPLETE);
    BHT_EQ(area->stamp, 5);
    save(7, VK_SUCCESS);
    BHT_EQ(driver.stamp, 5);
    BHT_EQ(area->stamp, 6);
    BHT_EQ(area->bytes, 7);
}

/* While there is work, saving takes a twentieth of the time; what is left is saved later. */
TEST(saving_takes_a_share_of_the_time) {
    attach(NULL, 0);
    bhi_vk(rig.backend)->device.api.GetPipelineCacheData = get_data;
    save(5, VK_SUCCESS);
    struct bhi_vk_cache *cache = &bhi_vk(rig.backend)->cache;
    cache->cost_ns = UINT64_C(1) << 50;
    cache->changed = true;
    bhi_backend_cache_save(rig.backend, false);
    BHT_EQ(area->stamp, 2);
    cache->cost_ns = 0;
    bhi_backend_cache_save(rig.backend, false);
    BHT_EQ(area->stamp, 4);
    bhi_backend_cache_save(rig.backend, false); /* nothing is new */
    BHT_EQ(area->stamp, 4);
    cache->cost_ns = UINT64_C(1) << 50;
    cache->changed = true;
    bhi_backend_cache_save(rig.backend, true);
    BHT_EQ(area->stamp, 6);
}
