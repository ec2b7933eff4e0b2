#include "cli/ghost.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tool/device_list.h"
#include "tool/json.h"
#include "tool/quantity.h"

#define NVIDIA 0x10de /* its PCI vendor id */

enum { SHOWN = 3 }; /* holders in the text */

/* -- what is known --------------------------------------------------------------------------- */

/* Returns why it cannot be said who holds the memory; NULL: it can. */
static const char *doubt(const struct bhi_ghost_view *view) {
    bool own = false;
    if (!view->nvml_known) {
        return view->why;
    }
    if (!view->nvml.memory_known || !view->nvml.processes_known) {
        return view->nvml.why;
    }
    if (!view->nvml.reserved_known) {
        return "NVML does not tell apart what the driver keeps for itself";
    }
    for (size_t i = 0; i < view->holder_count; i++) {
        own |= view->holders[i].own;
        if (!view->holders[i].bytes_known) {
            return "NVML lists a process without its memory";
        }
    }
    return own ? NULL : "NVML does not list the processes of this pid namespace";
}

/* What all holders have together. */
static uint64_t held(const struct bhi_ghost_view *view) {
    uint64_t sum = 0;
    for (size_t i = 0; i < view->holder_count; i++) {
        if (__builtin_add_overflow(sum, view->holders[i].bytes, &sum)) {
            return UINT64_MAX;
        }
    }
    return sum;
}

static uint64_t unaccounted(const struct bhi_ghost_view *view) {
    const uint64_t of_processes = held(view);
    return view->nvml.used > of_processes ? view->nvml.used - of_processes : 0;
}

static const struct bhi_ghost_holder *first_orphan(const struct bhi_ghost_view *view,
                                                   size_t *out_count) {
    const struct bhi_ghost_holder *found = NULL;
    *out_count = 0;
    for (size_t i = view->holder_count; i-- > 0;) {
        if (view->holders[i].orphan) {
            found = &view->holders[i];
            (*out_count)++;
        }
    }
    return found;
}

static bool is_ghostly(const struct bhi_ghost_view *view) {
    return !doubt(view) && unaccounted(view) > BHI_GHOST_SLACK;
}

/* -- the check ------------------------------------------------------------------------------- */

struct text {
    char *at;
    size_t size, used;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *text, const char *format, ...) {
    va_list args;
    if (text->used >= text->size) {
        return;
    }
    va_start(args, format);
    text->used += (size_t)vsnprintf(text->at + text->used, text->size - text->used, format, args);
    va_end(args);
}

/* "1.2 GiB of 8.0 GiB in use, 3 % busy" */
static void put_use(struct text *text, const struct bhi_ghost_view *view) {
    const bh_device_info *device = view->device;
    char used[BHI_QUANTITY], total[BHI_QUANTITY];
    if (view->nvml_known && view->nvml.memory_known) {
        put(text, "%s of %s in use", bhi_quantity_bytes(used, view->nvml.used),
            bhi_quantity_bytes(total, view->nvml.total));
    } else if (device->memory_known) {
        put(text, "%s of %s in use",
            bhi_quantity_bytes(used, device->memory_total - device->memory_free),
            bhi_quantity_bytes(total, device->memory_total));
    } else {
        put(text, "how much is in use is not known");
    }
    if (view->nvml_known && view->nvml.utilisation_known) {
        put(text, ", %u %% busy", view->nvml.utilisation);
    }
}

/* The largest first, each once. */
static const struct bhi_ghost_holder *next_holder(const struct bhi_ghost_view *view,
                                                  const struct bhi_ghost_holder *last) {
    const struct bhi_ghost_holder *next = NULL;
    for (size_t i = 0; i < view->holder_count; i++) {
        const struct bhi_ghost_holder *one = &view->holders[i];
        const bool later = !last || one->bytes < last->bytes ||
                           (one->bytes == last->bytes && one->pid > last->pid);
        const bool sooner = !next || one->bytes > next->bytes ||
                            (one->bytes == next->bytes && one->pid < next->pid);
        next = later && sooner ? one : next;
    }
    return next;
}

static void put_holders(struct text *text, const struct bhi_ghost_view *view) {
    char bytes[BHI_QUANTITY];
    const struct bhi_ghost_holder *holder = NULL;
    put(text, ": %s by %zu process%s", bhi_quantity_bytes(bytes, held(view)), view->holder_count,
        view->holder_count == 1 ? "" : "es");
    for (int i = 0; i < SHOWN && (holder = next_holder(view, holder)); i++) {
        put(text, "%s%d %.20s %s", i ? ", " : " (", holder->pid,
            holder->title[0] ? holder->title : "(not visible)",
            bhi_quantity_bytes(bytes, holder->bytes));
    }
    put(text, "%s", view->holder_count > SHOWN ? ", ...)" : ")");
}

static void report_orphans(const struct bhi_ghost_view *view, const struct bhi_ghost_holder *first,
                           size_t count, bh_check *check, struct text *text) {
    char bytes[BHI_QUANTITY];
    check->result = BH_CHECK_BROKEN;
    put(text, "%s: ghost memory: process %d (%.40s) lives, and its host is gone; it holds %s",
        view->device->selector, first->pid, first->title,
        first->bytes_known ? bhi_quantity_bytes(bytes, first->bytes) : "memory of a device");
    if (count > 1) {
        put(text, "; so do %zu more", count - 1);
    }
    snprintf(check->advice, sizeof check->advice, "kill -9 %d", first->pid);
}

static void report_ghost(const struct bhi_ghost_view *view, bh_check *check, struct text *text) {
    char bytes[BHI_QUANTITY];
    check->result = BH_CHECK_BROKEN;
    put(text, "%s: ghost memory: %s belong to no process. ", view->device->selector,
        bhi_quantity_bytes(bytes, unaccounted(view)));
    put_use(text, view);
    put(text, ", %s by %zu process%s", bhi_quantity_bytes(bytes, held(view)), view->holder_count,
        view->holder_count == 1 ? "" : "es");
    snprintf(check->advice, sizeof check->advice,
             "end all programs that use this GPU; if the memory stays in use: nvidia-smi "
             "--gpu-reset -i %s",
             view->device->pci);
}

static void report_doubt(const struct bhi_ghost_view *view, const char *why, bh_check *check,
                         struct text *text) {
    check->result = BH_CHECK_ABSENT;
    put(text, "%s: ", view->device->selector);
    put_use(text, view);
    put(text, "; by whom is not known: %s", why);
    snprintf(check->advice, sizeof check->advice, "%s",
             view->nvml_known ? "run it outside of containers, with NVIDIA's driver 510 or later"
             : view->device->vendor_id == NVIDIA
                 ? "install libnvidia-ml.so.1 of NVIDIA's driver: it reports who holds memory"
                 : "nothing: only NVIDIA's driver reports who holds memory");
}

void bhi_ghost_judge(const struct bhi_ghost_view *view, bh_check *out_check) {
    char bytes[BHI_QUANTITY];
    size_t orphans;
    struct text text = {.at = out_check->text, .size = sizeof out_check->text};
    *out_check = (bh_check){.group = "driver", .name = "device-memory", .result = BH_CHECK_HOLDS};
    if (bhi_device_is_cpu(view->device)) {
        put(&text, "%s: not available: CPU driver", view->device->selector);
        return;
    }
    const struct bhi_ghost_holder *orphan = first_orphan(view, &orphans);
    const char *why = doubt(view);
    if (orphan) {
        report_orphans(view, orphan, orphans, out_check, &text);
    } else if (why) {
        report_doubt(view, why, out_check, &text);
    } else if (is_ghostly(view)) {
        report_ghost(view, out_check, &text);
    } else {
        put(&text, "%s: ", view->device->selector);
        put_use(&text, view);
        put_holders(&text, view);
        put(&text, ", %s by none", bhi_quantity_bytes(bytes, unaccounted(view)));
    }
}

/* -- JSON ------------------------------------------------------------------------------------ */

static json_t *number(bool known, uint64_t value) {
    return known ? bhi_json_number(value) : json_null();
}

static json_t *holder_json(const struct bhi_ghost_holder *holder) {
    return json_pack("{s:i, s:o, s:o, s:b, s:b}", "pid", (int)holder->pid, "bytes",
                     number(holder->bytes_known, holder->bytes), "title",
                     bhi_json_text_or_null(holder->title), "own", holder->own, "orphan",
                     holder->orphan);
}

static json_t *nvml_json(const struct bhi_ghost_view *view) {
    const struct bhi_nvml_reading *nvml = &view->nvml;
    if (!view->nvml_known) {
        return json_null();
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "total", number(nvml->memory_known, nvml->total),
                     "used", number(nvml->memory_known, nvml->used), "reserved",
                     number(nvml->reserved_known, nvml->reserved), "utilisation",
                     number(nvml->utilisation_known, nvml->utilisation));
}

json_t *bhi_ghost_json(const struct bhi_ghost_view *view) {
    const bh_device_info *device = view->device;
    const bool cpu = bhi_device_is_cpu(device);
    const char *why = cpu ? "CPU driver" : doubt(view);
    size_t orphans;
    json_t *processes = json_array();
    for (size_t i = 0; i < view->holder_count; i++) {
        json_array_append_new(processes, holder_json(&view->holders[i]));
    }
    const bool ghost = first_orphan(view, &orphans) || is_ghostly(view);
    return json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:b}", "device",
                     bhi_json_text(device->selector), "pci", bhi_json_text_or_null(device->pci),
                     "total", (json_int_t)device->memory_total, "free",
                     number(device->memory_known, device->memory_free), "nvml", nvml_json(view),
                     "processes", processes, "held", number(!why, held(view)), "unaccounted",
                     number(!why, unaccounted(view)), "slack", (json_int_t)BHI_GHOST_SLACK,
                     "not_known", bhi_json_text_or_null(why), "ghost", !cpu && ghost);
}
