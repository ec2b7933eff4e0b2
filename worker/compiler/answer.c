#include "worker/compiler/answer.h"

#include <string.h>

void bhi_answer_log(struct bhi_compile_answer *answer, const char *text) {
    static const char more[] = "(there is more of it)\n";
    const size_t used = answer->log_bytes, room = sizeof answer->log - used;
    size_t length = strlen(text);
    if (length > room) {
        length = room - sizeof more;
        while (length > 0 && text[length - 1] != '\n') {
            length--;
        }
        memcpy(answer->log + used, text, length);
        memcpy(answer->log + used + length, more, sizeof more - 1);
        length += sizeof more - 1;
    } else {
        memcpy(answer->log + used, text, length);
    }
    answer->log_bytes += (uint32_t)length;
}

void bhi_answer_code(struct bhi_compile_answer *answer, const void *bytes, size_t length,
                     void *code, uint64_t room) {
    answer->code_bytes = length;
    if (length <= room) {
        memcpy(code, bytes, length);
    }
}
