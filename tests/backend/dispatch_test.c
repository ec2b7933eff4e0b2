/* Dispatches: bindings, push constants, specialization, entry points, grids. */
#include "rig.h"

static const uint32_t saxpy[] =
#include "kernels/saxpy.inc"
    ;

static void saxpy_runs(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, NULL);
    float *x = rig_buffer(&rig, 1, 1000 * sizeof *x);
    float *y = rig_buffer(&rig, 2, 1000 * sizeof *y);
    for (int i = 0; i < 1000; i++) {
        x[i] = (float)i;
        y[i] = 1.0f;
    }
    rig_kernel(&rig, 7, CODE(saxpy));
    const struct {
        float a;
        uint32_t n;
    } push = {2.0f, 1000};
    rig_begin(&rig);
    rig_dispatch(&rig, 7, 16, 1, 1,
                 BINDINGS({.binding = 0, .buffer = 1, .access = BH_READ},
                          {.binding = 1, .buffer = 2, .access = BH_READ_WRITE}),
                 &push, sizeof push);
    rig_run_ok(&rig);
    for (int i = 0; i < 1000; i++) {
        assert_true(y[i] == 2.0f * (float)i + 1.0f);
    }
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saxpy_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
