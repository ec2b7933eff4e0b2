/* What the environment says. */
#include "script.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t script_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t script_changed = PTHREAD_COND_INITIALIZER;
bool script_closed;

_Atomic long script_objects;
struct script_counts script_counts;

static const struct {
    bh_status status;
    const char *name;
} statuses[] = {
#define BH_STATUS(name, value, class_, text, advice) {BH_##name, #name},
#include "base/status.def"
#undef BH_STATUS
};

const char *script_message(void) {
    const char *text = getenv("SCRIPT_MESSAGE");
    return text ? text : "as scripted";
}

bh_status script_answer(const char *call, bh_detail *detail) {
    const char *name = getenv(call);
    if (!name) {
        return BH_OK;
    }
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (strcmp(statuses[i].name, name) != 0) {
            continue;
        }
        if (detail && statuses[i].status != BH_OK) {
            detail->status = statuses[i].status;
            snprintf(detail->message, sizeof detail->message, "%s", script_message());
        }
        return statuses[i].status;
    }
    fprintf(stderr, "script: no status %s\n", name);
    abort();
}

void *script_new(size_t size) {
    void *object;
    while (!(object = calloc(1, size))) { /* a test may make one fail; those of others are theirs */
        continue;
    }
    script_objects++;
    return object;
}

void script_free(void *object) {
    script_objects -= !!object;
    free(object);
}

void script_wait_closed(void) {
    pthread_mutex_lock(&script_lock);
    while (!script_closed) {
        pthread_cond_wait(&script_changed, &script_lock);
    }
    pthread_mutex_unlock(&script_lock);
}
