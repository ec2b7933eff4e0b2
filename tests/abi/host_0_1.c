/* A host of 0.1, whose bh_stream_options_init knew no size: it wrote the library's. The struct here
 * is that of a 0.1 that had one field less, so that a library which still had the function would
 * write over what lies behind it. */
#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    unsigned char room[sizeof(bh_stream_options) + 16];
    const size_t older = sizeof(bh_stream_options) - 16;
    memset(room, 0xA5, sizeof room);
    bh_stream_options_init((bh_stream_options *)(void *)room);
    for (size_t i = older; i < sizeof room; i++) {
        if (room[i] != 0xA5) {
            return printf("byte %zu of a struct of %zu was overwritten\n", i, older), 1;
        }
    }
    puts("within the struct");
    return 0;
}
