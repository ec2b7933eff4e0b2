/* bulkhead chaos.
 *
 * The engine runs, the checker judges, the reports show the result. They communicate only through
 * the history.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/selector.h"
#include "chaos/engine/engine.h"
#include "chaos/report/report.h"
#include "cli/chaos_host.h"
#include "cli/mains.h"
#include "tool/args.h"
#include "tool/clock.h"
#include "tool/complain.h"
#include "tool/descriptors.h"
#include "tool/device_choice.h"
#include "tool/error_json.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/outfile.h"
#include "tool/report/page.h"
#include "tool/session.h"
#include "tool/values.h"

enum { DEFAULT_STREAMS = 2, EXIT_UNKNOWN = 4 };

static const uint64_t default_duration_ns = 60000000000u;
/* The highest measured use is 73 with one stream and 415 with 12. If a run has too few for good, it
 * makes no progress, and its result says only that. */
static const uint32_t base_descriptors = 96, stream_descriptors = 64;
static const uint64_t most_faults = 100000000;
static const unsigned most_numbered = 100000; /* the most histories of one seed in a folder */
static const double default_rate = 20;
static const double default_find_rate = 0.01, least_share = 1e-7;
static const uint64_t plain_line_ns = 10000000000u; /* between lines if there is no terminal */

struct chaos {
    struct bhi_engine_options options;
    const char *device, *history_path, *replay_path, *check_path, *html;
    bool seeded, chosen, json, terminal, ran; /* chosen: --faults is given */
    char selector[BHI_SELECTOR];
    char default_name[48], default_path[80]; /* the second gets a number if the name is taken */
    struct bhi_history history, replayed;
    pthread_mutex_t telling; /* several threads write to stderr */
    uint64_t told_ns;
    bool shown;
};

/* -- arguments ------------------------------------------------------------------------------- */

/* Parses 0.001 or 1/1000. */
static bool parse_share(const char *text, double *out_share, struct bhi_complaint *complaint) {
    char *end;
    double of = 1;
    errno = 0;
    const bool number = *text >= '0' && *text <= '9';
    *out_share = strtod(text, &end);
    if (number && *end == '/' && end[1] >= '0' && end[1] <= '9') {
        of = strtod(end + 1, &end);
    }
    if (!number || end[0] || errno || !(of > 0)) {
        return bhi_refuse(complaint,
                          "it is not a share such as 0.001 or 1/1000, which is 0, or from %g to 1",
                          least_share);
    }
    *out_share /= of;
    if (*out_share != 0 && (!(*out_share >= least_share) || *out_share > 1)) {
        return bhi_refuse(complaint, "it is neither 0 nor between %g and 1", least_share);
    }
    return true;
}

static bool parse_item(void *user, const struct bhi_arg *item, struct bhi_complaint *complaint) {
    struct chaos *chaos = user;
    struct bhi_engine_options *options = &chaos->options;
    const char *value = item->value;
    uint64_t streams;
    switch (item->option) {
    case BHI_CHAOS_SEED:
        chaos->seeded = true;
        return bhi_parse_count(value, 0, UINT64_MAX, &options->seed, complaint);
    case BHI_CHAOS_DURATION:
        return bhi_parse_finite_duration(value, &options->duration_ns, complaint);
    case BHI_CHAOS_COUNT:
        return bhi_parse_count(value, 1, most_faults, &options->fault_count, complaint);
    case BHI_CHAOS_STREAM_COUNT:
        if (!bhi_parse_count(value, 1, BHI_ENGINE_STREAMS, &streams, complaint)) {
            return false;
        }
        options->streams = (uint32_t)streams;
        return true;
    case BHI_CHAOS_FAULTS:
        chaos->chosen = true;
        return bhi_fault_parse(value, &options->fault_set, complaint);
    case BHI_CHAOS_RATE:
        return bhi_parse_rate(value, &options->rate, complaint);
    case BHI_CHAOS_FIND_RATE:
        return parse_share(value, &options->find_rate, complaint);
    case BHI_CHAOS_HISTORY:
        return bhi_parse_text(value, "file name", &chaos->history_path, complaint);
    case BHI_CHAOS_REPLAY:
        return bhi_parse_text(value, "file name", &chaos->replay_path, complaint);
    case BHI_CHAOS_CHECK:
        return bhi_parse_text(value, "file name", &chaos->check_path, complaint);
    case BHI_CHAOS_HTML:
        return bhi_parse_text(value, "file name", &chaos->html, complaint);
    case BHI_CHAOS_DEVICE:
        return bhi_parse_text(value, "selector", &chaos->device, complaint);
    default:
        options->outside |= item->option == BHI_CHAOS_OUTSIDE;
        options->verbose |= item->option == BHI_CHAOS_VERBOSE;
        chaos->json |= item->option == BHI_CHAOS_JSON;
        return true;
    }
}

/* Options of a run are refused with a saved history, which contains them already. */
static bool check_excluded(const struct chaos *chaos, const struct bhi_args *args,
                           struct bhi_complaint *complaint) {
    static const enum bhi_option_id of_a_run[] = {
        BHI_CHAOS_SEED,    BHI_CHAOS_COUNT,    BHI_CHAOS_STREAM_COUNT,
        BHI_CHAOS_FAULTS,  BHI_CHAOS_RATE,     BHI_CHAOS_FIND_RATE,
        BHI_CHAOS_OUTSIDE, BHI_CHAOS_DURATION, /* these two also with a check */
        BHI_CHAOS_HISTORY, BHI_CHAOS_DEVICE,   BHI_CHAOS_REPLAY};
    const char *source = chaos->check_path ? "check" : chaos->replay_path ? "replay" : NULL;
    const size_t count = chaos->check_path ? sizeof of_a_run / sizeof of_a_run[0] : 8;
    for (size_t i = 0; source && i < count; i++) {
        if (bhi_args_has(args, of_a_run[i])) {
            return bhi_refuse(complaint, "--%s and --%s exclude each other", source,
                              bhi_options[of_a_run[i]].name);
        }
    }
    if (chaos->options.fault_count && bhi_args_has(args, BHI_CHAOS_DURATION)) {
        return bhi_refuse(complaint, "--count and --duration exclude each other");
    }
    return true;
}

static bool parse(struct chaos *chaos, const struct bhi_args *args,
                  struct bhi_complaint *complaint) {
    chaos->options = (struct bhi_engine_options){.duration_ns = default_duration_ns,
                                                 .streams = DEFAULT_STREAMS,
                                                 .fault_set = BHI_FAULTS_DEFAULT,
                                                 .rate = default_rate,
                                                 .find_rate = default_find_rate};
    return bhi_args_each(args, parse_item, chaos, complaint) &&
           check_excluded(chaos, args, complaint);
}

/* -- what is shown meanwhile ----------------------------------------------------------------- */

static void clear_line(struct chaos *chaos) {
    if (chaos->shown) {
        fputs("\r\033[K", stderr);
    }
    chaos->shown = false;
}

static void on_say(void *user, const char *line) {
    char clean[1024];
    struct chaos *chaos = user;
    pthread_mutex_lock(&chaos->telling);
    clear_line(chaos);
    fprintf(stderr, "bulkhead chaos: %s\n", bhi_text_clean(clean, sizeof clean, line));
    pthread_mutex_unlock(&chaos->telling);
}

static void on_progress(void *user, uint64_t operations, uint64_t ready, uint64_t poisoned,
                        uint64_t faults) {
    struct chaos *chaos = user;
    const uint64_t now_ns = bhi_clock_ns();
    if (!chaos->terminal && now_ns - chaos->told_ns < plain_line_ns) {
        return;
    }
    chaos->told_ns = now_ns;
    pthread_mutex_lock(&chaos->telling);
    clear_line(chaos);
    fprintf(stderr, "bulkhead chaos: %llu faults; %llu operations, %llu READY, %llu POISONED%s",
            (unsigned long long)faults, (unsigned long long)operations, (unsigned long long)ready,
            (unsigned long long)poisoned, chaos->terminal ? "" : "\n");
    fflush(stderr);
    chaos->shown = chaos->terminal;
    pthread_mutex_unlock(&chaos->telling);
}

/* -- steps ----------------------------------------------------------------------------------- */

static int refuse_file(const char *option, const char *path,
                       const struct bhi_complaint *complaint) {
    return bhi_complain_usage("chaos", "--%s %s: %s", option, path, complaint->text);
}

/* Is |path| the file that is replayed? It is evidence, so it must not be overwritten under any
 * name. */
static bool is_replayed(const struct chaos *chaos, const char *path) {
    struct stat replayed, there;
    if (!chaos->replay_path || stat(path, &there) != 0) {
        return false;
    }
    const bool found = !strcmp(chaos->replay_path, "-") ? fstat(STDIN_FILENO, &replayed) == 0
                                                        : stat(chaos->replay_path, &replayed) == 0;
    return found && S_ISREG(there.st_mode) && there.st_dev == replayed.st_dev &&
           there.st_ino == replayed.st_ino;
}

/* Checks that the history can be written before a run that may take hours. */
static int check_history(const struct chaos *chaos) {
    struct bhi_complaint complaint;
    struct bhi_outfile file = BHI_OUTFILE_CLOSED;
    const char *path = chaos->history_path;
    if (!path) {
        return BHI_EXIT_READY;
    }
    const bool good =
        is_replayed(chaos, path)
            ? bhi_refuse(&complaint, "that file is the history to replay: name another file")
            : bhi_outfile_open(path, 0, &file, &complaint);
    bhi_outfile_abandon(&file);
    return good ? BHI_EXIT_READY : refuse_file("history", path, &complaint);
}

static void name_default(struct chaos *chaos, unsigned number) {
    char suffix[16] = "";
    if (number > 1) {
        snprintf(suffix, sizeof suffix, "-%u", number);
    }
    snprintf(chaos->default_path, sizeof chaos->default_path, "%s%s.jsonl", chaos->default_name,
             suffix);
}

/* A run that is not valid is saved even without --history, under the first free name. */
static int check_default(struct chaos *chaos) {
    struct bhi_complaint complaint;
    struct bhi_outfile file;
    struct stat there;
    if (chaos->history_path) {
        return BHI_EXIT_READY;
    }
    for (unsigned number = 1; number <= most_numbered; number++) {
        name_default(chaos, number);
        if (lstat(chaos->default_path, &there) != 0) {
            break;
        }
    }
    const bool good = bhi_outfile_open(chaos->default_path, 0, &file, &complaint);
    bhi_outfile_abandon(&file);
    if (good) {
        return BHI_EXIT_READY;
    }
    return bhi_complain_usage("chaos", "the history %s: %s; --history FILE saves it elsewhere",
                              chaos->default_path, complaint.text);
}

static bool same_file(const char *one, const char *other) {
    struct bhi_complaint ignored;
    struct bhi_outfile a, b = BHI_OUTFILE_CLOSED;
    const bool same = bhi_outfile_open(one, 0, &a, &ignored) &&
                      bhi_outfile_open(other, 0, &b, &ignored) && bhi_outfile_same(&a, &b);
    bhi_outfile_abandon(&a);
    bhi_outfile_abandon(&b);
    return same;
}

/* The page is written after the history, so it must not be the same file. */
static int check_html(const struct chaos *chaos, const char *history_path) {
    struct bhi_complaint complaint;
    if (!chaos->html ||
        (bhi_page_check(chaos->html, &complaint) &&
         (!*history_path || !same_file(chaos->html, history_path) ||
          bhi_refuse(&complaint, "the history is saved there: name another file")))) {
        return BHI_EXIT_READY;
    }
    return refuse_file("html", chaos->html, &complaint);
}

static int tell_cancelled(void) {
    bhi_complain_cancelled("chaos", bhi_interrupt_exit_status(), "");
    return bhi_interrupt_exit_status();
}

/* A signal may end a read from a pipe; then the file is not to blame. */
static int load(const char *option, const char *path, struct bhi_history *history) {
    struct bhi_complaint complaint;
    const bool good = bhi_history_load(path, history, &complaint);
    if (bhi_interrupt_signal()) {
        return tell_cancelled();
    }
    return good ? BHI_EXIT_READY : refuse_file(option, path, &complaint);
}

static int load_replayed(struct chaos *chaos) {
    struct bhi_complaint complaint;
    const struct bhi_history_header *header = &chaos->replayed.header;
    struct bhi_engine_options *options = &chaos->options;
    if (!chaos->replay_path) {
        return BHI_EXIT_READY;
    }
    const int exit_status = load("replay", chaos->replay_path, &chaos->replayed);
    if (exit_status != BHI_EXIT_READY) {
        return exit_status;
    }
    if (!bhi_engine_can_replay(&chaos->replayed, &complaint)) {
        return refuse_file("replay", chaos->replay_path, &complaint);
    }
    options->seed = header->seed;
    options->duration_ns = header->duration_ns;
    options->fault_count = header->faults_asked;
    options->streams = header->streams;
    options->fault_set = header->fault_set;
    options->rate = header->rate;
    options->find_rate = 0; /* the run searches for the known finding */
    options->outside = header->outside;
    options->replay = &chaos->replayed;
    return BHI_EXIT_READY;
}

static int choose_seed(struct chaos *chaos) {
    uint32_t seed; /* 32 bits, so that it is short to type */
    if (!chaos->seeded && !chaos->options.replay) {
        if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
            seed = (uint32_t)bhi_clock_ns();
        }
        chaos->options.seed = seed;
    }
    snprintf(chaos->default_name, sizeof chaos->default_name, "chaos-%llu%s",
             (unsigned long long)chaos->options.seed, chaos->options.replay ? "-replayed" : "");
    name_default(chaos, 1);
    return BHI_EXIT_READY;
}

/* Makes room only for what is needed, because faults fill this process's table. */
static int check_descriptors(const struct chaos *chaos) {
    const uint32_t streams = chaos->options.streams;
    const uint32_t needed = base_descriptors + streams * stream_descriptors;
    char what[48];
    snprintf(what, sizeof what, "a run with %u stream%s", streams, streams == 1 ? "" : "s");
    return bhi_descriptors_make_room("chaos", what, needed) ? BHI_EXIT_READY : BHI_EXIT_ENVIRON;
}

static int choose_device(struct chaos *chaos) {
    int exit_status = BHI_EXIT_READY;
    if (!chaos->device) {
        return exit_status;
    }
    bh_context *context = bhi_session_open("chaos", false, NULL, &exit_status);
    if (!context) {
        return exit_status;
    }
    exit_status = bhi_device_choose("chaos", context, chaos->device, chaos->selector);
    bh_context_destroy(context);
    chaos->options.device = chaos->selector;
    return exit_status;
}

/* Leaves out faults that the device does not have, and says so. A replay needs all of its own. */
static int choose_faults(struct chaos *chaos) {
    static const struct {
        enum bhi_fault_kind kind;
        bool cuda;
        const char *why;
    } rows[] = {
        {BHI_FAULT_OOM, true, "a CUDA device compiles no kernel whose compile takes much memory"},
        {BHI_FAULT_UNGUARDED, true, "no kernel has a guard on a CUDA device; hang is the same"},
        {BHI_FAULT_ILLEGAL, false, "it needs a CUDA device (--device cuda)"},
    };
    struct bhi_engine_options *options = &chaos->options;
    options->cuda = bhi_selector_is_cuda(chaos->selector);
    if (options->cuda && !chaos->chosen && !options->replay) {
        options->fault_set = BHI_FAULTS_CUDA;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *name = bhi_fault_name(rows[i].kind);
        if (!(options->fault_set & 1u << rows[i].kind) || rows[i].cuda != options->cuda) {
            continue;
        }
        options->fault_set &= ~(1u << rows[i].kind);
        if (options->replay) {
            return bhi_complain_usage("chaos", "--replay %s: %s cannot be injected: %s",
                                      chaos->replay_path, name, rows[i].why);
        }
        if (!options->fault_set) {
            return bhi_complain_usage("chaos", "--faults: %s cannot be injected: %s", name,
                                      rows[i].why);
        }
        bhi_complain("chaos", "%s is left out: %s", name, rows[i].why);
    }
    return BHI_EXIT_READY;
}

static int run_engine(struct chaos *chaos) {
    struct bhi_complaint complaint;
    chaos->options.progress = on_progress;
    chaos->options.say = on_say;
    chaos->options.user = chaos;
    chaos->terminal = isatty(STDERR_FILENO) == 1;
    chaos->told_ns = bhi_clock_ns();
    const enum bhi_engine_result result =
        bhi_engine_run(&chaos->options, &chaos->history, &complaint);
    clear_line(chaos);
    chaos->ran = result != BHI_ENGINE_ENVIRON;
    if (result == BHI_ENGINE_INTERRUPTED) {
        (void)tell_cancelled();
    }
    if (chaos->ran) {
        return BHI_EXIT_READY;
    }
    return bhi_complain_environ("chaos", "%s", complaint.text);
}

/* Makes the file, so that another run of the same seed cannot take the name. Existing files stay,
 * because they are evidence too. */
static bool take_default(struct chaos *chaos, struct bhi_complaint *complaint) {
    int fd = -1;
    for (unsigned number = 1; fd < 0 && number <= most_numbered; number++) {
        name_default(chaos, number);
        fd = open(chaos->default_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) {
            break;
        }
    }
    if (fd < 0) {
        return bhi_refuse(complaint, "cannot be written: %s", strerror(errno));
    }
    close(fd);
    return true;
}

static bool save_to(struct chaos *chaos, const char *path, struct bhi_complaint *complaint) {
    if (chaos->history_path) {
        return bhi_history_save(&chaos->history, path, complaint);
    }
    if (!take_default(chaos, complaint)) {
        return false;
    }
    if (bhi_history_save(&chaos->history, path, complaint)) {
        return true;
    }
    unlink(path);
    return false;
}

/* Returns where the history was saved; NULL if it was not. */
static const char *save(struct chaos *chaos, bool failing, int *inout_exit) {
    struct bhi_complaint complaint;
    const char *path = chaos->history_path ? chaos->history_path : chaos->default_path;
    if (chaos->check_path) {
        return failing ? chaos->check_path : NULL;
    }
    if (!chaos->history_path && !failing) {
        return NULL;
    }
    if (save_to(chaos, path, &complaint)) {
        return path;
    }
    bhi_complain("chaos", "the history %s: %s", path, complaint.text);
    if (*inout_exit == BHI_EXIT_READY) {
        *inout_exit = BHI_EXIT_ENVIRON;
    }
    return NULL;
}

static int judge(struct chaos *chaos) {
    static const int exit_statuses[] = {[BHI_CHAOS_VALID] = BHI_EXIT_READY,
                                        [BHI_CHAOS_INVALID] = BHI_EXIT_POISONED,
                                        [BHI_CHAOS_UNKNOWN] = EXIT_UNKNOWN};
    struct bhi_complaint complaint;
    struct bhi_chaos_result *result = calloc(1, sizeof *result);
    if (!result || !bhi_chaos_check(&chaos->history, result)) {
        free(result);
        return bhi_complain_memory("chaos");
    }
    /* A run that was cut short is checked all the same. */
    const int verdict = exit_statuses[result->verdict];
    int exit_status = chaos->ran ? bhi_interrupt_or(verdict) : verdict;
    const char *path = save(chaos, result->verdict != BHI_CHAOS_VALID, &exit_status);
    if (chaos->html && !bhi_chaos_report_html(chaos->html, &chaos->history, result, &complaint)) {
        bhi_complain("chaos", "--html %s: %s", chaos->html, complaint.text);
        if (exit_status == BHI_EXIT_READY) {
            exit_status = BHI_EXIT_ENVIRON;
        }
    }
    if (!chaos->json) {
        bhi_chaos_report_text(stdout, &chaos->history, result, path);
    } else if (!bhi_chaos_report_json(stdout, &chaos->history, result, path)) {
        bhi_complain("chaos", "the report cannot be printed");
        if (exit_status == BHI_EXIT_READY) {
            exit_status = BHI_EXIT_ENVIRON;
        }
    }
    free(result);
    return exit_status;
}

static int make_history(struct chaos *chaos) {
    if (chaos->check_path) {
        return load("check", chaos->check_path, &chaos->history);
    }
    return load_replayed(chaos) ?: choose_seed(chaos) ?: check_default(chaos) ?:
           check_html(chaos, chaos->history_path ? "" : chaos->default_path) ?:
           check_descriptors(chaos) ?: choose_device(chaos) ?: choose_faults(chaos) ?:
           run_engine(chaos);
}

static int chaos_main(const struct bhi_args *args) {
    struct bhi_complaint complaint;
    struct chaos chaos = {.telling = PTHREAD_MUTEX_INITIALIZER};
    int exit_status;
    if (!parse(&chaos, args, &complaint)) {
        return bhi_complain_usage("chaos", "%s; see bulkhead chaos --help", complaint.text);
    }
    bhi_history_init(&chaos.history);
    bhi_history_init(&chaos.replayed);
    exit_status = check_history(&chaos) ?:
                  check_html(&chaos, chaos.history_path ? chaos.history_path : "") ?:
                  make_history(&chaos) ?: judge(&chaos);
    bhi_history_free(&chaos.history);
    bhi_history_free(&chaos.replayed);
    return exit_status;
}

int bhi_chaos_main(const struct bhi_args *args) {
    if (bhi_chaos_host_asked(args)) {
        return bhi_chaos_host_main(args);
    }
    return bhi_error_json(bhi_args_has(args, BHI_CHAOS_JSON), chaos_main, args);
}
