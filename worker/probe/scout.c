#include "worker/probe/scout.h"
#include "base/format.h"
#include "base/futex.h"
#include "worker/backend.h"
#include "worker/probe/victim.h"
#include "worker/title.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Opening the node of a GPU that nobody uses initialises the GPU, which takes one or two seconds.
 * All limits together stay below the time that the supervisor waits for a zygote. */
#define LIST_NS UINT64_C(6000000000)
#define TRY_NS  UINT64_C(6000000000)
#define ALL_MS  14000

/* Shared memory of the zygote, its prober and the scouts. */
struct survey {
    struct bhi_scouted scouted;
    struct bhi_pci pci[BHI_NODES_MOST]; /* written by a scout */
    uint32_t count;
    uint32_t finished; /* |scouted| is complete */
};

static size_t list(struct bhi_victim *victim, struct bhi_msg_device *devices, struct bhi_pci *pci,
                   struct bhi_error *error) {
    struct bhi_error failure = {.status = BH_OK};
    const struct bhi_backend_config config = {
        .get_instance_proc_addr = bhi_driver_entry(victim->context->driver, &failure)};
    if (!config.get_instance_proc_addr) {
        *error = failure;
        return 0;
    }
    return bhi_backend_survey(&config, devices, pci, BHI_NODES_MOST, error);
}

/* The first scout lists all devices. */
static void look(struct bhi_victim *victim) {
    struct survey *survey = (struct survey *)victim->argument;
    struct bhi_error error = {.text = "it lists none"};
    survey->count = (uint32_t)list(victim, survey->scouted.devices, survey->pci, &error);
    bhi_victim_says(victim, survey->count > 0, "%.200s", bhi_error_line(&error));
}

struct try {
    struct bhi_pci pci;
};

/* The other scouts each check that one device is there. */
static void look_for_one(struct bhi_victim *victim) {
    static struct bhi_msg_device devices[BHI_NODES_MOST];
    struct bhi_pci pci[BHI_NODES_MOST];
    const struct try *wanted = (const struct try *)victim->argument;
    struct bhi_error error = {.text = "it is not listed"};
    const size_t count = list(victim, devices, pci, &error);
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        found |= bhi_pci_equal(&pci[i], &wanted->pci);
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
    struct try wanted[BHI_NODES_MOST];
    struct bhi_victim_page *pages[BHI_NODES_MOST];
    pid_t pids[BHI_NODES_MOST];
    const uint64_t deadline_ns = bhi_deadline_ns(TRY_NS);
    for (unsigned i = 0; i < nodes->devices; i++) {
        wanted[i].pci = nodes->of[i].pci;
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

static void await(pid_t pid) {
    struct pollfd ended = {.fd = pidfd_open(pid, 0), .events = POLLIN};
    const uint64_t deadline_ns = bhi_deadline_ns(ALL_MS * UINT64_C(1000000));
    int n = ended.fd < 0 ? 0 : -1;
    while (n < 0 && bhi_now_ns() < deadline_ns) {
        n = poll(&ended, 1, ALL_MS);
    }
    if (n != 1) {
        kill(pid, SIGKILL);
    }
    waitid(P_PID, (id_t)pid, NULL, WEXITED);
    if (ended.fd >= 0) {
        close(ended.fd);
    }
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
        await(pid);
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
