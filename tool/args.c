#include "tool/args.h"

#include "tool/nearest.h"

#include <stdlib.h>
#include <string.h>

static bool find_option(const struct bhi_command *command, const char *name, size_t length,
                        enum bhi_option_id *out_option) {
    size_t first;
    size_t end = bhi_command_options(command->id, &first);
    const char *one;
    for (size_t i = first; i < end; i++) {
        for (int which = 0; (one = bhi_option_name(&bhi_options[i], which)); which++) {
            if (strlen(one) == length && !memcmp(one, name, length)) {
                *out_option = (enum bhi_option_id)i;
                return true;
            }
        }
    }
    return false;
}

static bool refuse_unknown(const struct bhi_command *command, const char *word, size_t length,
                           struct bhi_complaint *complaint) {
    char name[80], hint[160];
    size_t first;
    const size_t end = bhi_command_options(command->id, &first);
    const size_t dashes = strspn(word, "-");
    struct bhi_nearest nearest = {.word = name};
    snprintf(name, sizeof name, "%.*s", (int)(length - dashes), word + dashes);
    for (size_t i = first; i < end && dashes == 2; i++) {
        const char *one;
        for (int which = 0; (one = bhi_option_name(&bhi_options[i], which)); which++) {
            if (one[1]) {
                bhi_nearest_try(&nearest, one);
            }
        }
    }
    if (dashes == 2) {
        bhi_nearest_try(&nearest, "help");
    }
    return bhi_refuse(complaint, "unknown option '%.*s'%s", (int)length, word,
                      bhi_nearest_hint(&nearest, "--", hint));
}

/* Reads the option at words[*index] and sets *index to the last word that belongs to it. */
static bool take_option(struct bhi_args *args, char *const *words, size_t word_count, size_t *index,
                        struct bhi_complaint *complaint) {
    const char *word = words[*index];
    bool is_short = word[1] != '-'; /* -D VALUE, -DVALUE */
    const char *name = word + (is_short ? 1 : 2);
    size_t length = is_short ? 1 : strcspn(name, "=");
    const char *value = !name[length] ? NULL : name + length + !is_short;
    enum bhi_option_id id;

    if ((!is_short && length == 1) || !find_option(args->command, name, length, &id)) {
        return refuse_unknown(args->command, word, (size_t)(name - word) + length, complaint);
    }
    const struct bhi_option *option = &bhi_options[id];
    const char *dashes = bhi_option_dashes(option);
    if (!option->value && value) {
        return bhi_refuse(complaint, "option '%s%s' takes no value", dashes, option->name);
    }
    if (option->value && !value) {
        /* A word that looks like an option is not taken as a value: the value was probably
         * forgotten. */
        if (*index + 1 == word_count || !strncmp(words[*index + 1], "--", 2)) {
            return bhi_refuse(complaint, "option '%s%s' needs a value: %s%s %s", dashes,
                              option->name, dashes, option->name, option->value);
        }
        value = words[++*index];
    }
    if (option->count != BHI_MANY && bhi_args_has(args, id)) {
        return bhi_refuse(complaint, "option '%s%s' is given twice", dashes, option->name);
    }
    args->items[args->item_count++] = (struct bhi_arg){id, value};
    return true;
}

static bool check_counts(const struct bhi_args *args, struct bhi_complaint *complaint) {
    const struct bhi_command *command = args->command;
    size_t first;
    size_t end = bhi_command_options(command->id, &first);

    if (args->operand_count < command->least_operands) {
        return bhi_refuse(complaint, "%s is missing", command->operand);
    }
    if (args->operand_count > command->most_operands) {
        return bhi_refuse(complaint, "unexpected argument '%s'",
                          args->operands[command->most_operands]);
    }
    for (size_t i = first; i < end; i++) {
        if (bhi_options[i].count == BHI_REQUIRED && !bhi_args_has(args, (enum bhi_option_id)i)) {
            return bhi_refuse(complaint, "%s%s %s is missing", bhi_option_dashes(&bhi_options[i]),
                              bhi_options[i].name, bhi_options[i].value);
        }
    }
    return true;
}

static bool parse_words(struct bhi_args *args, char *const *words, size_t word_count,
                        struct bhi_complaint *complaint) {
    bool options = true;
    for (size_t i = 0; i < word_count; i++) {
        const char *word = words[i];
        if (options && !strcmp(word, "--")) {
            options = false;
        } else if (options && (!strcmp(word, "--help") || !strcmp(word, "-h"))) {
            args->help = true;
            return true;
        } else if (options && word[0] == '-' && word[1]) {
            if (!take_option(args, words, word_count, &i, complaint)) {
                return false;
            }
        } else {
            args->operands[args->operand_count++] = word;
        }
    }
    return check_counts(args, complaint);
}

bool bhi_args_parse(const struct bhi_command *command, char *const *words, size_t word_count,
                    struct bhi_args *out_args, struct bhi_complaint *complaint) {
    memset(out_args, 0, sizeof *out_args);
    out_args->command = command;
    out_args->items = calloc(word_count + 1, sizeof *out_args->items);
    out_args->operands = calloc(word_count + 1, sizeof *out_args->operands);
    bool good = out_args->items && out_args->operands;
    if (!good) {
        bhi_refuse_memory(complaint);
    }
    good = good && parse_words(out_args, words, word_count, complaint);
    if (!good) {
        bhi_args_free(out_args);
    }
    return good;
}

void bhi_args_free(struct bhi_args *args) {
    free(args->items);
    free(args->operands);
    args->items = NULL;
    args->operands = NULL;
    args->item_count = args->operand_count = 0;
}

bool bhi_args_each(const struct bhi_args *args, bhi_args_take *take, void *user,
                   struct bhi_complaint *complaint) {
    for (size_t i = 0; i < args->item_count; i++) {
        const struct bhi_option *option = &bhi_options[args->items[i].option];
        struct bhi_complaint inner;
        if (!take(user, &args->items[i], &inner)) {
            return bhi_refuse(complaint, "%s%s %.200s: %.700s", bhi_option_dashes(option),
                              option->name, args->items[i].value, inner.text);
        }
    }
    return true;
}

const char *bhi_args_value(const struct bhi_args *args, enum bhi_option_id option) {
    for (size_t i = 0; i < args->item_count; i++) {
        if (args->items[i].option == option) {
            return args->items[i].value;
        }
    }
    return NULL;
}

bool bhi_args_has(const struct bhi_args *args, enum bhi_option_id option) {
    for (size_t i = 0; i < args->item_count; i++) {
        if (args->items[i].option == option) {
            return true;
        }
    }
    return false;
}
