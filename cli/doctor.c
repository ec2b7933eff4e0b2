#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/ghost.h"
#include "cli/mains.h"
#include "tool/args.h"
#include "tool/clock.h"
#include "tool/complain.h"
#include "tool/device_list.h"
#include "tool/error_json.h"
#include "tool/exit_status.h"
#include "tool/json.h"
#include "tool/session.h"
#include "tool/task.h"
#include "tool/text.h"

enum { CAPACITY = 256 };

static const char *result_name(bh_check_result result) {
    switch (result) {
    case BH_CHECK_HOLDS:
        return "holds";
    case BH_CHECK_BROKEN:
        return "broken";
    case BH_CHECK_ABSENT:
        break;
    }
    return "absent";
}

/* Marks what a person should look at. BROKEN is bad even if the layer is optional. */
static const char *mark(const bh_check *check, const char **out_colour) {
    bool bad =
        check->result == BH_CHECK_BROKEN || (check->required && check->result != BH_CHECK_HOLDS);
    *out_colour = bad ? "\033[31m" : check->result == BH_CHECK_HOLDS ? "\033[32m" : "\033[33m";
    if (check->result == BH_CHECK_HOLDS) {
        return "ok";
    }
    if (check->result == BH_CHECK_BROKEN) {
        return "BROKEN";
    }
    return check->required ? "MISSING" : "absent";
}

static void print_indented(const char *text) {
    char clean[512];
    bhi_text_wrap(stdout, bhi_text_clean(clean, sizeof clean, text), 12, bhi_text_width(stdout));
}

static void print_check(const bh_check *check, bool coloured) {
    char name[64];
    const char *colour;
    const char *word = mark(check, &colour);
    bhi_text_clean(name, sizeof name, check->name);
    printf("  %s%-8s%s  %s%s\n", coloured ? colour : "", word, coloured ? "\033[0m" : "", name,
           check->required ? "" : " (optional)");
    if (check->text[0]) {
        print_indented(check->text);
    }
    if (check->result != BH_CHECK_HOLDS && check->advice[0]) {
        char advice[320];
        snprintf(advice, sizeof advice, "-> %s", check->advice);
        print_indented(advice);
    }
}

/* Prints the groups in the order in which they first appear, each check once. */
static void print_table(const bh_check *checks, size_t count) {
    bool coloured = bhi_text_coloured(stdout);
    bool done[CAPACITY] = {false};
    for (size_t i = 0; i < count; i++) {
        char group[32];
        if (done[i]) {
            continue;
        }
        printf("%s%s\n", i ? "\n" : "", bhi_text_clean(group, sizeof group, checks[i].group));
        for (size_t k = i; k < count; k++) {
            if (done[k] || strcmp(checks[k].group, checks[i].group) != 0) {
                continue;
            }
            print_check(&checks[k], coloured);
            done[k] = true;
        }
    }
}

static json_t *check_json(const bh_check *check) {
    return BHI_JSON({"group", bhi_json_text(check->group)}, {"name", bhi_json_text(check->name)},
                    {"required", json_boolean(check->required)},
                    {"result", json_string(result_name(check->result))},
                    {"text", bhi_json_text(check->text)}, {"advice", bhi_json_text(check->advice)});
}

static void print_json(const bh_check *checks, size_t count, bool holds, json_t *memory) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, check_json(&checks[i]));
    }
    bhi_json_print(
        json_pack("{s:b,s:o,s:O}", "holds", (int)holds, "checks", array, "device_memory", memory));
}

static int report(const struct bhi_args *args, const bh_check *checks, size_t count,
                  json_t *memory) {
    size_t failed = 0, absent = 0;
    for (size_t i = 0; i < count; i++) {
        bool good = checks[i].result == BH_CHECK_HOLDS;
        bool bad = !good && (checks[i].required || checks[i].result == BH_CHECK_BROKEN);
        failed += bad;
        absent += !good && !bad;
    }
    if (bhi_args_has(args, BHI_DOCTOR_JSON)) {
        print_json(checks, count, failed == 0, memory);
    } else {
        print_table(checks, count);
        printf("\n%zu of %zu checks hold", count - failed - absent, count);
        if (absent) {
            printf(", %zu optional absent", absent);
        }
        if (failed) {
            printf(", %zu FAILED", failed);
        }
        printf("\n");
    }
    return failed ? BHI_EXIT_ENVIRON : BHI_EXIT_READY;
}

/* -- the memory of devices ------------------------------------------------------------------- */

static const uint64_t ready_ns = 30000000000u;
/* Processes of a host that has just ended are being ended for so long. */
static const uint64_t burial_ns = 5000000000u;

/* Finds the orphans on this machine. Waits until those are gone that are about to go. */
static size_t find_orphans(int32_t out[BHI_GHOST_HOLDERS]) {
    const struct timespec pause = {.tv_nsec = 100000000};
    const uint64_t end_ns = bhi_clock_ns() + burial_ns;
    size_t count;
    for (;;) {
        struct bhi_process_tree all;
        count = 0;
        if (!bhi_process_tree_read(0, &all)) {
            return 0;
        }
        for (size_t i = 0; i < all.count && count < BHI_GHOST_HOLDERS; i++) {
            if (bhi_process_is_orphan(&all, all.processes[i].pid)) {
                out[count++] = all.processes[i].pid;
            }
        }
        bhi_process_tree_free(&all);
        if (!count || bhi_clock_ns() >= end_ns) {
            return count;
        }
        nanosleep(&pause, NULL);
    }
}

struct orphans {
    int32_t pids[BHI_GHOST_HOLDERS];
    size_t count;
};

static bool is_orphan(const struct orphans *orphans, int32_t pid) {
    for (size_t i = 0; i < orphans->count; i++) {
        if (orphans->pids[i] == pid) {
            return true;
        }
    }
    return false;
}

static void add_holder(struct bhi_ghost_view *view, const struct bhi_nvml_process *process,
                       const struct orphans *orphans, const struct bhi_process_tree *own) {
    bool ours;
    struct bhi_ghost_holder *holder = &view->holders[view->holder_count++];
    *holder = (struct bhi_ghost_holder){.pid = process->pid,
                                        .bytes_known = process->bytes_known,
                                        .bytes = process->bytes,
                                        .own = bhi_process_tree_find(own, process->pid),
                                        .orphan = is_orphan(orphans, process->pid)};
    (void)bhi_process_title(process->pid, holder->title, &ours);
}

/* Lets the stream's worker do something. It has its device open and its title set by then. */
static void use_worker(bh_context *context, bh_stream *stream) {
    bh_buffer *buffer = NULL;
    bh_event *event = NULL;
    if (bh_stream_wait_ready(stream, ready_ns, NULL) == BH_OK &&
        bh_buffer_create(context, sizeof(uint32_t), NULL, &buffer, NULL) == BH_OK) {
        const bh_command fill = {.type = BH_COMMAND_FILL,
                                 .fill = {.dst = buffer, .size = BH_WHOLE_SIZE}};
        const bh_submit_info info = {
            .struct_size = sizeof info, .commands = &fill, .command_count = 1};
        if (bh_submit(stream, &info, &event, NULL) == BH_OK) {
            (void)!bh_event_wait(event, ready_ns);
        }
    }
    bh_event_release(event);
    bh_buffer_release(buffer);
}

/* Reads what NVML says while a worker of ours has the device open, so that it must list one. */
static void look_at(bh_context *context, const struct bhi_nvml *nvml, const struct orphans *orphans,
                    struct bhi_ghost_view *view) {
    bh_stream_options options = {.struct_size = sizeof options};
    bh_stream *stream = NULL;
    struct bhi_process_tree own = {0};
    options.name = "doctor";
    options.device = view->device->selector;
    if (bh_stream_create(context, &options, &stream, NULL) == BH_OK) {
        use_worker(context, stream);
    }
    if (nvml) {
        view->nvml_known = bhi_nvml_read(nvml, view->device->pci, &view->nvml);
        snprintf(view->why, sizeof view->why, "%s", view->nvml.why);
        (void)bhi_process_tree_read(getpid(), &own);
    }
    for (uint32_t i = 0; i < view->nvml.process_count; i++) {
        add_holder(view, &view->nvml.processes[i], orphans, &own);
    }
    for (size_t i = 0; !view->nvml.processes_known && i < orphans->count; i++) {
        const struct bhi_nvml_process orphan = {.pid = orphans->pids[i]};
        add_holder(view, &orphan, orphans, &own);
    }
    bhi_process_tree_free(&own);
    bh_stream_release(stream); /* a dying process has no title */
}

/* Adds the check device-memory of each device at |checks| + *inout_count, at most |capacity| in
 * all. Adds none if there are no devices. *out_json: an array with the numbers of each device.
 * Starts a worker on each GPU; blocks, at most 30 s a device. */
static void examine_memory(bh_context *context, bh_check *checks, size_t capacity,
                           size_t *inout_count, json_t **out_json) {
    struct bhi_device_list list;
    bh_detail detail = {0};
    char why[BHI_NVML_WHY] = "";
    struct bhi_nvml *nvml = NULL;
    bool tried = false;
    *out_json = json_array();
    struct bhi_ghost_view *view = malloc(sizeof *view);
    struct orphans *orphans = calloc(1, sizeof *orphans);
    if (!view || !orphans || bhi_device_list_fetch(context, &list, &detail) != BH_OK) {
        free(view);
        free(orphans);
        return;
    }
    for (size_t i = 0; i < list.count && *inout_count < capacity; i++) {
        *view = (struct bhi_ghost_view){.device = &list.devices[i]};
        if (!bhi_device_is_cpu(view->device)) {
            if (!tried) {
                tried = true;
                nvml = bhi_nvml_open(why);
                orphans->count = find_orphans(orphans->pids);
            }
            snprintf(view->why, sizeof view->why, "%s", why);
            look_at(context, nvml, orphans, view);
        }
        bhi_ghost_judge(view, &checks[(*inout_count)++]);
        json_array_append_new(*out_json, bhi_ghost_json(view));
    }
    bhi_nvml_close(nvml);
    bhi_device_list_free(&list);
    free(view);
    free(orphans);
}

/* -- the whole ------------------------------------------------------------------------------- */

/* Without a worker nothing can be said of a device, and the check says why there is none. */
static bool has_worker(const bh_check *checks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(checks[i].name, "worker") == 0) {
            return checks[i].result == BH_CHECK_HOLDS;
        }
    }
    return false;
}

struct examination {
    bh_context *context;
    bh_check *checks;
    size_t count;
    json_t *memory; /* NULL: there is no worker */
    bh_status status;
    bh_detail detail;
};

static void look(void *argument) {
    struct examination *e = argument;
    e->checks->struct_size = sizeof *e->checks;
    e->status = bh_doctor(e->context, e->checks, CAPACITY, &e->count, &e->detail);
    e->count = e->count < CAPACITY ? e->count : CAPACITY;
    if (e->status == BH_OK && has_worker(e->checks, e->count)) {
        examine_memory(e->context, e->checks, CAPACITY, &e->count, &e->memory);
    }
}

static int examine(const struct bhi_args *args) {
    int exit_status = BHI_EXIT_ENVIRON;
    if (bhi_args_has(args, BHI_DOCTOR_TRACE_DRIVER)) {
        return bhi_doctor_trace(args);
    }
    if (bhi_args_value(args, BHI_DOCTOR_DEVICE)) {
        return bhi_complain_usage("doctor",
                                  "--device needs --trace-driver: the checks cover every driver");
    }
    struct examination e = {.checks = calloc(CAPACITY, sizeof *e.checks)};
    if (!e.checks) {
        return bhi_complain_memory("doctor");
    }
    bh_context *context = e.context =
        bhi_session_open("doctor", bhi_args_has(args, BHI_DOCTOR_VERBOSE), NULL, &exit_status);
    const bool looked = context && bhi_task_run("doctor", &context, look, &e, &exit_status);
    bh_context_destroy(context);
    if (looked) {
        e.memory = e.memory ? e.memory : json_array();
        exit_status = e.status == BH_OK ? report(args, e.checks, e.count, e.memory)
                                        : bhi_session_fail("doctor", NULL, e.status, &e.detail);
    }
    json_decref(e.memory);
    free(e.checks);
    return exit_status;
}

int bhi_doctor_main(const struct bhi_args *args) {
    return bhi_error_json(bhi_args_has(args, BHI_DOCTOR_JSON), examine, args);
}
