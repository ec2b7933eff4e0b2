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

static const struct {
    enum bhi_layer layer;
    bhi_probe_fn fn;
} probes[] = {
    {BHI_LAYER_USERNS, bhi_probe_userns},
    {BHI_LAYER_PIDNS, bhi_probe_pidns},
    {BHI_LAYER_NETNS, bhi_probe_netns},
    {BHI_LAYER_IPCNS, bhi_probe_ipcns},
    {BHI_LAYER_UTSNS, bhi_probe_utsns},
    {BHI_LAYER_MOUNTNS, bhi_probe_mountns},
    {BHI_LAYER_CGROUPNS, bhi_probe_cgroupns},
    {BHI_LAYER_ROOT, bhi_probe_root},
    {BHI_LAYER_DESCRIPTORS, bhi_probe_descriptors},
    {BHI_LAYER_CAPABILITIES, bhi_probe_capabilities},
    {BHI_LAYER_NO_NEW_PRIVS, bhi_probe_no_new_privs},
    {BHI_LAYER_NOT_DUMPABLE, bhi_probe_not_dumpable},
    {BHI_LAYER_LANDLOCK, bhi_probe_landlock},
    {BHI_LAYER_RLIMITS, bhi_probe_rlimits},
    {BHI_LAYER_MEMORY_RLIMIT, bhi_probe_memory_rlimit},
    {BHI_LAYER_SECCOMP_START, bhi_probe_seccomp_start},
    {BHI_LAYER_SECCOMP_STEADY, bhi_probe_seccomp_steady},
};

static void prove(const struct bhi_probe_context *context, const void *argument,
                  struct bhi_probe_report *report) {
    const uint32_t layer = *(const uint32_t *)argument;
    report->result = BHI_PROBE_ABSENT;
    snprintf(report->text, sizeof report->text, "a worker cannot check this: the host makes it");
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        if (probes[i].layer == layer) {
            report->result = probes[i].fn(context, report->text, sizeof report->text);
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
