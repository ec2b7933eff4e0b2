#!/usr/bin/env bash
# bulkhead eval on files, in real workers. What it should give is made by npy_tool, and compared
# byte for byte, header and all.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# gives FILE DTYPE[SHAPE] START STEP: the last run was READY, and FILE is that ramp.
gives() {
    expect_status 0
    expect_empty .stderr
    "$NPY" make .want "$2" ramp "$3" "$4"
    if cmp -s .want "$1"; then passed=$((passed + 1)); else fail "$1: $("$NPY" show "$1")"; fi
    rm -f .want "$1"
}

"$NPY" make x.npy 'f32[3,400]' ramp 0 0.5
"$NPY" make y.npy 'f32[3,400]' ramp 100 -1
"$NPY" make i.npy 'i32[1200]' ramp -600 1
"$NPY" make b.npy 'u8[100]' ramp 0 2
"$NPY" make h.npy 'f16[7]' ramp 1 0.25
"$NPY" make one.npy 'f32[1]' ramp 3 0
"$NPY" make dot.npy 'f32[]' ramp 3 0
"$NPY" make none.npy 'f32[0]' ramp 0 0
"$NPY" make big.npy 'f64[300000]' ramp 0 1

# -- pieces: the same bytes, however it is cut --------------------------------------------------------
cut() { # PIECE EXPRESSION ARGUMENT...: as in one piece
    local piece=$1
    shift
    case_name="in pieces of $piece: $1"
    cli eval "$@" --out z=whole.npy --out w=whole2.npy
    expect_status 0
    cli eval "$@" --out z=z.npy --out w=w.npy --piece "$piece" --json
    expect_status 0
    expect_json ".submissions > ${pieces:-1} and .status == \"READY\""
    if cmp -s z.npy whole.npy && cmp -s w.npy whole2.npy; then passed=$((passed + 1)); else fail "it is not the same"; fi
    rm -f z.npy w.npy whole.npy whole2.npy
}
"$NPY" make odd.npy 'f64[8193]' ramp 0 1
"$NPY" make random.npy 'f32[3,400]' random 1 -5 5
"$NPY" make random2.npy 'f32[3,400]' random 2 -5 5
pieces=36 cut 64K 'z = 2*x + 1; w = u8(x > 5)' --in x=big.npy
pieces=8 cut 1K 'z = x*y - k*d; w = x > y' --in x=random.npy --in y=random2.npy --in d=dot.npy --set k=f64:0.5
pieces=1 cut 64K 'z = x + o; w = x' --in x=odd.npy --in o=one.npy
"$NPY" make matrix.npy 'f32[1,1]' ramp 3 0
pieces=1 cut 64K 'z = x + o; w = x' --in x=odd.npy --in o=matrix.npy
pieces=10 cut 1 'z = i + 1; w = f64(i)' --in i=i.npy
"$NPY" make row.npy 'f64[400]' ramp 0 1
"$NPY" make column.npy 'f32[40,1]' ramp 0 400
"$NPY" make few.npy 'f32[4,1]' ramp 0 400
"$NPY" make block.npy 'u8[5,4,400]' random 3 0 255
pieces=9 cut 16K 'z = c + r; w = r > c' --in c=column.npy --in r=row.npy
pieces=30 cut 3K 'z = b + r; w = b > r' --in b=block.npy --in r=row.npy
pieces=4 cut 13K 'z = b + c; w = b*c + r' --in b=block.npy --in c=few.npy --in r=row.npy
case_name="pieces that begin where nothing can be bound"
refuses "and a piece of 'c' would not begin where the device can bind it" \
    eval 'z = c + r' --in c=column.npy --in r=row.npy --out z=z.npy --piece 1K
case_name="a piece of all, of more than the device binds, of nothing"
cli eval 'z = x' --in x=x.npy --out z=z.npy --piece 1T --json
expect_status 0
expect_json '.submissions == 1'
rm -f z.npy
cli eval 'z = x' --in x=none.npy --out z=z.npy --piece 1K --json
expect_status 0
expect_json '.submissions == 1'
rm -f z.npy
cli eval 'z = d' --in d=dot.npy --out z=z.npy --piece 1 --json
expect_status 0
rm -f z.npy
case_name="--repeat counts rounds"
cli eval 'z = x' --in x=big.npy --out z=z.npy --piece 1M --repeat 2 --json
expect_status 0
expect_json '.submissions == 6'
rm -f z.npy

# 128 MiB and four bytes: more than lavapipe binds.
"$NPY" make huge.npy 'f32[33554433]' ramp 0 0
limit=$("$BULKHEAD" devices --json | jq '.devices[0].max_storage_range')
case_name="more than the device binds"
cli eval 'z = x - 1' --in x=huge.npy --out z=z.npy --json --deadline "$((10 * slowness))s"
"$NPY" make whole.npy 'f32[33554433]' ramp -1 0
expect_status 0
expect_json ".submissions == $((134217732 / limit + (134217732 % limit > 0)))"
if cmp -s z.npy whole.npy; then passed=$((passed + 1)); else fail "z.npy is wrong"; fi
rm -f z.npy whole.npy
if [ "$limit" -lt 134000000 ] || [ "$limit" -eq 134217728 ]; then
    refuses "--out 1=z.npy:f32[33554433]: 134217732 bytes, " \
        run "$SHADERS/square.spv" --groups 1 --in 0=huge.npy --out '1=z.npy:f32[33554433]'
    head -c 70000 /dev/zero >> huge.npy # what is in it does not matter: nobody looks
    refuses "--in 0=huge.npy: over 134222" \
        run "$SHADERS/square.spv" --groups 1 --in 0=huge.npy --out '1=z.npy:f32[4]'
    expect_stderr " binds $limit at most (max_storage_range)"
    case_name="more than the device binds, through a pipe"
    mkfifo pipe
    cat huge.npy > pipe 2> /dev/null &
    INPUT=pipe refuses "--in 0=-: 134217732 bytes, " \
        run "$SHADERS/square.spv" --groups 1 --in 0=- --out '1=z.npy:f32[4]'
    expect_stderr " binds $limit at most (max_storage_range)"
    wait
    rm -f pipe
    case_name="more than the device binds, of a tensor"
    { printf '\x50\0\0\0\0\0\0\0%-80s' '{"t":{"dtype":"F32","shape":[33554433],"data_offsets":[0,134217732]}}'; } > huge.safetensors
    truncate -s $((88 + 134217732)) huge.safetensors
    refuses "--in 0=huge.safetensors:t: 134217732 bytes, " \
        run "$SHADERS/square.spv" --groups 1 --in 0=huge.safetensors:t --out '1=z.npy:f32[4]'
    expect_stderr " binds $limit at most (max_storage_range)"
    rm -f huge.safetensors
fi
rm -f huge.npy

# -- values ----------------------------------------------------------------------------------------
case_name="2*x + y"
cli eval 'z = 2*x + y' --in x=x.npy --in y=y.npy --out z=z.npy
gives z.npy 'f32[3,400]' 100 0

case_name="a name between, and two outputs"
cli eval $'t = x + x # twice\nz = t; w = t > 1e9' --in x=x.npy --out z=z.npy --out w=w.npy
gives z.npy 'f32[3,400]' 0 1
cli eval 'w = x > 1e9' --in x=x.npy --out w=w.npy
gives w.npy 'bool[3,400]' 0 0

case_name="a single element goes with all: 0-d, one element, a number"
cli eval 'z = x*d - d*x + d' --in x=x.npy --in d=dot.npy --out z=z.npy
gives z.npy 'f32[3,400]' 3 0
cli eval 'z = x + x + o' --in x=x.npy --in o=one.npy --out z=z.npy
gives z.npy 'f32[3,400]' 3 1
cli eval 'z = a*x + k' --in x=x.npy --set a=f32:4 --set k=i8:-1 --out z=z.npy
gives z.npy 'f32[3,400]' -1 2
cli eval 'z = d + o' --in d=dot.npy --in o=one.npy --out z=z.npy
gives z.npy 'f32[1]' 6 0
cli eval 'z = 2*a' --set a=u64:3 --out z=z.npy
gives z.npy 'u64[]' 6 0

case_name="reductions, alone, in the middle, and in pieces"
cli eval 's = sum(x) + 1' --in x=x.npy --out s=s.npy
gives s.npy 'f32[]' 359701 0
cli eval 'z = x - min(x); s = max(z, axis=1)' --in x=x.npy --out s=s.npy --out z=z.npy --json
gives s.npy 'f32[3]' 199.5 200
gives z.npy 'f32[3,400]' 0 0.5
expect_json '.submissions > 2 and .status == "READY"'
cli eval 'k = argmax(x)' --in x=x.npy --out k=k.npy --piece 1K
gives k.npy 'i64[]' 1199 0
cli eval 'z = sum(x, axis=0) + 1' --in x=x.npy --out z=z.npy --print
expect_stdout "bh_block"
refuses "'k = argmax(x, axis=1)': the arrays are too large to be computed at once, and a piece of one would" \
    eval 'k = argmax(x, axis=1)' --in x=x.npy --out k=k.npy --piece 1K
refuses "'z = 1 + sum(x, axis=2)': column 9: sum: there is no axis 2 of [3,400]" \
    eval 'z = 1 + sum(x, axis=2)' --in x=x.npy --out z=z.npy

case_name="shapes are stretched as by NumPy: a row, a column, nothing"
"$NPY" make c3.npy 'f32[3,1]' ramp 0 400
cli eval 'z = c + f32(r)' --in c=c3.npy --in r=row.npy --out z=z.npy
gives z.npy 'f32[3,400]' 0 1
cli eval 'z = x*0 + c + f32(r)' --in x=x.npy --in c=c3.npy --in r=row.npy --out z=z.npy
gives z.npy 'f32[3,400]' 0 1
cli eval 'z = n + c' --in n=none.npy --in c=c3.npy --out z=z.npy
gives z.npy 'f32[3,0]' 0 0

case_name="NumPy's types"
cli eval 'z = i*2 // 2' --in i=i.npy --out z=z.npy
gives z.npy 'i32[1200]' -600 1
cli eval 'z = i / 2' --in i=i.npy --out z=z.npy
gives z.npy 'f64[1200]' -300 0.5
cli eval 'z = b + s' --in b=b.npy --set s=i8:-10 --out z=z.npy
gives z.npy 'i16[100]' -10 2
cli eval 'z = h*2' --in h=h.npy --out z=z.npy
gives z.npy 'f16[7]' 2 0.5
cli eval 'z = u8(b) + 56' --in b=b.npy --out z=z.npy
gives z.npy 'u8[100]' 56 2

case_name="a written number that the type does not have"
cli eval 'z = b < 300 && 300 > b && b != -1 && !(b == 300) && -1 <= b && b < 300 && -1 < b' \
    --in b=b.npy --out z=z.npy
gives z.npy 'bool[100]' 1 0
cli eval 'z = b > 300 || 300 <= b || b <= -1 || b == -1' --in b=b.npy --out z=z.npy
gives z.npy 'bool[100]' 0 0

case_name="functions to the bit"
cli eval 'z = abs(i) + sign(i) * i - 2*abs(i) + floor(i) + round(i) + trunc(i) - 2*i' --in i=i.npy \
    --out z=z.npy
gives z.npy 'i32[1200]' -600 1
cli eval 'z = pow(h, 2) - h*h + clamp(h, 1, 2.5) + max(h - 2.5, 0) + fract(h) + floor(h) - h' \
    --in h=h.npy --out z=z.npy
gives z.npy 'f16[7]' 1 0.25
cli eval 'z = mix(x, 3*x, 0.5) + step(1e9, x) + mod(x, 1) + smoothstep(-2, -1, x) - mod(x, 1) - 1' \
    --in x=x.npy --out z=z.npy
gives z.npy 'f32[3,400]' 0 1
cli eval 'z = x/0 == inf && !isnan(x) && isinf(-(x + 1)/0) && isnan(nan*x)' --in x=one.npy --out z=z.npy
gives z.npy 'bool[1]' 1 0
cli eval 'z = sqrt(x*x) + x*(sin(0) + cos(0) - exp(0)) + pi*x - x*pi' --in x=one.npy --out z=z.npy
gives z.npy 'f32[1]' 3 0

case_name="many elements"
cli eval 'z = 2*x + 1' --in x=big.npy --out z=z.npy
gives z.npy 'f64[300000]' 1 2

case_name="no element"
cli eval 'z = 2*x + o' --in x=none.npy --in o=one.npy --out z=z.npy
gives z.npy 'f32[0]' 0 0

case_name="in place: what is read is what was there before"
cp x.npy same.npy
cli eval 'y = 2*y + 1' --in y=same.npy --out y=same.npy
gives same.npy 'f32[3,400]' 1 1

case_name="a bool array is read"
cli eval 'm = i >= 0' --in i=i.npy --out m=m.npy
expect_status 0
cli eval 'z = m ? i : -i - 1' --in m=m.npy --in i=i.npy --out z=z.npy
expect_status 0
cli eval 'z = min(z, 599 - z) * 0 + i' --in z=z.npy --in i=i.npy --out z=w.npy
gives w.npy 'i32[1200]' -600 1
rm -f m.npy z.npy

case_name="a tensor"
head='{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}'
head=$(printf '%-64s' "$head")
{ printf '\x40\0\0\0\0\0\0\0%s' "$head"; tail -c 4800 x.npy | head -c 24; } > m.safetensors
cli eval 'z = w + w' --in w=m.safetensors:w --out z=z.npy
gives z.npy 'f32[2,3]' 0 1

case_name="streams"
INPUT=x.npy cli eval 'z = x + x' --in x=- --out z=-
cp .stdout z.npy
gives z.npy 'f32[3,400]' 0 1

case_name="functions are near C's"
cli eval 'z = f64(sin(x)) - s < 1e-3 && s - sin(x) < 1e-3' --in x=dot.npy --set s=f64:0.1411200080598672 \
    --out z=z.npy
gives z.npy 'bool[]' 1 0

# -- what it prints --------------------------------------------------------------------------------
case_name="the JSON, and the times"
cli eval 'z = 2*x' --in x=x.npy --out z=z.npy --json --repeat 3
expect_status 0
expect_json '.status == "READY" and .kernel == "eval" and .submissions == 3 and .executed == "yes"
    and (.kernel_hash | length) == 64 and .min_ms <= .median_ms'
rm -f z.npy

case_name="the GLSL"
cli eval 'z = 2*x + h' --in x=x.npy --in h=one.npy --out z=z.npy --print
expect_status 0
expect_stdout "#version 450"
expect_stdout "precise float"
expect_stdout "a1[0]" # the single element
expect_untouched
if glslc -fshader-stage=compute --target-env=vulkan1.1 -o .spv .stdout; then
    passed=$((passed + 1))
else
    fail "glslc refuses it"
fi
rm -f .spv

# -- refusals --------------------------------------------------------------------------------------
in=(--in x=x.npy --out z=z.npy)
refuses "'z = 2*k': column 7: there is no input 'k'" eval 'z = 2*k' "${in[@]}"
refuses "'z = x*k + m/k + n': column 7: there are no inputs 'k', 'm', 'n'" eval 'z = x*k + m/k + n' "${in[@]}"
refuses "--in =x.npy: no name before '='" eval 'z = 2*x' --in =x.npy --out z=z.npy
refuses "a name of 64 bytes; names have 63 at most" eval 'z = 2*x' --in "$(printf 'x%.0s' {1..64})=x.npy" --out z=z.npy
refuses "input 'y' is not used by the expression" eval 'z = 2*x' "${in[@]}" --in y=y.npy
refuses "number 'a' is not used by the expression" eval 'z = 2*x' "${in[@]}" --set a=f32:1
refuses "output 'w' is never assigned" eval 'z = 2*x' "${in[@]}" --out w=w.npy
refuses "there is no output: give it with --out NAME=FILE" eval 'z = 2*x' --in x=x.npy
refuses "'x' is given twice" eval 'z = x' "${in[@]}" --in x=y.npy
refuses "column 10: the expression ends where" eval 'z = 2*x +' "${in[@]}"
refuses "line 2, column 3: '+' where" eval $'z = x\nz + 1' "${in[@]}"
refuses "x is [3,400] and y is [1200]: axis -1 has 400 and 1200 elements; only an axis of 1 is stretched" \
    eval 'z = x + y' "${in[@]}" --in y=i.npy
"$NPY" make tall.npy 'u8[131072,1]' ramp 0 0
"$NPY" make wide.npy 'u8[65536]' ramp 0 0
refuses "bulkhead eval: the number of elements is 8589934592, over the limit of 4294901760" \
    eval 'z = x + y' --in x=tall.npy --in y=wide.npy --out z=z.npy
refuses "column 5: GLSL has no sin of f64; write sin(f32(...))" \
    eval 'z = sin(x)' --in x=big.npy --out z=z.npy
refuses "the number 300 is out of the range of u8" eval 'z = 300*b' --in b=b.npy --out z=z.npy
refuses "no '=': write --in NAME=FILE" eval 'z = x' --in x.npy --out z=z.npy
refuses "'2x' cannot be a parameter's name" eval 'z = x' "${in[@]}" --in 2x=y.npy
refuses "--set a=2.5: '2.5' has no type: write a=f32:2.5" eval 'z = a*x' "${in[@]}" --set a=2.5
refuses "--set a=f23:2.5: 'f23' is not a type" eval 'z = a*x' "${in[@]}" --set a=f23:2.5
refuses "--set a=u8:256: '256' is out of the range" eval 'z = a*x' "${in[@]}" --set a=u8:256
refuses "--in x=gone.npy" eval 'z = x' --in x=gone.npy --out z=z.npy
refuses "no array: write m.safetensors:NAME" eval 'z = x' --in x=m.safetensors --out z=z.npy
refuses "--out z=gone/z.npy" eval 'z = x' --in x=x.npy --out z=gone/z.npy
refuses "no array: write m.npz:NAME" eval 'z = x' --in x=m.npz --out z=z.npy
refuses "--out z=z.npy:like:x: no ':like:x' here: eval infers type and shape; write z=z.npy" \
    eval 'z = x' --in x=x.npy --out z=z.npy:like:x
refuses "no ':f32:4x2' here: eval infers" eval 'z = x' --in x=x.npy --out z=z.npy:f32:4x2
refuses "no ':f32[4]' here: eval infers" eval 'z = x' --in x=x.npy --out 'z=z.npy:f32[4]'
refuses "writes the same file" eval 'z = x; w = x' "${in[@]}" --out w=./z.npy
refuses "EXPRESSION is missing" eval --in x=x.npy
refuses_json INVALID_ARGUMENT "--print and --json" eval 'z = x' "${in[@]}" --print

# small KIND BYTES COUNT: a tensor of 1, 1.5, 2 and 2.5 in so many bytes.
small() {
    case_name="a tensor of $1 is computed in f32"
    printf '\x50\0\0\0\0\0\0\0%-80s'"$2" "{\"w\":{\"dtype\":\"$1\",\"shape\":[4],\"data_offsets\":[0,$3]}}" > m.safetensors
    cli eval 'z = w + 1' --in w=m.safetensors:w --out z=z.npy
    gives z.npy 'f32[4]' 2 0.5
    case_name="a tensor of $1 is written, by one kernel and behind a reduction"
    for expression in 'z = w' 'z = w + 0 * sum(w)' 'z = sum(w, axis=0, keepdims=true) * 0 + w'; do
        cli eval "$expression" --in w=m.safetensors:w --out "z=n.safetensors:w:${1,,}"
        expect_status 0
        cli inspect n.safetensors --json
        expect_json ".tensors[0] | .type == \"${1,,}\" and .shape == [4] and .offset % 8 == 0 and .bytes == $3"
        if cmp <(tail -c "$3" m.safetensors) <(tail -c "$3" n.safetensors); then passed=$((passed + 1)); else fail "other bytes"; fi
    done
    rm -f n.safetensors
}
small BF16 '\x80\x3f\xc0\x3f\x00\x40\x20\x40' 8
small F8_E4M3 '\x38\x3c\x40\x42' 4
small F8_E5M2 '\x3c\x3e\x40\x41' 4
case_name="a result of small floats is rounded where it is written alone"
cli eval 's = sum(w); z = s - 10.5' --in w=m.safetensors:w --out s=n.safetensors:s:f8_e4m3 --out z=z.npy
expect_status 0
gives z.npy 'f32[]' -3.5 0
refuses "output 'z' must be bf16, but is i32: write f32(...)" eval 'z = i32(x)' --in x=x.npy --out z=z.safetensors:z:bf16
refuses "no array: write z.safetensors:NAME" eval 'z = x' --in x=x.npy --out z=z.safetensors
refuses "no ':f32' here: eval infers" eval 'z = x' --in x=x.npy --out z=z.safetensors:z:f32
refuses "cannot have an array of that name" eval 'z = x' --in x=x.npy --out z=z.safetensors:__metadata__
refuses "outputs are .npy files" eval 'z = x' --in x=x.npy --out z=z.npz:z
printf '\x50\0\0\0\0\0\0\0%-80s1234' '{"w":{"dtype":"F8_E8M0","shape":[4],"data_offsets":[0,4]}}' > m.safetensors
refuses "'w': templates take no f8_e8m0 of 8 bits" eval 'z = w' --in w=m.safetensors:w --out z=z.npy

finish
