#include "request/outname.h"

#include <string.h>
#include <strings.h>

enum { LONGEST = 5 }; /* the longest name of a format, apart from those below */

static const char *const long_ones[] = {"safetensors", "parquet", "feather",  "pickle",  "joblib",
                                        "netcdf",      "ndjson",  "geojson",  "geotiff", "msgpack",
                                        "sqlite",      "sqlite3", "tfrecord", "tflite",  "mlmodel",
                                        "weights",     "binary",  "double",   "float16", "bfloat16",
                                        "float32",     "float64", "uint16",   "uint32",  "uint64"};

/* Returns what follows the last dot of the last name, or "". */
static const char *ending_of(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot && dot > name ? dot + 1 : "";
}

static bool may_be_a_format(const char *ending) {
    const size_t length = strlen(ending);
    bool known = false;
    for (size_t i = 0; i < sizeof long_ones / sizeof long_ones[0] && !known; i++) {
        known = !strcasecmp(ending, long_ones[i]);
    }
    return known || (length <= LONGEST && strspn(ending, "0123456789") < length);
}

bool bhi_outname_check(const char *path, const char *format, struct bhi_complaint *complaint) {
    const char *ending = ending_of(path);
    return !strcasecmp(ending, format) || !may_be_a_format(ending) ||
           bhi_refuse(complaint,
                      "outputs are .%s files, and a name that ends in .%s may be taken for another "
                      "format: end it in .%s",
                      format, ending, format);
}
