#include <bulkhead/bulkhead.h>
#include <stdio.h>

#include "cli/mains.h"
#include "tool/args.h"
#include "tool/exit_status.h"
#include "tool/json.h"

int bhi_version_main(const struct bhi_args *args) {
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", BH_VERSION_MAJOR, BH_VERSION_MINOR,
             BH_VERSION_PATCH);
    if (bhi_args_has(args, BHI_VERSION_JSON)) {
        bhi_json_print(json_pack("{s:s}", "version", version));
    } else {
        printf("bulkhead %s\n", version);
    }
    return BHI_EXIT_READY;
}
