#include "batch/slurm/sbatch_option.h"

#include <stddef.h>
#include <string.h>

/* Whose an option is: the user's; set by this program, which finds its tasks by it; or one with
 * which sbatch does something else than to submit a script and to print its number. */
enum owner { THEIRS, OURS, NOBODYS };
enum value { NONE, MAYBE, NEEDED };

/* The options of sbatch 20.11 to 24.11. Others, of later versions and of sites' plugins, are passed
 * on. */
static const struct option {
    const char *name;
    char letter; /* 0: none */
    enum value value;
    enum owner owner;
} options[] = {
    {"array", 'a', NEEDED, OURS},
    {"chdir", 'D', NEEDED, OURS},
    {"comment", 0, NEEDED, OURS},
    {"error", 'e', NEEDED, OURS},
    {"no-requeue", 0, NONE, OURS},
    {"open-mode", 0, NEEDED, OURS},
    {"output", 'o', NEEDED, OURS},
    {"parsable", 0, NONE, OURS},
    {"requeue", 0, NONE, OURS},
    {"autocomplete", 0, MAYBE, NOBODYS},
    {"clusters", 'M', NEEDED, NOBODYS},
    {"help", 'h', NONE, NOBODYS},
    {"test-only", 0, NONE, NOBODYS},
    {"usage", 'u', NONE, NOBODYS},
    {"version", 'V', NONE, NOBODYS},
    {"wait", 'W', NONE, NOBODYS},
    {"wrap", 0, NEEDED, NOBODYS},
    {"account", 'A', NEEDED, THEIRS},
    {"acctg-freq", 0, NEEDED, THEIRS},
    {"batch", 0, NEEDED, THEIRS},
    {"bb", 0, NEEDED, THEIRS},
    {"bbf", 0, NEEDED, THEIRS},
    {"begin", 'b', NEEDED, THEIRS},
    {"cluster-constraint", 0, NEEDED, THEIRS},
    {"constraint", 'C', NEEDED, THEIRS},
    {"container", 0, NEEDED, THEIRS},
    {"contiguous", 0, NONE, THEIRS},
    {"core-spec", 'S', NEEDED, THEIRS},
    {"cores-per-socket", 0, NEEDED, THEIRS},
    {"cpu-freq", 0, NEEDED, THEIRS},
    {"cpus-per-gpu", 0, NEEDED, THEIRS},
    {"cpus-per-task", 'c', NEEDED, THEIRS},
    {"deadline", 0, NEEDED, THEIRS},
    {"delay-boot", 0, NEEDED, THEIRS},
    {"dependency", 'd', NEEDED, THEIRS},
    {"distribution", 'm', NEEDED, THEIRS},
    {"exclude", 'x', NEEDED, THEIRS},
    {"exclusive", 0, MAYBE, THEIRS},
    {"export", 0, NEEDED, THEIRS},
    {"export-file", 0, NEEDED, THEIRS},
    {"extra-node-info", 'B', NEEDED, THEIRS},
    {"get-user-env", 0, MAYBE, THEIRS},
    {"gid", 0, NEEDED, THEIRS},
    {"gpu-bind", 0, NEEDED, THEIRS},
    {"gpu-freq", 0, NEEDED, THEIRS},
    {"gpus", 'G', NEEDED, THEIRS},
    {"gpus-per-node", 0, NEEDED, THEIRS},
    {"gpus-per-socket", 0, NEEDED, THEIRS},
    {"gpus-per-task", 0, NEEDED, THEIRS},
    {"gres", 0, NEEDED, THEIRS},
    {"gres-flags", 0, NEEDED, THEIRS},
    {"hint", 0, NEEDED, THEIRS},
    {"hold", 'H', NONE, THEIRS},
    {"ignore-pbs", 0, NONE, THEIRS},
    {"input", 'i', NEEDED, THEIRS},
    {"job-name", 'J', NEEDED, THEIRS},
    {"kill-on-invalid-dep", 0, NEEDED, THEIRS},
    {"licenses", 'L', NEEDED, THEIRS},
    {"mail-type", 0, NEEDED, THEIRS},
    {"mail-user", 0, NEEDED, THEIRS},
    {"mcs-label", 0, NEEDED, THEIRS},
    {"mem", 0, NEEDED, THEIRS},
    {"mem-bind", 0, NEEDED, THEIRS},
    {"mem-per-cpu", 0, NEEDED, THEIRS},
    {"mem-per-gpu", 0, NEEDED, THEIRS},
    {"mincpus", 0, NEEDED, THEIRS},
    {"network", 0, NEEDED, THEIRS},
    {"nice", 0, MAYBE, THEIRS},
    {"no-kill", 'k', MAYBE, THEIRS},
    {"nodefile", 'F', NEEDED, THEIRS},
    {"nodelist", 'w', NEEDED, THEIRS},
    {"nodes", 'N', NEEDED, THEIRS},
    {"ntasks", 'n', NEEDED, THEIRS},
    {"ntasks-per-core", 0, NEEDED, THEIRS},
    {"ntasks-per-gpu", 0, NEEDED, THEIRS},
    {"ntasks-per-node", 0, NEEDED, THEIRS},
    {"ntasks-per-socket", 0, NEEDED, THEIRS},
    {"overcommit", 'O', NONE, THEIRS},
    {"oversubscribe", 's', MAYBE, THEIRS},
    {"partition", 'p', NEEDED, THEIRS},
    {"power", 0, NEEDED, THEIRS},
    {"prefer", 0, NEEDED, THEIRS},
    {"priority", 0, NEEDED, THEIRS},
    {"profile", 0, NEEDED, THEIRS},
    {"propagate", 0, MAYBE, THEIRS},
    {"qos", 'q', NEEDED, THEIRS},
    {"quiet", 'Q', NONE, THEIRS},
    {"reboot", 0, NONE, THEIRS},
    {"reservation", 0, NEEDED, THEIRS},
    {"signal", 0, NEEDED, THEIRS},
    {"sockets-per-node", 0, NEEDED, THEIRS},
    {"spread-job", 0, NONE, THEIRS},
    {"switches", 0, NEEDED, THEIRS},
    {"thread-spec", 0, NEEDED, THEIRS},
    {"threads-per-core", 0, NEEDED, THEIRS},
    {"time", 't', NEEDED, THEIRS},
    {"time-min", 0, NEEDED, THEIRS},
    {"tmp", 0, NEEDED, THEIRS},
    {"uid", 0, NEEDED, THEIRS},
    {"use-min-nodes", 0, NONE, THEIRS},
    {"verbose", 'v', NONE, THEIRS},
    {"wait-all-nodes", 0, NEEDED, THEIRS},
    {"wckey", 0, NEEDED, THEIRS},
};

static const struct option *find_letter(char letter) {
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (options[i].letter == letter) {
            return &options[i];
        }
    }
    return NULL;
}

/* An option of that name; otherwise one that is not the user's and begins like that: getopt_long
 * takes the beginning of a name for the whole, and which others begin so depends on the version. */
static const struct option *find_name(const char *name, size_t length) {
    const struct option *abbreviated = NULL;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strncmp(options[i].name, name, length) != 0) {
            continue;
        }
        if (!options[i].name[length]) {
            return &options[i];
        }
        if (!abbreviated && options[i].owner != THEIRS) {
            abbreviated = &options[i];
        }
    }
    return abbreviated;
}

static bool refuse_owned(const char *text, const struct option *option,
                         struct bhi_complaint *complaint) {
    const char *why =
        option->owner == OURS ? "is set by bulkhead batch" : "is not for --executor slurm";
    const size_t length = strlen(option->name);
    if (!strncmp(text, "--", 2) && !strncmp(text + 2, option->name, length)) {
        return bhi_refuse(complaint, "--%s %s", option->name, why);
    }
    return bhi_refuse(complaint, "sbatch may read %.100s as --%s, which %s", text, option->name,
                      why);
}

static bool check_long(const char *text, struct bhi_complaint *complaint) {
    const size_t length = strcspn(text + 2, "=");
    const struct option *option = find_name(text + 2, length);
    if (option && option->owner != THEIRS) {
        return refuse_owned(text, option, complaint);
    }
    if (option && option->value == NEEDED && !text[2 + length]) {
        return bhi_refuse(complaint, "%s needs a value, in the same word: --sbatch-option=%s=VALUE",
                          text, text);
    }
    return true;
}

/* "-p" takes the rest of the word as its value; what follows "-H" are other options. */
static bool check_short(const char *text, struct bhi_complaint *complaint) {
    const struct option *option = find_letter(text[1]);
    const bool has_more = text[2];
    if (option && option->owner != THEIRS) {
        return refuse_owned(text, option, complaint);
    }
    if (option && option->value == NEEDED) {
        return has_more || bhi_refuse(complaint,
                                      "%s needs a value, in the same word: "
                                      "--sbatch-option=--%s=VALUE",
                                      text, option->name);
    }
    if (has_more && option) {
        return bhi_refuse(complaint,
                          "%.100s is several options in one word: give each by itself, such as "
                          "--sbatch-option=--%s",
                          text, option->name);
    }
    return !has_more || bhi_refuse(complaint,
                                   "%.100s: -%c is not known, and may be several options in one "
                                   "word: write the long name",
                                   text, text[1]);
}

bool bhi_slurm_check_option(const char *option, struct bhi_complaint *complaint) {
    if (option[0] != '-' || !option[1] || !strcmp(option, "--") || !strncmp(option, "--=", 3)) {
        return bhi_refuse(complaint, "write an option of sbatch with its value as one word, such "
                                     "as --sbatch-option=--mem=8G");
    }
    return option[1] == '-' ? check_long(option, complaint) : check_short(option, complaint);
}

size_t bhi_slurm_put_options(char *const *given, const char **out) {
    size_t used = 0;
    for (size_t i = 0; given[i]; i++) {
        out[used++] = given[i];
        if (!strchr(given[i], '=')) {
            out[used++] = "--parsable";
        }
    }
    return used;
}
