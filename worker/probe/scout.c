#include "worker/probe/scout.h"
#include "base/format.h"
#include "base/futex.h"
#include "worker/backend.h"
#include "worker/probe/victim.h"
#include "worker/title.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Opening the node of a GPU that nobody uses initialises the GPU, which takes one or two seconds.
 * All limits together stay below the time that the supervisor waits for a zygote. */
#define LIST_NS UINT64_C(6000000000)
#define TRY_NS  UINT64_C(6000000000)
#define ALL_NS  UINT64_C(14000000000)

/* Shared memory of the zygote, its prober and the scouts. */
struct survey {
    struct bhi_scouted scouted;
    struct bhi_pci pci[BHI_NODES_MOST]; /* written by a scout */
    uint32_t count;
    uint32_t finished; /* |scouted| is complete */
};

static size_t list(struct bhi_victim *victim, struct bhi_msg_device *devices, struct bhi_pci *pci,
                   struct bhi_error *error) {
    const struct bhi_backend_config config = {
        .ops = victim->context->driver->info->cuda ? &bhi_cuda : &bhi_vulkan,
        .entry = bhi_driver_entry(victim->context->driver, error)};
    return config.entry ? bhi_backend_survey(&config, devices, pci, BHI_NODES_MOST, error) : 0;
}

/* The first scout lists all devices. */
static void look(struct bhi_victim *victim) {
    struct survey *survey = (struct survey *)victim->argument;
    struct bhi_error error = {.told.text = "it lists none"};
    survey->count = (uint32_t)list(victim, survey->scouted.devices, survey->pci, &error);
    bhi_victim_says(victim, survey->count > 0, "%.200s", bhi_error_line(&error));
}

/* The other scouts each check that one device is there. */
static void look_for_one(struct bhi_victim *victim) {
    static struct bhi_msg_device devices[BHI_NODES_MOST];
    struct bhi_pci pci[BHI_NODES_MOST];
    const struct bhi_pci *wanted = (const struct bhi_pci *)victim->argument;
    struct bhi_error error = {.told.text = "it is not listed"};
    const size_t count = list(victim, devices, pci, &error);
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        found |= bhi_pci_equal(&pci[i], wanted);
    }
    bhi_victim_says(victim, found, "%.80s", bhi_error_line(&error));
}

static void say_why(char *out, size_t size, const struct bhi_victim_outcome *outcome) {
    if (outcome->timed_out) {
        snprintf(out, size, "the driver did not answer in time");
    } else if (outcome->signal != 0) {
        snprintf(out, size, "the driver was killed by signal %d", outcome->signal);
    } else {
        bhi_format(out, size, "%.100s", outcome->text[0] != '\0' ? outcome->text : "it died");
    }
}

/* Tests each device with only its own node, all at the same time. */
static void try_nodes(const struct bhi_probe_context *context, struct bhi_nodes *nodes) {
    struct bhi_victim_page *pages[BHI_NODES_MOST];
    struct bhi_pci wanted[BHI_NODES_MOST]; /* not in what they share: a driver's code runs there */
    pid_t pids[BHI_NODES_MOST];
    const uint64_t deadline_ns = bhi_deadline_ns(TRY_NS);
    for (unsigned i = 0; i < nodes->devices; i++) {
        wanted[i] = nodes->of[i].pci;
        const struct bhi_victim_plan plan = {.stage = BHI_STAGE_START,
                                             .fn = look_for_one,
                                             .argument = (uintptr_t)&wanted[i],
                                             .node = nodes->of[i].path};
        pids[i] = nodes->of[i].path[0] == '\0' ? 0 : bhi_victim_start(context, &plan, &pages[i]);
    }
    for (unsigned i = 0; i < nodes->devices; i++) {
        struct bhi_victim_outcome outcome = {.entered = false};
        char reason[112];
        char why[144];
        if (pids[i] > 0) {
            bhi_victim_finish(pids[i], pages[i], deadline_ns, &outcome);
        }
        if (pids[i] != 0 && !outcome.holds) {
            say_why(reason, sizeof reason, &outcome);
            bhi_format(why, sizeof why, "with its own node alone: %s", reason);
            bhi_nodes_forget(nodes, i, why);
        }
    }
}

static void survey_all(const struct bhi_probe_context *context, const void *argument,
                       struct bhi_probe_report *report) {
    struct survey *survey = *(struct survey *const *)argument;
    struct bhi_nodes *nodes = &survey->scouted.nodes;
    const struct bhi_victim_plan plan = {
        .stage = BHI_STAGE_START, .fn = look, .argument = (uintptr_t)survey};
    struct bhi_victim_page *page = NULL;
    struct bhi_victim_outcome outcome = {.entered = false};
    bhi_title_set("bh-scout", "scout");
    pid_t pid = bhi_victim_start(context, &plan, &page);
    if (pid > 0) {
        bhi_victim_finish(pid, page, bhi_deadline_ns(LIST_NS), &outcome);
    }
    if (!outcome.holds) {
        say_why(nodes->why, sizeof nodes->why, &outcome);
    } else {
        nodes->devices = survey->count < BHI_NODES_MOST ? survey->count : BHI_NODES_MOST;
        for (unsigned i = 0; i < nodes->devices; i++) {
            nodes->of[i].pci = survey->pci[i];
        }
        bhi_nodes_match(nodes, context->driver->info->node_folder);
        try_nodes(context, nodes);
    }
    survey->finished = 1;
    report->result = BHI_PROBE_HOLDS;
}

static void send_scouts(const struct bhi_probe_context *context, struct bhi_scouted *out) {
    struct survey *survey =
        mmap(NULL, sizeof *survey, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct bhi_probe_report *report = NULL;
    if (survey == MAP_FAILED) {
        snprintf(out->nodes.why, sizeof out->nodes.why, "out of memory");
        return;
    }
    survey->scouted.nodes = out->nodes;
    pid_t pid = bhi_prober_start(context, survey_all, &survey, &report);
    if (pid > 0) {
        struct bhi_victim_outcome outcome;
        bhi_victim_await(pid, bhi_deadline_ns(ALL_NS), &outcome);
        munmap(report, sizeof *report);
    }
    if (pid > 0 && survey->finished != 0) {
        *out = survey->scouted;
    } else {
        snprintf(out->nodes.why, sizeof out->nodes.why, "the driver did not list its devices");
    }
    munmap(survey, sizeof *survey);
}

void bhi_scout(const struct bhi_probe_context *context, struct bhi_scouted *out) {
    memset(out, 0, sizeof *out);
    bhi_nodes_list(&out->nodes, context->driver);
    if (out->nodes.count < 2) {
        return; /* with one device there is no choice */
    }
    if (bhi_sandbox_landlock_abi() == 0) {
        snprintf(out->nodes.why, sizeof out->nodes.why, "this kernel has no Landlock");
        return;
    }
    send_scouts(context, out);
}
