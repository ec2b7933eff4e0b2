/* The functions of expressions: those of GLSL, conversions to each type, and reductions. */
#ifndef BHI_TEMPLATES_FUNCTIONS_H
#define BHI_TEMPLATES_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bhi_function_kind {
    BHI_FUNCTION_MATH,  /* of floats, such as sin; GLSL has few of them for doubles */
    BHI_FUNCTION_ROUND, /* such as floor: does not change an integer */
    BHI_FUNCTION_OWN,   /* needs code of its own */
    BHI_FUNCTION_CAST,
    BHI_FUNCTION_REDUCE, /* such as sum; so are min and max of one argument */
};

enum bhi_reducer {
    BHI_REDUCE_NOT,
    BHI_REDUCE_SUM,
    BHI_REDUCE_PROD,
    BHI_REDUCE_MEAN,
    BHI_REDUCE_MIN,
    BHI_REDUCE_MAX,
    BHI_REDUCE_ANY,
    BHI_REDUCE_ALL,
    BHI_REDUCE_ARGMIN,
    BHI_REDUCE_ARGMAX,
};

struct bhi_function {
    const char *name;
    enum bhi_function_kind kind;
    uint32_t least, most; /* number of arguments */
    const char *glsl;     /* the GLSL function */
    bool doubles;         /* GLSL has it for doubles */
    double (*fold)(double);
};

extern const struct bhi_function bhi_functions[];

/* Its index in bhi_functions; -1: unknown. */
int bhi_function_find(const char *name, size_t length);
/* What a function reduces by, and that function's name; not of BHI_REDUCE_NOT. */
enum bhi_reducer bhi_function_reducer(int function);
const char *bhi_reducer_name(enum bhi_reducer reducer);
static inline bool bhi_reducer_finds(enum bhi_reducer reducer) {
    return reducer == BHI_REDUCE_ARGMIN || reducer == BHI_REDUCE_ARGMAX;
}
/* Without elements there is no result. */
static inline bool bhi_reducer_needs(enum bhi_reducer reducer) {
    return reducer == BHI_REDUCE_MIN || reducer == BHI_REDUCE_MAX || bhi_reducer_finds(reducer);
}
/* All names, "abs acos ...", for a complaint. */
const char *bhi_function_names(void);
/* What to write in place of a function that NumPy has by another name; NULL: none is known. */
const char *bhi_function_hint(const char *name, size_t length);

#endif
