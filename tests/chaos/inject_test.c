/* Whom a fault hits: a worker, and nobody who has its pid by now. */
#include "cmocka_all.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/engine/inject.h"

static void nobody_but_a_worker(void **state) {
    (void)state;
    static const enum bhi_fault_kind kinds[] = {
        BHI_FAULT_KILL,  BHI_FAULT_SEGV,   BHI_FAULT_STOP, BHI_FAULT_GARBAGE,
        BHI_FAULT_CLOSE, BHI_FAULT_ZYGOTE, BHI_FAULT_SLOW};
    const pid_t other = fork();
    assert_true(other >= 0);
    if (!other)
        for (;;)
            pause();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct bhi_injection injection = {.kind = kinds[i], .pid = other};
        struct bhi_injected injected;
        bhi_inject(&injection, &injected);
        assert_true(injected.missed);
        assert_true(injected.why[0]);
    }
    assert_int_equal(kill(other, SIGSTOP), 0);
    int status;
    assert_int_equal(waitpid(other, &status, WUNTRACED), other);
    assert_true(WIFSTOPPED(status)); /* it lived until now */
    bhi_inject_resume(other);
    assert_int_equal(waitpid(other, &status, WCONTINUED | WNOHANG), 0);
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nobody_but_a_worker)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
