/* A host that gives the library one of each public struct that may grow, with a pattern behind it.
 * It is built with today's headers, and with ones in which each struct has one more field (GROWN),
 * and runs against a library that is older, as old, or newer (CMakeLists.txt). What the library
 * writes it writes within the struct. Usage: host saxpy.spv */
#include <bulkhead/array.h>
#include <bulkhead/bulkhead.h>
#include <bulkhead/device.h>
#include <bulkhead/doctor.h>
#include <bulkhead/file.h>
#include <bulkhead/inspect.h>
#include <bulkhead/quarantine.h>
#include <bulkhead/stats.h>
#include <bulkhead/template.h>
#include <bulkhead/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition,            \
                    why.message);                                                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) EXPECT((call) == BH_OK)
/* A call is refused, and the detail has each of two words. */
#define REFUSED(call, word, other)                                                                 \
    do {                                                                                           \
        EXPECT((call) == BH_INVALID_ARGUMENT);                                                     \
        EXPECT(strstr(why.message, word) && strstr(why.message, other));                           \
    } while (0)

#define NEWER(call, name) REFUSED(call, name, "the program sets a field")

#define COUNT   1024u
#define PATTERN 0xA5
#define SECONDS UINT64_C(1000000000)

static bh_detail why;

static int untouched(const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (((const unsigned char *)bytes)[i] != PATTERN) {
            return 0;
        }
    }
    return 1;
}

/* |name|.it is a struct, or an array, with something behind it. */
#define GUARDED(type, name)                                                                        \
    struct {                                                                                       \
        type;                                                                                      \
        unsigned char behind[64];                                                                  \
    } name;                                                                                        \
    memset(&name, PATTERN, sizeof name)
#define SIZED(type, name, first)                                                                   \
    GUARDED(type, name);                                                                           \
    first.struct_size = sizeof first
#define KEPT(name) EXPECT(untouched(name.behind, sizeof name.behind))

/* What a library that does not know the field makes of it. */
#ifdef GROWN
#define EMPTY(name) EXPECT((name).abi_probe == 0)
#else
#define EMPTY(name) ((void)0)
#endif

struct scene {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *kernel;
    bh_buffer *x, *y;
    void *code;
    size_t code_size;
};

static void make(struct scene *s, const char *path) {
    FILE *file = fopen(path, "rb");
    s->code = malloc(1 << 20);
    EXPECT(file && s->code);
    s->code_size = fread(s->code, 1, 1 << 20, file);
    fclose(file);
    bh_context_options context = {.struct_size = sizeof context};
    context.spares = BH_OFF;
    context.quarantine_deaths = 1;
    OK(bh_context_create(&context, &s->context, &why));
    bh_stream_options stream = {.struct_size = sizeof stream};
    stream.name = "abi";
    stream.tenant = "tenant";
    OK(bh_stream_create(s->context, &stream, &s->stream, &why));
    bh_kernel_options kernel = {.struct_size = sizeof kernel};
    kernel.name = "as named";
    OK(bh_kernel_create_spirv(s->context, s->code, s->code_size, &kernel, &s->kernel, &why));
    EXPECT(strcmp(bh_kernel_name(s->kernel), "as named") == 0);
    bh_buffer_options buffer = {.struct_size = sizeof buffer};
    buffer.stream = s->stream;
    OK(bh_buffer_create(s->context, COUNT * sizeof(float), &buffer, &s->x, &why));
    OK(bh_buffer_create(s->context, COUNT * sizeof(float), NULL, &s->y, &why));
#ifdef GROWN
    bh_context *no_context;
    bh_stream *no_stream;
    bh_kernel *no_kernel;
    bh_buffer *no_buffer;
    context.abi_probe = stream.abi_probe = kernel.abi_probe = buffer.abi_probe = 1;
    REFUSED(bh_context_create(&context, &no_context, &why), "bh_context_options",
            "bh_context_create: options: the program sets a field");
    NEWER(bh_stream_create(s->context, &stream, &no_stream, &why), "bh_stream_options");
    NEWER(bh_kernel_create_spirv(s->context, s->code, s->code_size, &kernel, &no_kernel, &why),
          "bh_kernel_options");
    NEWER(bh_buffer_create(s->context, 4, &buffer, &no_buffer, &why), "bh_buffer_options");
#endif
}

static void fill(struct scene *s) {
    float *x, *y;
    OK(bh_buffer_map(s->x, BH_MAP_DISCARD, BH_FOREVER, (void **)&x, &why));
    OK(bh_buffer_map(s->y, BH_MAP_DISCARD, BH_FOREVER, (void **)&y, &why));
    for (unsigned i = 0; i < COUNT; i++) {
        x[i] = y[i] = (float)i;
    }
}

static void expect_y(struct scene *s, float factor) {
    float *y;
    OK(bh_buffer_map(s->y, BH_MAP_READ, BH_FOREVER, (void **)&y, &why));
    for (unsigned i = 0; i < COUNT; i++) {
        EXPECT(y[i] == factor * (float)i);
    }
}

/* Several commands with several bindings: each has a stride. */
static void submit(struct scene *s) {
    const struct {
        float a;
        uint32_t n;
    } push = {2, COUNT};
    bh_binding bindings[] = {{0, 0, s->x, 0, BH_WHOLE_SIZE, BH_ACCESS_READ, 0},
                             {0, 1, s->y, 0, BH_WHOLE_SIZE, BH_ACCESS_READ_WRITE, 0}};
    bh_command commands[3] = {
        {.type = BH_COMMAND_DISPATCH,
         .dispatch = {.kernel = s->kernel,
                      .groups = {COUNT / 256, 1, 1},
                      .bindings = bindings,
                      .binding_count = 2,
                      .push = &push,
                      .push_size = sizeof push}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = s->x, .size = BH_WHOLE_SIZE, .value = 0}},
    };
    commands[2] = commands[0]; /* x is 0 by now */
    bh_event *event;
    fill(s);
    const char *slowness = getenv("BULKHEAD_TEST_SLOWNESS");
    const uint64_t patience = slowness && atoi(slowness) > 1 ? (uint64_t)atoi(slowness) : 1;
    bh_submit_info info = {.struct_size = sizeof info,
                           .commands = commands,
                           .command_count = 3,
                           .deadline_ns = 60 * SECONDS * patience};
    OK(bh_submit(s->stream, &info, &event, &why));
    OK(bh_event_wait(event, BH_FOREVER));
    expect_y(s, 3);

    SIZED(bh_verdict it, verdict, verdict.it);
    OK(bh_event_verdict(event, &verdict.it));
    EXPECT(verdict.it.status == BH_OK && verdict.it.executed == BH_EXECUTED_YES);
    EXPECT(strcmp(verdict.it.stream_name, "abi") == 0);
    EXPECT(bh_verdict_classify(&verdict.it) == BH_STATUS_CLASS_NONE);
    EMPTY(verdict.it);
    KEPT(verdict);
    bh_event_release(event);

    fill(s);
    OK(bh_launch(s->stream, s->kernel, commands[0].dispatch.groups, bindings, 2, &push, sizeof push,
                 &event, &why));
    OK(bh_event_wait(event, BH_FOREVER));
    expect_y(s, 3);
    bh_event_release(event);
#ifdef GROWN
    info.abi_probe = 1;
    REFUSED(bh_submit(s->stream, &info, &event, &why), "bh_submit: info", "bh_submit_info");
    EXPECT(!event);
    info.abi_probe = 0;
#endif
    /* What is refused is refused as for any other. */
    info.command_count = 70000;
    EXPECT(bh_submit(s->stream, &info, &event, &why) == BH_TOO_LARGE);
    info.command_count = 3;
    commands[1].fill.size = 3;
    REFUSED(bh_submit(s->stream, &info, &event, &why), "bh_submit: command 1", "multiples of 4");
    REFUSED(bh_submit(s->stream, NULL, &event, &why), "bh_submit", "info is NULL");
    REFUSED(bh_launch(s->stream, s->kernel, commands[0].dispatch.groups, NULL, 2, NULL, 0, &event,
                      &why),
            "bh_launch", "bindings is NULL");
}

static void look(struct scene *s) {
    size_t scopes = 0;
    GUARDED(bh_stats it, stats);
    GUARDED(bh_work_stats it[3], work);
    stats.it.struct_size = sizeof stats.it;
    work.it[0].struct_size = sizeof work.it[0];
    OK(bh_context_stats(s->context, &stats.it, work.it, 3, &scopes, &why));
    EXPECT(stats.it.kernels == 1 && stats.it.kernels_introduced == 1);
    EXPECT(scopes == 3 && work.it[2].scope == BH_WORK_STREAM && work.it[2].run.sum_ns > 0);
    EMPTY(stats.it);
    EMPTY(work.it[2]);
    KEPT(stats);
    KEPT(work);
    SIZED(bh_kernel_info it, info, info.it);
    OK(bh_kernel_reflect(s->kernel, s->stream, BH_FOREVER, &info.it, &why));
    EXPECT(info.it.binding_count == 2 && info.it.local_size[0] == 256);
    EMPTY(info.it);
    KEPT(info);

    struct {
        bh_inspection it;
        unsigned char behind[64];
    } *said = malloc(sizeof *said);
    EXPECT(said);
    memset(said, PATTERN, sizeof *said);
    said->it.struct_size = sizeof said->it;
    bh_inspect_options inspect = {.struct_size = sizeof inspect};
    OK(bh_kernel_inspect(s->kernel, &inspect, &said->it, &why));
    EXPECT(said->it.binding_count == 2 && said->it.push_size == 8);
    EMPTY(said->it);
    EXPECT(untouched(said->behind, sizeof said->behind));
#ifdef GROWN
    inspect.abi_probe = 1;
    NEWER(bh_kernel_inspect(s->kernel, &inspect, &said->it, &why), "bh_inspect_options");
#endif
    free(said);

    size_t count;
    SIZED(bh_device_info it[2], devices, devices.it[0]);
    OK(bh_devices(s->context, devices.it, 2, &count, &why));
    EXPECT(count >= 1 && devices.it[0].feature_count > 0 && strchr(devices.it[0].selector, ':'));
    EMPTY(devices.it[0]);
    KEPT(devices);
    SIZED(bh_check it[2], checks, checks.it[0]);
    OK(bh_doctor(s->context, checks.it, 2, &count, &why));
    EXPECT(count > 2 && strcmp(checks.it[1].group, "kernel") == 0 && checks.it[1].name[0]);
    EMPTY(checks.it[1]);
    KEPT(checks);
    SIZED(bh_trace it, trace, trace.it);
    SIZED(bh_traced_call it[2], calls, calls.it[0]);
    OK(bh_trace_driver(s->context, NULL, &trace.it, calls.it, 2, &count, &why));
    EXPECT(count > 2 && trace.it.driver[0] && calls.it[1].call[0] && calls.it[1].count > 0);
    EMPTY(trace.it);
    EMPTY(calls.it[1]);
    KEPT(trace);
    KEPT(calls);
}

/* A kernel that a software driver crashes on, on a worker that has run nothing else: it is listed.
 */
static void quarantine(struct scene *s) {
    static const char crash[] = "#version 450\n"
                                "layout(local_size_x = 64) in;\n"
                                "layout(set = 0, binding = 0) buffer B { uint b[]; };\n"
                                "shared uint s[64];\n"
                                "void main() {\n"
                                "    uint far = 0x0FFFFF00u + gl_GlobalInvocationID.x * 0x1001u;\n"
                                "    s[far + b.length()] = b[0];\n"
                                "    barrier();\n"
                                "    b[gl_LocalInvocationID.x % b.length()] = s[far + 64];\n"
                                "}\n";
    bh_source source = {.struct_size = sizeof source};
    source.text = crash;
    source.name = "crash";
    bh_kernel_options options = {.struct_size = sizeof options};
    options.trusted = true;
    bh_kernel *kernel;
    OK(bh_kernel_create_source(s->context, &source, &options, &kernel, &why));
    bh_stream *stream;
    OK(bh_stream_create(s->context, NULL, &stream, &why));
    const bh_binding binding = {0, 0, s->x, 0, BH_WHOLE_SIZE, BH_ACCESS_READ_WRITE, 0};
    const uint32_t groups[3] = {16, 1, 1};
    OK(bh_launch(stream, kernel, groups, &binding, 1, NULL, 0, NULL, &why));
    const bool crashed = bh_stream_synchronize(stream, BH_FOREVER, &why) != BH_OK;
    bh_stream_release(stream);
    bh_kernel_release(kernel);
    size_t count;
    SIZED(bh_quarantined it[2], list, list.it[0]);
    OK(bh_quarantine_list(s->context, list.it, 2, &count, &why));
    EXPECT(count == crashed); /* a GPU does not crash on it */
    if (crashed) {
        EXPECT(!strcmp(list.it[0].kernel_name, "crash") && list.it[0].deaths == 1);
        EXPECT(list.it[0].status == BH_QUARANTINED && list.it[0].message[0]);
        EMPTY(list.it[0]);
        EXPECT(untouched(&list.it[1], sizeof list.it[1]));
    }
    KEPT(list);
#ifdef GROWN
    source.abi_probe = 1;
    NEWER(bh_kernel_create_source(s->context, &source, NULL, &kernel, &why), "bh_source");
#endif
}

static void describe(struct scene *s) {
    bh_description description = {.struct_size = sizeof description};
    description.kind = BH_NUMBER_FLOAT;
    description.bits = 32;
    description.rank = 1;
    description.shape[0] = COUNT;
    OK(bh_buffer_set_description(s->x, &description, &why));
    OK(bh_buffer_set_description(s->y, &description, &why));
    GUARDED(bh_description it, said);
    said.it = (bh_description){.struct_size = sizeof(bh_description)};
    OK(bh_buffer_description(s->x, &said.it, &why));
    EXPECT(said.it.struct_size == sizeof said.it && said.it.shape[0] == COUNT);
    EXPECT(said.it.strides[0] == 1 && said.it.kind == BH_NUMBER_FLOAT);
    EMPTY(said.it);
    KEPT(said);
#ifdef GROWN
    description.abi_probe = 1;
    NEWER(bh_buffer_set_description(s->x, &description, &why), "bh_description");
#endif
}

static void launch_template(struct scene *s) {
    const bh_parameter parameters[] = {{"x", BH_PARAMETER_IN, NULL}, {"y", BH_PARAMETER_OUT, NULL}};
    bh_template_options options = {.struct_size = sizeof options};
    options.parameters = parameters;
    options.parameter_count = 2;
    options.expression = "y = 2*x";
    bh_template *twice;
    OK(bh_template_create(s->context, &options, &twice, &why));
    bh_argument arguments[] = {{.name = "y", .buffer = s->y}, {.name = "x", .buffer = s->x}};
    GUARDED(bh_description it, out);
    out.it = (bh_description){.struct_size = sizeof(bh_description)};
    OK(bh_template_output(twice, arguments, 2, "y", &out.it, &why));
    EXPECT(out.it.shape[0] == COUNT && out.it.struct_size == sizeof out.it);
    KEPT(out);
    char text[4096];
    size_t length;
    OK(bh_template_source(twice, arguments, 2, text, sizeof text, &length, &why));
    EXPECT(length > 0);
    fill(s);
    GUARDED(bh_template_call it, call);
    OK(bh_template_prepare(twice, arguments, 2, NULL, &call.it, &why));
    KEPT(call);
    EXPECT(call.it.command.dispatch.bindings == call.it.bindings &&
           call.it.command.dispatch.push == call.it.push);
    EXPECT(call.it.bindings[1].buffer == s->y);
    bh_event *event;
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &call.it.command, .command_count = 1};
    OK(bh_submit(s->stream, &info, &event, &why));
    OK(bh_event_wait(event, BH_FOREVER));
    bh_event_release(event);
    bh_template_call_fini(&call.it);
    KEPT(call);
    expect_y(s, 2);
    fill(s);
    OK(bh_template_launch(s->stream, twice, arguments, 2, NULL, NULL, &why));
    expect_y(s, 2);
#ifdef GROWN
    bh_template *none;
    options.abi_probe = 1;
    NEWER(bh_template_create(s->context, &options, &none, &why), "bh_template_options");
#endif
    bh_template_release(twice);
}

static void load(struct scene *s, const char *path) {
    bh_file_source source = {.struct_size = sizeof source};
    source.path = path;
    source.format = BH_FILE_RAW;
    bh_buffer *buffer;
    const bh_buffer_options from = {.struct_size = sizeof from, .file = &source};
    OK(bh_buffer_create(s->context, 0, &from, &buffer, &why));
    void *pointer;
    OK(bh_buffer_map(buffer, BH_MAP_READ, BH_FOREVER, &pointer, &why));
    EXPECT(bh_buffer_size(buffer) == s->code_size && !memcmp(pointer, s->code, s->code_size));
    SIZED(bh_array_info it, array, array.it);
    OK(bh_buffer_array(buffer, &array.it, NULL));
    EXPECT(array.it.dtype == BH_DTYPE_NONE && array.it.rank == 0);
    EMPTY(array.it);
    KEPT(array);
    bh_buffer_release(buffer);

    static const char begin[] = "\x93NUMPY\1\0m\0{'descr': '<f4', 'fortran_order': False, "
                                "'shape': (2,)}";
    char header[10 + 'm'];
    memset(header, ' ', sizeof header);
    memcpy(header, begin, sizeof begin - 1);
    header[sizeof header - 1] = '\n';
    FILE *npy = tmpfile();
    EXPECT(npy && fwrite(header, 1, sizeof header, npy) == sizeof header &&
           fwrite(header, 1, 8, npy) == 8 && fflush(npy) == 0);
    bh_file_source array_source = source;
    array_source.path = NULL;
    array_source.fd = fileno(npy);
    array_source.format = BH_FILE_NPY;
    struct {
        bh_file_tensor it[2];
        unsigned char behind[64];
    } *tensors = malloc(sizeof *tensors);
    EXPECT(tensors);
    memset(tensors, PATTERN, sizeof *tensors);
    tensors->it[0].struct_size = sizeof tensors->it[0];
    size_t count;
    OK(bh_file_tensors(s->context, &array_source, tensors->it, 1, &count, &why));
    EXPECT(count == 1 && tensors->it[0].shape[0] == 2 && !strcmp(tensors->it[0].type, "f4"));
    EMPTY(tensors->it[0]);
    EXPECT(untouched(&tensors->it[1], sizeof tensors->it[1] + sizeof tensors->behind));
    free(tensors);
    fclose(npy);
#ifdef GROWN
    source.abi_probe = 1;
    NEWER(bh_buffer_create(s->context, 0, &from, &buffer, &why), "bh_file_source");
#endif
}

int main(int argc, char **argv) {
    struct scene s = {0};
    EXPECT(argc == 2);
    EXPECT(bh_version() >> 12 == BH_VERSION >> 12); /* major and minor */
    EXPECT(bh_version() >= BH_VERSION && !strncmp(bh_version_string(), "0.2.", 4));
    make(&s, argv[1]);
    submit(&s);
    look(&s);
    describe(&s);
    launch_template(&s);
    load(&s, argv[1]);
    quarantine(&s);
    bh_buffer_release(s.x);
    bh_buffer_release(s.y);
    bh_kernel_release(s.kernel);
    bh_stream_release(s.stream);
    OK(bh_context_destroy(s.context));
    free(s.code);
    puts("every struct fits");
    return 0;
}
