/* What only the CUDA backend does: C1 to C3 (docs/cuda.md), images, parameters, faults. */
#include "rig_cuda.h"

#include "add.cubin.h"
#include "other_arch.cubin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>

BHT_AT_START(bht_around(rig_open_usual, NULL))

enum { ADD = 1, WILD, SUM };

static struct bhi_cuda_backend *cuda(void) {
    return bhi_cuda_of(rig.backend);
}

static struct bhi_cuda_buffer *buffer(uint64_t id) {
    return bhi_map_get(&cuda()->buffers, id);
}

/* A kernel that writes to |address|, in a record that declares to write |declared|. */
static void write_wildly(uint64_t address, uint64_t declared) {
    const struct {
        uint64_t address;
        uint32_t value;
    } push = {address, 0xbad};
    rig_begin();
    rig_fill(declared, 0, 4, 1);
    rig_dispatch(WILD, 1, 1, 1, NULL, 0, &push, 12);
}

static void expect_fault(uint32_t command) {
    BHT_TRUE(!rig_run());
    BHT_EQ(rig.results[0].status, BH_DEVICE_FAULT);
    BHT_EQ(rig.results[0].executed, BH_EXECUTED_UNKNOWN);
    BHT_EQ(rig.results[0].command_index, command);
    const char *line = bhi_error_line(&rig.errors[0]);
    if (!strstr(line, "CUDA_ERROR_ILLEGAL_ADDRESS") || !strstr(line, "in kernel \"k2\"")) {
        BHT_FAIL("%s", line);
    }
}

/* C1: what the record does not declare to write cannot be written, wherever it is. (A process in which a
 * kernel has faulted gets no second context: each of these is a test of its own.) */
enum where { READ_IN_HOST, WRITABLE_IN_HOST, ON_DEVICE, IMPORTED, WRITTEN_BEFORE };

static void cannot_be_written(enum where where) {
    rig_add_kernel(ADD);
    rig_ptx_kernel(WILD, "wild_write");
    uint32_t *host = rig_buffer(1, 4096);
    host[0] = 42;
    rig_buffer(2, 4096);
    rig_make(3, 4096);
    rig_make(4, 4096);
    rig_make(6, 4096);
    rig_import(5, 6);
    if (where == READ_IN_HOST) {
        rig_attach_again(1, BHI_ATTACH_READ);
    }
    rig_begin();
    rig_add(ADD, 1, 2, 0); /* 1 is registered, and 2 has a stage */
    rig_begin();
    rig_add(ADD, 1, 3, 0);
    rig_fill(4, 0, 4, 0); /* the next one writes less */
    rig_run_ok();
    const uint64_t address = where <= WRITABLE_IN_HOST ? buffer(1)->registered
                             : where == ON_DEVICE      ? buffer(6)->memory.address
                             : where == IMPORTED       ? buffer(5)->memory.address
                                                       : buffer(3)->memory.address;
    write_wildly(address, where == WRITTEN_BEFORE ? 4 : 3);
    expect_fault(1);
    BHT_EQ(host[0], 42);
}

TEST(c1_a_kernel_cannot_write_what_it_reads_in_the_host) {
    cannot_be_written(READ_IN_HOST);
}
TEST(c1_a_kernel_cannot_write_what_others_write_in_the_host) {
    cannot_be_written(WRITABLE_IN_HOST);
}
TEST(c1_a_kernel_cannot_write_other_device_memory) {
    cannot_be_written(ON_DEVICE);
}
TEST(c1_a_kernel_cannot_write_memory_of_another_worker) {
    cannot_be_written(IMPORTED);
}
TEST(c1_a_kernel_cannot_write_what_an_earlier_one_wrote) {
    cannot_be_written(WRITTEN_BEFORE);
}

/* C1, the other way: what is declared can be written, also through a raw pointer. */
TEST(c1_what_is_declared_can_be_written) {
    rig_ptx_kernel(WILD, "wild_write");
    uint32_t *host = rig_buffer(1, 4096);
    rig_make(3, 4096);
    write_wildly(buffer(3)->memory.address + 8, 3);
    rig_copy(3, 0, 1, 0, 16);
    rig_run_ok();
    BHT_EQ(host[0], 1);
    BHT_EQ(host[2], 0xbad);
}

/* Changing what is writable costs calls: records that write the same, in a batch or one after the
 * other, make none. */
TEST(c1_access_changes_only_with_what_is_written) {
    rig_add_kernel(ADD);
    rig_buffer(1, 4096);
    rig_make(2, 4096);
    rig_make(3, 4096);
    for (uint64_t to = 2; to <= 3; to++) {
        for (int i = 0; i < 2; i++) {
            rig_begin();
            rig_add(ADD, 1, to, 1);
            rig_begin();
            rig_add(ADD, 1, to, 2);
            rig_run_ok();
            BHT_EQ(cuda()->writable.count, 1);
            BHT_EQ(buffer(2)->memory.writable, to == 2);
            BHT_EQ(buffer(3)->memory.writable, to == 3);
        }
    }
    rig_begin(); /* without a kernel it may stay as it is */
    rig_copy(2, 0, 1, 0, 4096);
    rig_run_ok();
    BHT_TRUE(buffer(3)->memory.writable);
    rig_begin();
    rig_fill(2, 0, 4, 1);
    rig_run_ok();
    BHT_TRUE(!buffer(3)->memory.writable);
    rig_detach(2);
    BHT_EQ(cuda()->writable.count, 0);
}

/* Before the first kernel, host memory that is copied to again is registered, so that nothing is staged. */
static uint32_t *pin_host(void) {
    rig_ptx_kernel(WILD, "wild_write");
    uint32_t *host = rig_buffer(1, 65536);
    rig_make(3, 65536);
    for (uint32_t round = 1; round <= 3; round++) {
        rig_begin();
        rig_fill(3, 0, 65536, round);
        rig_copy(3, 0, 1, 0, 65536);
        rig_run_ok();
        BHT_EQ(host[16383], round);
        BHT_EQ(buffer(1)->pinned, round > 1);
        BHT_EQ(rig.markers->pinned, round > 1);
    }
    return host;
}

static void copy_once_more(uint32_t value) {
    rig_begin();
    rig_fill(3, 0, 65536, value);
    rig_copy(3, 0, 1, 0, 65536);
    rig_run_ok();
}

TEST(c1_a_kernel_cannot_write_what_was_pinned_for_copies) {
    uint32_t *host = pin_host();
    const uint64_t address = (uintptr_t)buffer(1)->writes; /* the device has it there */
    write_wildly(buffer(3)->memory.address, 3);
    rig_run_ok();
    BHT_TRUE(!buffer(1)->pinned && rig.markers->pinned == 0);
    BHT_TRUE(cuda()->device.api.cuMemHostUnregister(buffer(1)->writes) != CUDA_SUCCESS);
    copy_once_more(4);
    copy_once_more(5);
    BHT_EQ(host[0], 5);
    BHT_TRUE(!buffer(1)->pinned);
    if (!rig_cuda_is_fake()) { /* whose kernels reach all of the process */
        write_wildly(address, 3);
        expect_fault(1);
        BHT_EQ(host[0], 5);
    }
}

static CUresult fail_register(void *a, size_t b, unsigned c) {
    return CUDA_ERROR_OUT_OF_MEMORY;
}
static CUresult fail_unregister(void *a) {
    return CUDA_ERROR_UNKNOWN;
}

TEST(copies_go_on_where_nothing_can_be_pinned) {
    uint32_t *host = rig_buffer(1, 65536);
    rig_make(3, 65536);
    cuda()->device.api.cuMemHostRegister = fail_register;
    for (uint32_t round = 1; round <= 3; round++) {
        copy_once_more(round);
        BHT_EQ(host[16383], round);
    }
    BHT_TRUE(!buffer(1)->pinned);
    BHT_TRUE(cuda()->pinned.count == 0 && rig.markers->pinned == 0);
}

TEST(c1_no_kernel_runs_while_memory_is_pinned) {
    uint32_t *host = pin_host();
    const struct bhi_cuda_api good = cuda()->device.api;
    cuda()->device.api.cuMemHostUnregister = fail_unregister;
    for (int i = 0; i < 2; i++) {
        write_wildly(buffer(3)->memory.address, 3);
        rig_run_fails(BH_CUDA, BHI_NO_COMMAND, "cuMemHostUnregister");
        BHT_TRUE(!cuda()->has_run && rig.markers->pinned == 1);
    }
    copy_once_more(7);
    BHT_EQ(host[0], 7);
    cuda()->device.api = good;
    rig_detach(1);
    BHT_EQ(rig.markers->pinned, 0);
    write_wildly(buffer(3)->memory.address, 3);
    rig_run_ok();
}

TEST(c1_a_worker_that_cannot_unpin_what_goes_runs_nothing_more) {
    (void)pin_host();
    cuda()->device.api.cuMemHostUnregister = fail_unregister;
    rig_detach(1);
    BHT_EQ(rig.markers->pinned, 1);
    write_wildly(buffer(3)->memory.address, 3);
    BHT_TRUE(!rig_run());
    BHT_EQ(rig.results[0].status, BH_DEVICE_LOST);
    BHT_EQ(rig.results[0].executed, BH_EXECUTED_NO);
    BHT_TRUE(!cuda()->has_run);
}

/* Host memory that a kernel writes in part keeps the rest, and gets nothing of a record that fails. */
TEST(outputs_in_the_host_are_staged) {
    rig_add_kernel(ADD);
    rig_ptx_kernel(WILD, "wild_write");
    uint32_t *from = rig_buffer(1, 4096), *to = rig_buffer(2, 8192);
    for (uint32_t i = 0; i < 1024; i++) {
        from[i] = i;
        to[i] = to[1024 + i] = 5;
    }
    const uint32_t push[2] = {100, 256};
    rig_begin();
    rig_dispatch(ADD, 4, 1, 1,
                 BINDINGS(READ(0, 1), {.binding = 1,
                                       .buffer = 2,
                                       .access = BH_ACCESS_READ_WRITE,
                                       .offset = 1024,
                                       .size = 4096}),
                 push, sizeof push);
    rig_fill(2, 8000, 4, 9);
    rig_copy(2, 1024, 2, 0, 16);
    rig_run_ok();
    for (uint32_t i = 0; i < 2048; i++) {
        const bool added = i >= 256 && i < 512;
        BHT_EQ(to[i], i < 4 ? 100 + i : added ? 100 + i - 256 : i == 2000 ? 9 : 5);
    }
    rig_begin();
    rig_fill(2, 0, 8192, 1);
    const uint32_t null[3] = {0, 0, 1};
    rig_dispatch(WILD, 1, 1, 1, NULL, 0, null, sizeof null);
    expect_fault(1);
    BHT_EQ(to[0], 100);
    BHT_EQ(to[2047], 5);
}

/* E11: of a batch that faults, what ended before is good, and what did not begin is not executed. */
TEST(e11_a_fault_is_blamed_on_its_record) {
    rig_ptx_kernel(WILD, "wild_write");
    rig_make(3, 4096);
    const uint64_t good = buffer(3)->memory.address;
    write_wildly(good, 3);
    rig_run_ok();
    write_wildly(good, 3);
    write_wildly(8, 3);
    write_wildly(good, 3);
    BHT_TRUE(!rig_run());
    BHT_EQ(rig.results[0].status, BH_OK);
    BHT_EQ(rig.results[1].status, BH_DEVICE_FAULT);
    BHT_EQ(rig.results[1].executed, BH_EXECUTED_UNKNOWN);
    BHT_EQ(rig.results[1].command_index, 1);
    BHT_EQ(rig.results[2].status, BH_DEVICE_LOST);
    BHT_EQ(rig.results[2].executed, BH_EXECUTED_NO);
    write_wildly(good, 3); /* and nothing runs any more */
    BHT_TRUE(!rig_run());
    BHT_EQ(rig.results[0].status, BH_DEVICE_LOST);
}

static void has_the_drivers_name(const char *kernel, size_t bound, const char *text) {
    rig_ptx_kernel(1, kernel);
    rig_make(3, 4096);
    rig_begin();
    const struct rig_binding binding = WRITE(0, 3);
    rig_dispatch(1, 1, 1, 1, &binding, bound, NULL, 0);
    BHT_TRUE(!rig_run());
    BHT_EQ(rig.results[0].status, BH_DEVICE_FAULT);
    BHT_EQ(rig.results[0].command_index, 0);
    if (!strstr(bhi_error_line(&rig.errors[0]), text)) {
        BHT_FAIL("%s", bhi_error_line(&rig.errors[0]));
    }
}

TEST(an_illegal_read_has_the_drivers_name) {
    has_the_drivers_name("null_read", 1, "CUDA_ERROR_ILLEGAL_ADDRESS");
}
TEST(a_trap_has_the_drivers_name) {
    has_the_drivers_name("trap", 0, "CUDA_ERROR_");
}

TEST(dynamic_shared_memory) {
    rig_ptx_kernel(SUM, "shared_sum");
    uint32_t *x = rig_buffer(1, 1024), *sums = rig_buffer(2, 16);
    for (uint32_t i = 0; i < 256; i++) {
        x[i] = i;
    }
    static const uint32_t shared[] = {256, 100000, 256};
    for (size_t i = 0; i < BHT_COUNT(shared); i++) {
        rig.shared_bytes = shared[i];
        rig_begin();
        rig_dispatch(SUM, 4, 1, 1, BINDINGS(READ(0, 1), WRITE(1, 2)), NULL, 0);
        rig_run_ok();
        BHT_EQ(sums[0], 64 * 63 / 2);
        BHT_EQ(sums[3], 64 * 63 / 2 + 64 * 192);
    }
    rig.shared_bytes = 1u << 20;
    rig_begin();
    rig_dispatch(SUM, 4, 1, 1, BINDINGS(READ(0, 1), WRITE(1, 2)), NULL, 0);
    rig_run_fails(BH_LIMIT_EXCEEDED, 0, "bytes of shared memory: 1048576");
}

/* Each time. */
static void refused_image(const void *image, size_t size, bh_status status, const char *text) {
    rig_kernel_entry(1, image, size, "add", NULL, 0);
    for (int twice = 0; twice < 2; twice++) {
        rig_begin();
        rig_prepare(1);
        rig_run_fails(status, 0, text);
    }
}

/* A program of this machine's; returns how many bytes it has. */
static size_t read_program(unsigned char *out, size_t size) {
    FILE *file = fopen(BHT_FAKE_CUDA, "re");
    BHT_TRUE(file);
    const size_t bytes = fread(out, 1, size, file);
    BHT_TRUE(bytes > 0 && bytes < size && feof(file));
    BHT_EQ(fclose(file), 0);
    return bytes;
}

TEST(bad_images_are_refused) {
    static const char newer[] = ".version 99.0\n.target sm_60\n.address_size 64\n";
    static const char nonsense[] = ".version 6.0\n.target sm_60\n.address_size 64\nhello\n";
    static const char no_entry[] = ".version 6.0\n.target sm_60\n.address_size 64\n";
    static const char words[] = "float main() { return 1; }";
    static const char elf[] = "\177ELF";
    static const char binary[] = "\0\1\2\3\4\5\6\7";
    static const struct {
        const char *image;
        size_t size;
        const char *text;
    } cases[] = {
        {newer, sizeof newer, "newer than this driver (CUDA_ERROR_UNSUPPORTED_PTX_VERSION)"},
        {nonsense, sizeof nonsense, "its PTX is not valid (CUDA_ERROR_INVALID_PTX): ptxas"},
        {no_entry, sizeof no_entry, "its image has no entry point \"add\""},
        {words, sizeof words, "there is no .version in it"},
        {elf, sizeof elf, "cut short in the header of its ELF file"},
        {binary, sizeof binary, "neither PTX text, a cubin nor a fat binary"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        refused_image(cases[i].image, cases[i].size, BH_INVALID_KERNEL, cases[i].text);
    }
}

/* What only the driver sees, as the fake one answers. Nothing of it is left on the device. */
TEST(images_that_the_driver_refuses) {
    static const char ptx[] = ".version 6.0\n.target sm_60\n.address_size 64\n"
                              ".entry add(.u64 x, .u64 y, .u32 c, .u32 count) { ret; }\n";
    static const char later[] = ".version 6.0\n.target sm_120\n.address_size 64\n";
    static unsigned char fatbin[16 + sizeof fake_cubin_add] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};
    static unsigned char program[1 << 20];
    const struct {
        const void *image;
        size_t size;
        const char *ptx_result; /* what the driver answers for any PTX; NULL: what it should */
        bh_status status;
        const char *text;
    } rows[] = {
        {fake_cubin_other_arch, sizeof fake_cubin_other_arch, NULL, BH_INVALID_KERNEL,
         "no code for this GPU's architecture, and no PTX (CUDA_ERROR_NO_BINARY_FOR_GPU)"},
        {fake_cubin_add, sizeof fake_cubin_add / 2, NULL, BH_INVALID_KERNEL, "cut short"},
        {fake_cubin_add, sizeof fake_cubin_add - 1, NULL, BH_INVALID_KERNEL, "cut short"},
        {fatbin, sizeof fatbin - 1, NULL, BH_INVALID_KERNEL, "its fat binary is cut short"},
        {program, read_program(program, sizeof program), NULL, BH_INVALID_KERNEL,
         "it is no image that this driver reads (CUDA_ERROR_INVALID_IMAGE)"},
        {later, sizeof later, NULL, BH_INVALID_KERNEL, "its PTX is not valid (CUDA_ERROR_INVALID"},
        {ptx, sizeof ptx, "221", BH_COMPILE_FAILED, "libnvidia-ptxjitcompiler) is not there"},
        {ptx, sizeof ptx, "222", BH_INVALID_KERNEL, "its PTX is newer than this driver"},
        {ptx, sizeof ptx, "223", BH_CUDA, "CUDA_ERROR_JIT_COMPILATION_DISABLED"},
    };
    size_t free_before, free_after, total;
    if (!rig_cuda_is_fake()) {
        return;
    }
    memcpy(fatbin + 8, &(uint64_t){sizeof fake_cubin_add}, sizeof(uint64_t));
    memcpy(fatbin + 16, fake_cubin_add, sizeof fake_cubin_add);
    rig_buffer(1, 1024);
    rig_make(3, 1024);
    BHT_EQ(cuda()->device.api.cuMemGetInfo(&free_before, &total), CUDA_SUCCESS);
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        if (rows[i].ptx_result) {
            setenv("FAKE_CUDA_PTX", rows[i].ptx_result, 1);
        }
        refused_image(rows[i].image, rows[i].size, rows[i].status, rows[i].text);
        unsetenv("FAKE_CUDA_PTX");
        rig_kernel_entry(1, (const uint32_t *)(const void *)fatbin, sizeof fatbin, "add", NULL, 0);
        rig_begin();
        rig_add(1, 1, 3, 1); /* and whole it runs */
        rig_run_ok();
        BHT_EQ(cuda()->device.api.cuMemGetInfo(&free_after, &total), CUDA_SUCCESS);
        BHT_EQ(free_after, free_before);
    }
}

/* -- what keeps it from starting -------------------------------------------------------------- */

/* |missing|: a node of those that a GPU has here; a folder cannot be opened as one. */
static void make_dev(const char *missing) {
    static const char *const nodes[] = {"nvidiactl", "nvidia-uvm", "nvidia0"};
    BHT_EQ(mount("dev", "/dev", "tmpfs", 0, "mode=0755"), 0);
    for (size_t i = 0; i < BHT_COUNT(nodes); i++) {
        if (strcmp(nodes[i], missing) == 0) {
            bht_put("", "/dev/%s/a", nodes[i]);
        } else {
            bht_put("", "/dev/%s", nodes[i]);
        }
    }
}

static void does_not_start(const char *init, const char *words) {
    const struct bhi_backend_config config = {.entry = rig_entry()};
    struct bhi_error error = {0};
    struct bhi_cuda_api api;
    if (!rig_cuda_is_fake()) {
        return;
    }
    setenv("FAKE_CUDA_INIT", init, 1);
    BHT_TRUE(!bhi_cuda_load(&api, &config, &error));
    BHT_EQ(error.status, BH_NO_DEVICE);
    if (!strstr(bhi_error_line(&error), words)) {
        BHT_FAIL("\"%s\" does not have \"%s\"", bhi_error_line(&error), words);
    }
}

TEST(a_node_that_cannot_be_opened_is_named) {
    static const struct {
        const char *missing, *init, *words;
    } rows[] = {
        {"nvidiactl", "100", "(100): /dev/nvidiactl: Is a directory"},
        {"nvidia-uvm", "999", "(999): /dev/nvidia-uvm: Is a directory"},
        {"nvidia0", "100", "(100): /dev/nvidia0: Is a directory"},
        {"", "100", "(100): it sees no GPU"},
        {"", "999", "(999): the driver says no more"},
        {"nvidia-uvm", "803", "(803): libcuda.so.1 does not belong"},
    };
    BHT_TRUE(bht_own_mounts());
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        make_dev(rows[i].missing);
        does_not_start(rows[i].init, rows[i].words);
        BHT_EQ(umount2("/dev", MNT_DETACH), 0);
    }
}

TEST(instances_of_mig_are_named) {
    BHT_TRUE(bht_own_mounts());
    make_dev("");
    BHT_EQ(mount("driver", "/proc/driver", "tmpfs", 0, "mode=0755"), 0);
    bht_put("", "/proc/driver/nvidia/capabilities/gpu1/mig/gi3/access");
    does_not_start("100", "(100): a GPU is divided by MIG");
    does_not_start("999", "(999): the driver says no more");
}

/* A driver call that fails fails its record, and nothing after it: the same record runs then. */
static CUresult failure;
static struct bhi_cuda_api before;

static CUresult fail(void) {
    cuda()->device.api = before;
    return failure;
}
static CUresult fail_load(CUmodule *a, const void *b, unsigned c, int *d, void **e) {
    return fail();
}
static CUresult fail_pointer(CUdeviceptr *a, void *b, unsigned c) {
    return fail();
}
static CUresult fail_access(CUdeviceptr a, size_t b, const CUmemAccessDesc *c, size_t d) {
    return fail();
}

static void break_load(struct bhi_cuda_api *api) {
    api->cuModuleLoadDataEx = fail_load;
}
static void break_pointer(struct bhi_cuda_api *api) {
    api->cuMemHostGetDevicePointer = fail_pointer;
}
static void break_access(struct bhi_cuda_api *api) {
    api->cuMemSetAccess = fail_access;
}

TEST(a_failing_call_fails_one_record) {
    static void (*const breaks[])(struct bhi_cuda_api *) = {break_load, break_pointer,
                                                            break_access};
    static const struct {
        CUresult result;
        bh_status status;
    } rows[] = {{CUDA_ERROR_OUT_OF_MEMORY, BH_OUT_OF_DEVICE_MEMORY}, {CUDA_ERROR_UNKNOWN, BH_CUDA}};
    for (size_t i = 0; i < BHT_COUNT(breaks); i++) {
        for (size_t row = 0; row < BHT_COUNT(rows); row++) {
            rig_open_usual();
            rig_add_kernel(ADD);
            uint32_t *from = rig_buffer(1, 4096), *to = rig_buffer(2, 4096);
            rig_make(3, 4096);
            from[0] = 1;
            before = cuda()->device.api;
            failure = rows[row].result;
            breaks[i](&cuda()->device.api);
            rig_begin();
            rig_add(ADD, 1, 3, 1);
            rig_run_fails(rows[row].status, breaks[i] == break_access ? BHI_NO_COMMAND : 0,
                          "CUDA_ERROR_");
            rig_begin();
            rig_add(ADD, 1, 3, 1);
            rig_copy(3, 0, 2, 0, 4096);
            rig_run_ok();
            BHT_EQ(to[0], 2);
        }
    }
}

static CUresult fail_map(CUdeviceptr a, size_t b, size_t c, CUmemGenericAllocationHandle d,
                         unsigned long long e) {
    return fail();
}

/* Its maker is blamed for memory that cannot be imported, but not for a full device. */
TEST(a_full_device_is_no_bad_memory) {
    static const struct {
        CUresult result;
        bh_status status;
        uint64_t bad;
    } rows[] = {{CUDA_ERROR_OUT_OF_MEMORY, BH_OUT_OF_DEVICE_MEMORY, 0},
                {CUDA_ERROR_UNKNOWN, BH_CUDA, 5}};
    for (size_t row = 0; row < BHT_COUNT(rows); row++) {
        rig_open_usual();
        rig_make(6, 4096);
        before = cuda()->device.api;
        failure = rows[row].result;
        cuda()->device.api.cuMemMap = fail_map;
        rig_import(5, 6);
        rig_begin();
        rig_fill(5, 0, 4, 0);
        rig_run_fails(rows[row].status, 0, "CUDA_ERROR_");
        BHT_EQ(rig.results[0].bad_memory, rows[row].bad);
    }
}

/* A fault that any call reports is the end of the context, and of this worker. */
TEST(a_fault_that_a_call_reports_loses_the_device) {
    static void (*const breaks[])(struct bhi_cuda_api *) = {break_load, break_pointer,
                                                            break_access};
    static const CUresult faults[] = {
        CUDA_ERROR_ILLEGAL_ADDRESS,      CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS,   CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,           CUDA_ERROR_LAUNCH_FAILED};
    for (size_t i = 0; i < BHT_COUNT(faults); i++) {
        rig_open_usual();
        rig_add_kernel(ADD);
        rig_buffer(1, 4096);
        rig_make(3, 4096);
        before = cuda()->device.api;
        failure = faults[i];
        breaks[i % BHT_COUNT(breaks)](&cuda()->device.api);
        rig_begin();
        rig_add(ADD, 1, 3, 1);
        BHT_TRUE(!rig_run());
        BHT_EQ(rig.results[0].status, BH_DEVICE_LOST);
        BHT_EQ(rig.results[0].executed, BH_EXECUTED_NO);
    }
}

static CUresult fail_fill(CUdeviceptr a, unsigned b, size_t c, CUstream d) {
    return fail();
}
static CUresult fail_query(CUstream a) {
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}

TEST(a_fault_seen_after_a_failing_call_loses_the_device) {
    rig_open_usual();
    rig_make(3, 4096);
    before = cuda()->device.api;
    failure = CUDA_ERROR_UNKNOWN;
    cuda()->device.api.cuMemsetD32Async = fail_fill;
    before.cuStreamQuery = fail_query; /* what fail() leaves behind */
    rig_begin();
    rig_fill(3, 0, 4096, 7);
    BHT_TRUE(!rig_run());
    BHT_EQ(rig.results[0].status, BH_CUDA);
}

static float elapsed_ms;

static CUresult tell_elapsed(float *ms, CUevent a, CUevent b) {
    *ms = elapsed_ms;
    return CUDA_SUCCESS;
}

/* Whatever the driver says: a time on the device is known, and no longer than the host has waited. */
TEST(times_on_the_device_are_within_the_hosts) {
    static const float said[] = {0, -1, 1e9f, INFINITY, NAN};
    rig_make(3, 4096);
    cuda()->device.api.cuEventElapsedTime = tell_elapsed;
    for (size_t i = 0; i < BHT_COUNT(said); i++) {
        elapsed_ms = said[i];
        rig_begin();
        rig.records[0]->flags = BHI_RECORD_TIMED;
        rig_fill(3, 0, 4096, 7);
        rig_run_ok();
        const struct bhi_result *result = &rig.results[0];
        const uint64_t host_ns = result->ended_ns - result->started_ns;
        BHT_EQ(result->device_ns, said[i] > 1 ? host_ns : 1);
    }
}

/* There is no room for a buffer, or for the stage of one in the host: its record says how much was asked
 * for, nothing is left on the device, and when there is room the same record runs. */
TEST(a_full_device_is_told_in_bytes) {
    enum { BYTES = 8 << 20 };
    size_t free_before, free_after, total;
    if (!rig_cuda_is_fake()) {
        return;
    }
    uint32_t *host = rig_buffer(1, BYTES);
    for (uint64_t id = 1; id <= 2; id++) {
        setenv("FAKE_CUDA_MEMORY", "0x600000", 1);
        BHT_EQ(cuda()->device.api.cuMemGetInfo(&free_before, &total), CUDA_SUCCESS);
        for (int twice = 0; twice < 2; twice++) {
            if (id == 2) {
                BHT_EQ(bhi_backend_make(rig.backend, id, BYTES), -1);
                BHT_TRUE(bhi_backend_is_full(rig.backend, id));
            }
            rig_begin();
            rig_fill(id, 0, BYTES, 7);
            rig_run_fails(BH_OUT_OF_DEVICE_MEMORY, 0,
                          "8388608 bytes of device memory were asked for; the device has ");
            BHT_EQ(rig.errors[0].told.limit, total);
        }
        BHT_EQ(cuda()->device.api.cuMemGetInfo(&free_after, &total), CUDA_SUCCESS);
        BHT_EQ(free_after, free_before);
        unsetenv("FAKE_CUDA_MEMORY");
        if (id == 2) {
            rig_make(id, BYTES);
        }
        rig_begin();
        rig_fill(id, 0, BYTES, 7);
        rig_run_ok();
    }
    BHT_EQ(host[BYTES / 4 - 1], 7);
}

static CUresult no_reserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr at,
                           unsigned long long flags) {
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult no_map(CUdeviceptr address, size_t bytes, size_t offset,
                       CUmemGenericAllocationHandle handle, unsigned long long flags) {
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult no_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                          size_t count) {
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* At whichever call it stops. */
TEST(memory_that_cannot_be_mapped_is_given_back) {
    enum { BYTES = 64 << 20 };
    static const char *const calls[] = {"cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"};
    size_t free_before, free_after, total;
    for (size_t i = 0; i < BHT_COUNT(calls); i++) {
        struct bhi_cuda_device device = cuda()->device;
        struct bhi_cuda_memory memory;
        const char *call;
        if (i == 0) {
            device.api.cuMemAddressReserve = no_reserve;
        } else if (i == 1) {
            device.api.cuMemMap = no_map;
        } else {
            device.api.cuMemSetAccess = no_access;
        }
        BHT_EQ(cuda()->device.api.cuMemGetInfo(&free_before, &total), CUDA_SUCCESS);
        BHT_EQ(bhi_cuda_memory_make(&device, &memory, BYTES, -1, &call), CUDA_ERROR_OUT_OF_MEMORY);
        BHT_STR_EQ(call, calls[i]);
        BHT_EQ(memory.address, 0);
        BHT_EQ(cuda()->device.api.cuMemGetInfo(&free_after, &total), CUDA_SUCCESS);
        BHT_EQ(free_after, free_before);
    }
}

/* The supervisor lets neither come here once it knows the driver. */
TEST(what_is_for_vulkan) {
    rig.format = BHI_KERNEL_SPIRV;
    rig_add_kernel(ADD);
    rig_begin();
    rig_prepare(ADD);
    rig_run_fails(BH_INVALID_KERNEL, 0, "kernel \"k1\" is SPIR-V, which a CUDA device cannot run");
    BHT_EQ(rig.errors[0].told.reason, BH_REASON_NEEDS_VULKAN);
    rig.format = 0;
    rig_add_kernel(ADD);
    rig_begin();
    rig_dispatch(ADD, 1, 1, 1, NULL, 0, NULL, 0);
    struct bhi_cmd_dispatch *dispatch = (void *)(rig.records[0] + 1);
    dispatch->block_x = dispatch->block_y = dispatch->block_z = 0;
    rig_run_fails(BH_BINDING_MISMATCH, 0, "kernel \"k1\" is a CUDA kernel: a launch says how many");
}

TEST(parameters_are_named_by_position) {
    rig_add_kernel(ADD);
    rig_buffer(1, 1024);
    rig_buffer(2, 1024);
    rig_begin();
    rig_prepare(ADD);
    rig_run_ok();
    const struct bhi_msg_kernel_info info = rig_reflection();
    static const uint32_t sizes[] = {8, 8, 4, 4};
    BHT_EQ(info.bindings, 4);
    for (uint32_t i = 0; i < 4; i++) {
        BHT_EQ(rig.bindings[i].binding, i);
        BHT_EQ(rig.bindings[i].kind, BH_BINDING_PARAMETER);
        BHT_EQ(rig.bindings[i].count, sizes[i]);
    }
    rig_no_reflection();
    const uint32_t push[3] = {0, 256, 0};
    static const struct {
        struct rig_binding second;
        uint32_t push_bytes;
        const char *text;
    } cases[] = {
        {WRITE(2, 2), 4, "parameter 2 of kernel \"k1\" has 4 bytes"},
        {WRITE(4, 2), 8, "parameter 4 was given, but kernel \"k1\" does not use it"},
        {{.set = 1, .binding = 1, .buffer = 2, .access = 3}, 8, "set 1 binding 1 was given"},
        {WRITE(1, 2), 12, "takes 8 bytes of push constants, 12 were given"},
        {WRITE(1, 99), 8, "buffer 99 is not attached, and bound as parameter 1"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        rig_begin();
        rig_dispatch(ADD, 1, 1, 1, BINDINGS(READ(0, 1), cases[i].second), push,
                     cases[i].push_bytes);
        rig_run_fails(BH_BINDING_MISMATCH, 0, cases[i].text);
    }
}
