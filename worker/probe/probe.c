#include "worker/probe/probe.h"
#include "base/text.h"
#include "worker/probe/victim.h"
#include "worker/session/orphan.h"
#include "worker/title.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A layer has an attempt, by a victim of one stage, or a probe. */
static const struct row {
    enum bhi_layer layer;
    enum bhi_stage stage;
    bhi_victim_fn attempt;
    bhi_probe_fn probe;
} probes[] = {
    {BHI_LAYER_USERNS, BHI_STAGE_LAYERS, bhi_try_userns, NULL},
    {BHI_LAYER_PIDNS, BHI_STAGE_LAYERS, bhi_try_pidns, NULL},
    {BHI_LAYER_NETNS, BHI_STAGE_LAYERS, bhi_try_netns, NULL},
    {BHI_LAYER_IPCNS, BHI_STAGE_LAYERS, bhi_try_ipcns, NULL},
    {BHI_LAYER_UTSNS, BHI_STAGE_LAYERS, bhi_try_utsns, NULL},
    {BHI_LAYER_MOUNTNS, BHI_STAGE_LAYERS, bhi_try_mountns, NULL},
    {BHI_LAYER_CGROUPNS, BHI_STAGE_LAYERS, bhi_try_cgroupns, NULL},
    {BHI_LAYER_ROOT, BHI_STAGE_FORKED, bhi_try_root, NULL},
    {BHI_LAYER_CAPABILITIES, BHI_STAGE_LAYERS, bhi_try_capabilities, NULL},
    {BHI_LAYER_NO_NEW_PRIVS, BHI_STAGE_LAYERS, bhi_try_no_new_privs, NULL},
    {BHI_LAYER_RLIMITS, BHI_STAGE_LAYERS, bhi_try_rlimits, NULL},
    {.layer = BHI_LAYER_DESCRIPTORS, .probe = bhi_probe_descriptors},
    {.layer = BHI_LAYER_NOT_DUMPABLE, .probe = bhi_probe_not_dumpable},
    {.layer = BHI_LAYER_LANDLOCK, .probe = bhi_probe_landlock},
    {.layer = BHI_LAYER_MEMORY_RLIMIT, .probe = bhi_probe_memory_rlimit},
    {.layer = BHI_LAYER_SECCOMP_START, .probe = bhi_probe_seccomp_start},
    {.layer = BHI_LAYER_SECCOMP_STEADY, .probe = bhi_probe_seccomp_steady},
};

static enum bhi_probe_result run(const struct bhi_probe_context *context, const struct row *row,
                                 char *text, size_t size) {
    const struct bhi_victim_plan plan = {.stage = row->stage, .fn = row->attempt};
    if (row->probe) {
        return row->probe(context, text, size);
    }
    text[0] = '\0';
    const enum bhi_probe_result result = bhi_probe_identity(context, row->layer, text, size);
    const size_t used = strlen(text);
    return result != BHI_PROBE_HOLDS ? result
                                     : bhi_victim_judge(context, &plan, text + used, size - used);
}

static void prove(const struct bhi_probe_context *context, const void *argument,
                  struct bhi_probe_report *report) {
    const uint32_t layer = *(const uint32_t *)argument;
    report->result = BHI_PROBE_ABSENT;
    snprintf(report->text, sizeof report->text, "a worker cannot check this: the host makes it");
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        if (probes[i].layer == layer) {
            report->result = run(context, &probes[i], report->text, sizeof report->text);
        }
    }
}

static _Noreturn void be_prober(const struct bhi_probe_context *context, bhi_prober_fn fn,
                                const void *argument, struct bhi_probe_report *report) {
    bhi_title_set("bh-prober", "prober");
    bhi_orphan_forget();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        _exit(1);
    }
    fn(context, argument, report);
    report->done = 1;
    _exit(0);
}

pid_t bhi_prober_start(const struct bhi_probe_context *context, bhi_prober_fn fn,
                       const void *argument, struct bhi_probe_report **out_report) {
    struct bhi_probe_report *report =
        mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED) {
        return -errno;
    }
    pid_t pid = fork();
    if (pid == 0) {
        be_prober(context, fn, argument, report);
    }
    if (pid < 0) {
        int error = errno;
        munmap(report, sizeof *report);
        return -error;
    }
    *out_report = report;
    return pid;
}

pid_t bhi_probe_start(const struct bhi_probe_context *context, uint32_t layer,
                      struct bhi_probe_report **out_report) {
    return bhi_prober_start(context, prove, &layer, out_report);
}

void bhi_probe_finish(struct bhi_probe_report *report, uint32_t layer, bool timed_out,
                      struct bhi_msg_probed *out) {
    struct bhi_probe_report copy = *report;
    munmap(report, sizeof *report);
    out->layer = layer;
    out->result = copy.done == 0 || copy.result > BHI_PROBE_BROKEN ? BHI_PROBE_BROKEN : copy.result;
    if (copy.done == 0) {
        snprintf(copy.text, sizeof copy.text,
                 timed_out ? "the probe did not end in time" : "the probe died");
    }
    bhi_text_sanitise(out->text, sizeof out->text, copy.text, strnlen(copy.text, sizeof copy.text));
}
