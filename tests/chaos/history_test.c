/* A history on disk: what is written is read again, and nothing else is read. */
#include "chaos/history/history.h"
#include "harness.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/chaos-history-XXXXXX";
static struct bhi_complaint complaint;

/* -- what is written is read again --------------------------------------------------------------
 */

static void begin(struct bhi_history *history) {
    bhi_history_init(history);
    struct bhi_history_header *h = &history->header;
    strcpy(h->version, "0.1.0");
    h->seed = UINT64_MAX; /* more than JSON's numbers are sure to hold */
    h->duration_ns = 60000000000;
    h->faults_asked = 7;
    h->streams = 3;
    h->fault_set = 1u << BHI_FAULT_KILL | 1u << BHI_FAULT_FULL;
    h->rate = 12.5;
    h->outside = true;
    h->accelerator = true;
    h->patience_ns = 30000000000;
    h->recovery_ns = 5000000000;
    h->compile_ns = 7000000000;
    strcpy(h->device, "lavapipe:0");
    strcpy(h->driver, "Mesa \"x\" \xc3\xa9");
}

/* One of each kind, with a value of its own in each field. */
static void records(struct bhi_history *history) {
    struct bhi_record all[] = {
        {.kind = BHI_RECORD_OP,
         .at_ns = 1,
         .op = 2,
         .stream = 2,
         .submit = {.event = 5,
                    .bait = true,
                    .device = true,
                    .input_count = 2,
                    .inputs = {1, 9},
                    .wait = 8,
                    .reuses = 3,
                    .deadline_ns = UINT64_MAX,
                    .work = {4096, 4294967295u, 77, 31, 3}}},
        {.kind = BHI_RECORD_REFUSED,
         .at_ns = 3,
         .op = 4,
         .stream = 1,
         .refused = {.status = BH_NO_MEMORY, .call = "bh_buffer_create"}},
        {.kind = BHI_RECORD_END,
         .at_ns = 4,
         .op = 2,
         .end = {.lost = true,
                 .state = BH_EVENT_POISONED,
                 .status = BH_WORKER_SIGNAL,
                 .executed = BH_EXECUTED_UNKNOWN,
                 .signal = 11,
                 .worker_pid = 4711,
                 .origin = 5,
                 .hops = 6,
                 .submitted_ns = 1,
                 .started_ns = 2,
                 .ended_ns = 3,
                 .changed = true}},
        {.kind = BHI_RECORD_RESULT,
         .at_ns = 5,
         .op = 2,
         .result = {.status = BH_OK, .digest = {0, 1, 2, 0xfe, 0xff}}},
        {.kind = BHI_RECORD_FAULT,
         .at_ns = 6,
         .op = 2,
         .stream = 1,
         .fault = {.number = 1,
                   .kind = BHI_FAULT_ZYGOTE,
                   .outside = true,
                   .missed = true,
                   .pid_count = 2,
                   .pids = {12, 2147483647},
                   .after_op = 2,
                   .lasts_ns = 9}},
        {.kind = BHI_RECORD_HEALED, .at_ns = 7, .healed = {.number = 1}},
        {.kind = BHI_RECORD_SAMPLE,
         .at_ns = 8,
         .sample = {.descriptors = 20,
                    .processes = 4,
                    .files = 3,
                    .rss_bytes = 123456789012,
                    .idle = true}},
        {.kind = BHI_RECORD_STALL, .at_ns = 9, .stall = {.lasted_ns = 250000000}},
        {.kind = BHI_RECORD_STALL, .at_ns = 10, .stall = {.lasted_ns = 400000000, .pid = 4711}},
        {.kind = BHI_RECORD_MEMORY,
         .at_ns = 11,
         .memory = {.device = "nvidia:1",
                    .last = true,
                    .budget = true,
                    .total = UINT64_MAX,
                    .unused = 12,
                    .nvml = true,
                    .used = 13,
                    .listed = true,
                    .others = 14,
                    .other_processes = 15,
                    .utilised = true,
                    .utilisation = 100,
                    .waited_ns = 16}},
    };
    for (size_t i = 0; i < BHT_COUNT(all); i++) {
        bhi_history_note(history, &all[i]);
    }
}

static void make(struct bhi_history *history) {
    begin(history);
    records(history);
}

static const char *path_of(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void same(const struct bhi_history *a, const struct bhi_history *b) {
    BHT_MEM_EQ(&a->header, &b->header, sizeof a->header);
    BHT_EQ(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        BHT_MEM_EQ(&a->records[i], &b->records[i], sizeof *a->records);
    }
    BHT_EQ(a->complete, b->complete);
    BHT_EQ(a->overflow, b->overflow);
}

static void read_again(struct bhi_history *history) {
    struct bhi_history again;
    BHT_TRUE(bhi_history_save(history, path_of("trip"), &complaint));
    if (!bhi_history_load(path_of("trip"), &again, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
    same(history, &again);
    bhi_history_free(&again);
    bhi_history_free(history);
    bhi_history_free(history); /* harmless */
}

TEST(what_is_written_is_read) {
    for (int i = 0; i < 4; i++) {
        struct bhi_history history;
        make(&history);
        history.complete = i % 2;
        history.overflow = i / 2;
        read_again(&history);
    }
}

TEST(many_records) {
    struct bhi_history history;
    begin(&history);
    for (int i = 0; i < 2000; i++) {
        records(&history);
    }
    BHT_EQ(history.count, 20000);
    read_again(&history);
}

/* -- and nothing else ---------------------------------------------------------------------------
 */

/* The complaint about |text|, or "" where it is read. */
static const char *complaint_about(const char *text, size_t size) {
    struct bhi_history history;
    complaint.text[0] = 0;
    FILE *file = size ? fmemopen((void *)(uintptr_t)text, size, "r") : fopen("/dev/null", "re");
    BHT_NE(file, NULL);
    bool good = bhi_history_read(file, &history, &complaint);
    BHT_EQ(good, complaint.text[0] == 0);
    BHT_TRUE(good || !history.records);
    fclose(file);
    bhi_history_free(&history);
    return complaint.text;
}

/* The lines of a good history. */
static const char *good_lines(void) {
    static char text[65536];
    struct bhi_history history;
    make(&history);
    history.complete = true;
    BHT_TRUE(bhi_history_save(&history, path_of("good"), &complaint));
    bhi_history_free(&history);
    FILE *file = fopen(path_of("good"), "re");
    BHT_TRUE(file && fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    return text;
}

static size_t line_of(const char *text, const char *at) {
    size_t line = 1;
    for (; text < at; text++) {
        line += *text == '\n';
    }
    return line;
}

/* |text| with the key that begins at |at| called otherwise, or with its value an object. */
static const char *broken_at(const char *text, const char *at, size_t key, bool rename) {
    static char out[65536];
    const char *value = at + key + 3;
    const char *end = *value == '['   ? strchr(value, ']') + 1
                      : *value == '"' ? strchr(value + 1, '"') + 1
                                      : value + strcspn(value, ",}");
    if (strstr(value, "Mesa \\\"") == value + 1) { /* quotes in it */
        end = strchr(value, '}');
    }
    if (rename) {
        snprintf(out, sizeof out, "%.*sX%s", (int)(at - text) + 1, text, at + 2);
    } else {
        snprintf(out, sizeof out, "%.*s{}%s", (int)(value - text), text, end);
    }
    return out;
}

static bool is_new(const char *key, size_t length) {
    static const char *const all[] = {"find_rate", "compile_ns", "pid", "device"};
    for (size_t i = 0; i < BHT_COUNT(all); i++) {
        if (strlen(all[i]) == length && strncmp(key, all[i], length) == 0) {
            return true;
        }
    }
    return false;
}

/* In each line each key is taken away, then given the wrong type: line and key are named. */
TEST(each_key_is_needed) {
    const char *text = good_lines();
    int seen = 0;
    for (const char *at = strchr(text, '"'); at; at = strchr(at, '"')) {
        const char *end = strchr(at + 1, '"');
        size_t length = (size_t)(end - at - 1);
        if (end[1] == ':' && end[-1] != '\\') {
            char where[128];
            snprintf(where, sizeof where, "line %zu: '%.*s'", line_of(text, at), (int)length,
                     at + 1);
            /* What earlier histories do not have may be missing. */
            const int ways = is_new(at + 1, length) ? 1 : 2;
            for (int rename = 0; rename < ways; rename++) {
                const char *broken = broken_at(text, at, length, rename);
                BHT_STR_HAS(complaint_about(broken, strlen(broken)), where);
            }
            seen++;
        }
        at = end + 1;
    }
    BHT_EQ(seen, 16 + 16 + 6 + 16 + 5 + 11 + 3 + 7 + 4 + 4 + 15 + 1);
}

/* A piece of a good history, and what is in its place. */
TEST(what_is_refused) {
    static const struct {
        const char *piece, *other, *words;
    } cases[] = {
        {"`patience_ns`:30000000000", "`patience_ns`:0",
         "'patience_ns' must be a whole number from 1 "},
        {"`recovery_ns`:5000000000", "`recovery_ns`:0",
         "'recovery_ns' must be a whole number from 1 "},
        {"`bulkhead_chaos`:1", "`bulkhead_chaos`:2", "line 1: 'bulkhead_chaos' is 2"},
        {"`bulkhead_chaos`:1", "`x`:1", "not a history of bulkhead chaos"},
        {"`seed`:", "`seed`:`99999999999999999999`,`x`:", "line 1: 'seed'"},
        {"`18446744073709551615`", "`18446744073709551616`", "line 1: 'seed'"},
        {"`18446744073709551615`", "` 1`", "line 1: 'seed'"},
        {"`18446744073709551615`", "`1x`", "line 1: 'seed'"},
        {"`18446744073709551615`", "`-1`", "line 1: 'seed'"},
        {"`18446744073709551615`", "-1", "line 1: 'seed'"},
        {"`18446744073709551615`", "1.5", "line 1: 'seed'"},
        {"`18446744073709551615`", "9223372036854775808",
         "line 1: too big integer near '9223372036854775808': write a number above "
         "9223372036854775807 as a string of digits"},
        {"`streams`:3", "`streams`:0", "line 1: 'streams' must be a whole number from 1"},
        {"`streams`:3", "`streams`:17", "line 1: 'streams'"},
        {"`streams`:3", "`streams`:2",
         "line 2: 'stream' must be less than 2, the number of streams"},
        {"[`kill`,`full`]", "[`kill`,`kill`]", "line 1: 'faults'"},
        {"[`kill`,`full`]", "[`kill,full`]", "line 1: 'faults'"},
        {"[`kill`,`full`]", "[`burn`]", "line 1: 'faults'"},
        {"[`kill`,`full`]", "[1]", "line 1: 'faults'"},
        {"`rate`:12.5", "`rate`:-1", "line 1: 'rate'"},
        {"`rate`:12.5", "`rate`:1e999", "line 1: "},
        {"lavapipe:0", "a\\u001bb", "line 1: 'device' must be without control characters"},
        {"lavapipe:0", "a\\u0000b", "line 1: "},
        {"lavapipe:0", "lavapipe:0lavapipe:0lavapipe:0lavapipe:0lavapipe:0lavapipe:0abcd",
         "line 1: 'device' must be a text of at most 63 bytes"},
        {"`op`:2", "`op`:0", "line 2: 'op'"},
        {"`inputs`:[1,9]", "`inputs`:[1,9,1,1,1]",
         "line 2: 'inputs' must be an array of at most 4"},
        {"`inputs`:[1,9]", "`inputs`:[0]", "line 2: 'inputs'"},
        {"`device`:true", "`device`:1", "line 2: 'device' must be true or false"},
        {"`words`:4096", "`words`:16385", "line 2: 'words'"},
        {"`rounds`:3", "`rounds`:65", "line 2: 'rounds'"},
        {"NO_MEMORY", "NO_MEMORIES", "line 3: 'status' must be a status' name"},
        {"`poisoned`", "`poison`", "line 4: 'state' must be one of: pending, ready"},
        {"`signal`:11", "`signal`:65", "line 4: 'signal'"},
        {"`worker_pid`:4711", "`worker_pid`:2147483648", "line 4: 'worker_pid'"},
        {"0001", "000g", "line 5: 'digest' must be 32 hexadecimal digits"},
        {"0001", "00", "line 5: 'digest'"},
        {"`zygote`", "`burn`", "line 6: 'fault' must be one of: kill, segv"},
        {"2147483647", "2147483648", "line 6: 'pids'"},
        {"`utilisation`:100", "`utilisation`:101", "line 11: 'utilisation'"},
        {"nvidia:1", "123456789012345678901234567890123456789012345678",
         "line 11: 'device' must be a text of at most 47 bytes"},
        {"`kind`:`healed`", "`kind`:`healing`",
         "line 7: 'kind' is 'healing'; it must be one of: op, refused"},
        {"`kind`:`healed`", "`kind`:1", "line 7: 'kind'"},
        {"`idle`:true", "`idle`:1", "line 8: 'idle' must be true or false"},
        {"`idle`:true", "`idle`:true,`idle`:true", "line 8: duplicate"},
        {"`idle`:true", "`idle`:true,`more`:1", "line 8: unknown key 'more'"},
        {"{`kind`:`stall`", "\n{`kind`:`stall`", "line 9: "},
        {"{`kind`:`stall`", "[1]\n{`kind`:`stall`", "line 9: not an object"},
        {"{`kind`:`stall`", "{`kind`:`complete`}\n{`kind`:`stall`",
         "line 10: it follows the record 'complete'"},
        {"{`kind`:`stall`", "{`kind`:`overflow`}\n{`kind`:`stall`",
         "line 10: only 'complete' can follow 'overflow'"},
        {"{`kind`:`complete`}\n", "{`kind`:`complete`}\n{", "line 13: it is cut off"},
        {"{`kind`:`complete`}\n", "{`kind`:`complete`}", "line 12: it is cut off"},
        {"{`kind`:`complete`", "{`kind`:`complete`,`at_ns`:1", "line 12: unknown key 'at_ns'"},
    };
    const char *text = good_lines();
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        char broken[65536];
        const char *piece = bht_quoted(cases[i].piece), *other = bht_quoted(cases[i].other);
        const char *at = strstr(text, piece);
        BHT_NE(at, NULL);
        snprintf(broken, sizeof broken, "%.*s%s%s", (int)(at - text), text, other,
                 at + strlen(piece));
        const char *said = complaint_about(broken, strlen(broken));
        if (!strstr(said, cases[i].words)) {
            BHT_FAIL("%s for %s: '%s', not '%s'", other, piece, said, cases[i].words);
        }
    }
    BHT_STR_HAS(complaint_about("", 0), "it is empty");
    BHT_STR_HAS(complaint_about("\n", 1), "line 1: ");
    BHT_STR_HAS(complaint_about("\0\n", 2), "line 1: there is a NUL byte in it");
}

TEST(a_line_too_long) {
    size_t size = 1 << 20;
    static char text[1 << 20];
    memset(text, ' ', size);
    BHT_STR_HAS(complaint_about(text, size), "line 1: it is longer than 65536 bytes");
    text[size - 1] = '\n';
    BHT_STR_HAS(complaint_about(text, size), "line 1: it is longer than 65536 bytes");
    BHT_STR_HAS(complaint_about(text, 65536), "line 1: it is longer than");
    BHT_STR_HAS(complaint_about(text, 65535), "line 1: it is cut off");
    text[65535] = '\n'; /* as much as there may be, and no object */
    BHT_EQ(strstr(complaint_about(text, 65536), "more than"), NULL);
}

/* Cut anywhere it is refused, but between two lines, where it is an incomplete one. */
TEST(cut_anywhere) {
    const char *text = good_lines();
    for (size_t size = 1; size < strlen(text); size++) {
        BHT_EQ(complaint_about(text, size)[0] == 0, text[size - 1] == '\n');
    }
}

/* -- files --------------------------------------------------------------------------------------
 */

static bool full; /* no file can be put in its place */

BHT_WRAP(int, renameat, int from_folder, const char *from, int to_folder, const char *to) {
    if (full) {
        errno = EDQUOT;
        return -1;
    }
    return __real_renameat(from_folder, from, to_folder, to);
}

TEST(whole_or_not_at_all) {
    struct bhi_history history, again;
    make(&history);
    BHT_TRUE(bhi_history_save(&history, path_of("keep"), &complaint));
    /* A record that cannot be written: the old file stays. */
    history.records[2].end.status = (bh_status)12345;
    BHT_TRUE(!bhi_history_save(&history, path_of("keep"), &complaint));
    BHT_STR_HAS(complaint.text, "'status'");
    BHT_TRUE(bhi_history_load(path_of("keep"), &again, &complaint));
    BHT_EQ(again.records[2].end.status, BH_WORKER_SIGNAL);
    bhi_history_free(&again);
    BHT_TRUE(!bhi_history_save(&history, path_of("no/such"), &complaint));
    history.records[2].end.status = BH_OK;
    full = true;
    BHT_TRUE(!bhi_history_save(&history, path_of("keep"), &complaint));
    BHT_STR_HAS(complaint.text, strerror(EDQUOT));
    full = false;
    if (access("/dev/full", W_OK) == 0) {
        BHT_TRUE(!bhi_history_save(&history, "/dev/full", &complaint));
        BHT_STR_HAS(complaint.text, "cannot be written");
    }
    bhi_history_free(&history);
    BHT_TRUE(!bhi_history_load(path_of("nothing"), &again, &complaint));
    BHT_STR_HAS(complaint.text, "cannot be opened");
    BHT_TRUE(!bhi_history_load(folder, &again, &complaint));
    BHT_STR_HAS(complaint.text, "cannot be read");
}

/* -- names of faults ----------------------------------------------------------------------------
 */

TEST(names_of_faults) {
    uint32_t set = 7;
    for (unsigned kind = 0; kind < BHI_FAULT_KINDS; kind++) {
        BHT_TRUE(bhi_fault_parse(bhi_fault_name((enum bhi_fault_kind)kind), &set, &complaint));
        BHT_EQ(set, 1u << kind);
    }
    BHT_STR_EQ(bhi_fault_name(BHI_FAULT_KINDS), "unknown");
    BHT_TRUE(bhi_fault_parse("kill,segv,kill,full", &set, &complaint));
    BHT_EQ(set, 1u << BHI_FAULT_KILL | 1u << BHI_FAULT_SEGV | 1u << BHI_FAULT_FULL);
    static const char *const bad[] = {"",    ",",     "kill,",     ",kill",
                                      "kil", "kills", "kill segv", "Kill"};
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {
        set = 7;
        BHT_TRUE(!bhi_fault_parse(bad[i], &set, &complaint));
        BHT_EQ(set, 7);
        BHT_STR_HAS(complaint.text, "is not a fault");
    }
}

static void make_folder(void) {
    BHT_NE(mkdtemp(folder), NULL);
}

static void remove_folder(void) {
    static const char *const names[] = {"trip", "good", "keep"};
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        unlink(path_of(names[i]));
    }
    BHT_EQ(rmdir(folder), 0); /* nothing else was left */
}

BHT_AT_START(bht_around(make_folder, remove_folder))
