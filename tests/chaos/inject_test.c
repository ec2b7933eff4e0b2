/* Whom a fault hits: a worker, and nobody who has its pid by now. */
#include "harness.h"

#include <sys/wait.h>
#include <unistd.h>

#include "chaos/engine/inject.h"

TEST(nobody_but_a_worker) {
    static const enum bhi_fault_kind kinds[] = {
        BHI_FAULT_KILL,  BHI_FAULT_SEGV,   BHI_FAULT_STOP, BHI_FAULT_GARBAGE,
        BHI_FAULT_CLOSE, BHI_FAULT_ZYGOTE, BHI_FAULT_SLOW, BHI_FAULT_DEVICE};
    const pid_t other = fork();
    BHT_GE(other, 0);
    if (!other) {
        for (;;) {
            pause();
        }
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct bhi_injection injection = {.kind = kinds[i], .pid = other};
        struct bhi_injected injected;
        bhi_inject(&injection, &injected);
        BHT_TRUE(injected.missed);
        BHT_TRUE(injected.why[0]);
    }
    BHT_EQ(kill(other, SIGSTOP), 0);
    int status;
    BHT_EQ(waitpid(other, &status, WUNTRACED), other);
    BHT_TRUE(WIFSTOPPED(status)); /* it lived until now */
    bhi_inject_resume(other);
    BHT_EQ(waitpid(other, &status, WCONTINUED | WNOHANG), 0);
    BHT_EQ(kill(other, SIGKILL), 0);
    BHT_EQ(waitpid(other, &status, 0), other);
    BHT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
