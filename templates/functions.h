/* The functions of expressions: GLSL's, and the types. */
#ifndef BHI_TEMPLATES_FUNCTIONS_H
#define BHI_TEMPLATES_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bhi_function_kind {
    BHI_FUNCTION_MATH,  /* of floats: sin; GLSL has none of doubles, but for a few */
    BHI_FUNCTION_ROUND, /* floor: an integer stays as it is */
    BHI_FUNCTION_OWN,   /* has code of its own */
    BHI_FUNCTION_CAST,
};

struct bhi_function {
    const char *name;
    enum bhi_function_kind kind;
    uint32_t least, most; /* arguments */
    const char *glsl;     /* what is called */
    bool doubles;         /* there is one of doubles, too */
    double (*fold)(double);
};

extern const struct bhi_function bhi_functions[];

/* Its place in bhi_functions; -1: there is none. */
int bhi_function_find(const char *name, size_t length);
/* "abs acos ...", for a complaint. */
const char *bhi_function_names(void);

#endif
