/* A service that runs sources of several tenants, and survives each of them. docs/service.md
 * explains it. Usage: example_service < REQUESTS   (a pipe or a terminal)
 *
 * A request is a line, TENANT FILE: compile FILE, and run it once on a buffer with 1, 2, 3, ... at
 * binding 0. The answer is a line, TENANT FILE CODE, with the first numbers if CODE is OK. One
 * thread does it all: nothing here waits for a compiler or a kernel. */
#include <bulkhead/bulkhead.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT    64
#define TENANTS  16
#define JOBS     8 /* of one tenant at a time: whoever asks for more is told BUSY */
#define NS_PER_S 1000000000ull

struct tenant {
    char name[64];
    bh_stream *stream;
    unsigned jobs;
};

/* COMPILING, while it has no kernel; then RUNNING. */
struct job {
    struct tenant *tenant;
    char file[256];
    bh_module *module;
    bh_kernel *kernel;
    bh_buffer *numbers;
};

struct service {
    bh_context *context;
    bh_queue *queue; /* of compiles and launches; each with its job */
    struct tenant tenants[TENANTS];
    unsigned tenant_count, jobs;
};

static void answer(const struct job *job, bh_status status, const char *message) {
    printf("%s %s %s", job->tenant->name, job->file, bh_status_name(status));
    float numbers[3];
    bh_detail why;
    if (status == BH_OK &&
        bh_buffer_read(job->numbers, 0, numbers, sizeof numbers, 0, &why) == BH_OK) {
        printf(" %g %g %g", numbers[0], numbers[1], numbers[2]);
    }
    printf("\n");
    fflush(stdout);
    if (message[0]) {
        fprintf(stderr, "%s: %s\n", job->tenant->name, message);
    }
}

static void end_job(struct service *service, struct job *job, bh_status status,
                    const char *message) {
    answer(job, status, message);
    bh_module_release(job->module);
    bh_kernel_release(job->kernel);
    bh_buffer_release(job->numbers);
    job->tenant->jobs--;
    service->jobs--;
    free(job);
}

/* The loop looks at the job again when its event has ended. */
static bh_status watch(struct service *service, struct job *job, bh_event *event, bh_detail *why) {
    const bh_status status = bh_queue_add(service->queue, event, (uintptr_t)job, why);
    bh_event_release(event); /* the queue has it */
    return status;
}

/* -- the steps of a job ------------------------------------------------------------------------ */

static bh_status compile(struct service *service, struct job *job, bh_detail *why) {
    static char text[1 << 16]; /* copied by the call */
    int fd = open(job->file, O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (size <= 0) {
        snprintf(why->message, sizeof why->message, "%s: %s", job->file,
                 size ? strerror(errno) : "it is empty");
    }
    if (fd >= 0) {
        close(fd);
    }
    if (size <= 0) {
        return BH_LOAD_FAILED;
    }
    bh_source source = {.struct_size = sizeof source};
    source.text = text;
    source.length = (size_t)size;
    source.name = job->file;
    source.tenant = job->tenant->name; /* what it breaks is its own */
    source.deadline_ns = 10 * NS_PER_S;
    source.memory_limit = 256 << 20;
    bh_event *event = NULL;
    const bh_status status =
        bh_module_compile(service->context, &source, &job->module, &event, why);
    return status == BH_OK ? watch(service, job, event, why) : status;
}

static bh_status launch(struct service *service, struct job *job, bh_detail *why) {
    float numbers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = (float)(i + 1);
    }
    bh_status status = bh_module_kernel(job->module, NULL, &job->kernel, why);
    if (status == BH_OK) {
        status = bh_buffer_create(service->context, sizeof numbers, NULL, &job->numbers, why);
    }
    if (status == BH_OK) { /* nothing uses it yet, so this does not wait */
        status = bh_buffer_write(job->numbers, 0, numbers, sizeof numbers, 0, why);
    }
    if (status != BH_OK) {
        return status;
    }
    const bh_binding binding = {.buffer = job->numbers,
                                .size = BH_WHOLE_SIZE,
                                .access = BH_ACCESS_READ_WRITE | BH_ACCESS_OPTIONAL};
    bh_event *event = NULL;
    status = bh_launch(job->tenant->stream, job->kernel, (uint32_t[]){1, 1, 1}, &binding, 1, NULL,
                       0, &event, why);
    return status == BH_OK ? watch(service, job, event, why) : status;
}

static void event_ended(struct service *service, const bh_completion *ended) {
    struct job *job = (struct job *)(uintptr_t)ended->user_data;
    bh_detail why = {0};
    bh_verdict verdict = {.struct_size = sizeof verdict};
    bh_status status;
    if (ended->status != BH_OK && bh_event_verdict(ended->event, &verdict) == BH_OK) {
        end_job(service, job, ended->status, verdict.message);
    } else if (job->kernel) {
        end_job(service, job, BH_OK, "");
    } else if ((status = launch(service, job, &why)) != BH_OK) {
        end_job(service, job, status, why.message);
    }
}

/* -- requests ---------------------------------------------------------------------------------- */

static struct tenant *find_tenant(struct service *service, const char *name, bh_detail *why) {
    for (unsigned i = 0; i < service->tenant_count; i++) {
        if (strcmp(service->tenants[i].name, name) == 0) {
            return &service->tenants[i];
        }
    }
    if (service->tenant_count == TENANTS) {
        snprintf(why->message, sizeof why->message, "too many tenants");
        return NULL;
    }
    struct tenant *tenant = &service->tenants[service->tenant_count];
    snprintf(tenant->name, sizeof tenant->name, "%s", name);
    bh_stream_options options = {.struct_size = sizeof options};
    options.name = options.tenant = tenant->name;
    options.deadline_ns = NS_PER_S / 2;
    options.compile_deadline_ns = 10 * NS_PER_S;
    options.memory_limit = 512 << 20;
    options.isolation = BH_ISOLATION_KERNEL; /* one kernel falsifies no other's results */
    if (bh_stream_create(service->context, &options, &tenant->stream, why) != BH_OK) {
        return NULL;
    }
    service->tenant_count++;
    return tenant;
}

static void take_request(struct service *service, const char *line) {
    char name[64], file[256];
    bh_detail why = {0};
    if (sscanf(line, "%63s %255s", name, file) != 2) {
        fprintf(stderr, "not TENANT FILE: %s\n", line);
        return;
    }
    struct tenant *tenant = find_tenant(service, name, &why);
    if (!tenant || tenant->jobs == JOBS) {
        printf("%s %s BUSY\n", name, file);
        fprintf(stderr, "%s: %s\n", name, tenant ? "too many jobs" : why.message);
        return;
    }
    struct job *job = calloc(1, sizeof *job);
    if (!job) {
        abort();
    }
    job->tenant = tenant;
    snprintf(job->file, sizeof job->file, "%s", file);
    tenant->jobs++;
    service->jobs++;
    const bh_status status = compile(service, job, &why);
    if (status != BH_OK) {
        end_job(service, job, status, why.message);
    }
}

/* Takes what there is to read. Returns false at the end of the requests. */
static bool read_requests(struct service *service) {
    static char text[4096];
    static size_t length;
    const ssize_t got = read(STDIN_FILENO, text + length, sizeof text - 1 - length);
    if (got <= 0) {
        return false;
    }
    length += (size_t)got;
    text[length] = '\0';
    char *line = text;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        take_request(service, line);
    }
    length = strlen(line);
    memmove(text, line, length);
    return length < sizeof text - 1;
}

/* -- the loop ---------------------------------------------------------------------------------- */

int main(void) {
    struct service service = {0};
    bh_context_options options = {.struct_size = sizeof options};
    bh_detail why;
    options.worker_idle_ns = 30 * NS_PER_S; /* a tenant that asks for nothing has no worker */
    options.quarantine_deadlines = 3;
    if (bh_context_create(&options, &service.context, &why) != BH_OK ||
        bh_queue_create(&service.queue, &why) != BH_OK) {
        fprintf(stderr, "%s\n", why.message);
        return 3;
    }
    struct pollfd wanted[] = {{.fd = bh_queue_fd(service.queue), .events = POLLIN},
                              {.fd = STDIN_FILENO, .events = POLLIN}};
    while (wanted[1].fd >= 0 || service.jobs) {
        bh_completion ended;
        size_t count;
        if (poll(wanted, 2, -1) < 0) {
            continue; /* a signal */
        }
        while (bh_queue_take(service.queue, BH_NOW, &ended, 1, &count) == BH_OK) {
            event_ended(&service, &ended);
            bh_event_release(ended.event);
        }
        if (wanted[1].revents && !read_requests(&service)) {
            wanted[1].fd = -1; /* what has begun is finished: every submission has a deadline */
        }
    }
    for (unsigned i = 0; i < service.tenant_count; i++) {
        bh_stream_release(service.tenants[i].stream);
    }
    bh_queue_destroy(service.queue);
    return bh_context_destroy(service.context);
}
