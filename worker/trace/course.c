/* What a traced driver is given to do: all that a worker does with one, with buffers and kernels of
 * our own. */
#include "base/memfd.h"
#include "ipc/cache_area.h"
#include "ipc/commands.h"
#include "worker/compiler/glsl.h"
#include "worker/faults/faults.h"
#include "worker/sandbox/driver.h"
#include "worker/trace/run.h"

#include <bulkhead/bulkhead.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMALL (UINT64_C(64) << 10)
#define LARGE (UINT64_C(32) << 20)
#define CACHE (UINT64_C(4) << 20)

/* Shared memory, a barrier, loops, an array that does not fit registers, integers and floats: what
 * makes a driver compile and allocate. */
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

static bool compile(struct bhi_trace_course *course, struct bhi_tracee_page *page) {
    const size_t room = 65536;
    struct bhi_glsl glsl = {
        .name = {"trace.comp", 10}, .text = {source, sizeof source - 1}, .optimize = true};
    struct bhi_compile_answer *answer = calloc(1, sizeof *answer);
    struct bhi_glsl_compiler *compiler = bhi_glsl_compiler_create();
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

bool bhi_trace_course_prepare(struct bhi_trace_course *course, struct bhi_tracee_page *page) {
    memset(course, 0, sizeof *course);
    if (!compile(course, page)) {
        return false;
    }
    course->buffers[0] = bhi_memfd_create("trace-in", SMALL, 0);
    course->buffers[1] = bhi_memfd_create("trace-out", SMALL, 0);
    course->buffers[2] = bhi_memfd_create("trace-large", LARGE, 0);
    course->cache = bhi_memfd_create("trace-cache", BHI_CACHE_AREA_HEADER + CACHE, 0);
    course->markers = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (course->buffers[0] < 0 || course->buffers[1] < 0 || course->buffers[2] < 0 ||
        course->cache < 0 || course->markers == MAP_FAILED) {
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

enum { IN = 1, OUT, BIG, GUARDED = 1, TRUSTED };

static bool run(struct bhi_backend *backend, uint64_t seq, uint64_t kernel, uint64_t input,
                uint64_t bytes, struct bhi_error *error) {
    struct job job = {
        .record = {.size = sizeof job, .seq = seq, .command_count = 3, .flags = BHI_RECORD_TIMED},
        .dispatch = {.header = {.type = BHI_CMD_DISPATCH,
                                .size =
                                    offsetof(struct job, fill) - offsetof(struct job, dispatch)},
                     .kernel = kernel,
                     .groups_x = (uint32_t)(SMALL / 4 / 64),
                     .groups_y = 1,
                     .groups_z = 1,
                     .binding_count = 2,
                     .push_size = 4},
        .bindings = {{.buffer = input, .size = bytes, .binding = 0, .access = BH_ACCESS_READ},
                     {.buffer = OUT,
                      .size = SMALL,
                      .binding = 1,
                      .access = BH_ACCESS_READ | BH_ACCESS_WRITE}},
        .push = {16, 0},
        .fill = {.header = {.type = BHI_CMD_FILL, .size = sizeof job.fill},
                 .dst = OUT,
                 .bytes = SMALL / 2},
        .copy = {.header = {.type = BHI_CMD_COPY, .size = sizeof job.copy},
                 .src = input,
                 .dst = OUT,
                 .bytes = SMALL / 2},
    };
    const struct bhi_lane_record *record = &job.record;
    struct bhi_result result;
    *error = (struct bhi_error){.status = BH_OK, .command_index = BHI_NO_COMMAND};
    (void)bhi_backend_run(backend, &record, 1, &result, error);
    return error->status == BH_OK;
}

static void add_kernel(struct bhi_backend *backend, const struct bhi_trace_course *course,
                       uint64_t id) {
    struct bhi_msg_kernel_create kernel = {
        .kernel = id, .code_bytes = course->code_bytes, .trusted = id == TRUSTED, .entry = "main"};
    memcpy(kernel.name, "trace", sizeof "trace");
    bhi_backend_kernel_create(backend, &kernel, course->code, NULL, 0);
}

static bool work(struct bhi_trace_course *course, struct bhi_backend *backend,
                 struct bhi_error *error) {
    bhi_backend_cache_attach(backend, course->cache, CACHE);
    bhi_backend_attach(backend, IN, course->buffers[0], SMALL, BHI_ATTACH_CONSTANT);
    bhi_backend_attach(backend, OUT, course->buffers[1], SMALL, BHI_ATTACH_WRITE);
    bhi_backend_attach(backend, BIG, course->buffers[2], LARGE, BHI_ATTACH_READ);
    add_kernel(backend, course, GUARDED);
    add_kernel(backend, course, TRUSTED);
    const bool good = run(backend, 1, GUARDED, IN, SMALL, error) &&
                      run(backend, 2, TRUSTED, BIG, LARGE, error) &&
                      run(backend, 3, GUARDED, BIG, LARGE, error);
    bhi_backend_abort(backend, 3);
    bhi_backend_cache_save(backend, true);
    bhi_backend_kernel_destroy(backend, GUARDED);
    bhi_backend_detach(backend, BIG);
    bhi_backend_detach(backend, IN);
    return good;
}

/* As the driver itself puts it; SwiftShader has no words but a number. */
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

void bhi_trace_course_run(struct bhi_trace_course *course, const struct bhi_probe_context *context,
                          uint32_t index, struct bhi_tracee_page *page) {
    struct bhi_error failure = {.status = BH_OK};
    struct bhi_error error = {.status = BH_OK, .text = ""};
    const struct bhi_backend_config config = {
        .get_instance_proc_addr = bhi_driver_entry(context->driver, &failure),
        .device_index = index,
        .pci = bhi_nodes_pci(context->nodes, index),
        .markers = course->markers,
    };
    if (!config.get_instance_proc_addr) {
        snprintf(page->failure, sizeof page->failure, "%.250s", failure.text);
        return;
    }
    BHI_FAULT_POINT("device");
    struct bhi_backend *backend = bhi_backend_create(&config, &error);
    tell_version(&config, backend, page);
    bool good = backend;
    if (good) {
        atomic_store(&page->phase, BHI_TRACE_WARM_UP);
        BHI_FAULT_POINT("warm_up");
        good = bhi_backend_warm_up(backend, &error);
    }
    if (good) {
        atomic_store(&page->phase, BHI_TRACE_PHASES);
        note_descriptors(page);
        atomic_store(&page->phase, BHI_TRACE_RUNNING);
        BHI_FAULT_POINT("ready");
        good = work(course, backend, &error);
    }
    if (!good) {
        snprintf(page->failure, sizeof page->failure, "%.250s", error.text);
    }
    atomic_store(&page->complete, good);
}
