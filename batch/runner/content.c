#include "batch/runner/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/safetensors.h"
#include "request/code.h"
#include "request/kernel_file.h"
#include "templates/signature.h"
#include "tool/npy_file.h"

bool bhi_content_expression(const struct bhi_eval_request *eval, struct bhi_complaint *complaint) {
    struct bhi_form *form = calloc(1, sizeof *form); /* allocated, because it is large */
    if (!form) {
        return bhi_refuse_memory(complaint);
    }
    form->is_expression = true;
    /* Both sides limit names to 63 bytes. */
    for (; form->count < eval->count && form->count < BHI_MAX_PARAMETERS; form->count++) {
        struct bhi_parameter *parameter = &form->parameters[form->count];
        parameter->role = (enum bhi_role)eval->parameters[form->count].role;
        parameter->dtype = BH_DTYPE_NONE;
        strncpy(parameter->name, eval->parameters[form->count].name, sizeof parameter->name - 1);
    }
    const bool good = bhi_expression_parse(eval->expression, strlen(eval->expression),
                                           &form->expression, complaint) &&
                      bhi_form_check(form, complaint);
    bhi_form_fini(form);
    free(form);
    return good;
}

bool bhi_content_kernel(const char *path, enum bhi_language given,
                        struct bhi_complaint *complaint) {
    struct bhi_kernel_file file = {.path = path, .language = given, .takes_cuda = true};
    void *code = NULL;
    int error;
    bool good = bhi_kernel_file_read(&file, &code, &error, complaint) == BH_OK;
    if (good && bhi_kernel_file_language(&file) == BHI_LANGUAGE_SPIRV &&
        !bhi_language_is_spirv(code, file.size)) {
        good = bhi_refuse(complaint, "it is not a SPIR-V module, and its name does not end as that "
                                     "of a source (.comp, .glsl, .hlsl, .cu) or of an image for "
                                     "CUDA (.ptx, .cubin, .fatbin)");
    }
    free(code);
    return good;
}

static bool read_at(int fd, void *bytes, size_t size, off_t offset,
                    struct bhi_complaint *complaint) {
    for (size_t got = 0; got < size;) {
        const ssize_t n = pread(fd, (char *)bytes + got, size - got, offset + (off_t)got);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return bhi_refuse(complaint, "cannot be read: %s",
                              n ? strerror(errno) : "the file is too short");
        }
        got += (size_t)n;
    }
    return true;
}

static bool check_tensor(int fd, const char *name, struct bhi_complaint *complaint) {
    uint8_t preamble[BHI_SAFETENSORS_PREAMBLE];
    struct bhi_tensor tensor;
    struct stat status;
    size_t length;
    if (fstat(fd, &status) != 0) {
        return bhi_refuse(complaint, "cannot be read: %s", strerror(errno));
    }
    const uint64_t size = (uint64_t)status.st_size;
    if (size < sizeof preamble) {
        return bhi_refuse(complaint, "not a .safetensors file: it has %llu bytes",
                          (unsigned long long)size);
    }
    if (!read_at(fd, preamble, sizeof preamble, 0, complaint) ||
        !bhi_safetensors_parse_preamble(preamble, size, &length, complaint)) {
        return false;
    }
    char *text = malloc(length + 1);
    if (!text) {
        return bhi_refuse_memory(complaint);
    }
    const bool good = read_at(fd, text, length, sizeof preamble, complaint) &&
                      bhi_safetensors_find(text, length, size - sizeof preamble - length, name,
                                           &tensor, complaint);
    free(text);
    return good;
}

bool bhi_content_input(const char *path, const char *tensor, struct bhi_complaint *complaint) {
    struct bhi_npy_file file;
    if (!tensor) {
        const bool good = bhi_npy_file_open(path, &file, complaint);
        if (good) {
            bhi_npy_file_close(&file);
        }
        return good;
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return bhi_refuse(complaint, "%s", strerror(errno));
    }
    const bool good = check_tensor(fd, tensor, complaint);
    close(fd);
    return good;
}
