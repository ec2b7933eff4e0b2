# Shared by the scripts of this folder: a task, candidates, and what the judge says of them. Sourced
# behind tests/cli/lib.sh.
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2154 # jq's variables; what tests/cli/lib.sh sets

# kernel FILE: a kernel on X, Y and Z, whose main has the lines on standard input.
kernel() {
    {
        cat << 'END'
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer Y { float y[]; };
layout(set = 0, binding = 2) buffer Z { float z[]; };
layout(push_constant) uniform Push { float a; uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
END
        cat
        echo '}'
    } > "$1"
}

# endless FILE: one that does not end. A driver that ends each loop after 65,535 iterations needs many
# groups for that.
endless() {
    kernel "$1" << 'END'
    while (z[0] != 7.0) {
        for (uint k = 0; k < 60000u && z[0] != 7.0; k++)
            z[1] = fract(sin(z[1]) * 43758.5) + a * x[0] + y[0] + float(n);
    }
END
}

# task FILE [JQ]: the task that these kernels are for, changed by a jq program. The deadline is for what
# ends; a test of one that does not sets its own.
task() {
    jq "${2:-.}" > "$1" << END
{
  "name": "saxpy",
  "sizes": [{"n": 1000}, {"n": 3001}],
  "check_sizes": [{"n": 1}],
  "in": {
    "X": {"dtype": "f32", "shape": ["n"], "fill": "normal"},
    "Y": {"dtype": "f32", "shape": ["n"], "fill": {"uniform": [-1, 1]}}
  },
  "out": {"Z": {"dtype": "f32", "shape": ["n"], "abs": 1e-6, "rel": 1e-6}},
  "push": {"a": 2.5, "n": "n"},
  "groups": ["ceildiv(n, local_x)"],
  "reference": {"eval": "Z = a*X + Y"},
  "limits": {"deadline": "$((10 * slowness))s"}
}
END
}

# says FILE VERDICT [JQ]: what the object on standard output has of that candidate.
says() {
    expect_json --arg file "$1" --arg verdict "$2" \
        '.candidates[] | select(.file == $file) | .verdict == $verdict and '"(${3:-true})"
}
