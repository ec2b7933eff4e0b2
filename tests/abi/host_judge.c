/* What host.c does for the structs of libbulkhead, for those of libbulkhead-judge. */
#include <bulkhead/judge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition,            \
                    why.message);                                                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const char task[] =
    "{\"sizes\": [{\"n\": 3}], \"out\": {\"Y\": {\"dtype\": \"u32\", \"shape\": [\"n\"]}},"
    " \"in\": {\"X\": {\"dtype\": \"u32\", \"shape\": [\"n\"], \"fill\": {\"integers\": [1, 9]}}},"
    " \"groups\": [1], \"reference\": {\"eval\": \"Y = X + X\"}}";
#define KERNEL(value)                                                                              \
    "#version 450\n"                                                                               \
    "layout(local_size_x = 1) in;\n"                                                               \
    "layout(binding = 0) readonly buffer X { uint x[]; };\n"                                       \
    "layout(binding = 1) buffer Y { uint y[]; };\n"                                                \
    "void main() { for (uint i = 0; i < 3; i++) y[i] = " value "; }\n"

static bh_detail why;

/* A struct with a pattern behind it. */
struct {
    bh_judge_options it;
    unsigned char behind[64];
} options;
struct {
    bh_judgement it;
    unsigned char behind[64];
} judgement;

static void untouched(const unsigned char behind[64]) {
    for (int i = 0; i < 64; i++) {
        EXPECT(behind[i] == 0xA5);
    }
}

int main(void) {
    bh_judge *judge = NULL;
    bh_judge_candidate candidate = {
        .struct_size = sizeof candidate, .name = "right", .code = KERNEL("x[i] + x[i]")};
    memset(&options, 0xA5, sizeof options);
    options.it = (bh_judge_options){.struct_size = sizeof(bh_judge_options)};
    options.it.task_text = task;
#ifdef GROWN
    options.it.abi_probe = 1;
    EXPECT(bh_judge_create(&options.it, &judge, &why) == BH_INVALID_ARGUMENT);
    EXPECT(strstr(why.message, "bh_judge_options") && strstr(why.message, "sets a field"));
    options.it.abi_probe = 0;
#endif
    EXPECT(bh_judge_create(&options.it, &judge, &why) == BH_OK);
    memset(&judgement, 0xA5, sizeof judgement);
    judgement.it.struct_size = sizeof judgement.it;
#ifdef GROWN
    candidate.abi_probe = 1;
    EXPECT(bh_judge_run(judge, &candidate, &judgement.it, &why) == BH_INVALID_ARGUMENT);
    EXPECT(strstr(why.message, "bh_judge_candidate") && strstr(why.message, "sets a field"));
    EXPECT(judgement.it.abi_probe == 0);
    candidate.abi_probe = 0;
#endif
    EXPECT(bh_judge_run(judge, &candidate, &judgement.it, &why) == BH_OK);
    untouched(judgement.behind);
    EXPECT(judgement.it.verdict == BH_JUDGE_CORRECT && judgement.it.deterministic);
    EXPECT(!strcmp(judgement.it.name, "right") && !judgement.it.message[0]);
    candidate.code = KERNEL("x[i] + x[i] + uint(i == 2)");
    EXPECT(bh_judge_run(judge, &candidate, &judgement.it, &why) == BH_OK);
    untouched(judgement.behind);
    EXPECT(judgement.it.verdict == BH_JUDGE_WRONG && judgement.it.index[0] == 2);
    EXPECT(strstr(judgement.it.message, "Y[2] is "));
#ifdef GROWN
    EXPECT(judgement.it.abi_probe == 0);
#endif
    /* A size that no version had. */
    candidate.struct_size = 8;
    EXPECT(bh_judge_run(judge, &candidate, &judgement.it, &why) == BH_INVALID_ARGUMENT);
    candidate.struct_size = sizeof candidate;
    judgement.it.struct_size = 8;
    EXPECT(bh_judge_run(judge, &candidate, &judgement.it, &why) == BH_INVALID_ARGUMENT);
    untouched(judgement.behind);
    bh_judge_destroy(judge);
    return 0;
}
