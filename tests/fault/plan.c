#include "plan.h"
#include "tests/hostile/plan.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    struct bhi_fault_plan *map;
    char path[64], list[80];
} plan;

static void close_plan(void) {
    unlink(plan.path);
    munmap(plan.map, sizeof *plan.map);
    plan.map = NULL;
}

const char *bht_plan_open(void) {
    if (plan.map) {
        return plan.list;
    }
    snprintf(plan.path, sizeof plan.path, "/tmp/bulkhead-test-plan-XXXXXX");
    int fd = mkstemp(plan.path);
    BHT_GE(fd, 0);
    BHT_EQ(ftruncate(fd, sizeof *plan.map), 0);
    BHT_EQ(fchmod(fd, 0666), 0); /* the zygote opens it as whoever it is in its namespace */
    plan.map = mmap(NULL, sizeof *plan.map, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    BHT_TRUE(plan.map != MAP_FAILED);
    close(fd);
    snprintf(plan.list, sizeof plan.list, "plan=%s", plan.path);
    bht_end_with(close_plan);
    return plan.list;
}

static const char *const points[] = {
#define START(name) #name,
#define RUN(name)   #name,
#define CALL(name)  #name, "start_" #name,
#include "tests/hostile/points.def"
};

void bht_plan_arm(const char *point, const char *what, unsigned nth) {
    bool known = false;
    for (size_t i = 0; i < BHT_COUNT(points); i++) {
        known |= strcmp(points[i], point) == 0;
    }
    if (!known) {
        BHT_FAIL("there is no point %s", point);
    }
    snprintf(plan.map->point, sizeof plan.map->point, "%s", point);
    snprintf(plan.map->what, sizeof plan.map->what, "%s", what);
    plan.map->nth = nth;
    atomic_store(&plan.map->passed, 0);
    atomic_store(&plan.map->fired, 0);
    atomic_store(&plan.map->armed, 1);
}

bool bht_plan_disarm(void) {
    atomic_store(&plan.map->armed, 0);
    return bht_plan_fired();
}

bool bht_plan_fired(void) {
    return atomic_load(&plan.map->fired) != 0;
}
