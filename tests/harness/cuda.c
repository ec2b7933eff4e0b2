#include "cuda.h"

#include "tests/fake_cuda/abi.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

bool fx_on_cuda(void) {
    return getenv("BULKHEAD_TEST_CUDA");
}

/* The whole file; free() it. */
static void *read_file(const char *path, size_t *out_size) {
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        BHT_FAIL("cannot open %s", path);
    }
    void *bytes = malloc((size_t)info.st_size);
    BHT_EQ(read(fd, bytes, (size_t)info.st_size), info.st_size);
    close(fd);
    *out_size = (size_t)info.st_size;
    return bytes;
}

static bool installed;
static char latch_path[128];

/* In a folder that everybody can read: workers of a root's host are nobody here. */
void fx_cuda_install(const char *settings) {
    const char *folder = bht_folder();
    char path[128];
    size_t size;
    BHT_EQ(chmod(folder, 0755), 0);
    void *library = read_file(BHT_FAKE_CUDA, &size);
    snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
    fx_write_file(path, library, size);
    BHT_EQ(chmod(path, 0755), 0);
    free(library);
    snprintf(path, sizeof path, "%s/fake_cuda.settings", folder);
    fx_write_file(path, settings, strlen(settings));
    BHT_EQ(chmod(path, 0644), 0);
    snprintf(latch_path, sizeof latch_path, "%s/fake_cuda.latches", folder);
    fx_write_file(latch_path, "", 0);
    BHT_EQ(truncate(latch_path, FAKE_CUDA_LATCHES * sizeof(uint32_t)), 0);
    BHT_EQ(chmod(latch_path, 0666), 0);
    BHT_EQ(setenv("LD_LIBRARY_PATH", folder, 1), 0);
    installed = true;
}

void cuda_install_once(void) {
    if (!installed) {
        fx_cuda_install("");
    }
}

const char *cuda_device(const char *device) {
    return !device || strcmp(device, "0") == 0 ? "cuda"
           : strcmp(device, "1") == 0          ? "cuda:1"
                                               : device;
}

bh_kernel *cuda_kernel(bh_context *context, const char *name, const bh_kernel_options *options) {
    char path[4096];
    size_t size;
    snprintf(path, sizeof path, "%s/%s.cubin", BHT_CUDA_KERNELS, name);
    void *image = bht_own(read_file(path, &size));
    const bh_kernel_options of_image = {.struct_size = sizeof of_image,
                                        .name = options->name,
                                        .entry = options->entry ? options->entry : name,
                                        .block = {64, 1, 1}};
    bh_kernel *kernel = NULL;
    bh_detail detail;
    if (bh_kernel_create_image(context, image, size, &of_image, &kernel, &detail) != BH_OK) {
        BHT_FAIL("bh_kernel_create_image: %s", detail.message);
    }
    return kernel;
}

/* Not mapped: tests count mappings. */
static void access_latch(size_t word, uint32_t *value,
                         ssize_t (*call)(int, void *, size_t, off_t)) {
    const int fd = open(latch_path, O_RDWR | O_CLOEXEC);
    BHT_GE(fd, 0);
    BHT_EQ(call(fd, value, sizeof *value, (off_t)(word * sizeof *value)), sizeof *value);
    close(fd);
}

uint32_t cuda_latch(size_t word) {
    uint32_t value;
    access_latch(word, &value, pread);
    return value;
}

static ssize_t write_to(int fd, void *bytes, size_t size, off_t at) {
    return pwrite(fd, bytes, size, at);
}

void cuda_set_latch(size_t word, uint32_t value) {
    access_latch(word, &value, write_to);
}
