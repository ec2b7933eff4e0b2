/* bulkhead completion: the scripts with which a shell completes the command line, from the tables
 * that parse it. The help's notation of a value tells its kind: FILE, B=FILE, B=FILE:DTYPE,
 * TYPE:VALUE. */
#include <stdio.h>
#include <string.h>

#include "chaos/history/history.h"
#include "cli/batch_options.h"
#include "cli/commands.h"
#include "cli/mains.h"
#include "formats/dtype.h"
#include "request/language.h"
#include "tool/args.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/values.h"

/* The kinds of values, by what can be completed. */
enum kind { NOTHING, A_FILE, A_FOLDER, A_PAIR, AN_OUTPUT, A_TYPE, A_WORD, WORDS };

static const char *const kind_names[] = {
    [A_FILE] = "file", [A_FOLDER] = "folder", [A_PAIR] = "pair", [AN_OUTPUT] = "output",
    [A_TYPE] = "type", [A_WORD] = "word",     [WORDS] = "words", [NOTHING] = "nothing"};
static const char *const shells[] = {"bash", "zsh", "fish"};

static const char *fault_word(size_t index) {
    return index < BHI_FAULT_KINDS ? bhi_fault_name((enum bhi_fault_kind)index) : NULL;
}

/* Options whose values are one of a few words, or several words separated by commas. */
static const struct closed {
    enum bhi_option_id option;
    enum kind kind;
    const char *(*word)(size_t index);
} closed[] = {
    {BHI_RUN_LANGUAGE, A_WORD, bhi_language_word},
    {BHI_COMPILE_LANGUAGE, A_WORD, bhi_language_word},
    {BHI_INSPECT_LANGUAGE, A_WORD, bhi_language_word},
    {BHI_RUN_MEMORY, A_WORD, bhi_memory_word},
    {BHI_EVAL_MEMORY, A_WORD, bhi_memory_word},
    {BHI_BATCH_MEMORY, A_WORD, bhi_memory_word},
    {BHI_BATCH_ISOLATE, A_WORD, bhi_batch_isolation},
    {BHI_CHAOS_FAULTS, WORDS, fault_word},
};

static const struct closed *closed_of(const struct bhi_option *option) {
    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++) {
        if (option == &bhi_options[closed[i].option]) {
            return &closed[i];
        }
    }
    return NULL;
}

static void print_closed(FILE *stream, const struct bhi_option *option) {
    const struct closed *one = closed_of(option);
    for (size_t i = 0; one && one->word(i); i++) {
        fprintf(stream, "%s%s", i ? " " : "", one->word(i));
    }
}

static enum kind kind_of(const struct bhi_option *option) {
    const char *value = option->value;
    if (!value) {
        return NOTHING;
    }
    if (closed_of(option)) {
        return closed_of(option)->kind;
    }
    return strstr(value, "DTYPE")       ? AN_OUTPUT
           : strstr(value, "TYPE:")     ? A_TYPE
           : strstr(value, "=FILE")     ? A_PAIR
           : !strncmp(value, "FILE", 4) ? A_FILE
           : !strncmp(value, "PATH", 4) ? A_FILE
           : !strcmp(value, "DIR")      ? A_FOLDER
                                        : NOTHING;
}

/* Prints the first sentence of |text|, with a backslash before each character that the shell would
 * interpret. */
static void first_sentence(FILE *stream, const char *text, const char *escaped, char quote) {
    const char *end = strstr(text, ". ");
    const size_t length = end ? (size_t)(end - text) : strlen(text) - 1;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\'' && quote == '\'') {
            fputs("'\\''", stream);
        } else if (strchr(escaped, text[i])) {
            fprintf(stream, "\\%c", text[i]);
        } else {
            fputc(text[i], stream);
        }
    }
}

static void print_types(FILE *stream) {
    for (int i = 0; i < BHI_DTYPE_COUNT; i++) {
        fprintf(stream, "%s%s:", i ? " " : "", bhi_dtype_name(bhi_dtypes[i]));
    }
}

static void print_words(FILE *stream) {
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        fprintf(stream, "%s%s", i ? " " : "", bhi_commands[i].name);
    }
}

/* Prints the branches of a case over "COMMAND --OPTION" that give the kind of the value. bash and
 * zsh use the same text. */
static void print_kinds(FILE *stream) {
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        size_t first;
        const size_t end = bhi_command_options((enum bhi_command_id)i, &first);
        for (size_t k = first; k < end; k++) {
            const struct bhi_option *option = &bhi_options[k];
            const char *name;
            if (!option->value) {
                continue;
            }
            for (int which = 0; (name = bhi_option_name(option, which)); which++) {
                fprintf(stream, "%s'%s %s%s'", which ? " | " : "    ", bhi_commands[i].name,
                        bhi_option_dashes(option), name);
            }
            fprintf(stream, ") kind='%s'", kind_names[kind_of(option)]);
            if (closed_of(option)) {
                fputs(" closed='", stream);
                print_closed(stream, option);
                fputs("'", stream);
            }
            fputs(" ;;\n", stream);
        }
    }
}

/* -- bash ------------------------------------------------------------------------------------ */

static const char bash_head[] =
    "# Completion of bulkhead's command line in bash. Generated by `bulkhead completion bash`;\n"
    "# source it, or install it as share/bash-completion/completions/bulkhead.\n"
    "_bulkhead() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} word='' option='' kind='' value='' tail='' closed='' "
    "cut i\n"
    "    local command='' options='' found=''\n"
    "    local -a words=()\n"
    "    COMPREPLY=()\n"
    "    # shellcheck disable=SC2162 # a blank behind a backslash is part of a word\n"
    "    read -a words <<< \"$line\"\n"
    "    case $line in\n"
    "    *[[:blank:]]) ;;\n"
    "    *)\n"
    "        word=${words[${#words[@]} - 1]}\n"
    "        unset \"words[${#words[@]} - 1]\"\n"
    "        ;;\n"
    "    esac\n"
    "    command=${words[1]-}\n"
    "    case $word in\n"
    "    --*=*) option=${word%%=*} value=${word#*=} ;;\n"
    "    *) [ ${#words[@]} -lt 3 ] || option=${words[${#words[@]} - 1]} value=$word ;;\n"
    "    esac\n"
    "    case \"$command $option\" in\n";

static const char bash_middle[] = "    esac\n"
                                  "    case $command in\n";

/* The word is lead + candidate; readline replaces only what follows the last = or :. */
static const char bash_tail[] =
    "    # What is behind the last separator is completed; readline takes = and : for separators,\n"
    "    # too, and wants only what is behind them.\n"
    "    case $kind in\n"
    "    pair) tail=${value#*=} ;;\n"
    "    output) tail=${value#*=} ;;\n"
    "    type) tail=${value##*[=,]} ;;\n"
    "    words) tail=${value##*,} ;;\n"
    "    file | folder | word) tail=$value ;;\n"
    "    *) tail=$word ;;\n"
    "    esac\n"
    "    case $kind in\n"
    "    pair | output) [[ $value == *=* ]] || return 0 ;;\n"
    "    nothing) return 0 ;;\n"
    "    esac\n"
    "    if [[ $kind == output && $tail == *:* ]]; then\n"
    "        [[ $tail != *:like:* ]] || return 0\n"
    "        tail=${tail##*:} kind=type types=\"$types like:\"\n"
    "    fi\n"
    "    if [[ $kind == type ]]; then\n"
    "        found=$(compgen -W \"$types\" -- \"$tail\")\n"
    "        compopt -o nospace\n"
    "    elif [[ $kind == word* ]]; then\n"
    "        found=$(compgen -W \"$closed\" -- \"$tail\")\n"
    "        [[ $kind != words ]] || compopt -o nospace\n"
    "    elif [[ -z $kind && -z $command ]]; then\n"
    "        found=$(compgen -W \"$commands\" -- \"$tail\")\n"
    "    elif [[ -z $kind && $word == -* ]]; then\n"
    "        found=$(compgen -W \"$options\" -- \"$tail\")\n"
    "    elif [[ -z $kind && $command == help ]]; then\n"
    "        found=$(compgen -W \"$commands\" -- \"$tail\")\n"
    "    elif [[ -z $kind && $command == completion ]]; then\n"
    "        found=$(compgen -W 'bash zsh fish' -- \"$tail\")\n"
    "    elif [[ $kind == folder ]]; then\n"
    "        found=$(compgen -d -- \"$tail\")\n"
    "        compopt -o filenames\n"
    "    else\n"
    "        found=$(compgen -f -- \"$tail\")\n"
    "        compopt -o filenames\n"
    "        [[ $kind != output ]] || compopt -o nospace\n"
    "    fi\n"
    "    cut=$word\n"
    "    [[ $COMP_WORDBREAKS != *=* ]] || cut=${cut##*=}\n"
    "    [[ $COMP_WORDBREAKS != *:* ]] || cut=${cut##*:}\n"
    "    while IFS= read -r i; do\n"
    "        [[ -n $i ]] || continue\n"
    "        i=${word%\"$tail\"}$i\n"
    "        COMPREPLY+=(\"${i#\"${word%\"$cut\"}\"}\")\n"
    "    done <<< \"$found\"\n"
    "}\n"
    "complete -F _bulkhead bulkhead\n";

static void print_bash(FILE *stream) {
    fputs(bash_head, stream);
    print_kinds(stream);
    fputs(bash_middle, stream);
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        size_t first;
        const size_t end = bhi_command_options((enum bhi_command_id)i, &first);
        fprintf(stream, "    %s) options='", bhi_commands[i].name);
        for (size_t k = first; k < end; k++) {
            const char *name;
            for (int which = 0; (name = bhi_option_name(&bhi_options[k], which)); which++) {
                fprintf(stream, "%s%s ", bhi_option_dashes(&bhi_options[k]), name);
            }
        }
        fputs("--help' ;;\n", stream);
    }
    fputs("    esac\n    local commands='", stream);
    print_words(stream);
    fputs("' types='", stream);
    print_types(stream);
    fputs("'\n", stream);
    fputs(bash_tail, stream);
}

/* -- zsh ------------------------------------------------------------------------------------- */

static const char zsh_head[] =
    "#compdef bulkhead\n"
    "# Completion of bulkhead's command line in zsh. Generated by `bulkhead completion zsh`; "
    "source\n"
    "# it behind compinit, or install it as _bulkhead in a folder of $fpath.\n"
    "_bulkhead() {\n"
    "    local command=$words[2] option='' kind='' closed=''\n"
    "    local -a commands=() options=() types=()\n"
    "    if [[ $PREFIX == --*=* ]]; then\n"
    "        option=${PREFIX%%=*}\n"
    "    elif (( CURRENT > 3 )); then\n"
    "        option=$words[CURRENT-1]\n"
    "    fi\n"
    "    case \"$command $option\" in\n";

static const char zsh_tail[] =
    "    if (( CURRENT == 2 )); then\n"
    "        _describe command commands\n"
    "        return\n"
    "    fi\n"
    "    case $kind in\n"
    "    nothing) return 1 ;;\n"
    "    '') ;;\n"
    "    *) [[ $PREFIX != --*=* ]] || compset -P '[^=]#=' || compset -P '--[a-z-]##=' ;;\n"
    "    esac\n"
    "    case $kind in\n"
    "    pair | output) [[ $PREFIX == *=* ]] && compset -P '*=' || return 1 ;;\n"
    "    type) compset -P '*[=,]' ;;\n"
    "    words) compset -P '*,' ;;\n"
    "    esac\n"
    "    if [[ $kind == output && $PREFIX == *:* ]]; then\n"
    "        [[ $PREFIX != *:like:* ]] || return 1\n"
    "        compset -P '*:'\n"
    "        kind=type types+=(like:)\n"
    "    fi\n"
    "    case $kind in\n"
    "    type) compadd -S '' -- $types ;;\n"
    "    word) compadd -- ${=closed} ;;\n"
    "    words) compadd -S '' -- ${=closed} ;;\n"
    "    folder) _files -/ ;;\n"
    "    output) _files -S '' ;;\n"
    "    file | pair) _files ;;\n"
    "    *)\n"
    "        if [[ $PREFIX == -* ]]; then\n"
    "            _describe -o option options\n"
    "        elif [[ $command == help ]]; then\n"
    "            _describe command commands\n"
    "        elif [[ $command == completion ]]; then\n"
    "            compadd -- bash zsh fish\n"
    "        else\n"
    "            _files\n"
    "        fi\n"
    "        ;;\n"
    "    esac\n"
    "}\n"
    "if [[ $funcstack[1] == _bulkhead ]]; then\n"
    "    _bulkhead \"$@\"\n"
    "else\n"
    "    compdef _bulkhead bulkhead\n"
    "fi\n";

static void print_zsh(FILE *stream) {
    fputs(zsh_head, stream);
    print_kinds(stream);
    fputs("    esac\n    commands=(\n", stream);
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        char line[200];
        snprintf(line, sizeof line, "%s.", bhi_commands[i].summary);
        fprintf(stream, "        '%s:", bhi_commands[i].name);
        first_sentence(stream, line, ":\\", '\'');
        fputs("'\n", stream);
    }
    fputs("    )\n    types=(", stream);
    print_types(stream);
    fputs(")\n    case $command in\n", stream);
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        size_t first;
        const size_t end = bhi_command_options((enum bhi_command_id)i, &first);
        fprintf(stream, "    %s)\n        options=(\n", bhi_commands[i].name);
        for (size_t k = first; k < end; k++) {
            const char *name;
            for (int which = 0; (name = bhi_option_name(&bhi_options[k], which)); which++) {
                fprintf(stream, "            '%s%s:", bhi_option_dashes(&bhi_options[k]), name);
                first_sentence(stream, bhi_options[k].text, ":\\", '\'');
                fputs("'\n", stream);
            }
        }
        fputs("            '--help:Prints this help'\n        )\n        ;;\n", stream);
    }
    fputs("    esac\n", stream);
    fputs(zsh_tail, stream);
}

/* -- fish ------------------------------------------------------------------------------------ */

static const char fish_head[] =
    "# Completion of bulkhead's command line in fish. Generated by `bulkhead completion fish`; "
    "source\n"
    "# it, or install it as share/fish/vendor_completions.d/bulkhead.fish.\n"
    "function __bulkhead_types -d 'The types, behind what is there; fish puts no blank behind a "
    ":'\n"
    "    set -l there (string match -r '^(?:.*[=,:])?' -- (commandline -ct))\n"
    "    string match -q output -- $argv[1]; and not string match -qr '=.*:$' -- $there; and "
    "return\n"
    "    string match -q type -- $argv[1]; and string match -qr ':$' -- $there; and return\n"
    "    string match -qr ':like:$' -- $there; and return\n"
    "    string match -q output -- $argv[1]; and printf '%s\\n' {$there}like:\n"
    "    printf '%s\\n' $there(string split ' ' '";

static const char fish_words[] =
    "function __bulkhead_words -d 'The words of a list, behind those that are there'\n"
    "    set -l there (string match -r '^(?:.*[=,])?' -- (commandline -ct))\n"
    "    printf '%s\\n' $there$argv\n"
    "end\n"
    "complete -c bulkhead -f\n";

static void print_fish(FILE *stream) {
    fputs(fish_head, stream);
    print_types(stream);
    fputs("')\nend\n", stream);
    fputs(fish_words, stream);
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        const struct bhi_command *command = &bhi_commands[i];
        char line[200];
        size_t first;
        const size_t end = bhi_command_options((enum bhi_command_id)i, &first);
        snprintf(line, sizeof line, "%s.", command->summary);
        fprintf(stream, "complete -c bulkhead -n __fish_use_subcommand -a %s -d '", command->name);
        first_sentence(stream, line, "\\'", 0);
        fputs("'\n", stream);
        for (size_t k = first; k < end; k++) {
            const struct bhi_option *option = &bhi_options[k];
            const enum kind kind = kind_of(option);
            const char *name;
            fprintf(stream, "complete -c bulkhead -n '__fish_seen_subcommand_from %s'",
                    command->name);
            for (int which = 0; (name = bhi_option_name(option, which)); which++) {
                fprintf(stream, " -%c %s", name[1] ? 'l' : 's', name);
            }
            if (kind == AN_OUTPUT) {
                fputs(" -rF -a '(__bulkhead_types output)'", stream);
            } else if (kind == A_TYPE) {
                fputs(" -x -a '(__bulkhead_types type)'", stream);
            } else if (kind == A_WORD || kind == WORDS) {
                fputs(kind == A_WORD ? " -x -a '" : " -x -a '(__bulkhead_words ", stream);
                print_closed(stream, option);
                fputs(kind == A_WORD ? "'" : ")'", stream);
            } else if (kind == A_FOLDER) {
                fputs(" -x -a '(__fish_complete_directories (commandline -ct))'", stream);
            } else if (option->value) {
                fputs(kind == NOTHING ? " -x" : " -rF", stream);
            }
            fputs(" -d '", stream);
            first_sentence(stream, option->text, "\\'", 0);
            fputs("'\n", stream);
        }
        fprintf(stream,
                "complete -c bulkhead -n '__fish_seen_subcommand_from %s' -l help -d 'Prints this "
                "help'\n",
                command->name);
        if (command->operand && (enum bhi_command_id)i == BHI_COMMAND_HELP) {
            fprintf(stream, "complete -c bulkhead -n '__fish_seen_subcommand_from help' -a '");
            print_words(stream);
            fputs("'\n", stream);
        } else if ((enum bhi_command_id)i == BHI_COMMAND_COMPLETION) {
            fputs("complete -c bulkhead -n '__fish_seen_subcommand_from completion' -a 'bash zsh "
                  "fish'\n",
                  stream);
        } else if (command->operand) {
            fprintf(stream, "complete -c bulkhead -n '__fish_seen_subcommand_from %s' -F\n",
                    command->name);
        }
    }
}

/* Prints the script for |shell|: bash, zsh or fish. Returns false for other shells. */
static bool print_script(FILE *stream, const char *shell) {
    if (!strcmp(shell, shells[0])) {
        print_bash(stream);
    } else if (!strcmp(shell, shells[1])) {
        print_zsh(stream);
    } else if (!strcmp(shell, shells[2])) {
        print_fish(stream);
    } else {
        return false;
    }
    return true;
}

int bhi_completion_main(const struct bhi_args *args) {
    const char *shell = args->operands[0];
    if (print_script(stdout, shell)) {
        return BHI_EXIT_READY;
    }
    return bhi_complain_usage(
        "completion", "there is no completion for '%.100s'; SHELL is bash, zsh or fish", shell);
}
