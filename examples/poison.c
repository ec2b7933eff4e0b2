/* What one bad kernel does to the others. Usage: example_poison FOLDER-OF-SHADERS
 *
 * Stream "guest" runs a kernel that never ends; "report" needs its data, on another stream;
 * "innocent" does not. The bad one ends at its deadline, its dependent never runs, everything else
 * is as if nothing had happened. */
#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>

static bh_detail why;

static void must(bh_status status) {
    if (status == BH_OK) {
        return;
    }
    fprintf(stderr, "%s: %s\n", bh_status_name(status), why.message);
    exit(2);
}

static bh_kernel *load(bh_context *context, const char *folder, const char *name) {
    static uint8_t code[1 << 16];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.spv", folder, name);
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(code, 1, sizeof code, file) : 0;
    if (file) {
        fclose(file);
    }
    bh_kernel_options options = {.struct_size = sizeof options};
    options.name = name;
    bh_kernel *kernel = NULL;
    must(bh_kernel_create_spirv(context, code, size, &options, &kernel, &why));
    return kernel;
}

static void print(const char *name, bh_event *event) {
    bh_verdict v = {.struct_size = sizeof v};
    must(bh_event_verdict(event, &v));
    static const char *const executed[] = {"never ran", "started and did not finish",
                                           "ran to its end"};
    printf("%-9s %-8s %s, %s", name, v.status == BH_OK ? "READY" : "POISONED",
           bh_status_name(v.status), executed[v.executed]);
    if (v.hops) {
        printf(", %u hop from event %llu", v.hops, (unsigned long long)v.origin);
    } else if (v.status != BH_OK) {
        printf(" (event %llu)", (unsigned long long)v.event);
    }
    printf("\n");
}

int main(int argc, char **argv) {
    bh_context *context = NULL;
    bh_stream *guest = NULL, *host = NULL;
    bh_buffer *a = NULL, *b = NULL, *c = NULL, *d = NULL;
    bh_event *bad = NULL, *report = NULL, *innocent = NULL, *next = NULL;
    const char *folder = argc > 1 ? argv[1] : ".";
    const uint32_t groups[3] = {1, 1, 1}, many[3] = {65535, 64, 1};

    must(bh_context_create(NULL, &context, &why));
    bh_stream_options options = {.struct_size = sizeof options};
    options.name = "guest";
    options.deadline_ns = 1000000000; /* 1 s */
    must(bh_stream_create(context, &options, &guest, &why));
    must(bh_stream_create(context, NULL, &host, &why));
    bh_kernel *hang = load(context, folder, "hang"), *square = load(context, folder, "square");
    bh_buffer **buffers[] = {&a, &b, &c, &d};
    for (int i = 0; i < 4; i++) {
        must(bh_buffer_create(context, 256, NULL, buffers[i], &why));
    }

    const bh_binding on_a[] = {bh_bind_read_write(0, a)};
    const bh_binding a_to_b[] = {bh_bind_read(0, a), bh_bind_write(1, b)};
    const bh_binding c_to_d[] = {bh_bind_read(0, c), bh_bind_write(1, d)};
    must(bh_launch(guest, hang, many, on_a, 1, NULL, 0, &bad, &why));
    must(bh_launch(host, square, groups, a_to_b, 2, NULL, 0, &report, &why)); /* reads a: waits */
    must(bh_launch(guest, square, groups, c_to_d, 2, NULL, 0, &innocent, &why));

    /* Poison is no error of this call; each event tells its own story, as often as it is asked. */
    bh_event *all[] = {bad, report, innocent};
    if (bh_event_wait_all(all, 3, BH_FOREVER, NULL) != BH_DEADLINE) {
        return 1;
    }
    print("bad", bad);
    print("report", report);
    print("innocent", innocent);

    /* The streams go on with new workers, and so does the host. What it overwrites is clean. */
    static const float zeros[64];
    must(bh_buffer_write(a, 0, zeros, sizeof zeros, BH_FOREVER, &why));
    must(bh_launch(guest, square, groups, a_to_b, 2, NULL, 0, &next, &why));
    must(bh_event_wait(next, BH_FOREVER));
    print("next", next);
    bh_event_release(bad), bh_event_release(report);
    bh_event_release(innocent), bh_event_release(next);
    bh_buffer_release(a), bh_buffer_release(b), bh_buffer_release(c), bh_buffer_release(d);
    bh_kernel_release(hang), bh_kernel_release(square);
    bh_stream_release(guest), bh_stream_release(host);
    return bh_context_destroy(context);
}
