#include "cli/doctor_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/ghost.h"
#include "tool/clock.h"
#include "tool/device_list.h"

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
static void look(bh_context *context, const struct bhi_nvml *nvml, const struct orphans *orphans,
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

void bhi_doctor_memory(bh_context *context, bh_check *checks, size_t capacity, size_t *inout_count,
                       json_t **out_json) {
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
            look(context, nvml, orphans, view);
        }
        bhi_ghost_judge(view, &checks[(*inout_count)++]);
        json_array_append_new(*out_json, bhi_ghost_json(view));
    }
    bhi_nvml_close(nvml);
    bhi_device_list_free(&list);
    free(view);
    free(orphans);
}
