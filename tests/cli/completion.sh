#!/usr/bin/env bash
# What the shells complete, with the scripts that the program prints.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Without one of them nothing is known of its script: a failure.
status=0
: > .stdout
: > .stderr
for file in "$(command -v zsh)" "$(command -v fish)" /usr/share/bash-completion/bash_completion; do
    case_name="zsh, fish and bash-completion are there"
    if [ -f "$file" ]; then passed=$((passed + 1)); else fail "one is not: scripts/install-deps test"; fi
done

for shell in bash zsh fish; do
    case_name="completion $shell"
    cli completion "$shell"
    expect_status 0
    expect_empty .stderr
    cp .stdout "script.$shell"
done
refuses "there is no completion for 'tcsh'; SHELL is bash, zsh or fish" completion tcsh
refuses "SHELL is missing" completion

mkdir folder
touch 'x.npy' 'y z.npy' kernel.spv folder/inner.npy

# Compares what a shell offered, sorted, a line each.
offers() { # LINE WANTED...
    local wanted
    case_name="$shell: $1"
    shift
    wanted=$([ $# -eq 0 ] || printf '%s\n' "$@" | sort)
    if [ "$(sort < .offered)" = "$wanted" ]; then
        passed=$((passed + 1))
    else
        status=0
        cp .offered .stdout
        fail "wanted: $*"
    fi
}

# Every command, and every option of each, as the manual has them: " COMMAND" and "COMMAND --OPTION".
cli help --markdown
expect_status 0
mapfile -t commands < <(sed -n 's/^## bulkhead //p' .stdout)
{
    printf ' %s\n' "${commands[@]}"
    awk '/^## bulkhead / { command = $3 } /^- `-/ { gsub("[`:]", "", $2); print command, $2 }' .stdout
    echo 'run --grid' # another name of --groups
} | sort > wanted
case_name="the manual's table of options"
if [ ${#commands[@]} -ge 10 ] && [ "$(wc -l < wanted)" -ge 110 ] && grep -qx 'batch --verify' wanted &&
    grep -qx 'run -D' wanted; then
    passed=$((passed + 1))
else
    fail "$(wc -l < wanted) commands and options were found"
fi
offers_all() {
    case_name="$shell: every command and every option"
    sort .offered > .stdout
    if diff wanted .stdout > .stderr; then passed=$((passed + 1)); else fail "not the manual's"; fi
}

# -- bash ------------------------------------------------------------------------------------------
# As readline calls it: what is behind the last of COMP_WORDBREAKS is replaced. compopt works only
# there, so that here it says what it was asked.
# shellcheck disable=SC2016 # the other bash expands it
bash_completes() { # LINE
    bash --norc -c '
        compopt() { printf "%s\n" "$*" > .compopt; }
        . ./script.bash
        COMP_LINE=$1 COMP_POINT=${#1}
        COMP_WORDBREAKS=$'\'' \t\n"\047><=;|&(:'\''
        _bulkhead
        [ ${#COMPREPLY[@]} -eq 0 ] || printf "%s\n" "${COMPREPLY[@]}"' - "$1" > .offered 2>&1
}
in_bash() { # LINE WANTED...
    : > .compopt
    bash_completes "$1"
    offers "$@"
}
asks() { # COMPOPT'S ARGUMENTS
    if [ "$(< .compopt)" = "$1" ]; then passed=$((passed + 1)); else fail "compopt: $(< .compopt)"; fi
}

shell=bash
in_bash 'bulkhead ins' inspect
in_bash 'bulkhead de' devices
in_bash 'bulkhead run k.spv --gr' --grace --grid --groups
in_bash 'bulkhead run k.spv --groups 1 --in' --in --inout
in_bash 'bulkhead run ker' kernel.spv
asks '-o filenames'
in_bash 'bulkhead run k.spv --in 0=x' x.npy
in_bash 'bulkhead run k.spv --in X=x' x.npy
in_bash 'bulkhead run k.spv --in=0=x' x.npy
in_bash 'bulkhead run k.spv --in x'
in_bash 'bulkhead run k.spv --inout 0=folder/' folder/inner.npy
in_bash 'bulkhead run k.spv --cache-dir fo' folder
in_bash 'bulkhead run k.spv --out 1=y.npy:f' f16: f32: f64:
asks '-o nospace'
in_bash 'bulkhead run k.spv --out 1=x' x.npy
asks '-o nospace'
in_bash 'bulkhead run k.spv --push f3' f32:
asks '-o nospace'
in_bash 'bulkhead run k.spv --push f32:2,u3' 2,u32:
in_bash 'bulkhead run k.spv --spec 1=f6' f64:
in_bash 'bulkhead run k.spv --spec 1=l'
in_bash 'bulkhead run k.spv --out 1=y.npy:l' like:
asks '-o nospace'
in_bash 'bulkhead run k.spv --out 1=y.npy:like:'
in_bash 'bulkhead run k.spv --groups '
in_bash 'bulkhead run k.spv --grid '
in_bash 'bulkhead run k.spv --memory ' auto device host
in_bash 'bulkhead eval y=x --memory=d' device
in_bash 'bulkhead batch jobs --memory a' auto
in_bash 'bulkhead run k.spv --language ' cuda glsl hlsl spirv
in_bash 'bulkhead inspect k.spv --language=h' hlsl
in_bash 'bulkhead batch jobs --isolate ' job kernel stream
in_bash 'bulkhead chaos --faults ' close device full garbage hang illegal kill oom segv slow stop unguarded zygote
in_bash 'bulkhead chaos --faults s' segv slow stop
asks '-o nospace'
in_bash 'bulkhead chaos --faults kill,segv,zy' kill,segv,zygote
in_bash 'bulkhead help ba' batch
in_bash 'bulkhead completion f' fish
in_bash 'bulkhead batch jobs --retry-' --retry-failed
# shellcheck disable=SC2016 # the other bash expands it
bash --norc -c '
    compopt() { :; }
    . ./script.bash
    COMP_WORDBREAKS=$'\'' \t\n"\047><=;|&(:'\''
    for command in "" "$@"; do
        COMP_LINE="bulkhead ${command:+$command x -}" COMP_POINT=${#COMP_LINE}
        [ -n "$command" ] || COMP_LINE="bulkhead " COMP_POINT=9
        _bulkhead
        for word in "${COMPREPLY[@]}"; do echo "$command $word"; done
    done' - "${commands[@]}" > .offered 2>&1
offers_all

# As a user's bash finds it, where the package bash-completion is set up and the program installed.
case_name="bash: loaded by bash-completion at the first TAB"
mkdir -p data/completions
cp script.bash data/completions/bulkhead
# shellcheck disable=SC2016 # the other bash expands it
BASH_COMPLETION_USER_DIR=$PWD/data bash --norc -c '
    . /usr/share/bash-completion/bash_completion
    _completion_loader bulkhead
    complete -p bulkhead' > .stdout 2> .stderr
status=$?
expect_stdout 'complete -F _bulkhead bulkhead'
rm -r data

# -- zsh -------------------------------------------------------------------------------------------
# compadd and compset belong to the completion system: here one prints, the other cuts PREFIX.
cat > stubs.zsh << 'END'
setopt extendedglob
compdef() { : }
compadd() { [[ $1 != -S ]] || shift 2; shift; print -l -- $* | grep -e "^$PREFIX" }
compset() {
    local rest=${PREFIX##${~2}}
    [[ $rest != $PREFIX ]] || return 1
    PREFIX=$rest
}
_files() { print files${1:+ $1} }
_describe() {
    local name=$argv[-1]
    print -l -- ${${(P)name}%%:*} | grep -e "^$PREFIX"
}
. ./script.zsh
END
# shellcheck disable=SC2016 # zsh expands it
in_zsh() { # WORDS... -- WANTED...
    local -a words=()
    while [ "$1" != -- ]; do
        words+=("$1")
        shift
    done
    shift
    zsh -f -c '
        . ./stubs.zsh
        words=("$@") CURRENT=$# PREFIX=$argv[-1]
        _bulkhead' - "${words[@]}" > .offered 2>&1
    offers "${words[*]}" "$@"
}
shell=zsh
in_zsh bulkhead ins -- inspect
in_zsh bulkhead run k.spv --gr -- --grace --grid --groups
in_zsh bulkhead run k.spv --in 0=x -- files
in_zsh bulkhead run k.spv --out 1=x -- 'files -S'
in_zsh bulkhead run k.spv --out 1=y.npy:f -- f16: f32: f64:
in_zsh bulkhead run k.spv --push f32:2,u3 -- u32:
in_zsh bulkhead run k.spv --spec 1=f6 -- f64:
in_zsh bulkhead run k.spv --spec 1=l --
in_zsh bulkhead run k.spv --out 1=y.npy:l -- like:
in_zsh bulkhead run k.spv --out 1=y.npy:like: --
in_zsh bulkhead run k.spv --memory '' -- auto device host
in_zsh bulkhead eval y=x --memory=d -- device
in_zsh bulkhead batch jobs --memory a -- auto
in_zsh bulkhead run k.spv --cache-dir fo -- 'files -/'
in_zsh bulkhead run k.spv --groups '' --
in_zsh bulkhead run k.spv --grid '' --
in_zsh bulkhead run k.spv --language '' -- cuda glsl hlsl spirv
in_zsh bulkhead inspect k.spv --language=h -- hlsl
in_zsh bulkhead batch jobs --isolate '' -- job kernel stream
in_zsh bulkhead chaos --faults s -- segv slow stop
in_zsh bulkhead chaos --faults kill,segv,zy -- zygote
in_zsh bulkhead help ba -- batch
in_zsh bulkhead completion f -- fish
# shellcheck disable=SC2016 # zsh expands it
zsh -f -c '
    . ./stubs.zsh
    for command in "" "$@"; do
        words=(bulkhead $command ${command:+x} "${command:+-}") CURRENT=$#words PREFIX=${command:+-}
        _bulkhead | sed "s/^/$command /"
    done' - "${commands[@]}" > .offered 2>&1
offers_all

# -- fish ------------------------------------------------------------------------------------------
# shellcheck disable=SC2016 # fish expands it
in_fish() { # LINE WANTED...
    HOME=$PWD XDG_CONFIG_HOME=$PWD/.config XDG_DATA_HOME=$PWD/.data fish --no-config -c '
        source script.fish
        complete -C $argv[1] | string split -f 1 \t' "$1" > .offered 2>&1
    rm -rf .config .data
    offers "$@"
}
shell=fish
in_fish 'bulkhead insp' inspect
in_fish 'bulkhead run k.spv --gr' --grace --grid --groups
in_fish 'bulkhead run k.spv --in 0=x' 0=x.npy
in_fish 'bulkhead run k.spv --out 1=y.npy:f3' 1=y.npy:f32:
in_fish 'bulkhead run k.spv --push f3' f32:
in_fish 'bulkhead run k.spv --push f32:2,u3' f32:2,u32:
in_fish 'bulkhead run k.spv --spec 1=f6' 1=f64:
in_fish 'bulkhead run k.spv --spec 1=lik'
in_fish 'bulkhead run k.spv --out 1=y.npy:l' 1=y.npy:like:
in_fish 'bulkhead run k.spv --memory ' auto device host
in_fish 'bulkhead eval y=x --memory=d' --memory=device
in_fish 'bulkhead batch jobs --memory a' auto
in_fish 'bulkhead run k.spv --language ' cuda glsl hlsl spirv
in_fish 'bulkhead inspect k.spv --language=h' --language=hlsl
in_fish 'bulkhead batch jobs --isolate k' kernel
in_fish 'bulkhead chaos --faults z' zygote
in_fish 'bulkhead chaos --faults kill,segv,zy' kill,segv,zygote
in_fish 'bulkhead help bat' batch
in_fish 'bulkhead completion f' fish
# shellcheck disable=SC2016 # fish expands it
HOME=$PWD XDG_CONFIG_HOME=$PWD/.config XDG_DATA_HOME=$PWD/.data fish --no-config -c '
    source script.fish
    for word in (complete -C "bulkhead " | string split -f 1 \t)
        echo " $word"
    end
    for command in $argv
        for word in (complete -C "bulkhead $command x -" | string split -f 1 \t)
            echo "$command $word"
        end
    end' "${commands[@]}" > .offered 2>&1
rm -rf .config .data
offers_all

finish
