#include "ipc/layers.h"

#include <ctype.h>
#include <pthread.h>
#include <stddef.h>

#define REQUIRED true
#define OPTIONAL false
static struct bhi_layer_info table[BHI_LAYER_COUNT] = {
#define BHI_LAYER(NAME, number, need, what, advice) [number] = {number, need, #NAME, what, advice},
#include "ipc/layers.def"
};
#undef REQUIRED
#undef OPTIONAL

static char names[BHI_LAYER_COUNT][24];
static pthread_once_t names_once = PTHREAD_ONCE_INIT;

/* NO_NEW_PRIVS is shown as no-new-privs. */
static void make_names(void) {
    for (size_t i = 0; i < BHI_LAYER_COUNT; i++) {
        size_t j = 0;
        for (const char *c = table[i].name; *c && j + 1 < sizeof names[i]; c++, j++) {
            names[i][j] = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
        }
        table[i].name = names[i];
    }
}

const struct bhi_layer_info *bhi_layer_info(uint32_t layer) {
    if (layer >= BHI_LAYER_COUNT) {
        return NULL;
    }
    pthread_once(&names_once, make_names);
    return &table[layer];
}
