#include "batch/slurm/parse.h"

#include <stdio.h>
#include <string.h>

/* Reads digits only: no sign, no blank. Returns what follows them, or NULL. */
static const char *take_number(const char *text, const char *end, uint64_t most, uint64_t *out) {
    uint64_t value = 0;
    const char *at = text;
    while (at < end && *at >= '0' && *at <= '9') {
        const uint64_t digit = (uint64_t)(*at++ - '0');
        if (value > (most - digit) / 10) {
            return NULL;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return at > text ? at : NULL;
}

bool bhi_slurm_parse_version(const char *text, unsigned *out_major, unsigned *out_minor) {
    uint64_t major, minor;
    const char *end = text + strlen(text), *at = strchr(text, ' ');
    if (strncmp(text, "slurm", 5) != 0 || !at || !(at = take_number(at + 1, end, 9999, &major)) ||
        *at != '.' || !(at = take_number(at + 1, end, 9999, &minor))) {
        return false;
    }
    *out_major = (unsigned)major;
    *out_minor = (unsigned)minor;
    return true;
}

bool bhi_slurm_parse_job(const char *text, uint64_t *out_job) {
    const char *end = text + strcspn(text, "\n");
    const char *at = take_number(text, end, UINT32_MAX, out_job);
    return at && *out_job > 0 && (at == end || *at == ';') && (!*end || !end[1]);
}

/* MaxArraySize is larger than the largest number of a task, and the first number is 0. Of the
 * scheduler's parameters, max_array_tasks may allow less. */
bool bhi_slurm_parse_limit(const char *text, uint64_t *out_tasks) {
    static const char size[] = "MaxArraySize", tasks[] = "max_array_tasks=";
    const char *end = text + strlen(text), *at = text;
    uint64_t most = 0, other;
    while (strncmp(at, size, strlen(size)) != 0) {
        at += strcspn(at, "\n");
        if (!*at++) {
            return false;
        }
    }
    at += strlen(size);
    at += strspn(at, " ");
    if (*at != '=' || !take_number(at + 1 + strspn(at + 1, " "), end, UINT32_MAX, &most)) {
        return false;
    }
    if ((at = strstr(text, tasks)) && take_number(at + strlen(tasks), end, UINT32_MAX, &other) &&
        other < most) {
        most = other;
    }
    *out_tasks = most;
    return most > 0;
}

enum bhi_slurm_state bhi_slurm_parse_state(const char *text, size_t length) {
    static const struct {
        const char *name;
        enum bhi_slurm_state state;
    } states[] = {
#define STATE(name, state) {name, BHI_SLURM_##state},
        BHI_SLURM_STATES(STATE)
#undef STATE
    };
    size_t name = 0;
    while (name < length && ((text[name] >= 'A' && text[name] <= 'Z') || text[name] == '_')) {
        name++;
    }
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (strlen(states[i].name) == name && !memcmp(states[i].name, text, name)) {
            return states[i].state;
        }
    }
    return BHI_SLURM_UNKNOWN;
}

static void copy(char *out, size_t capacity, const char *text, size_t length) {
    const size_t taken = length < capacity ? length : capacity - 1;
    memcpy(out, text, taken);
    out[taken] = '\0';
}

bool bhi_slurm_parse_task(const char *line, size_t length, struct bhi_slurm_task *out_task) {
    enum { ARRAY, INDEX, STATE, NODE, COMMENT, REASON, FIELDS };
    const char *first[FIELDS], *end = line + length, *at = line;
    size_t size[FIELDS];
    uint64_t array, index = UINT32_MAX;
    for (int i = 0; i < FIELDS; i++) {
        const char *bar = i < REASON ? memchr(at, '|', (size_t)(end - at)) : end;
        if (!bar) {
            return false;
        }
        first[i] = at;
        size[i] = (size_t)(bar - at);
        at = bar < end ? bar + 1 : end;
    }
    const char *after = take_number(first[ARRAY], first[ARRAY] + size[ARRAY], UINT32_MAX, &array);
    if (after != first[ARRAY] + size[ARRAY] || array == 0 || size[STATE] == 0) {
        return false;
    }
    if (size[INDEX] != 3 || memcmp(first[INDEX], "N/A", 3) != 0) {
        after = take_number(first[INDEX], first[INDEX] + size[INDEX], UINT32_MAX - 1, &index);
        if (after != first[INDEX] + size[INDEX]) {
            return false;
        }
    }
    *out_task = (struct bhi_slurm_task){.array = array,
                                        .index = (uint32_t)index,
                                        .state = bhi_slurm_parse_state(first[STATE], size[STATE]),
                                        .comment = first[COMMENT],
                                        .comment_length = size[COMMENT]};
    copy(out_task->name, sizeof out_task->name, first[STATE], size[STATE]);
    copy(out_task->node, sizeof out_task->node, first[NODE], size[NODE]);
    copy(out_task->reason, sizeof out_task->reason, first[REASON], size[REASON]);
    return true;
}

/* The texts are those of Slurm's slurm_strerror(), which are the same from 20.11 to 25.05. Where a
 * request was sent and the answer is missing, the controller may have carried it out. */
enum bhi_slurm_failure bhi_slurm_judge_error(const char *message) {
    static const struct {
        const char *part;
        enum bhi_slurm_failure failure;
    } messages[] = {
        {"Unable to contact slurm controller (send failure)", BHI_SLURM_UNSURE},
        {"Unable to contact slurm controller (receive failure)", BHI_SLURM_UNSURE},
        {"Unable to contact slurm controller", BHI_SLURM_UNREACHED},
        {"Unable to establish control machine address", BHI_SLURM_UNREACHED},
        {"Slurm controller in standby mode", BHI_SLURM_UNREACHED},
        {"Slurm backup controller in standby mode", BHI_SLURM_UNREACHED},
        {"Socket timed out", BHI_SLURM_UNSURE},
        {"Zero Bytes were transmitted", BHI_SLURM_UNSURE},
        {"Connection reset", BHI_SLURM_UNSURE},
        {"Broken pipe", BHI_SLURM_UNSURE},
        {"Message receive failure", BHI_SLURM_UNSURE},
        {"Message send failure", BHI_SLURM_UNSURE},
        {"Communication shutdown failure", BHI_SLURM_UNSURE},
        {"Communication connection failure", BHI_SLURM_UNREACHED},
        {"Connection refused", BHI_SLURM_UNREACHED},
        {"Resource temporarily unavailable", BHI_SLURM_UNREACHED},
        {"Slurm temporarily unable to accept job", BHI_SLURM_UNREACHED},
        {"Job violates accounting/QOS policy", BHI_SLURM_REFUSED},
        {"Unable to contact", BHI_SLURM_UNREACHED},
        /* A machine that gets its configuration from the controller, and one that has none. */
        {"DNS SRV lookup failed", BHI_SLURM_REFUSED},
        {"Could not establish a configuration source", BHI_SLURM_UNREACHED},
        {"Failed to access \"", BHI_SLURM_UNREACHED}, /* munged is starting */
    };
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        if (strstr(message, messages[i].part)) {
            return messages[i].failure;
        }
    }
    return BHI_SLURM_REFUSED;
}
