/* A fault in the workers or their zygote, told while they run (tests/hostile/plan.h). */
#ifndef BHT_PLAN_H
#define BHT_PLAN_H

#include "scene.h"

/* Makes the file, if it is not there yet; it goes with the test. What it returns is for fx_context(). */
const char *bht_plan_open(void);
void bht_plan_arm(const char *point, const char *what, unsigned nth);
bool bht_plan_disarm(void); /* has it fired? */
bool bht_plan_fired(void);

#endif
