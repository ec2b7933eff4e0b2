#include "batch/runner/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/safetensors.h"
#include "request/binding.h"
#include "request/code.h"
#include "request/kernel_file.h"
#include "templates/signature.h"
#include "tool/npy_file.h"

bool bhi_content_expression(const struct bhi_eval_request *eval, struct bhi_complaint *complaint) {
    struct bhi_form *form = calloc(1, sizeof *form); /* allocated, because it is large */
    if (!form) {
        return bhi_refuse_memory(complaint);
    }
    form->is_expression = form->planned = true;
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

static bool read_open(void *user, void *out, uint64_t offset, uint64_t bytes,
                      struct bhi_complaint *complaint) {
    const int *fd = user;
    for (uint64_t got = 0; got < bytes;) {
        const ssize_t n = pread(*fd, (char *)out + got, bytes - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return bhi_refuse(complaint, "cannot be read: %s",
                              n ? strerror(errno) : "the file is too short");
        }
        got += (uint64_t)n;
    }
    return true;
}

static bool check_tensor(int fd, const char *path, const char *name,
                         struct bhi_complaint *complaint) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return bhi_refuse(complaint, "cannot be read: %s", strerror(errno));
    }
    const struct bhi_readable file = {read_open, &fd, (uint64_t)status.st_size};
    uint64_t data;
    if (bhi_binding_format(path, name) == BH_FILE_NPZ) {
        struct bhi_zip_member member;
        struct bhi_array array;
        return bhi_npz_find(&file, name, &member, complaint) &&
               bhi_npy_read(&file, member.offset, member.bytes, &array, &data, complaint);
    }
    struct bhi_tensor tensor;
    char *text = NULL;
    size_t length;
    const bool good =
        bhi_safetensors_read(&file, &text, &length, &data, complaint) &&
        bhi_safetensors_find(text, length, file.size - data, name, &tensor, complaint);
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
    const bool good = check_tensor(fd, path, tensor, complaint);
    close(fd);
    return good;
}
