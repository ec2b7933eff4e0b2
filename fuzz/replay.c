/* Runs a fuzz target over the files of a folder, then over mutations of them, for a bounded time:
 *     fuzz_wire_replay FOLDER [SECONDS [SEED]]
 * The same seed gives the same mutations. */
#include "fuzz.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_FILES 4096
#define MAX_SIZE  65536

struct input {
    uint8_t *bytes;
    size_t size;
};

static struct input inputs[MAX_FILES];
static size_t input_count;

static uint64_t next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

/* Each run gets memory of exactly its size, so that a byte too far is seen. */
static void run(const uint8_t *bytes, size_t size) {
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact) {
        abort();
    }
    if (size) {
        memcpy(exact, bytes, size);
    }
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static int read_file(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rbe");
    struct input *in = &inputs[input_count];
    in->bytes = malloc(MAX_SIZE);
    if (!file || !in->bytes) {
        perror(path);
        return -1;
    }
    in->size = fread(in->bytes, 1, MAX_SIZE, file);
    fclose(file);
    input_count++;
    return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int read_folder(const char *folder) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, by_name);
    int rc = count < 0 ? -1 : 0;
    if (rc) {
        perror(folder);
    }
    for (int i = 0; i < count; i++) {
        if (rc == 0 && entries[i]->d_name[0] != '.' && input_count < MAX_FILES) {
            rc = read_file(folder, entries[i]->d_name);
        }
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
    return rc;
}

static size_t mutate(uint8_t *bytes, size_t size, uint64_t *seed) {
    static const uint8_t edges[] = {0, 1, 2, 3, 4, 7, 8, 16, 0x7f, 0x80, 0xff, '\n', 0x1b};
    size_t at = size ? next(seed) % size : 0;
    switch (next(seed) % 6) {
    case 0:
        if (size) {
            bytes[at] ^= (uint8_t)(1u << next(seed) % 8);
        }
        return size;
    case 1:
        if (size) {
            bytes[at] = edges[next(seed) % sizeof edges];
        }
        return size;
    case 2: /* a number of another size */
        for (size_t i = 0; i < 4 && at + i < size; i++) {
            bytes[at + i] = next(seed) % 2 ? 0xff : (uint8_t)next(seed);
        }
        return size;
    case 3:
        return at;
    case 4: { /* the end of another input */
        const struct input *other = &inputs[next(seed) % input_count];
        size_t from = other->size ? next(seed) % other->size : 0, n = other->size - from;
        if (n > MAX_SIZE - at) {
            n = MAX_SIZE - at;
        }
        memcpy(bytes + at, other->bytes + from, n);
        return at + n;
    }
    default:
        if (size + 8 <= MAX_SIZE) {
            memmove(bytes + at + 8, bytes + at, size - at);
            return size + 8;
        }
        return size;
    }
}

int main(int argc, char **argv) {
    if (argc < 2 || read_folder(argv[1]) || input_count == 0) {
        fprintf(stderr, "usage: %s FOLDER [SECONDS [SEED]] (and there must be files in it)\n",
                argv[0]);
        return 2;
    }
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 0;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) | 1 : 1;
    static uint8_t bytes[MAX_SIZE];
    for (size_t i = 0; i < input_count; i++) {
        run(inputs[i].bytes, inputs[i].size);
    }
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    uint64_t rounds = 0;
    do {
        const struct input *in = &inputs[next(&seed) % input_count];
        size_t size = in->size;
        memcpy(bytes, in->bytes, size);
        for (uint64_t n = next(&seed) % 4; n > 0; n--) {
            size = mutate(bytes, size, &seed);
        }
        run(bytes, size);
        rounds++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9 <
             seconds);
    printf("%zu inputs, %llu mutations\n", input_count, (unsigned long long)rounds);
    for (size_t i = 0; i < input_count; i++) {
        free(inputs[i].bytes);
    }
    return 0;
}
