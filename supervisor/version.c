#include <bulkhead/bulkhead.h>

#define TEXT(number)   #number
#define NUMBER(number) TEXT(number)
#define VERSION_TEXT                                                                               \
    NUMBER(BH_VERSION_MAJOR) "." NUMBER(BH_VERSION_MINOR) "." NUMBER(BH_VERSION_PATCH)

BH_API uint32_t bh_version(void) {
    return BH_VERSION;
}

BH_API const char *bh_version_string(void) {
    return VERSION_TEXT;
}
