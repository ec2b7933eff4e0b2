#include "batch/slurm/sbatch_option.h"

#include <stddef.h>
#include <string.h>

/* Whose an option is: set by this program, which finds its tasks by it; one with which sbatch does
 * something else than to submit a script and to print its number; or the user's. */
enum owner { OURS, NOBODYS, THEIRS, OWNERS };

/* The options of sbatch 20.11 to 24.11, with a blank between two. Others, of later versions and of
 * sites' plugins, are passed on. Behind the name stands "=" if it needs a value, "?" if it may have
 * one, otherwise ","; then its letter, if it has one. */
static const char *const options[OWNERS] = {
    [OURS] = "array=a chdir=D comment= error=e no-requeue open-mode= output=o parsable requeue",
    [NOBODYS] = "autocomplete? clusters=M help,h test-only usage,u version,V wait,W wrap=",
    [THEIRS] = "account=A acctg-freq= batch= bb= bbf= begin=b cluster-constraint= constraint=C "
               "container= contiguous core-spec=S cores-per-socket= cpu-freq= cpus-per-gpu= "
               "cpus-per-task=c deadline= delay-boot= dependency=d distribution=m exclude=x "
               "exclusive? export= export-file= extra-node-info=B get-user-env? gid= gpu-bind= "
               "gpu-freq= gpus=G gpus-per-node= gpus-per-socket= gpus-per-task= gres= gres-flags= "
               "hint= hold,H ignore-pbs input=i job-name=J kill-on-invalid-dep= licenses=L "
               "mail-type= mail-user= mcs-label= mem= mem-bind= mem-per-cpu= mem-per-gpu= "
               "mincpus= network= nice? no-kill?k nodefile=F nodelist=w nodes=N ntasks=n "
               "ntasks-per-core= ntasks-per-gpu= ntasks-per-node= ntasks-per-socket= overcommit,O "
               "oversubscribe?s partition=p power= prefer= priority= profile= propagate? qos=q "
               "quiet,Q reboot reservation= signal= sockets-per-node= spread-job switches= "
               "thread-spec= threads-per-core= time=t time-min= tmp= uid= use-min-nodes verbose,v "
               "wait-all-nodes= wckey=",
};

struct found {
    const char *name; /* NULL: there is none */
    int length;       /* of the name alone */
    enum owner owner;
};

static bool needs_value(const struct found *option) {
    return option->name && option->name[option->length] == '=';
}

/* Moves |option|, which begins as all zero, to the next one. */
static bool next(struct found *option) {
    const char *at = option->name ? option->name + strcspn(option->name, " ") : options[OURS];
    if (option->name && !*at && ++option->owner < OWNERS) {
        at = options[option->owner];
    }
    option->name = at + strspn(at, " ");
    option->length = (int)strcspn(option->name, "=?, ");
    return option->owner < OWNERS;
}

static struct found find_letter(char letter) {
    struct found option = {.name = NULL};
    while (next(&option)) {
        const char *mark = option.name + option.length;
        if (letter != ' ' && *mark && *mark != ' ' && mark[1] == letter) {
            return option;
        }
    }
    return (struct found){.name = NULL};
}

/* An option of that name; otherwise one that is not the user's and begins like that: getopt_long
 * takes the beginning of a name for the whole, and which others begin so depends on the version. */
static struct found find_name(const char *name, size_t length) {
    struct found option = {.name = NULL}, abbreviated = {.name = NULL};
    while (next(&option)) {
        if ((size_t)option.length < length || strncmp(option.name, name, length) != 0) {
            continue;
        }
        if ((size_t)option.length == length) {
            return option;
        }
        if (!abbreviated.name && option.owner != THEIRS) {
            abbreviated = option;
        }
    }
    return abbreviated;
}

static bool refuse_owned(const char *text, const struct found *option,
                         struct bhi_complaint *complaint) {
    const char *why =
        option->owner == OURS ? "is set by bulkhead batch" : "is not for --executor slurm";
    const size_t length = (size_t)option->length;
    if (!strncmp(text, "--", 2) && !strncmp(text + 2, option->name, length)) {
        return bhi_refuse(complaint, "--%.*s %s", option->length, option->name, why);
    }
    return bhi_refuse(complaint, "sbatch may read %.100s as --%.*s, which %s", text, option->length,
                      option->name, why);
}

static bool check_long(const char *text, struct bhi_complaint *complaint) {
    const size_t length = strcspn(text + 2, "=");
    const struct found option = find_name(text + 2, length);
    if (option.name && option.owner != THEIRS) {
        return refuse_owned(text, &option, complaint);
    }
    if (needs_value(&option) && !text[2 + length]) {
        return bhi_refuse(complaint, "%s needs a value, in the same word: --sbatch-option=%s=VALUE",
                          text, text);
    }
    return true;
}

/* "-p" takes the rest of the word as its value; what follows "-H" are other options. */
static bool check_short(const char *text, struct bhi_complaint *complaint) {
    const struct found option = find_letter(text[1]);
    const bool has_more = text[2];
    if (option.name && option.owner != THEIRS) {
        return refuse_owned(text, &option, complaint);
    }
    if (needs_value(&option)) {
        return has_more || bhi_refuse(complaint,
                                      "%s needs a value, in the same word: "
                                      "--sbatch-option=--%.*s=VALUE",
                                      text, option.length, option.name);
    }
    if (has_more && option.name) {
        return bhi_refuse(complaint,
                          "%.100s is several options in one word: give each by itself, such as "
                          "--sbatch-option=--%.*s",
                          text, option.length, option.name);
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
