#include "fixture.h"
#include "cuda.h"
#include "faults.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The contexts of this test that are open or being closed. Those of the process that made them
 * only: a fork has none. */
static struct {
    pthread_mutex_t lock;
    pid_t pid;
    bh_context *contexts[16];
} open_ones = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What contexts of fx_keep_log have logged: lines as they came, each behind its level. */
static struct {
    pthread_mutex_t lock;
    char text[1 << 17];
    size_t used;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep_line(bh_log_level level, const char *line, void *user) {
    (void)user;
    pthread_mutex_lock(&kept.lock);
    const size_t length = strlen(line) + 2; /* what does not fit is not kept */
    if (kept.used + length < sizeof kept.text) {
        snprintf(kept.text + kept.used, length, "%c%s", (char)('0' + level), line);
        kept.used += length;
    }
    pthread_mutex_unlock(&kept.lock);
}

void fx_describe(void) {
    bh_context *contexts[BHT_COUNT(open_ones.contexts)] = {0};
    pthread_mutex_lock(&open_ones.lock);
    if (open_ones.pid == getpid()) {
        memcpy(contexts, open_ones.contexts, sizeof contexts);
    }
    pthread_mutex_unlock(&open_ones.lock);
    static char text[1 << 16];
    for (size_t i = 0; i < BHT_COUNT(contexts); i++) {
        if (!contexts[i]) {
            continue;
        }
        /* One that another thread is just done closing would be gone: in a test that has failed. */
        bh_context_describe(contexts[i], text, sizeof text);
        fputs(text, stderr);
    }
    pthread_mutex_lock(&kept.lock);
    for (const char *line = kept.text; line < kept.text + kept.used; line += strlen(line) + 1) {
        fprintf(stderr, "log: %s\n", line + 1);
    }
    pthread_mutex_unlock(&kept.lock);
}

__attribute__((constructor)) static void describe_failures(void) {
    bht_describe_with(fx_describe);
}

static void replace_context(bh_context *old, bh_context *new) {
    pthread_mutex_lock(&open_ones.lock);
    if (open_ones.pid != getpid()) {
        memset(open_ones.contexts, 0, sizeof open_ones.contexts);
        open_ones.pid = getpid();
    }
    size_t i = 0;
    while (i < BHT_COUNT(open_ones.contexts) && open_ones.contexts[i] != old) {
        i++;
    }
    if (i < BHT_COUNT(open_ones.contexts)) { /* more than fit are not described */
        open_ones.contexts[i] = new;
    }
    pthread_mutex_unlock(&open_ones.lock);
}

void fx_forget_context(bh_context *context) {
    replace_context(context, NULL);
    fx_forget_gates();
}

bh_context_options fx_options(void) {
    bh_context_options options = {.struct_size = sizeof options};
    options.start_timeout_ns = 30000 * FX_MS * bht_slowness();
    options.spares = BH_OFF; /* tests count processes */
    options.restart_budget = 100;
    options.quarantine_deaths = BH_OFF; /* they kill, and launch the same again */
    return options;
}

bh_context *fx_context_with(bh_context_options options, const char *faults) {
    if (!options.worker_path) {
        options.worker_path = bht_program(faults ? BHT_FAULTY_WORKER : BHT_WORKER);
    }
    if (fx_on_cuda()) {
        cuda_install_once();
    }
    char noted[640];
    if (faults) {
        bht_faults_note(faults, noted, sizeof noted);
        setenv("BULKHEAD_TEST_FAULTS", noted, 1);
    } else {
        unsetenv("BULKHEAD_TEST_FAULTS");
    }
    bh_detail detail;
    bh_context *context = NULL;
    if (bh_context_create(&options, &context, &detail) != BH_OK) {
        BHT_FAIL("bh_context_create: %s", detail.message);
    }
    replace_context(NULL, context);
    return context;
}

bh_context *fx_context(const char *faults) {
    return fx_context_with(fx_options(), faults);
}

struct logged {
    void (*call)(void *user);
    void *user;
    _Atomic int lines;
    _Atomic bool returned;
};

static void call_at_first_line(bh_log_level level, const char *line, void *user) {
    struct logged *logged = user;
    (void)level, (void)line;
    if (atomic_fetch_add(&logged->lines, 1) == 0) {
        logged->call(logged->user);
        atomic_store(&logged->returned, true);
    }
}

void fx_in_log_callback(void (*call)(void *user), void *user) {
    struct logged logged = {.call = call, .user = user};
    bh_context_options options = fx_options();
    options.log = call_at_first_line;
    options.log_user = &logged;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = fx_stream(context, "logged", FX_SECONDS); /* "a worker is ready" */
    WAIT_UNTIL(atomic_load(&logged.returned), 20000);
    bh_stream_release(stream);
    BHT_EQ(bh_context_destroy(context), BH_OK);
}

bh_stream_options fx_stream_options(void) {
    bh_stream_options options = {.struct_size = sizeof options};
    options.compile_deadline_ns = 60000 * FX_MS * bht_slowness();
    options.grace_ns = 250 * FX_MS * bht_slowness();
    return options;
}

bh_stream *fx_stream_with(bh_context *context, bh_stream_options options) {
    bh_stream *stream = NULL;
    bh_detail detail;
    options.struct_size = sizeof options;
    options.device = fx_on_cuda() ? cuda_device(options.device) : options.device;
    options.device_memory += fx_on_cuda() && options.device_memory ? FX_CUDA_CONTEXT : 0;
    if (bh_stream_create(context, &options, &stream, &detail) != BH_OK) {
        BHT_FAIL("bh_stream_create: %s", detail.message);
    }
    return stream;
}

bh_stream *fx_stream(bh_context *context, const char *name, uint64_t deadline_ns) {
    bh_stream_options options = fx_stream_options();
    options.name = name;
    options.deadline_ns = deadline_ns;
    return fx_stream_with(context, options);
}

bh_stream *fx_stream_on(bh_context *context, const char *device) {
    bh_stream_options options = fx_stream_options();
    options.device = device;
    options.deadline_ns = FX_SECONDS;
    return fx_stream_with(context, options);
}

pid_t fx_ready(bh_stream *stream) {
    bh_detail detail;
    if (bh_stream_wait_ready(stream, FX_SECONDS, &detail) != BH_OK) {
        BHT_FAIL("bh_stream_wait_ready: %s", detail.message);
    }
    pid_t pid = bh_stream_worker_pid(stream);
    BHT_GT(pid, 0);
    return pid;
}

pid_t fx_ready_after(bh_stream *stream, pid_t pid) {
    WAIT_UNTIL(bh_stream_worker_pid(stream) != pid, 20000);
    return fx_ready(stream);
}

size_t fx_stopped(pid_t *out_pid) {
    pid_t pids[64];
    size_t stopped = 0, count = bht_descendants(getpid(), pids, BHT_COUNT(pids));
    for (size_t i = 0; i < count && i < BHT_COUNT(pids); i++) {
        if (bht_process_state(pids[i]) != 'T') {
            continue;
        }
        stopped++;
        if (out_pid) {
            *out_pid = pids[i];
        }
    }
    return stopped;
}

pid_t fx_await_stopped(void) {
    pid_t pid = 0;
    WAIT_UNTIL(fx_stopped(&pid) > 0, 20000);
    return pid;
}

bool fx_nobody_left(void) {
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    return bht_count_children(getpid()) == 0;
}

bool fx_describes(bh_context *context, const char *words) {
    static char text[1 << 14];
    bh_context_describe(context, text, sizeof text);
    return strstr(text, words);
}

static bool is_settled(bh_context *context) {
    static char text[1 << 14];
    bh_context_describe(context, text, sizeof text);
    return !strstr(text, "has to be ready") && !strstr(text, "wait for a sentinel");
}

void fx_settle(bh_context *context) {
    WAIT_UNTIL(is_settled(context), 20000);
}

void fx_replace_worker(bh_context *context, bh_stream *stream) {
    const pid_t pid = fx_ready(stream);
    fx_kill(pid, SIGKILL);
    WAIT_UNTIL(bh_stream_worker_pid(stream) != pid && !fx_describes(context, ", dying; stream "),
               20000);
    fx_ready(stream);
}

bh_kernel *fx_kernel(bh_context *context, const char *name) {
    return strcmp(name, "gate") == 0 && !fx_on_gpu() ? fx_kernel_trusted(context, name)
                                                     : fx_kernel_guarded(context, name);
}

bool fx_drops_outside(bh_context *context) {
    static bh_device_info devices[8] = {{.struct_size = sizeof devices[0]}};
    size_t count = 0;
    unsigned major = 0;
    BHT_EQ(bh_devices(context, devices, 8, &count, NULL), BH_OK);
    BHT_GE(count, 1);
    return strncmp(devices[0].selector, "lavapipe:", strlen("lavapipe:")) != 0 ||
           (sscanf(devices[0].driver_info, "Mesa %u.", &major) == 1 && major >= 26);
}

bh_kernel *fx_kernel_guarded(bh_context *context, const char *name) {
    return fx_kernel_entry(context, name, NULL);
}

bh_kernel *fx_kernel_trusted(bh_context *context, const char *name) {
    bh_kernel_options options = {.struct_size = sizeof options};
    options.name = name;
    options.trusted = true;
    return fx_kernel_with(context, name, &options);
}

bh_kernel *fx_kernel_entry(bh_context *context, const char *name, const char *entry) {
    bh_kernel_options options = {.struct_size = sizeof options};
    options.name = name;
    options.entry = entry;
    return fx_kernel_with(context, name, &options);
}

bh_kernel *fx_kernel_with(bh_context *context, const char *name, const bh_kernel_options *options) {
    char path[4096];
    if (fx_on_cuda()) {
        return cuda_kernel(context, name, options);
    }
    snprintf(path, sizeof path, "%s/%s.spv", BHT_SHADERS, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(path, sizeof path, "%s/%s.spv", BHT_TEST_SHADERS, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0) {
        BHT_FAIL("cannot open %s", path);
    }
    struct stat info;
    BHT_EQ(fstat(fd, &info), 0);
    void *code = malloc((size_t)info.st_size);
    BHT_EQ(read(fd, code, (size_t)info.st_size), info.st_size);
    close(fd);
    bh_kernel *kernel = NULL;
    bh_detail detail;
    if (bh_kernel_create_spirv(context, code, (size_t)info.st_size, options, &kernel, &detail) !=
        BH_OK) {
        BHT_FAIL("bh_kernel_create_spirv: %s", detail.message);
    }
    free(code);
    return kernel;
}

bh_buffer *fx_buffer_with(bh_context *context, uint64_t size, bh_buffer_options options) {
    bh_buffer *buffer = NULL;
    bh_detail detail;
    options.struct_size = sizeof options;
    if (bh_buffer_create(context, size, &options, &buffer, &detail) != BH_OK) {
        BHT_FAIL("bh_buffer_create: %s", detail.message);
    }
    return buffer;
}

bh_detail fx_no_buffer(bh_context *context, uint64_t size, bh_buffer_options options,
                       bh_status status, const char *words) {
    bh_buffer *buffer = (bh_buffer *)(uintptr_t)1;
    bh_detail detail = {0};
    options.struct_size = sizeof options;
    BHT_EQ(bh_buffer_create(context, size, &options, &buffer, &detail), status);
    BHT_TRUE(!buffer);
    BHT_EQ(detail.status, status);
    BHT_STR_HAS(detail.message, words);
    BHT_EQ(bh_buffer_create(context, size, &options, &buffer, NULL), status);
    return detail;
}

bh_buffer *fx_buffer(bh_context *context, uint64_t size) {
    return fx_buffer_with(context, size, (bh_buffer_options){0});
}

uint32_t *fx_pointer(bh_buffer *buffer) {
    void *pointer = NULL;
    bh_detail detail;
    if (bh_buffer_map(buffer, BH_MAP_DISCARD, FX_SECONDS, &pointer, &detail) != BH_OK) {
        BHT_FAIL("bh_buffer_map: %s", detail.message);
    }
    return pointer;
}

bh_buffer *fx_words(bh_context *context, uint32_t count, uint32_t value) {
    bh_buffer *buffer = fx_buffer(context, 4ull * count);
    uint32_t *words = fx_pointer(buffer);
    for (uint32_t i = 0; i < count; i++) {
        words[i] = value;
    }
    return buffer;
}

bh_command fx_dispatch(bh_kernel *kernel, const bh_binding *bindings, uint32_t count) {
    return (bh_command){
        .type = BH_COMMAND_DISPATCH,
        .dispatch = {
            .kernel = kernel, .groups = {1, 1, 1}, .bindings = bindings, .binding_count = count}};
}

bh_event *fx_submit(bh_stream *stream, const bh_submit_info *info) {
    bh_event *event = NULL;
    bh_detail detail;
    if (bh_submit(stream, info, &event, &detail) != BH_OK) {
        BHT_FAIL("bh_submit: %s", detail.message);
    }
    return event;
}

bh_event *fx_commands(bh_stream *stream, const bh_command *commands, uint32_t count) {
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = commands, .command_count = count};
    return fx_submit(stream, &info);
}

bh_event *fx_command(bh_stream *stream, bh_command command, bh_event *const *waits,
                     uint32_t wait_count) {
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = &command,
                                 .command_count = 1,
                                 .waits = waits,
                                 .wait_count = wait_count};
    return fx_submit(stream, &info);
}

bh_event *fx_fill(bh_stream *stream, bh_buffer *buffer, uint32_t value) {
    const bh_command command = {
        .type = BH_COMMAND_FILL,
        .fill = {.dst = buffer, .size = bh_buffer_size(buffer), .value = value}};
    return fx_command(stream, command, NULL, 0);
}

bh_event *fx_copy(bh_stream *stream, bh_buffer *from, bh_buffer *to) {
    const bh_command command = {.type = BH_COMMAND_COPY,
                                .copy = {.src = from, .dst = to, .size = BH_WHOLE_SIZE}};
    return fx_command(stream, command, NULL, 0);
}

bh_event *fx_launch(bh_stream *stream, bh_kernel *kernel, uint32_t groups,
                    const bh_binding *bindings, uint32_t count, uint64_t deadline_ns) {
    bh_command command = fx_dispatch(kernel, bindings, count);
    command.dispatch.groups[0] = groups;
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = &command,
                                 .command_count = 1,
                                 .deadline_ns = deadline_ns};
    return fx_submit(stream, &info);
}

static bh_event *square_within(bh_stream *stream, bh_kernel *square, bh_buffer *x, bh_buffer *y,
                               uint64_t deadline_ns) {
    const bh_binding bindings[] = {
        bh_bind_read(0, x),
        bh_bind_write(1, y),
    };
    const uint32_t groups = (uint32_t)((bh_buffer_size(x) / 4 + 63) / 64);
    return fx_launch(stream, square, groups, bindings, 2, deadline_ns);
}

bh_event *fx_square(bh_stream *stream, bh_kernel *square, bh_buffer *x, bh_buffer *y) {
    return square_within(stream, square, x, y, 0);
}

bh_event *fx_run(bh_stream *stream, bh_kernel *kernel, bh_buffer *data) {
    const bh_binding bindings[] = {
        bh_bind_read_write(0, data),
    };
    return fx_launch(stream, kernel, 65535, bindings, 1, 0);
}

bh_stats fx_stats(bh_context *context) {
    bh_stats stats = {.struct_size = sizeof stats};
    BHT_EQ(bh_context_stats(context, &stats, NULL, 0, NULL, NULL), BH_OK);
    return stats;
}

bh_verdict fx_verdict(bh_event *event) {
    bh_status status = bh_event_wait(event, FX_SECONDS);
    if (status == BH_TIMEOUT) {
        BHT_FAIL("event %llu has not ended", (unsigned long long)bh_event_id(event));
    }
    bh_verdict verdict = {.struct_size = sizeof verdict};
    BHT_EQ(bh_event_verdict(event, &verdict), BH_OK);
    BHT_EQ(verdict.status, status);
    return verdict;
}

size_t fx_quarantined(bh_context *context) {
    size_t count = 0;
    BHT_EQ(bh_quarantine_list(context, NULL, 0, &count, NULL), BH_OK);
    return count;
}

bh_verdict fx_expect(bh_event *event, bh_status status) {
    bh_verdict verdict = fx_verdict(event);
    if (verdict.status != status) {
        BHT_FAIL("event %llu is %s, must be %s: %s", (unsigned long long)verdict.event,
                 bh_status_name(verdict.status), bh_status_name(status), verdict.message);
    }
    /* E2, E3: the same answer again, and no way to see it as something else. */
    BHT_EQ(bh_event_wait(event, 0), status);
    BHT_EQ(bh_event_query(event), status == BH_OK ? BH_EVENT_READY : BH_EVENT_POISONED);
    return verdict;
}

void fx_expect_healthy(bh_context *context, bh_stream *stream) {
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_buffer(context, 4096), *y = fx_buffer(context, 4096);
    float *in = (float *)(void *)fx_pointer(x);
    for (int i = 0; i < 1024; i++) {
        in[i] = (float)i;
    }
    /* Streams whose work runs into its deadline have a short one. */
    bh_event *event = square_within(stream, square, x, y, FX_SECONDS);
    fx_expect(event, BH_OK);
    const float *out = fx_mapped(y);
    for (int i = 0; i < 1024; i++) {
        BHT_TRUE(out[i] == (float)i * (float)i);
    }
    bh_event_release(event);
    bh_buffer_release(x);
    bh_buffer_release(y);
    bh_kernel_release(square);
}

const bh_check *fx_doctor_says(bh_context *context, const char *name) {
    static bh_check checks[64];
    size_t count = 0;
    checks[0].struct_size = sizeof checks[0];
    BHT_EQ(bh_doctor(context, checks, BHT_COUNT(checks), &count, NULL), BH_OK);
    for (size_t i = 0; i < count && i < BHT_COUNT(checks); i++) {
        if (strcmp(checks[i].name, name) == 0) {
            return &checks[i];
        }
    }
    BHT_FAIL("the doctor says nothing of %s", name);
}

static struct {
    bh_context *context;
    bh_stream *stream;
} healthy;

static void expect_healthy(void) {
    fx_expect_healthy(healthy.context, healthy.stream);
}

void fx_expect_healthy_after(bh_context *context, bh_stream *stream) {
    healthy.context = context;
    healthy.stream = stream;
    fx_end_with(stream ? expect_healthy : NULL);
}

void fx_kill(pid_t pid, int signal) {
    if (kill(pid, signal) != 0) {
        BHT_FAIL("kill(%d, %d) failed", (int)pid, signal);
    }
}

void fx_stop(pid_t pid) {
    fx_kill(pid, SIGSTOP);
    WAIT_UNTIL(bht_process_state(pid) == 'T', 20000);
}

void fx_hide_cgroups(void) {
    if (geteuid() == 0) {
        BHT_TRUE(bht_own_mounts());
        BHT_EQ(umount2("/sys/fs/cgroup", MNT_DETACH), 0);
    }
}

/* The groups of a host have its pid in their names. */
static char group_prefix[64], group[512];

static int look_at_group(const char *path, const struct stat *info, int type, struct FTW *at) {
    (void)info;
    if (type != FTW_D || strncmp(path + at->base, group_prefix, strlen(group_prefix)) != 0) {
        return 0;
    }
    snprintf(group, sizeof group, "%s", path);
    return 1;
}

bool fx_find_group(pid_t host, char out[512]) {
    snprintf(group_prefix, sizeof group_prefix, "bulkhead.%d.", (int)host);
    group[0] = '\0';
    const bool found = nftw("/sys/fs/cgroup", look_at_group, 16, FTW_PHYS) == 1;
    memcpy(out, group, sizeof group);
    return found;
}

bool fx_in_group(pid_t pid) {
    return bht_proc_lines(pid, "cgroup", "/bulkhead.") > 0;
}

/* -- files ------------------------------------------------------------------------------------ */

void fx_write_file(const char *path, const void *bytes, size_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    BHT_GE(fd, 0);
    BHT_EQ(write(fd, bytes, size), (ssize_t)size);
    BHT_EQ(close(fd), 0);
}

bh_status fx_from_file(bh_context *context, const bh_file_source *file, bh_buffer **out_buffer,
                       bh_detail *detail) {
    const bh_buffer_options options = {.struct_size = sizeof options, .file = file};
    return bh_buffer_create(context, 0, &options, out_buffer, detail);
}

bh_status fx_wrap(bh_context *context, int fd, uint64_t size, bh_buffer **out_buffer,
                  bh_detail *detail) {
    const bh_buffer_options options = {.struct_size = sizeof options, .memfd = &fd};
    return bh_buffer_create(context, size, &options, out_buffer, detail);
}

bh_buffer *fx_load(bh_context *context, const bh_file_source *file) {
    return fx_buffer_with(context, 0, (bh_buffer_options){.file = file});
}

bh_event *fx_load_event(bh_buffer *buffer) {
    bh_event *event = NULL;
    BHT_EQ(bh_buffer_load_event(buffer, &event, NULL), BH_OK);
    return event;
}

const void *fx_mapped(bh_buffer *buffer) {
    void *pointer = NULL;
    bh_detail detail;
    if (bh_buffer_map(buffer, BH_MAP_READ, FX_SECONDS, &pointer, &detail) != BH_OK) {
        BHT_FAIL("bh_buffer_map: %s", detail.message);
    }
    return pointer;
}

bh_status fx_content(bh_buffer *buffer) {
    void *pointer;
    return bh_buffer_map(buffer, BH_MAP_READ, FX_SECONDS, &pointer, NULL);
}

/* -- the log ---------------------------------------------------------------------------------- */

void fx_keep_log(bh_context_options *options) {
    options->log = keep_line;
}

/* |level| -1: any. */
static unsigned count_lines(int level, const char *words, const char *more, const char *without) {
    unsigned found = 0;
    pthread_mutex_lock(&kept.lock);
    for (const char *line = kept.text; line < kept.text + kept.used; line += strlen(line) + 1) {
        found += (level < 0 || line[0] == '0' + level) && strstr(line, words) &&
                 strstr(line, more) && !(without && strstr(line, without));
    }
    pthread_mutex_unlock(&kept.lock);
    return found;
}

unsigned fx_logged(const char *words) {
    return count_lines(-1, words, "", NULL);
}

unsigned fx_logged_but(const char *words, const char *without) {
    return count_lines(-1, words, "", without);
}

unsigned fx_logged_at(bh_log_level level, const char *words, const char *more) {
    return count_lines((int)level, words, more, NULL);
}

void fx_forget_log(void) {
    pthread_mutex_lock(&kept.lock);
    kept.used = 0;
    pthread_mutex_unlock(&kept.lock);
}
