#include "request/binding.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/safetensors.h"
#include "request/outname.h"

/* -- its place ----------------------------------------------------------------------------------
 */

/* No binding is called like this: somebody has forgotten it, or has written FILE=B. */
static bool looks_like_file(const char *text, size_t length) {
    static const char *const endings[] = {".npy", ".npz", ".safetensors"};
    bool file = memchr(text, '/', length);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0] && !file; i++) {
        const size_t ending = strlen(endings[i]);
        file = length >= ending && !memcmp(text + length - ending, endings[i], ending);
    }
    return file;
}

static bool parse_name(struct bhi_run_binding *binding, const char *text, size_t length,
                       struct bhi_complaint *complaint) {
    const char *bracket = memchr(text, '[', length);
    const size_t name = bracket ? (size_t)(bracket - text) : length;
    const size_t most = sizeof binding->name - 1;
    if (name == 0) {
        return bhi_refuse(complaint, "no binding before '='");
    }
    if (looks_like_file(text, length)) {
        return bhi_refuse(complaint,
                          "'%.*s' is a file, not a binding: the binding comes first, as in "
                          "0=FILE",
                          length > most ? (int)most : (int)length, text);
    }
    if (!bhi_parse_element(text + name, length - name, &binding->slot.element)) {
        return bhi_refuse(complaint, "'%.*s' is not a name followed by [ELEMENT]",
                          length > most ? (int)most : (int)length, text);
    }
    if (name > most) {
        return bhi_refuse(complaint, "the name '%.40s...' has %zu bytes; names have %zu at most",
                          text, name, most);
    }
    memcpy(binding->name, text, name);
    binding->name[name] = 0;
    binding->slot.set = binding->slot.binding = UINT32_MAX; /* until it is resolved */
    return true;
}

bool bhi_binding_parse_place(struct bhi_run_binding *binding, const char *text, size_t length,
                             struct bhi_complaint *complaint) {
    return length > 0 && isdigit((unsigned char)*text)
               ? bhi_parse_slot(text, length, &binding->slot, complaint)
               : parse_name(binding, text, length, complaint);
}

/* -- its files ----------------------------------------------------------------------------------
 */

static const char safetensors[] = ".safetensors";

/* Returns FILE of "FILE:REST", split at the last colon; without a colon *out_rest is NULL. */
static char *split_path(const char *text, const char **out_rest) {
    const char *colon = strrchr(text, ':');
    *out_rest = colon ? colon + 1 : NULL;
    return colon ? strndup(text, (size_t)(colon - text)) : strdup(text);
}

/* Checks the paths. |paths| is false if there was no memory for them. */
static bool check_paths(struct bhi_run_binding *binding, bool paths,
                        struct bhi_complaint *complaint) {
    if (!paths) {
        binding->error = ENOMEM;
        return bhi_refuse_memory(complaint);
    }
    if ((binding->in_path && !*binding->in_path) || (binding->out_path && !*binding->out_path)) {
        return bhi_refuse(complaint, "the file name is empty");
    }
    const bool tensors =
        binding->out_path &&
        bhi_binding_format(binding->out_path, binding->out_tensor) == BH_FILE_SAFETENSORS;
    return !binding->out_path ||
           bhi_outname_check(binding->out_path, tensors ? safetensors + 1 : "npy", complaint);
}

/* Returns the length of the path in "FILE:ARRAY" or "FILE", where FILE has arrays with names; or 0. */
static size_t find_archive(const char *files) {
    static const char *const endings[] = {safetensors, ".npz"};
    size_t first = 0;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const char *at = files;
        while ((at = strstr(at, endings[i]))) {
            at += strlen(endings[i]);
            const size_t length = (size_t)(at - files);
            if ((!*at || *at == ':') && (!first || length < first)) {
                first = length;
            }
        }
    }
    return first;
}

/* Takes ARRAY off an output's "FILE.safetensors:ARRAY". A .npz is refused by its name. */
static bool split_out_tensor(struct bhi_run_binding *binding, struct bhi_complaint *complaint) {
    const size_t archive = binding->out_path ? find_archive(binding->out_path) : 0;
    if (!archive) {
        return true;
    }
    char *const name = binding->out_path + archive + (binding->out_path[archive] != 0);
    binding->out_path[archive] = 0;
    if (bhi_binding_format(binding->out_path, name) == BH_FILE_NPZ) {
        return check_paths(binding, true, complaint);
    }
    if (!*name) {
        return bhi_refuse(complaint, "no array: write %.200s:NAME", binding->out_path);
    }
    binding->out_tensor = strdup(name);
    return check_paths(binding, binding->out_tensor, complaint);
}

bh_file_format bhi_binding_format(const char *path, const char *tensor) {
    static const char npz[] = ".npz";
    const size_t length = strlen(path), ending = strlen(npz);
    if (!tensor) {
        return BH_FILE_NPY;
    }
    return length >= ending && !strcmp(path + length - ending, npz) ? BH_FILE_NPZ
                                                                    : BH_FILE_SAFETENSORS;
}

bool bhi_binding_parse_input(struct bhi_run_binding *binding, const char *files,
                             struct bhi_complaint *complaint) {
    const size_t archive = find_archive(files), path = archive ? archive : strlen(files);
    if (archive && !files[archive]) {
        return bhi_refuse(complaint, "no array: write %.200s:NAME", files);
    }
    if (archive && !files[path + 1]) {
        return bhi_refuse(complaint, "the array's name is empty");
    }
    binding->tensor = archive ? files + path + 1 : NULL;
    binding->access = BH_ACCESS_READ;
    binding->in_path = strndup(files, path);
    return check_paths(binding, binding->in_path, complaint);
}

bool bhi_binding_split_like(const char *files, size_t *out_path_length, const char **out_like) {
    static const char word[] = "like";
    const size_t length = sizeof word - 1;
    /* The first such colon counts: what follows it is a name, which may have colons. */
    for (const char *colon = strchr(files, ':'); colon; colon = strchr(colon + 1, ':')) {
        const char *behind = colon + 1 + length;
        if (strncmp(colon + 1, word, length) != 0 ||
            (*behind && *behind != ' ' && *behind != ':')) {
            continue;
        }
        *out_path_length = (size_t)(colon - files);
        *out_like = *behind == ':' ? behind + 1 : behind + strspn(behind, " ");
        return true;
    }
    return false;
}

/* Returns FILE of "FILE:DTYPE:SHAPE". The shape follows the last colon, the type the one before: any
 * word, so that the type is named if there is none such. */
static char *split_array(const char *text, const char **out_rest) {
    char *path = split_path(text, out_rest);
    char *colon = path ? strrchr(path, ':') : NULL;
    if (!colon || strspn(*out_rest, "0123456789x,") != strlen(*out_rest) ||
        strpbrk(colon + 1, "./")) {
        return path;
    }
    *out_rest = text + (colon + 1 - path);
    *colon = 0;
    return path;
}

bool bhi_binding_parse_output(struct bhi_run_binding *binding, const char *files,
                              struct bhi_complaint *complaint) {
    const char *rest = NULL;
    size_t length;
    binding->access = BH_ACCESS_WRITE;
    if (bhi_binding_split_like(files, &length, &binding->like)) {
        binding->out_path = strndup(files, length);
    } else {
        binding->out_path = split_array(files, &rest);
    }
    if (!split_out_tensor(binding, complaint)) {
        return false;
    }
    if (binding->out_path && !binding->like && !rest) {
        return bhi_refuse(complaint, "no dtype and shape: write %.200s:f32:N, for example", files);
    }
    if (rest && !(binding->out_tensor ? bhi_parse_element_array
                                      : bhi_parse_array)(rest, &binding->array, complaint)) {
        return false;
    }
    return check_paths(binding, binding->out_path, complaint);
}

bool bhi_binding_parse_inout(struct bhi_run_binding *binding, const char *files,
                             struct bhi_complaint *complaint) {
    const char *rest = NULL;
    binding->access = BH_ACCESS_READ_WRITE;
    binding->in_path = split_path(files, &rest);
    binding->out_path = binding->in_path ? strdup(rest ? rest : binding->in_path) : NULL;
    return check_paths(binding, binding->out_path, complaint);
}

bool bhi_binding_parse_file(struct bhi_run_binding *binding, const char *file,
                            struct bhi_complaint *complaint) {
    binding->access = BH_ACCESS_WRITE;
    binding->out_path = strdup(file);
    if (!split_out_tensor(binding, complaint)) {
        return false;
    }
    char *colon = binding->out_tensor ? strrchr(binding->out_tensor, ':') : NULL;
    if (colon && colon > binding->out_tensor &&
        bhi_dtype_find_element(colon + 1, strlen(colon + 1), &binding->wanted_dtype)) {
        *colon = 0;
    }
    return check_paths(binding, binding->out_path, complaint);
}

bool bhi_binding_make_header(struct bhi_run_binding *binding, struct bhi_complaint *complaint) {
    const struct bhi_array *array = &binding->array;
    const size_t room = sizeof binding->header;
    binding->header_size =
        binding->out_tensor
            ? bhi_safetensors_write_header(array, binding->out_tensor, binding->header, room)
            : bhi_npy_write_header(array, binding->header, room);
    return binding->header_size ||
           bhi_refuse(complaint, "a .safetensors file cannot have an array of that name or shape");
}

/* -- the whole ----------------------------------------------------------------------------------
 */

bool bhi_run_is_stdin(const struct bhi_run_binding *binding) {
    return binding->in_path && !strcmp(binding->in_path, "-");
}

void bhi_binding_fini(struct bhi_run_binding *binding) {
    bhi_npy_file_close(&binding->in);
    bhi_outfile_abandon(&binding->out);
    bh_buffer_release(binding->buffer);
    free(binding->copy);
    free(binding->text);
    free(binding->in_path);
    free(binding->out_path);
    free(binding->out_tensor);
}
