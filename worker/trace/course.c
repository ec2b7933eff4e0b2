/* What a traced driver has to do: everything that a worker does with its driver, with buffers and
 * kernels of our own. */
#include "base/fd.h"
#include "base/format.h"
#include "base/memfd.h"
#include "ipc/cache_area.h"
#include "ipc/commands.h"
#include "ipc/fdpass.h"
#include "worker/compiler/glsl.h"
#include "worker/sandbox/driver.h"
#include "worker/sandbox/rules.h"
#include "worker/sentinel.h"
#include "worker/trace/run.h"

#include <bulkhead/bulkhead.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

#define SMALL (UINT64_C(64) << 10)
#define LARGE (UINT64_C(32) << 20)
#define CACHE (UINT64_C(4) << 20)

/* Workgroup memory, a barrier, loops, an array too large for registers, integers and floats: these
 * make a driver compile and allocate. */
static const char source[] =
    "#version 450\n"
    "layout(local_size_x = 64) in;\n"
    "layout(set = 0, binding = 0) readonly buffer In { uint x[]; };\n"
    "layout(set = 0, binding = 1) buffer Out { uint y[]; };\n"
    "layout(push_constant) uniform Push { uint n; };\n"
    "shared uint s[64];\n"
    "void main() {\n"
    "    uint i = gl_GlobalInvocationID.x, l = gl_LocalInvocationID.x, t[256], sum = 0;\n"
    "    float f = 0.0;\n"
    "    for (uint k = 0; k < 256; k++) t[k] = k * i;\n"
    "    s[l] = x[i];\n"
    "    barrier();\n"
    "    for (uint k = 0; k < n; k++) {\n"
    "        sum += s[(l + k) & 63] + t[(k * i) & 255];\n"
    "        f += sin(float(sum));\n"
    "    }\n"
    "    y[i] = sum + floatBitsToUint(f);\n"
    "}\n";

/* For CUDA, which has no compiler of ours: a stack, shared memory, a barrier. */
static const char ptx[] = ".version 5.0\n"
                          ".target sm_60\n"
                          ".address_size 64\n"
                          ".visible .entry add(.param .u64 x, .param .u64 y, .param .u32 c,\n"
                          "                    .param .u32 n)\n"
                          "{\n"
                          "    .local .align 4 .b8 stack[8192];\n"
                          "    .shared .align 4 .b8 group[256];\n"
                          "    .reg .pred %p;\n"
                          "    .reg .u32 %i, %l, %g, %b, %c, %n, %v, %a;\n"
                          "    .reg .u64 %x, %y, %o, %s;\n"
                          "    ld.param.u64 %x, [x];\n"
                          "    ld.param.u64 %y, [y];\n"
                          "    ld.param.u32 %c, [c];\n"
                          "    ld.param.u32 %n, [n];\n"
                          "    mov.u32 %l, %tid.x;\n"
                          "    mov.u32 %g, %ctaid.x;\n"
                          "    mov.u32 %b, %ntid.x;\n"
                          "    mad.lo.u32 %i, %g, %b, %l;\n"
                          "    mul.wide.u32 %o, %i, 4;\n"
                          "    add.u64 %x, %x, %o;\n"
                          "    add.u64 %y, %y, %o;\n"
                          "    and.b32 %a, %l, 63;\n"
                          "    mul.wide.u32 %o, %a, 4;\n"
                          "    mov.u64 %s, group;\n"
                          "    add.u64 %s, %s, %o;\n"
                          "    st.shared.u32 [%s], %c;\n"
                          "    bar.sync 0;\n"
                          "    ld.shared.u32 %v, [%s];\n"
                          "    mov.u64 %s, stack;\n"
                          "    mul.wide.u32 %o, %a, 128;\n"
                          "    add.u64 %s, %s, %o;\n"
                          "    st.local.u32 [%s], %v;\n"
                          "    ld.local.u32 %v, [%s];\n"
                          "    setp.ge.u32 %p, %i, %n;\n"
                          "    @%p ret;\n"
                          "    ld.global.u32 %a, [%x];\n"
                          "    add.u32 %v, %v, %a;\n"
                          "    st.global.u32 [%y], %v;\n"
                          "    ret;\n"
                          "}\n";

static bool compile(struct bhi_trace_course *course, struct bhi_tracee_page *page) {
    const size_t room = 65536;
    struct bhi_glsl glsl = {
        .name = {"trace.comp", 10}, .text = {source, sizeof source - 1}, .optimize = true};
    struct bhi_compile_answer *answer = calloc(1, sizeof *answer);
    struct shaderc_compiler *compiler = bhi_glsl_compiler_create();
    struct bhi_error error = {.status = BH_OK};
    course->code = malloc(room);
    const bool good = answer && compiler && course->code &&
                      bhi_glsl_compile(compiler, &glsl, answer, course->code, room, &error) &&
                      answer->refused == 0 && answer->code_bytes <= room;
    if (good) {
        course->code_bytes = answer->code_bytes;
    } else {
        snprintf(page->failure, sizeof page->failure, "the trace's own kernel was not compiled");
    }
    bhi_glsl_compiler_destroy(compiler);
    free(answer);
    return good;
}

bool bhi_trace_course_prepare(struct bhi_trace_course *course, enum bhi_trace_role role,
                              const struct bhi_trace_handed *handed, int given,
                              struct bhi_tracee_page *page) {
    *course = (struct bhi_trace_course){.role = role, .handed = *handed, .given = given};
    if (!compile(course, page)) {
        return false;
    }
    if (role == BHI_TRACE_WORKER) { /* stands for device memory if that is in host memory */
        course->given = bhi_memfd_create("trace-device", LARGE, 0);
    }
    course->buffers[0] = bhi_memfd_create("trace-in", SMALL, 0);
    course->buffers[1] = bhi_memfd_create("trace-out", SMALL, 0);
    course->buffers[2] = bhi_memfd_create("trace-large", LARGE, 0);
    course->cache = bhi_memfd_create("trace-cache", BHI_CACHE_AREA_HEADER + CACHE, 0);
    course->markers = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (course->buffers[0] < 0 || course->buffers[1] < 0 || course->buffers[2] < 0 ||
        course->cache < 0 || course->given < 0 || course->markers == MAP_FAILED) {
        snprintf(page->failure, sizeof page->failure, "no memory for the trace's buffers");
        return false;
    }
    return true;
}

/* -- running ---------------------------------------------------------------------------------- */

struct job {
    struct bhi_lane_record record;
    struct bhi_cmd_dispatch dispatch;
    struct bhi_cmd_binding bindings[2];
    uint32_t push[2];
    struct bhi_cmd_fill fill;
    struct bhi_cmd_copy copy;
};

enum { IN = 1, OUT, BIG, DEVICE, GUARDED = 1, TRUSTED };

static bool run_record(struct bhi_backend *backend, const struct bhi_lane_record *record,
                       struct bhi_error *error) {
    struct bhi_result result;
    *error = (struct bhi_error){.status = BH_OK, .command_index = BHI_NO_COMMAND};
    (void)bhi_backend_run(backend, &record, 1, &result, error);
    return error->status == BH_OK;
}

static bool run(const struct bhi_trace_course *course, struct bhi_backend *backend, uint64_t seq,
                uint64_t kernel, uint64_t input, uint64_t bytes, struct bhi_error *error) {
    const bool cuda = course->cuda;
    struct job job = {
        .record = {.size = sizeof job, .seq = seq, .command_count = 3, .flags = BHI_RECORD_TIMED},
        .dispatch = {.header = {.type = BHI_CMD_DISPATCH,
                                .size =
                                    offsetof(struct job, fill) - offsetof(struct job, dispatch)},
                     .kernel = kernel,
                     .groups_x = (uint32_t)(SMALL / 4 / 64),
                     .groups_y = 1,
                     .groups_z = 1,
                     .block_x = cuda ? 64 : 0,
                     .block_y = cuda ? 1 : 0,
                     .block_z = cuda ? 1 : 0,
                     .binding_count = 2,
                     .push_size = cuda ? 8 : 4},
        .bindings = {{.buffer = input, .size = bytes, .binding = 0, .access = BH_ACCESS_READ},
                     {.buffer = OUT,
                      .size = SMALL,
                      .binding = 1,
                      .access = BH_ACCESS_READ | BH_ACCESS_WRITE}},
        .push = {16, cuda ? (uint32_t)(SMALL / 4) : 0},
        .fill = {.header = {.type = BHI_CMD_FILL, .size = sizeof job.fill},
                 .dst = OUT,
                 .bytes = SMALL / 2},
        .copy = {.header = {.type = BHI_CMD_COPY, .size = sizeof job.copy},
                 .src = input,
                 .dst = OUT,
                 .bytes = SMALL / 2},
    };
    return run_record(backend, &job.record, error);
}

/* Copies as between a buffer in device memory and a staging buffer. */
static bool copy(struct bhi_backend *backend, uint64_t seq, uint64_t from, uint64_t to,
                 struct bhi_error *error) {
    struct {
        struct bhi_lane_record record;
        struct bhi_cmd_copy copy;
    } job = {
        .record = {.size = sizeof job, .seq = seq, .command_count = 1},
        .copy = {.header = {.type = BHI_CMD_COPY, .size = sizeof job.copy},
                 .src = from,
                 .dst = to,
                 .bytes = SMALL},
    };
    return run_record(backend, &job.record, error);
}

static void add_kernel(struct bhi_backend *backend, const struct bhi_trace_course *course,
                       uint64_t id) {
    const bool cuda = course->cuda;
    struct bhi_msg_kernel_create kernel = {.kernel = id,
                                           .format = cuda ? BHI_KERNEL_IMAGE : BHI_KERNEL_SPIRV,
                                           .code_bytes = cuda ? sizeof ptx : course->code_bytes,
                                           .trusted = id == TRUSTED};
    memcpy(kernel.entry, cuda ? "add" : "main", cuda ? 4 : 5);
    memcpy(kernel.name, "trace", sizeof "trace");
    bhi_backend_kernel_create(backend, &kernel, cuda ? ptx : course->code, NULL, 0);
}

static void set_up(struct bhi_backend *backend, const struct bhi_trace_course *course) {
    bhi_backend_attach(backend, IN, course->buffers[0], SMALL, BHI_ATTACH_CONSTANT);
    bhi_backend_attach(backend, OUT, course->buffers[1], SMALL, BHI_ATTACH_WRITE);
    bhi_backend_attach(backend, BIG, course->buffers[2], LARGE, BHI_ATTACH_READ);
    add_kernel(backend, course, GUARDED);
}

/* Sends |fd|. Its own calls are not traced, because they are not the driver's. */
static bool hand_out(struct bhi_tracee_page *page, enum bhi_trace_role role, int fd, uint64_t bytes,
                     struct bhi_error *error) {
    const struct bhi_trace_handed handed = {.bytes = bytes, .role = role};
    const uint32_t phase = atomic_exchange(&page->phase, BHI_TRACE_PHASES);
    const int sent = bhi_fdpass_send(BHI_FDPASS_DESCRIPTOR, &handed, sizeof handed, &fd, 1);
    close(fd);
    atomic_store(&page->phase, phase);
    return sent == 0 ||
           (BHI_ERROR(error, BH_REASON_SYSTEM_STEP, "pass a descriptor of the trace on"), false);
}

static void leave_out(struct bhi_tracee_page *page, const char *what) {
    const size_t used = strlen(page->left_out);
    bhi_format(page->left_out + used, sizeof page->left_out - used, "%s%s", used > 0 ? "; " : "",
               what);
}

/* Uses device memory that was made here or imported. The buffer's id is DEVICE. */
static bool use_device_memory(const struct bhi_trace_course *course, struct bhi_backend *backend,
                              struct bhi_error *error) {
    return copy(backend, 11, BIG, DEVICE, error) &&
           run(course, backend, 12, GUARDED, DEVICE, SMALL, error) &&
           copy(backend, 13, DEVICE, OUT, error);
}

/* If the device does not share its memory, such buffers are in host memory: only copies can be
 * traced. */
static bool make_device_memory(struct bhi_trace_course *course, struct bhi_backend *backend,
                               struct bhi_tracee_page *page, struct bhi_error *error) {
    atomic_store(&page->phase, BHI_TRACE_MEMORY);
    if (!bhi_backend_exports(backend)) {
        leave_out(page, "making, exporting and importing device memory: the device exports none, "
                        "its buffers are in host memory");
        bhi_backend_attach(backend, DEVICE, course->given, LARGE, BHI_ATTACH_WRITE);
        return use_device_memory(course, backend, error);
    }
    const int fd = bhi_backend_make(backend, DEVICE, LARGE);
    return use_device_memory(course, backend, error) &&
           hand_out(page, BHI_TRACE_IMPORTER, fd, LARGE, error);
}

static bool import_device_memory(struct bhi_trace_course *course, struct bhi_backend *backend,
                                 struct bhi_tracee_page *page, struct bhi_error *error) {
    set_up(backend, course);
    atomic_store(&page->phase, BHI_TRACE_MEMORY);
    bhi_backend_import(backend, DEVICE, course->given, course->handed.bytes);
    bool good = use_device_memory(course, backend, error);
    if (good && !bhi_backend_clear(backend, DEVICE)) {
        BHI_ERROR(error, BH_REASON_DEVICE_STEP, "clear its memory");
        good = false;
    }
    bhi_backend_detach(backend, DEVICE);
    return good;
}

static bool work(struct bhi_trace_course *course, struct bhi_backend *backend,
                 struct bhi_tracee_page *page, struct bhi_error *error) {
    bhi_backend_cache_attach(backend, course->cache, CACHE);
    set_up(backend, course);
    add_kernel(backend, course, TRUSTED);
    const bool good = run(course, backend, 1, GUARDED, IN, SMALL, error) &&
                      run(course, backend, 2, TRUSTED, BIG, LARGE, error) &&
                      run(course, backend, 3, GUARDED, BIG, LARGE, error);
    bhi_backend_abort(backend, 3);
    bhi_backend_cache_save(backend, true);
    if (!good || !make_device_memory(course, backend, page, error)) {
        return false;
    }
    bhi_backend_kernel_destroy(backend, GUARDED);
    bhi_backend_detach(backend, DEVICE);
    bhi_backend_detach(backend, BIG);
    bhi_backend_detach(backend, IN);
    return true;
}

/* Writes the version as the driver gives it; SwiftShader gives only a number. */
static void tell_version(const struct bhi_backend_config *config, struct bhi_backend *backend,
                         struct bhi_tracee_page *page) {
    struct bhi_msg_device *devices = calloc(64, sizeof *devices);
    const size_t count = !devices ? 0 : bhi_backend_devices(config, backend, devices, 64);
    for (size_t i = 0; i < count; i++) {
        if (!backend || devices[i].chosen != 0) {
            bhi_driver_version(&devices[i], page->version, sizeof page->version);
            break;
        }
    }
    free(devices);
}

static void note_descriptors(struct bhi_tracee_page *page) {
    for (unsigned fd = 0; fd < 8 * sizeof page->open; fd++) {
        if (fcntl((int)fd, F_GETFD) >= 0 && fcntl((int)fd, F_GET_SEALS) < 0) {
            page->open[fd / 8] |= (uint8_t)(1u << fd % 8);
        }
    }
}

/* From now on counts as running under filter B. */
static void lock_down(struct bhi_tracee_page *page, enum bhi_trace_phase next) {
    atomic_store(&page->phase, BHI_TRACE_PHASES);
    note_descriptors(page);
    atomic_store(&page->phase, next);
}

static bool be_worker(struct bhi_trace_course *course, const struct bhi_backend_config *config,
                      struct bhi_tracee_page *page, struct bhi_error *error) {
    struct bhi_backend *backend = bhi_backend_create(config, error);
    tell_version(config, backend, page);
    if (!backend) {
        return false;
    }
    uint64_t bytes;
    const int words = bhi_backend_words(backend, &bytes);
    if (words < 0) {
        leave_out(page, course->cuda
                            ? "a sentinel: CUDA needs none"
                            : "a sentinel: the device has no queue for transfers alone, or "
                              "shares no memory");
    } else if (!hand_out(page, BHI_TRACE_SENTINELS, words, bytes, error)) {
        return false;
    }
    atomic_store(&page->phase, BHI_TRACE_WARM_UP);
    if (!bhi_backend_warm_up(backend, error)) {
        return false;
    }
    lock_down(page, BHI_TRACE_RUNNING);
    return work(course, backend, page, error);
}

/* Its calls up to the device are not traced: they are the same as those of the first worker. */
static bool be_importer(struct bhi_trace_course *course, const struct bhi_backend_config *config,
                        struct bhi_tracee_page *page, struct bhi_error *error) {
    atomic_store(&page->phase, BHI_TRACE_PHASES);
    struct bhi_backend *backend = bhi_backend_create(config, error);
    if (!backend || !bhi_backend_warm_up(backend, error)) {
        return false;
    }
    lock_down(page, BHI_TRACE_PHASES);
    return import_device_memory(course, backend, page, error);
}

static bool be_sentinel(struct bhi_trace_course *course, const struct bhi_backend_config *config,
                        struct bhi_tracee_page *page, struct bhi_error *error) {
    atomic_store(&page->phase, BHI_TRACE_SENTINEL);
    struct bhi_sentinel_device *sentinel = bhi_sentinel_device_create(config, error);
    if (!sentinel) {
        return false;
    }
    lock_down(page, BHI_TRACE_WORDS);
    int32_t result = bhi_sentinel_device_import(sentinel, 1, course->given, course->handed.bytes);
    if (result == VK_SUCCESS) {
        result = bhi_sentinel_device_set(sentinel, 1);
    }
    if (result != VK_SUCCESS) {
        BHI_ERROR(error, BH_REASON_DEVICE_STEP, "set abort words for a sentinel",
                  .vk_result = result, .text = BHI_SAY("VkResult %d", (int)result));
        return false;
    }
    bhi_sentinel_device_set_all(sentinel);
    bhi_sentinel_device_forget(sentinel, 1);
    return true;
}

void bhi_trace_course_run(struct bhi_trace_course *course, const struct bhi_probe_context *context,
                          uint32_t index, struct bhi_tracee_page *page) {
    static bool (*const roles[BHI_TRACE_ROLES])(struct bhi_trace_course *,
                                                const struct bhi_backend_config *,
                                                struct bhi_tracee_page *, struct bhi_error *) = {
        [BHI_TRACE_WORKER] = be_worker,
        [BHI_TRACE_IMPORTER] = be_importer,
        [BHI_TRACE_SENTINELS] = be_sentinel,
    };
    struct bhi_error error = {.status = BH_OK};
    course->cuda = context->driver->info->cuda;
    const struct bhi_backend_config config = {
        .ops = course->cuda ? &bhi_cuda : &bhi_vulkan,
        .entry = bhi_driver_entry(context->driver, &error),
        .device_index = index,
        .pci = bhi_nodes_pci(context->nodes, index),
        .markers = course->markers,
    };
    const bool good = config.entry && roles[course->role](course, &config, page, &error);
    if (!good) {
        bhi_format(page->failure, sizeof page->failure, "%.250s", bhi_error_line(&error));
    }
    atomic_store(&page->complete, good);
}
