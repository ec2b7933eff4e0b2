/* What keeps the CUDA backend from starting, whatever a driver answers; which device it takes, and what it
 * says of devices. No rig is open. */
#include "ipc/layers.h"
#include "rig_cuda.h"
#include "worker/cuda/image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* -- a driver with one function that is not as usual ------------------------------------------ */

static const char *replaced; /* NULL: none */
static void *replacement;    /* NULL: it is not there */
static struct bhi_cuda_api real;

static CUresult enter(const char *name, void **out, int since, uint64_t flags, int *status) {
    const CUresult result = ((bhi_cuda_entry)rig_entry())(name, out, since, flags, status);
    if (replaced && strcmp(name, replaced) == 0) {
        *out = replacement;
        return replacement ? result : CUDA_ERROR_NOT_FOUND;
    }
    return result;
}

static void replace(const char *name, void *with) {
    int since;
    rig_close();
    BHT_TRUE(!bhi_cuda_find(&real, (bhi_cuda_entry)rig_entry(), &since));
    replaced = name;
    replacement = with;
}

static struct bhi_backend *start(struct bhi_markers *markers, struct bhi_pci *pci, uint32_t index,
                                 struct bhi_error *error) {
    const struct bhi_backend_config config = {.ops = rig_ops,
                                              .entry = (bhi_entry)enter,
                                              .markers = markers,
                                              .pci = pci,
                                              .device_index = index};
    return bhi_backend_create(&config, error);
}

/* -- refusals --------------------------------------------------------------------------------- */

static CUresult fails(void) {
    return CUDA_ERROR_UNKNOWN;
}

static int attribute_of_row, value_of_row;
static CUresult tell_attribute(int *value, int attribute, CUdevice device) {
    const CUresult result = real.cuDeviceGetAttribute(value, attribute, device);
    *value = attribute == attribute_of_row ? value_of_row : *value;
    return result;
}

static size_t limits[3];
static int failing_limit;
static CUresult tell_limit(int limit, size_t value) {
    limits[limit] = value;
    return limit == failing_limit ? CUDA_ERROR_UNKNOWN : real.cuCtxSetLimit(limit, value);
}

#define ATTRIBUTE(name, value)                                                                     \
    "cuDeviceGetAttribute", (void *)tell_attribute, CU_DEVICE_ATTRIBUTE_##name, value, 0
#define FAILS(name) name, (void *)fails, 0, 0, 0

/* Each says what was wrong, and leaves nothing behind (the harness counts threads and descriptors). */
TEST(a_device_that_cannot_be_used_is_refused) {
    static const struct {
        const char *function;
        void *with;
        int attribute, value, limit;
        bh_status status;
        const char *text;
    } rows[] = {
        {"cuFuncGetParamInfo", NULL, 0, 0, 0, BH_UNSUPPORTED,
         "cuFuncGetParamInfo: it needs CUDA 12.4 or later"},
        {FAILS("cuDeviceGetCount"), BH_CUDA, "cuDeviceGetCount: CUDA_ERROR_UNKNOWN"},
        {FAILS("cuDeviceGet"), BH_NO_DEVICE, "the driver has no device 0"},
        {ATTRIBUTE(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0), BH_UNSUPPORTED,
         "virtual memory management with descriptors"},
        {ATTRIBUTE(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, -1), BH_UNSUPPORTED,
         "virtual memory management with descriptors"},
        {ATTRIBUTE(PAGEABLE_MEMORY_ACCESS, 1), BH_UNSUPPORTED, "uvm_disable_hmm=1"},
        {FAILS("cuCtxCreate"), BH_CUDA, "cuCtxCreate: CUDA_ERROR_UNKNOWN"},
        {"cuCtxSetLimit", (void *)tell_limit, 0, 0, CU_LIMIT_PRINTF_FIFO_SIZE, BH_CUDA,
         "cuCtxSetLimit: CUDA_ERROR_UNKNOWN"},
        {"cuCtxSetLimit", (void *)tell_limit, 0, 0, CU_LIMIT_MALLOC_HEAP_SIZE, BH_CUDA,
         "cuCtxSetLimit: CUDA_ERROR_UNKNOWN"},
        {"cuCtxSetLimit", (void *)tell_limit, 0, 0, CU_LIMIT_STACK_SIZE, BH_OK, ""},
        {FAILS("cuStreamCreate"), BH_CUDA, "cuStreamCreate: CUDA_ERROR_UNKNOWN"},
        {FAILS("cuMemGetAllocationGranularity"), BH_CUDA,
         "cuMemGetAllocationGranularity: CUDA_ERROR_UNKNOWN"},
        {FAILS("cuMemHostRegister"), BH_CUDA, "cuMemHostRegister: CUDA_ERROR_UNKNOWN"},
        {FAILS("cuMemHostGetDevicePointer"), BH_CUDA,
         "cuMemHostGetDevicePointer: CUDA_ERROR_UNKNOWN"},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        struct bhi_error error = {0};
        attribute_of_row = rows[i].attribute;
        value_of_row = rows[i].value;
        failing_limit = rows[i].limit;
        replace(rows[i].function, rows[i].with);
        struct bhi_backend *backend = start(NULL, NULL, 0, &error);
        BHT_EQ(error.status, rows[i].status);
        if (rows[i].status == BH_OK) {
            BHT_TRUE(backend);
        } else if (backend || !strstr(bhi_error_line(&error), rows[i].text)) {
            BHT_FAIL("row %zu: \"%s\" does not have \"%s\"", i, bhi_error_line(&error),
                     rows[i].text);
        } else if (strstr(bhi_error_line(&error), "compute mode")) {
            BHT_FAIL("row %zu: %s", i, bhi_error_line(&error));
        }
        bhi_backend_destroy(backend);
    }
    BHT_EQ(limits[CU_LIMIT_STACK_SIZE], 0);
    BHT_EQ(limits[CU_LIMIT_PRINTF_FIFO_SIZE], 65536);
    BHT_EQ(limits[CU_LIMIT_MALLOC_HEAP_SIZE], 65536);
}

TEST(a_compute_mode_that_keeps_others_out_is_named) {
    static const char *const words[] = {[2] = "prohibited", [3] = "exclusive-process"};
    if (!rig_cuda_is_fake()) {
        return;
    }
    for (int mode = 2; mode <= 3; mode++) {
        struct bhi_error error = {0};
        attribute_of_row = CU_DEVICE_ATTRIBUTE_COMPUTE_MODE;
        value_of_row = mode;
        replace("cuDeviceGetAttribute", (void *)tell_attribute);
        setenv("FAKE_CUDA_MODE", "2", 1); /* so that it is refused */
        BHT_TRUE(!start(NULL, NULL, 0, &error));
        unsetenv("FAKE_CUDA_MODE");
        if (!strstr(bhi_error_line(&error), words[mode])) {
            BHT_FAIL("%s", bhi_error_line(&error));
        }
    }
}

TEST(why_cuda_does_not_begin) {
    static const struct {
        const char *init;
        bh_status status;
        const char *text;
    } rows[] = {
        {"304", BH_NO_DEVICE, "(304): the system refuses it /proc or a device node"},
        {"802", BH_NO_DEVICE, "(802): the GPUs are not set up yet"},
        {"2", BH_CUDA, "CUDA_ERROR_OUT_OF_MEMORY (2)"}, /* it may be another one later */
    };
    if (!rig_cuda_is_fake()) {
        return;
    }
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        struct bhi_error error = {0};
        setenv("FAKE_CUDA_INIT", rows[i].init, 1);
        BHT_TRUE(!start(NULL, NULL, 0, &error));
        unsetenv("FAKE_CUDA_INIT");
        BHT_EQ(error.status, rows[i].status);
        if (!strstr(bhi_error_line(&error), rows[i].text)) {
            BHT_FAIL("%s", bhi_error_line(&error));
        }
    }
}

/* -- the first work --------------------------------------------------------------------------- */

static CUresult copies_nothing(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return CUDA_SUCCESS;
}
static CUresult no_jit(CUmodule *module, const void *image, unsigned count, int *options,
                       void **values) {
    return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
}

TEST(first_work_that_fails_says_why) {
    static const struct {
        const char *function;
        void *with;
        bh_status status;
        const char *text;
    } rows[] = {
        {"cuMemCreate", (void *)fails, BH_CUDA, "cuMemCreate: CUDA_ERROR_UNKNOWN"},
        {"cuMemImportFromShareableHandle", (void *)fails, BH_CUDA,
         "cuMemImportFromShareableHandle: CUDA_ERROR_UNKNOWN"},
        {"cuModuleLoadDataEx", (void *)fails, BH_CUDA, "cuModuleLoadDataEx: CUDA_ERROR_UNKNOWN"},
        {"cuModuleLoadDataEx", (void *)no_jit, BH_OK, ""}, /* cubins do */
        {"cuLaunchKernel", (void *)fails, BH_CUDA, "cuLaunchKernel: CUDA_ERROR_UNKNOWN"},
        {"cuMemcpyDtoHAsync", (void *)fails, BH_DEVICE_LOST, "after its first work"},
        {"cuMemcpyDtoHAsync", (void *)copies_nothing, BH_UNSUPPORTED, "its result did not appear"},
        {NULL, NULL, BH_OK, ""},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        struct bhi_error error = {0};
        struct bhi_backend_counts counts;
        struct bhi_msg_kernel_info info;
        struct bhi_msg_kernel_binding bindings[BHI_CUDA_PARAMETERS];
        replace(rows[i].function, rows[i].with);
        struct bhi_backend *backend = start(NULL, NULL, 0, &error);
        BHT_TRUE(backend);
        error.status = BH_CUDA; /* what a caller has there */
        BHT_EQ(bhi_backend_warm_up(backend, &error), rows[i].status == BH_OK);
        BHT_EQ(error.status, rows[i].status);
        if (rows[i].status != BH_OK && !strstr(bhi_error_line(&error), rows[i].text)) {
            BHT_FAIL("row %zu: %s", i, bhi_error_line(&error));
        }
        /* Nothing of it is there for the host. */
        bhi_backend_counts(backend, &counts);
        BHT_EQ(counts.queue_submits, 0);
        BHT_EQ(counts.pipelines, 0);
        BHT_EQ(counts.imported_bytes, 0);
        BHT_EQ(bhi_cuda_of(backend)->buffers.count, 0);
        BHT_TRUE(!bhi_backend_next_reflection(backend, &info, bindings));
        bhi_backend_destroy(backend);
    }
}

/* -- which device ----------------------------------------------------------------------------- */

static CUresult no_first(CUdevice *device, int ordinal) {
    return ordinal == 0 ? CUDA_ERROR_INVALID_DEVICE : real.cuDeviceGet(device, ordinal);
}

TEST(a_device_is_found_by_its_address) {
    static const struct {
        struct bhi_pci pci;
        uint32_t index, found; /* found: 9 for none */
    } rows[] = {
        {{.bus = 0xfa, .device = 2, .known = true}, 0, 2},
        {{.bus = 0xfa, .device = 2}, 1, 1},
        {{.bus = 0xfa, .device = 7, .known = true}, 1, 9},
        {{.bus = 2, .device = 2, .known = true}, 1, 9},
        {{.domain = 1, .bus = 0xfa, .device = 2, .known = true}, 2, 9},
        {{.known = false}, 4, 9},
    };
    if (!rig_cuda_is_fake()) {
        return;
    }
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    replace("cuDeviceGet", (void *)no_first);
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        struct bhi_error error = {0};
        struct bhi_msg_device devices[4];
        struct bhi_pci pci = rows[i].pci;
        struct bhi_backend *backend = start(NULL, &pci, rows[i].index, &error);
        if (rows[i].found == 9) {
            BHT_TRUE(!backend);
            BHT_EQ(error.told.reason, BH_REASON_DEVICE_GONE);
            continue;
        }
        BHT_TRUE(backend);
        BHT_EQ(bhi_cuda_of(backend)->device.index, rows[i].found);
        BHT_EQ(bhi_cuda_of(backend)->device.device, (CUdevice)rows[i].found);
        BHT_EQ(close(bhi_backend_make(backend, 1, 4096)), 0);
        BHT_EQ(bhi_backend_devices(NULL, backend, devices, 4), 3);
        for (uint32_t k = 0; k < 3; k++) {
            const bool chosen = devices[k].index == rows[i].found;
            BHT_EQ(devices[k].chosen, chosen);
            BHT_EQ(devices[k].memory_known, chosen);
            BHT_EQ(devices[k].memory_free > 0, chosen);
            BHT_TRUE(devices[k].memory_free < devices[k].memory_bytes);
        }
        bhi_backend_destroy(backend);
    }
    unsetenv("FAKE_CUDA_DEVICES");
}

static CUresult tell_nothing(int *value, int attribute, CUdevice device) {
    *value = -1;
    return CUDA_ERROR_INVALID_VALUE;
}

TEST(what_is_said_of_devices) {
    const struct bhi_backend_config config = {.ops = rig_ops, .entry = (bhi_entry)enter};
    struct bhi_msg_device devices[4];
    struct bhi_pci pci[4];
    struct bhi_error error;
    if (!rig_cuda_is_fake()) {
        return;
    }
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    replace("cuDeviceGet", (void *)no_first);
    memset(devices, 0xff, sizeof devices); /* what a caller has there */
    BHT_EQ(bhi_backend_survey(&config, devices, pci, 4, &error), 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct bhi_msg_device *d = &devices[i];
        BHT_EQ(pci[i].device, i + 1);
        BHT_EQ(pci[i].bus, 0xfa);
        BHT_EQ(d->pci_bus, 0xfa);
        BHT_EQ(d->pci_device, i + 1);
        BHT_TRUE(!d->chosen && !d->memory_known && d->memory_free == 0);
        BHT_EQ(d->uuid[0], 0xfa);
        BHT_EQ(d->uuid[15], i + 1);
        BHT_EQ(d->memory_bytes, 8ull << 30);
        BHT_EQ(d->memory_total, 8ull << 30);
        BHT_EQ(d->max_storage_range, 8ull << 30);
        BHT_EQ(d->max_uniform_range, 8ull << 30);
        BHT_EQ(d->max_groups_x, INT32_MAX);
        BHT_EQ(d->max_groups_y, 65535);
        BHT_EQ(d->max_group_invocations, 1024);
        BHT_EQ(d->max_push_bytes, BHI_CUDA_PUSH_BYTES);
        BHT_TRUE(d->features & BHI_FEATURE_MEMORY_EXPORT);
        BHT_STR_EQ(d->name, "Fake CUDA");
        BHT_STR_EQ(d->driver_info, "CUDA 12.8");
    }
    BHT_EQ(devices[2].count, UINT32_MAX);
    replace("cuDeviceGetAttribute", (void *)tell_nothing); /* and yet the message must be valid */
    BHT_EQ(bhi_backend_survey(&config, devices, NULL, 4, &error), 3);
    BHT_EQ(devices[0].max_groups_x, 1);
    BHT_EQ(devices[0].max_group_invocations, 1);
    BHT_EQ(devices[0].pci_bus, 0);
    BHT_EQ(devices[0].max_shared_bytes, 0);
    unsetenv("FAKE_CUDA_DEVICES");
}

/* -- the markers' page ------------------------------------------------------------------------ */

static unsigned marks;
static CUresult count_mark(CUstream stream, CUdeviceptr to, uint64_t value, unsigned flags) {
    marks++;
    return real.cuStreamWriteValue64(stream, to, value, flags);
}

/* Without a page that others see, records are not merged: nobody could tell which one runs. */
TEST(records_are_merged_where_it_is_seen) {
    for (int own = 0; own < 2; own++) {
        marks = 0;
        replace(NULL, NULL);
        rig_open(&(struct rig_options){.no_markers = own});
        bhi_cuda_of(rig.backend)->device.api.cuStreamWriteValue64 = count_mark;
        rig_make(3, 1024);
        for (uint32_t i = 0; i < 3; i++) {
            rig_begin();
            rig_fill(3, 0, 4, i);
        }
        rig_run_ok();
        BHT_EQ(marks, own ? 0 : 2);
    }
}

TEST(only_its_own_page_goes_with_it) {
    struct bhi_error error;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BHT_NE(page, MAP_FAILED);
    replace(NULL, NULL);
    bhi_backend_destroy(start(page, NULL, 0, &error));
    BHT_EQ(msync(page, 4096, MS_ASYNC), 0);
    BHT_EQ(munmap(page, 4096), 0);
    struct bhi_backend *backend = start(NULL, NULL, 0, &error);
    BHT_TRUE(backend);
    page = bhi_cuda_of(backend)->page;
    bhi_backend_destroy(backend);
    BHT_EQ(msync(page, 4096, MS_ASYNC), -1);
    BHT_EQ(errno, ENOMEM);
}

/* -- images ----------------------------------------------------------------------------------- */

enum { SECTIONS = 2, PROGRAMS = 1 };

static struct elf {
    Elf64_Ehdr header;
    Elf64_Shdr sections[SECTIONS];
    Elf64_Phdr programs[PROGRAMS];
    char data[8];
} elf;

static void write_elf(void) {
    elf = (struct elf){
        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
                   .e_shoff = offsetof(struct elf, sections),
                   .e_shnum = SECTIONS,
                   .e_shentsize = sizeof(Elf64_Shdr),
                   .e_phoff = offsetof(struct elf, programs),
                   .e_phnum = PROGRAMS,
                   .e_phentsize = sizeof(Elf64_Phdr)},
        .sections = {{.sh_type = SHT_PROGBITS,
                      .sh_offset = offsetof(struct elf, data),
                      .sh_size = 8},
                     {.sh_type = SHT_NOBITS, .sh_offset = 1 << 20, .sh_size = 1 << 20}},
        .programs = {{.p_type = PT_LOAD, .p_offset = offsetof(struct elf, data), .p_filesz = 8}},
    };
}

#define BREAK(what, number)                                                                        \
    do {                                                                                           \
        write_elf();                                                                               \
        (what) = (number);                                                                         \
        BHT_TRUE(bhi_cuda_image_check(&elf, sizeof elf));                                          \
    } while (0)

/* The driver's own reader is not to be trusted with a file whose tables lead out of it. */
TEST(an_image_must_hold_what_it_names) {
    write_elf();
    BHT_EQ(bhi_cuda_image_check(&elf, sizeof elf), NULL);
    BHT_TRUE(bhi_cuda_image_check(&elf, sizeof elf - 1));
    BREAK(elf.header.e_ident[EI_CLASS], ELFCLASS32);
    BREAK(elf.header.e_ident[EI_DATA], ELFDATA2MSB);
    BREAK(elf.header.e_shentsize, sizeof(Elf64_Shdr) - 8);
    BREAK(elf.header.e_phentsize, sizeof(Elf64_Phdr) + 8);
    BREAK(elf.header.e_shoff, sizeof elf - sizeof elf.sections + 1);
    BREAK(elf.header.e_phoff, sizeof elf + 1);
    BREAK(elf.header.e_phoff, UINT64_MAX);
    BREAK(elf.sections[0].sh_size, 9);
    BREAK(elf.sections[0].sh_size, UINT64_MAX - offsetof(struct elf, data) + 1);
    BREAK(elf.sections[0].sh_offset, sizeof elf + 1);
    BREAK(elf.sections[1].sh_type, SHT_PROGBITS);
    BREAK(elf.programs[0].p_filesz, 9);
    BREAK(elf.programs[0].p_offset, UINT64_MAX);
    write_elf();
    elf.header.e_shnum = elf.header.e_shentsize = elf.header.e_phnum = elf.header.e_phentsize = 0;
    BHT_EQ(bhi_cuda_image_check(&elf, sizeof elf), NULL); /* no tables */
    elf.header.e_ident[EI_CLASS] = ELFCLASS64;
    BHT_EQ(bhi_cuda_image_check(&elf, sizeof elf.header), NULL);
    BHT_TRUE(bhi_cuda_image_check(&elf, sizeof elf.header - 1));
}

TEST(a_fat_binary_must_hold_what_it_names) {
    struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t bytes;
        char data[16];
    } fatbin = {0xba55ed50, 1, 16, 16, {0}};
    BHT_EQ(bhi_cuda_image_check(&fatbin, sizeof fatbin), NULL);
    BHT_TRUE(bhi_cuda_image_check(&fatbin, sizeof fatbin - 1));
    BHT_TRUE(bhi_cuda_image_check(&fatbin, 15));
    fatbin.header_bytes = 8;
    BHT_TRUE(bhi_cuda_image_check(&fatbin, sizeof fatbin));
    fatbin.header_bytes = 33;
    fatbin.bytes = 0;
    BHT_TRUE(bhi_cuda_image_check(&fatbin, sizeof fatbin));
}

TEST(text_may_end_with_one_nul) {
    static const char text[] = ".version 6.0\n\0";
    BHT_EQ(bhi_cuda_image_check(text, sizeof text - 2), NULL);
    BHT_EQ(bhi_cuda_image_check(text, sizeof text - 1), NULL);
    BHT_TRUE(bhi_cuda_image_check(text, sizeof text));
    BHT_TRUE(bhi_cuda_image_check(text, 7));
}
