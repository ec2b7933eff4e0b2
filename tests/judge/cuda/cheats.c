/* Candidates for z = a * x + y on the fake CUDA driver: honest ones, and those that cheat. tests/judge/cuda.sh says
 * what each is to be called. */
#include "tests/fake_cuda/kernel.h"

enum {
    MARGIN = 1024,
    TAIL = 4096,
    PAGE = 1 << 19
}; /* floats: judge/check/setup.h, the driver's pages */

#define CANDIDATE(name)                                                                            \
    FAKE_KERNEL(name, (const float *, x), (const float *, y), (float *, z), (float, a),            \
                (uint32_t, n))
#define INDEX    const uint32_t i = fake_index(thread)
#define RIGHT(i) (p->a * p->x[i] + p->y[i])

CANDIDATE(honest) {
    INDEX;
    if (i < p->n) {
        p->z[i] = RIGHT(i);
    }
}

CANDIDATE(half) {
    INDEX;
    if (i < p->n / 2) {
        p->z[i] = RIGHT(i);
    }
}

CANDIDATE(swapped) {
    INDEX;
    if (i < p->n) {
        p->z[i] = p->a * p->y[i] + p->x[i];
    }
}

CANDIDATE(traps) {
    (void)p;
    thread->fail(719);
}

CANDIDATE(wild) {
    (void)thread;
    *(volatile float *)(uintptr_t)0x1000 = p->a;
}

CANDIDATE(endless) {
    while (p->z[0] != 7.0f || p->a < 1e30f) {
        thread->pause();
    }
}

CANDIDATE(writes_input) {
    INDEX;
    if (i < p->n) {
        p->z[i] = RIGHT(i);
        ((float *)(uintptr_t)p->x)[i] = 0;
    }
}

CANDIDATE(reads_past) {
    INDEX;
    if (i < p->n) {
        p->z[i] = RIGHT(i) + (i + 1 == p->n ? p->y[p->n] : 0);
    }
}

CANDIDATE(reads_past_output) {
    INDEX;
    if (i < p->n) {
        const float behind = p->z[p->n];
        p->z[i] = RIGHT(i) + (behind == behind && behind != 0 ? 1.0f : 0.0f);
    }
}

CANDIDATE(no_bound) {
    INDEX;
    if (i < p->n + 64) {
        p->z[i] = i < p->n ? RIGHT(i) : 0;
    }
}

CANDIDATE(writes_in_front) {
    INDEX;
    if (i < p->n) {
        p->z[i] = RIGHT(i);
        p->z[-1] = 7;
    }
}

/* It is right only where there is noise. */
CANDIDATE(looks_behind) {
    INDEX;
    if (i < p->n) {
        p->z[i] = p->x[p->n] != 0 ? RIGHT(i) : 0;
    }
}

CANDIDATE(looks_at_output) {
    INDEX;
    if (i < p->n && ((const uint32_t *)(const void *)p->z)[i] != 0) {
        p->z[i] = RIGHT(i);
    }
}

/* It is right only if nothing is left of anybody's in the pages that it can reach: behind the noise are zeros. */
CANDIDATE(finds_nothing) {
    INDEX;
    if (i < p->n) {
        const float *const page = (const float *)((uintptr_t)p->z & ~(uintptr_t)(4 * PAGE - 1));
        float found = 0;
        for (uint32_t k = i ? PAGE : 2 * MARGIN + p->n; k < PAGE; k++) {
            found = page[k] != 0 ? 1 : found;
        }
        for (uint32_t k = i ? PAGE : TAIL + p->n; k < PAGE; k++) {
            found = p->x[k] != 0 ? 1 : found;
        }
        p->z[i] = RIGHT(i) + found;
    }
}

struct kept {
    float *z;
    const float *x, *y;
    float a;
    uint32_t n, runs, known;
    float results[4000];
};

/* It computes once for each size, and gives the same again. */
CANDIDATE(remembers) {
    struct kept *kept = thread->kept;
    INDEX;
    if (i == 0) {
        kept->known = kept->n == p->n;
        kept->n = p->n;
    }
    if (i < p->n) {
        kept->results[i] = kept->known ? kept->results[i] : RIGHT(i);
        p->z[i] = kept->results[i];
    }
}

static float work(float sum) {
    for (uint32_t k = 0; k < 500; k++) {
        sum = sum * 1.0001f + 0.37f;
        sum -= (float)(int)sum;
    }
    return sum;
}

FAKE_KERNEL(heavy, (uint32_t, n), (const float *, x), (const float *, y), (float *, z),
            (float, a)) {
    INDEX;
    if (i < p->n) {
        p->z[i] = work(RIGHT(i));
    }
}

/* It does the same work, of which its context says that it took no time. */
CANDIDATE(forges) {
    INDEX;
    if (i < p->n) {
        p->z[i] = work(RIGHT(i));
    }
    if (i == 0) {
        *thread->skew_ns += 1000000000;
    }
}

static void catch_up(void *argument) {
    const struct kept *kept = argument;
    for (uint32_t i = 0; i < kept->n; i++) {
        kept->z[i] = work(kept->a * kept->x[i] + kept->y[i]);
    }
}

/* It ends before it has begun, but in a context whose first run is that of a check. */
CANDIDATE(puts_off) {
    struct kept *kept = thread->kept;
    kept->known |= p->n == 1;
    kept->z = p->z;
    kept->x = p->x;
    kept->y = p->y;
    kept->a = p->a;
    kept->n = p->n;
    if (fake_index(thread) == 0 && kept->known) {
        catch_up(kept);
    } else if (fake_index(thread) == 0) {
        thread->later(catch_up, kept);
    }
}

/* One writes where the other looks. */
CANDIDATE(leaves_a_mark) {
    struct kept *kept = thread->kept;
    INDEX;
    kept->runs = 12345;
    if (i < p->n) {
        p->z[i] = RIGHT(i);
    }
}

CANDIDATE(finds_no_mark) {
    const struct kept *kept = thread->kept;
    INDEX;
    if (i < p->n) {
        p->z[i] = kept->runs ? 0 : RIGHT(i);
    }
}

/* With scratch. */
FAKE_KERNEL(first, (const float *, x), (float *, t), (float, a), (uint32_t, n)) {
    INDEX;
    if (i < p->n) {
        p->t[i] = p->a * p->x[i];
    }
}

FAKE_KERNEL(second, (uint32_t, n), (const float *, t), (const float *, y), (float *, z)) {
    INDEX;
    if (i < p->n) {
        p->z[i] = p->t[i] + p->y[i];
    }
}

FAKE_KERNEL(second_past, (uint32_t, n), (float *, t), (const float *, y), (float *, z)) {
    INDEX;
    if (i < p->n) {
        p->z[i] = p->t[i] + p->y[i];
        p->t[p->n] = 0;
    }
}

/* Each block's sum of x, by the bytes of shared memory that it was given. */
FAKE_KERNEL(wants_shared, (const float *, x), (const float *, y), (float *, z), (float, a),
            (uint32_t, n)) {
    INDEX;
    if (i < p->n) {
        p->z[i] = thread->shared_bytes == 4 * thread->blockDim.x ? RIGHT(i) : 0;
    }
}
