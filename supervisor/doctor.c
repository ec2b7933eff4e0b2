/* bh_doctor: reports which guarantees hold on this machine. Each is tried out. */
#include "base/detail.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/futex.h"
#include "base/limits.h"
#include "base/memfd.h"
#include "base/selector.h"
#include "ipc/fdpass.h"
#include "ipc/refusal.h"
#include "supervisor/compile/arithmetic.h"
#include "supervisor/compile/compilation.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/context/room.h"
#include "supervisor/event/event.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/cgroup.h"
#include "supervisor/worker/launch.h"
#include "supervisor/worker/worker_proc.h"
#include "supervisor/worker/zygote.h"
#include <bulkhead/doctor.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_NS (30ull * 1000000000)
/* A probe may take BHI_PROBE_TIMEOUT_NS (worker/probe/probe.h); 10 s more for request and answer.
 */
#define PROBE_TIMEOUT_NS (50ull * 1000000000)
#define GRID_NS          (10ull * 1000000000)
#define ASK_VERBOSE      "run bulkhead doctor --verbose, and report its output"
#define DEVICE_TYPE_CPU  4 /* VK_PHYSICAL_DEVICE_TYPE_CPU */

struct report {
    bh_check *checks; /* of |size| bytes each */
    size_t size;
    size_t capacity;
    size_t count;
};

static void __attribute__((format(printf, 7, 8))) add(struct report *report, const char *group,
                                                      const char *name, bool required,
                                                      bh_check_result result, const char *advice,
                                                      const char *format, ...) {
    if (report->count < report->capacity) {
        bh_check check = {.required = required, .result = result};
        snprintf(check.group, sizeof check.group, "%s", group);
        snprintf(check.name, sizeof check.name, "%s", name);
        va_list args;
        va_start(args, format);
        bhi_vformat(check.text, sizeof check.text, format, args);
        va_end(args);
        if (result != BH_CHECK_HOLDS) {
            snprintf(check.advice, sizeof check.advice, "%s", advice);
        }
        bhi_layout_put(report->checks, report->count, report->size, &check, sizeof check);
    }
    report->count++;
}

/* -- checks of the kernel, in this process ---------------------------------------------------- */

static void check_futex(struct report *report) {
    _Atomic uint32_t word = 1;
    struct bhi_futex_wait wait = {&word, 0, false};
    int error = bhi_futex_wait_any(&wait, 1, 0);
    add(report, "kernel", "futex_waitv", true, error == -ENOSYS ? BH_CHECK_ABSENT : BH_CHECK_HOLDS,
        "Linux 5.16 or newer", "a wait for several words at once %s",
        error == -ENOSYS ? "is unknown to this kernel" : "returns");
}

static void check_memfd(struct report *report) {
    BHI_AUTO_FD fd = bhi_memfd_create("bulkhead-doctor", 4096, 0);
    bool sealed = fd >= 0 && ftruncate(fd, 0) != 0 && errno == EPERM;
    add(report, "kernel", "memfd-seals", true,
        fd < 0   ? BH_CHECK_ABSENT
        : sealed ? BH_CHECK_HOLDS
                 : BH_CHECK_BROKEN,
        "a kernel with CONFIG_MEMFD_CREATE", "shrinking a sealed memfd %s",
        sealed ? "is refused" : "is not refused");
}

static void check_lane(struct report *report) {
    struct bhi_lane lane;
    int error = bhi_lane_create(&lane, 65536, 64);
    bool refused = false;
    if (!error) {
        void *writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, lane.fd, 0);
        refused = writable == MAP_FAILED;
        if (!refused) {
            munmap(writable, 4096);
        }
        bhi_lane_destroy(&lane);
    }
    add(report, "kernel", "read-only-lane", true,
        error     ? BH_CHECK_ABSENT
        : refused ? BH_CHECK_HOLDS
                  : BH_CHECK_BROKEN,
        "Linux 5.1 or newer (F_SEAL_FUTURE_WRITE)", "mapping a queue of a worker writable %s",
        refused ? "is refused" : "is not refused");
}

static void check_pidfd(struct report *report) {
    BHI_AUTO_FD fd = pidfd_open(getpid(), 0);
    bool works = fd >= 0 && pidfd_send_signal(fd, 0, NULL, 0) == 0;
    add(report, "kernel", "pidfd", true, works ? BH_CHECK_HOLDS : BH_CHECK_ABSENT,
        "Linux 5.3 or newer", "signalling through a pidfd %s", works ? "works" : "does not work");
}

static void check_limits(struct report *report) {
    char list[400];
    const bool limited = bhi_limits_list(list, sizeof list) > 0;
    add(report, "kernel", "limits", false, limited ? BH_CHECK_ABSENT : BH_CHECK_HOLDS,
        "higher hard limits (ulimit -H), which workers get",
        limited ? "workers have less than they may need: %s"
                : "no hard limit of this process can end a worker%s",
        list);
}

static void check_cgroup(struct report *report, const struct bhi_zygote *zygote) {
    const struct bhi_layer_info *info = bhi_layer_info(BHI_LAYER_MEMORY_CGROUP);
    bool has = zygote->cgroup.version != 0;
    if (has) {
        add(report, "sandbox", info->name, false, BH_CHECK_HOLDS, info->advice,
            "%s: each worker has a memory cgroup (v%d) of its own", info->what,
            zygote->cgroup.version);
    } else {
        add(report, "sandbox", info->name, false, BH_CHECK_ABSENT, info->advice,
            "none, so a hostile worker can hold more than its limit: %s", zygote->cgroup_why);
    }
}

/* Says nothing where AppArmor does not restrict user namespaces. |zygote|: NULL if no worker starts. */
static void check_apparmor(struct report *report, const bh_context *context,
                           const struct bhi_zygote *zygote) {
    static const char restricts[] = "AppArmor restricts user namespaces";
    char name[BHI_APPARMOR_NAME], program[PATH_MAX];
    const pid_t warden = zygote ? bhi_pidfd_pid(zygote->warden_pidfd) : 0;
    if (!realpath(context->settings.warden_path, program)) {
        return;
    }
    const enum bhi_apparmor found =
        bhi_refusal_apparmor("", warden > 0 ? warden : 0, program, name);
    const bool loaded = found == BHI_APPARMOR_LOADED;
    if (found != BHI_APPARMOR_FREE) {
        add(report, "sandbox", "apparmor", false, loaded ? BH_CHECK_HOLDS : BH_CHECK_ABSENT,
            "as root: apparmor-profile --install, a program beside the warden "
            "(docs/operating.md); a host with root's rights needs no profile",
            loaded                          ? "%s; the warden has the profile %.120s"
            : found == BHI_APPARMOR_MISSING ? "%s; no profile %.120s is loaded for the warden"
                                            : "%s; only root can see whether %.120s is loaded",
            restricts, name);
    }
}

/* Reports why no worker starts. */
static void report_no_worker(struct report *report, bh_status status, const bh_detail *why) {
    const bool unclear =
        status == BH_UNAVAILABLE || status == BH_UNSUPPORTED || status == BH_NO_DEVICE;
    add(report, "sandbox", "worker", true, BH_CHECK_BROKEN,
        why->advice ? why->message + why->advice
        : unclear   ? "see the log (--verbose); report it"
                    : bh_status_advice(status),
        "%.*s", why->sentence + why->sentence_length, why->message);
}

/* -- checks of the sandbox, in children of the zygote ----------------------------------------- */

/* Has the zygote fork a child that tries out |layer|, and waits for the answer. */
static struct bhi_probe_answer probe(struct bhi_zygote *zygote, uint32_t layer) {
    bh_context *context = zygote->context;
    struct bhi_probe_answer result = {0};
    struct bhi_message message = {.type = BHI_MSG_PROBE, .probe = {.layer = layer}};
    bhi_context_lock(context);
    zygote->probes[layer] = result;
    bool ready = zygote->state == BHI_ZYGOTE_READY;
    bhi_context_unlock(context);
    /* Without the lock: SOCK_SEQPACKET sends whole packets, so several threads may send. */
    if (!ready || bhi_fdpass_send_message(zygote->socket, &message, NULL, 0) != 0) {
        return result;
    }
    uint64_t deadline_ns = bhi_deadline_ns(PROBE_TIMEOUT_NS);
    for (;;) {
        uint32_t seen = atomic_load(&zygote->probe_word);
        bhi_context_lock(context);
        result = zygote->probes[layer];
        ready = zygote->state == BHI_ZYGOTE_READY;
        bhi_context_unlock(context);
        if (result.answered || !ready ||
            bhi_futex_wait(&zygote->probe_word, seen, false, deadline_ns) == -ETIMEDOUT) {
            return result;
        }
    }
}

static void report_layers(struct report *report, struct bhi_zygote *zygote) {
    for (uint32_t layer = 0; layer < BHI_LAYER_COUNT; layer++) {
        const struct bhi_layer_info *info = bhi_layer_info(layer);
        if (layer == BHI_LAYER_MEMORY_CGROUP) {
            check_cgroup(report, zygote);
            continue;
        }
        struct bhi_probe_answer result = probe(zygote, layer);
        if (!result.answered) {
            add(report, "sandbox", info->name, info->required, BH_CHECK_BROKEN, ASK_VERBOSE,
                "the probe did not answer");
        } else {
            add(report, "sandbox", info->name, info->required, (bh_check_result)result.result,
                info->advice, "%s", result.text);
        }
    }
}

/* -- checks of the driver --------------------------------------------------------------------- */

static bool has_feature(const bh_device_info *device, const char *name) {
    bool has = false;
    for (uint32_t i = 0; i < device->feature_count; i++) {
        has = has || strcmp(device->features[i], name) == 0;
    }
    return has;
}

static void report_driver(struct report *report, const bh_device_info *device) {
    enum { BOTH, VULKAN, CUDA };
    static const struct {
        const char *feature;
        int of;
        bool required;
        const char *without;
    } guarantees[] = {
        {"externalMemoryHost", BOTH, true,
         "use another driver: with this one buffers cannot be shared without a copy"},
        {"robustBufferAccess", VULKAN, false, "an index outside a buffer may touch other memory"},
        {"robustBufferAccess2", VULKAN, false,
         "an index outside a binding may touch another part of the same buffer"},
        {"nullDescriptor", VULKAN, false, "also bind buffers that the kernel does not use"},
        {"zeroInitializeWorkgroupMemory", VULKAN, false,
         "shared memory may hold another kernel's data"},
        {"deviceFault", VULKAN, false, "a device loss comes without an address"},
        {"memoryExport", CUDA, true, "use another driver: with this one streams share no memory"},
        {"abortWord", VULKAN, false,
         "a kernel cannot be stopped at its deadline: its worker is killed, and on a GPU other "
         "work may stall for seconds; use a GPU with device-local host-visible memory"},
        {"wholeLoops", VULKAN, false,
         "the driver cuts long loops short, and the submission ends LOOP_LIMIT; install Mesa 25 or "
         "later"},
    };
    for (size_t i = 0; i < sizeof guarantees / sizeof guarantees[0]; i++) {
        if (guarantees[i].of == (bhi_selector_is_cuda(device->selector) ? VULKAN : CUDA)) {
            continue;
        }
        const bool has = has_feature(device, guarantees[i].feature);
        add(report, "driver", guarantees[i].feature, guarantees[i].required,
            has ? BH_CHECK_HOLDS : BH_CHECK_ABSENT, guarantees[i].without, "%s %s %s",
            device->selector, has ? "has" : "does not have", guarantees[i].feature);
    }
}

/* Checks that the driver makes only system calls that its table lists. |driver| is "" for the
 * default driver. */
static void report_table(struct report *report, bh_context *context, const char *driver) {
    static const char advice[] =
        "report it, with the output of 'bulkhead doctor --trace-driver' and the distribution";
    bh_trace trace = {.struct_size = sizeof trace};
    bh_detail why = {0};
    size_t count = 0;
    if (bh_trace_driver(context, driver, &trace, NULL, 0, &count, &why) != BH_OK) {
        add(report, "driver", "system-calls", false, BH_CHECK_ABSENT, ASK_VERBOSE,
            "%s could not be traced: %.180s", driver[0] ? driver : "the driver", why.message);
        return;
    }
    if (trace.unknown) {
        add(report, "driver", "system-calls", true, BH_CHECK_BROKEN, advice,
            "%s makes calls that its table does not list; the first: %.180s", trace.driver,
            trace.first_unknown);
    } else {
        add(report, "driver", "system-calls", true,
            trace.complete ? BH_CHECK_HOLDS : BH_CHECK_BROKEN, advice,
            "%s: %zu kinds of calls%s%.160s", trace.driver, count,
            trace.complete ? ", all in its table" : "; it failed: ", trace.failure);
    }
    add(report, "driver", "table", false,
        trace.known && trace.tried ? BH_CHECK_HOLDS : BH_CHECK_ABSENT,
        trace.tried ? "it may work; see the check system-calls"
                    : "this driver is untested; see the check system-calls, and report the result",
        "%s is version %.80s, its table was made for %.80s%s", trace.driver,
        trace.version[0] ? trace.version : "unknown", trace.made_for,
        trace.tried ? "" : ", from documentation");
}

/* Checks the table of each driver once; |devices| are in the order of their drivers. Without
 * devices, checks the table of the default driver. */
static void report_tables(struct report *report, bh_context *context, const bh_device_info *devices,
                          size_t count) {
    char last[48] = "";
    for (size_t i = 0; i < count; i++) {
        char driver[48];
        snprintf(driver, sizeof driver, "%.*s", (int)strcspn(devices[i].selector, ":"),
                 devices[i].selector);
        if (strcmp(driver, last) != 0) {
            report_table(report, context, driver);
        }
        memcpy(last, driver, sizeof last);
    }
    if (!count) {
        report_table(report, context, "");
    }
}

/* A kernel in which the first and the last workgroup of the grid each write a mark. */
static const char grid_source[] = "#version 450\n"
                                  "layout(local_size_x = 1) in;\n"
                                  "layout(set = 0, binding = 0) buffer B { uint first, last; };\n"
                                  "void main() {\n"
                                  "    if (gl_WorkGroupID == uvec3(0)) first = 1u;\n"
                                  "    if (gl_WorkGroupID == gl_NumWorkGroups - 1u) last = 1u;\n"
                                  "}\n";

/* Launches a grid of 2^32 workgroups and returns the verdict and the marks. A driver that counts
 * workgroups in 32 bits would run none of them. */
static bh_status run_grid(bh_context *context, bh_stream *stream, uint32_t marks[2],
                          bh_verdict *verdict, bh_detail *why) {
    bh_source source = {.struct_size = sizeof source};
    bh_kernel *kernel = NULL;
    bh_buffer *buffer = NULL;
    bh_event *event = NULL;
    source.text = grid_source;
    source.length = sizeof grid_source - 1;
    source.name = "grid";
    bh_status status = bh_kernel_create_source(context, &source, NULL, &kernel, why);
    if (status == BH_OK) {
        status = bh_buffer_create(context, 2 * sizeof *marks, NULL, &buffer, why);
    }
    const bh_binding binding = bh_bind_read_write(0, buffer);
    if (status == BH_OK) {
        status = bh_launch(stream, kernel, (uint32_t[]){4096, 4096, 256}, &binding, 1, NULL, 0,
                           &event, why);
    }
    if (status == BH_OK && bh_event_wait(event, TIMEOUT_NS) == BH_TIMEOUT) {
        (void)!bh_event_cancel(event);
    }
    if (status == BH_OK && (status = bh_event_verdict(event, verdict)) == BH_OK &&
        verdict->status == BH_OK) {
        status = bh_buffer_read(buffer, 0, marks, 2 * sizeof *marks, TIMEOUT_NS, why);
    }
    bh_event_release(event);
    bh_buffer_release(buffer);
    bh_kernel_release(kernel);
    return status;
}

/* The text has as much of |why|'s message as a check has room for, without the advice: that is the
 * check's. */
static void add_untried(struct report *report, const bh_device_info *device, const char *name,
                        bh_status status, const bh_detail *why) {
    const int length = why->sentence + why->sentence_length;
    add(report, "driver", name, false, BH_CHECK_ABSENT,
        why->advice ? why->message + why->advice : ASK_VERBOSE, "%s: it could not be tried: %.*s",
        device->selector, length && length < 180 ? length : 180,
        why->message[0] ? why->message : bh_status_text(status));
}

static void report_grid(struct report *report, bh_context *context, const bh_device_info *device,
                        bh_stream *stream, const bh_detail *refusal) {
    static const char name[] = "wholeGrids";
    static const char advice[] = "a grid of more workgroups than 32 bits count ends LIMIT_EXCEEDED "
                                 "and does not run: split it";
    bh_verdict verdict = {.struct_size = sizeof verdict};
    uint32_t marks[2] = {0};
    bh_detail why = *refusal;
    const bh_status status =
        stream ? run_grid(context, stream, marks, &verdict, &why) : refusal->status;
    if (status != BH_OK) {
        add_untried(report, device, name, status, &why);
    } else if (verdict.status == BH_OK && marks[0] && marks[1]) {
        add(report, "driver", name, false, BH_CHECK_HOLDS, "",
            "%s runs 4096 x 4096 x 256 workgroups, the first and the last", device->selector);
    } else if (verdict.status == BH_OK) {
        add(report, "driver", name, false, BH_CHECK_BROKEN, "report it",
            "%s reports that 4096 x 4096 x 256 workgroups ran, but they did not", device->selector);
    } else {
        add(report, "driver", name, false, BH_CHECK_ABSENT, advice,
            "%s: of 4096 x 4096 x 256 workgroups %s", device->selector,
            verdict.status == BH_LIMIT_EXCEEDED
                ? "none runs: its driver counts them in 32 bits, so such a grid is refused"
                : bh_status_text(verdict.status));
    }
}

static void report_arithmetic(struct report *report, bh_context *context,
                              const bh_device_info *device, bh_stream *stream,
                              const bh_detail *refusal) {
    static const char name[] = "arithmetic";
    struct bhi_arithmetic found;
    bh_detail why = *refusal;
    const bh_status status =
        stream ? bhi_arithmetic_try(context, stream, &found, &why) : refusal->status;
    if (status != BH_OK) {
        add_untried(report, device, name, status, &why);
        return;
    }
    add(report, "driver", name, false, found.wrong ? BH_CHECK_BROKEN : BH_CHECK_HOLDS,
        "evaluate nothing of these types on this device, and report it",
        "%s computes %u of %u expressions to the bit%s%s%s%s", device->selector,
        found.tried - found.wrong, found.tried, found.wrong ? ", but not " : "", found.which,
        found.lacking[0] ? "; it lacks " : "", found.lacking);
}

/* Returns the pid of the running sentinel of |device|; 0: none. *out_given_up: none will start. */
static int32_t find_sentinel(bh_context *context, const bh_device_info *device,
                             bool *out_given_up) {
    int32_t pid = 0;
    bhi_context_lock(context);
    *out_given_up = context->closed;
    BHI_LIST_FOR(const struct bhi_zygote, zygote, &context->zygotes, link) {
        BHI_LIST_FOR(const struct bhi_sentinel, s, &zygote->sentinels, link) {
            char name[48];
            snprintf(name, sizeof name, "%s:%u", zygote->driver, s->device_index);
            if (strcmp(name, device->selector) == 0) {
                pid = s->process && bhi_worker_served(s->process) ? s->process->core.pid : 0;
                *out_given_up = !pid && s->budget_spent;
            }
        }
    }
    bhi_context_unlock(context);
    return pid;
}

static void report_sentinel(struct report *report, bh_context *context,
                            const bh_device_info *device, bh_stream *stream,
                            const bh_detail *refusal) {
    static const char name[] = "sentinel";
    const struct timespec pause = {.tv_nsec = 10000000};
    bool given_up = false;
    int32_t pid = 0;
    if (!has_feature(device, name)) {
        const bool is_cpu = device->device_type == DEVICE_TYPE_CPU;
        add(report, "driver", name, false, BH_CHECK_ABSENT,
            is_cpu ? "a CPU driver needs no sentinel: its kernels end with their worker"
                   : "a worker that dies in a kernel stalls the device until the driver's own "
                     "timeout, which may be seconds",
            "%s has no queue for transfers alone, or processes cannot share its memory",
            device->selector);
        return;
    }
    /* The first worker on a device causes the start of its sentinel. */
    bh_detail why = *refusal;
    const bh_status status =
        stream ? bh_stream_wait_ready(stream, TIMEOUT_NS, &why) : refusal->status;
    const uint64_t deadline_ns = bhi_deadline_ns(TIMEOUT_NS);
    while (status == BH_OK && (pid = find_sentinel(context, device, &given_up)) == 0 && !given_up &&
           bhi_now_ns() < deadline_ns) {
        nanosleep(&pause, NULL);
    }
    if (status != BH_OK) {
        add(report, "driver", name, false, BH_CHECK_BROKEN, ASK_VERBOSE,
            "no worker starts on %s, so no sentinel does: %s", device->selector, why.message);
    } else if (pid) {
        add(report, "driver", name, false, BH_CHECK_HOLDS, "",
            "process %d sets the abort words of the workers of %s that die", pid, device->selector);
    } else {
        add(report, "driver", name, false, BH_CHECK_BROKEN, ASK_VERBOSE,
            "%s supports a sentinel, but none starts", device->selector);
    }
}

/* The checks that need a worker on |device|. They share one stream, and so one worker. */
static void report_stream(struct report *report, bh_context *context,
                          const bh_device_info *device) {
    bh_stream_options options = {.struct_size = sizeof options};
    bh_stream *stream = NULL;
    bh_detail refusal = {0};
    options.name = "doctor";
    options.device = device->selector;
    options.deadline_ns = GRID_NS;
    options.grace_ns = GRID_NS; /* to kill the worker of a GPU would take more time */
    (void)!bh_stream_create(context, &options, &stream, &refusal);
    report_sentinel(report, context, device, stream, &refusal);
    report_arithmetic(report, context, device, stream, &refusal);
    report_grid(report, context, device, stream, &refusal);
    bh_stream_release(stream);
}

/* Starts a worker of |driver|, which runs a kernel before it is ready. Says |holds|, or NULL: nothing that
 * works is expected; otherwise why none starts, with its advice apart. */
static void add_started(struct report *report, bh_context *context, const char *driver,
                        const char *selector, const char *holds, const char *otherwise) {
    bh_stream_options options = {.struct_size = sizeof options};
    bh_stream *stream = NULL;
    bh_detail why = {0};
    options.name = "doctor";
    options.device = selector;
    bh_status status = bh_stream_create(context, &options, &stream, &why);
    if (status == BH_OK) {
        status = bh_stream_wait_ready(stream, TIMEOUT_NS, &why);
    }
    if (status == BH_OK && holds) {
        add(report, "driver", driver, false, BH_CHECK_HOLDS, "", "%s", holds);
    } else {
        add(report, "driver", driver, false, BH_CHECK_ABSENT,
            why.advice ? why.message + why.advice : otherwise, "%.*s",
            why.sentence + why.sentence_length, why.message);
    }
    bh_stream_release(stream);
}

/* Says whether CUDA's driver works behind the walls, and if not, why. A device may be listed by a worker that
 * did not become ready. */
static void report_cuda(struct report *report, bh_context *context, const bh_device_info *device) {
    char holds[160];
    if (device) {
        bhi_format(holds, sizeof holds, "%s ran a kernel in the sandbox, with %.80s",
                   device->selector, device->driver_info);
    }
    add_started(report, context, "cuda", device ? device->selector : "cuda", device ? holds : NULL,
                "CUDA kernels do not run here; others do");
}

/* Says whether CUDA C++ compiles here, and with which NVRTC. */
static void report_nvrtc(struct report *report, bh_context *context) {
    static const char name[] = BHI_NVRTC;
    const bh_source source = {.struct_size = sizeof source,
                              .text = "extern \"C\" __global__ void doctor() {}\n",
                              .name = "doctor.cu"};
    struct bhi_compile_source request;
    struct bhi_compilation *compilation = NULL;
    bh_detail why = {0};
    bh_status status = bhi_compile_source_take(&request, &source, NULL, NULL, name, &why);
    if (status == BH_OK) {
        status = bhi_compilation_obtain(context, &request, name, NULL, &compilation, &why);
    }
    if (status == BH_OK && (status = bhi_event_await(compilation->event, BH_FOREVER)) == BH_OK) {
        status = bhi_compilation_take(compilation, name, &why);
    }
    if (status == BH_OK) {
        add(report, "driver", name, false, BH_CHECK_HOLDS, "",
            "NVRTC %u.%u compiled CUDA C++ in the sandbox", compilation->version / 1000,
            compilation->version % 1000 / 10);
    } else if (why.reason == BH_REASON_NO_NVRTC) {
        add_started(report, context, name, name, NULL, ASK_VERBOSE);
    } else {
        add(report, "driver", name, false, BH_CHECK_BROKEN, ASK_VERBOSE, "%.*s",
            why.sentence_length, why.message + why.sentence);
    }
    bhi_compilation_unref(context, compilation);
    bhi_compile_source_fini(&request);
}

static bh_status give(bh_detail *detail, const bh_detail *why) {
    if (detail) {
        *detail = *why;
    }
    return why->status;
}

/* Advice means that there is no sandbox, worker executable or driver, so that no driver can be
 * started; but a driver that makes a forbidden call can be traced. */
static bool is_remedied(const bh_detail *why) {
    return why->advice && why->reason != BH_REASON_START_SYSTEM_CALL;
}

/* Starts a worker and reports whether its walls hold. *out_started: it started; *out_remedied: it
 * did not, and the report says what to do. Fails only if the host is short of descriptors, or the
 * stream cannot be made. */
static bh_status report_worker(struct report *report, bh_context *context, bool *out_started,
                               bool *out_remedied, bh_detail *detail) {
    bh_stream_options options = {.struct_size = sizeof options};
    options.name = "doctor";
    bh_stream *stream;
    BHI_TRY(bh_stream_create(context, &options, &stream, detail));
    bh_detail why = {0};
    bh_status status = bh_stream_wait_ready(stream, TIMEOUT_NS, &why);
    if (status != BH_OK && bhi_room_is_short(&why)) {
        bh_stream_release(stream);
        return give(detail, &why);
    }
    bhi_context_lock(context);
    struct bhi_zygote *zygote = NULL;
    const struct bhi_worker *worker = bhi_stream_worker(stream);
    if (status == BH_OK && worker) {
        zygote = worker->zygote;
        bhi_zygote_retain(zygote);
    }
    bhi_context_unlock(context);
    *out_started = zygote;
    *out_remedied = false;
    if (zygote) {
        add(report, "sandbox", "worker", true, BH_CHECK_HOLDS, "",
            "a worker started; /proc shows that each of its threads is filtered and has no rights");
        check_apparmor(report, context, zygote);
        report_layers(report, zygote);
        bhi_zygote_release(zygote);
    } else {
        report_no_worker(report, status, &why);
        check_apparmor(report, context, NULL);
        *out_remedied = is_remedied(&why);
    }
    bh_stream_release(stream);
    return BH_OK;
}

/* The checks of each device. |started| and |remedied| are report_worker's. */
static bh_status report_devices(struct report *report, bh_context *context, bool started,
                                bool remedied, bh_detail *detail) {
    bh_device_info devices[8] = {{.struct_size = sizeof devices[0]}};
    bh_detail why = {0};
    size_t count = 0;
    const bh_status status = bh_devices(context, devices, 8, &count, &why);
    if (status != BH_OK && bhi_room_is_short(&why)) {
        return give(detail, &why);
    }
    if (status != BH_OK) {
        add(report, "driver", "device", true, BH_CHECK_ABSENT,
            started ? ASK_VERBOSE : "see the check \"worker\"", "%s",
            started ? why.message : "no worker starts, so no device can be found");
    }
    bool has_cuda = false;
    for (size_t i = 0; i < count && i < 8; i++) {
        report_driver(report, &devices[i]);
        if (bhi_selector_is_cuda(devices[i].selector)) {
            has_cuda = true;
            report_cuda(report, context, &devices[i]);
        } else if (started) { /* otherwise each of the checks would wait for a worker, too */
            report_stream(report, context, &devices[i]);
        }
    }
    if (started && !has_cuda) {
        report_cuda(report, context, NULL);
    }
    if (started) {
        report_nvrtc(report, context);
    }
    if (!remedied && !is_remedied(&why)) {
        report_tables(report, context, devices, count < 8 ? count : 8);
    }
    return BH_OK;
}

BH_API bh_status bh_doctor(bh_context *context, bh_check *out_checks, size_t capacity,
                           size_t *out_count, bh_detail *detail) {
    BHI_NEED(out_count, "bh_doctor", detail);
    *out_count = 0;
    struct report report = {.checks = out_checks, .capacity = capacity};
    BHI_TRY(bhi_context_check(context, "bh_doctor", detail));
    BHI_TRY(bhi_callback_check("bh_doctor", detail));
    BHI_TRY(bhi_layout_stride(BHI_OURS(bh_check), out_checks, capacity, "bh_doctor", "out_checks",
                              &report.size, detail));
    /* A probe that finds no free descriptor would report that the machine lacks a guarantee. */
    BHI_TRY(bhi_room_check("bh_doctor", "looking at a worker", BHI_ROOM_ZYGOTE + BHI_ROOM_WORKER,
                           detail));
    check_futex(&report);
    check_memfd(&report);
    check_lane(&report);
    check_pidfd(&report);
    check_limits(&report);
    bool started = false, remedied = false;
    BHI_TRY(report_worker(&report, context, &started, &remedied, detail));
    BHI_TRY(report_devices(&report, context, started, remedied, detail));
    *out_count = report.count;
    return BH_OK;
}
