/* Judges kernels: which of these compute z = 2.5 x + y? Usage: build/bin/example_judge [FILE...]
 * judges files; without one, three sources that it has. The exit status is 0 if all are correct. */
#include <bulkhead/judge.h>
#include <stdio.h>

static const char task[] =
    "{\"name\": \"saxpy\", \"sizes\": [{\"n\": 1000}, {\"n\": 65536}],\n"
    " \"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"fill\": \"normal\"},\n"
    "        \"Y\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"fill\": {\"uniform\": [-1, 1]}}},\n"
    " \"out\": {\"Z\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"abs\": 1e-6, \"rel\": 1e-6}},\n"
    " \"groups\": [\"ceildiv(n, local_x)\"],\n"
    " \"reference\": {\"eval\": \"Z = 2.5*X + Y\"}}";

#define KERNEL(body)                                                                               \
    "#version 450\n"                                                                               \
    "layout(local_size_x = 64) in;\n"                                                              \
    "layout(set = 0, binding = 0) readonly buffer X { float x[]; };\n"                             \
    "layout(set = 0, binding = 1) readonly buffer Y { float y[]; };\n"                             \
    "layout(set = 0, binding = 2) buffer Z { float z[]; };\n"                                      \
    "void main() { uint i = gl_GlobalInvocationID.x; " body " }\n"

#define SIZE sizeof(bh_judge_candidate)

static const bh_judge_candidate own[] = {
    {.struct_size = SIZE,
     .name = "right",
     .code = KERNEL("if (i < x.length()) z[i] = 2.5 * x[i] + y[i];")},
    {.struct_size = SIZE,
     .name = "short",
     .code = KERNEL("if (i < x.length()) z[i] = i < 1000 ? 2.5 * x[i] + y[i] : 0;")},
    {.struct_size = SIZE,
     .name = "broken",
     .code = KERNEL("if (i < x.length()) z[i] = 2.5 * x[i] + w[i];")},
};

int main(int argc, char **argv) {
    const int count = argc > 1 ? argc - 1 : (int)(sizeof own / sizeof own[0]);
    const uint64_t seed = 42; /* without one it is random, and bh_judge_seeds tells it */
    int correct = 0;
    bh_judge *judge = NULL;
    bh_judge_options options = {.struct_size = sizeof options};
    bh_detail why = {0};
    options.task_text = task;
    options.seeds = &seed;
    options.seed_count = 1;
    if (bh_judge_create(&options, &judge, &why) || bh_judge_prepare(judge, &why)) {
        fprintf(stderr, "%s\n", why.message);
        bh_judge_destroy(judge);
        return 2;
    }
    for (int i = 0; i < count; i++) {
        const bh_judge_candidate file = {.struct_size = sizeof file, .path = argv[i + 1]};
        bh_judgement judgement = {.struct_size = sizeof judgement};
        if (bh_judge_run(judge, argc > 1 ? &file : &own[i], &judgement, &why)) {
            fprintf(stderr, "%s\n", why.message); /* the machine has failed: nothing is known */
            break;
        }
        printf("%s: %s%s%s\n", judgement.name,
               bh_judge_verdict_name(judgement.verdict, judgement.status),
               judgement.message[0] ? ": " : "", judgement.message);
        correct += judgement.verdict == BH_JUDGE_CORRECT;
    }
    bh_judge_destroy(judge);
    return correct == count ? 0 : 1;
}
