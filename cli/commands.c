#include "tool/commands.h"

#include <string.h>

#include "tool/nearest.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const unsigned char option_owner[BHI_OPTION_COUNT] = {
#define BHI_OPTION(command, id, name, value, count, text) BHI_COMMAND_##command,
#include "tool/options.def"
};

static const struct bhi_section run_sections[] = {
    {"Bindings",
     "B is a binding of descriptor set 0, or SET.BINDING, or its name: that of the variable, or of "
     "the block where the variable has none, which bulkhead inspect shows. Every binding that the "
     "kernel declares "
     "must be given exactly once. Of an array of buffers each element is one: 1[0], 1[1], and so "
     "on "
     "(1 alone is 1[0]). DTYPE and TYPE are one of f16 f32 f64 i8 u8 i16 u16 i32 u32 i64 "
     "u64 bool (true or false: a byte in an array, a word among constants).\n\n"
     "An array has to be of the type that the kernel declares at its binding, which bulkhead "
     "inspect "
     "shows: f32 for float, vectors and matrices of it, arrays and structs of nothing else. A file "
     "of "
     "f64, or an output i32, is refused there, and so is i32 for uint. bool and 8-bit floats go as "
     "8-bit integers, bf16 as 16-bit ones. Structs of several types take any array, and where a "
     "binding is declared with several types, one has to match. --reinterpret binds the bytes as "
     "they "
     "are. Push constants by name have the types that the kernel declares; in order they are not "
     "compared: give them the types that they were written for.\n\n"
     "Input is read as .npy, formats 1.0 to 3.0, little endian, C order, or as .safetensors. An "
     "input FILE is a regular file, which a sandboxed loader parses and reads and which must not "
     "change meanwhile, or - for standard input (.npy); an output FILE - is standard output. What "
     "takes over a second to load shows on a terminal how far it is."},
    {"Outputs",
     "Output files appear whole or not at all, and never after a poisoned event. Whether they can "
     "be written is found out before the kernel runs. Of several, all are complete on disk before "
     "the first is renamed to its place. They are .npy files; a name that ends as another format's "
     "does (.safetensors, .npz, .csv, ...) is refused. No output may be a file that the run reads, "
     "under whatever name: --inout replaces one."},
    {"Exit status",
     "  0    every event READY, every output written\n"
     "  1    poisoned: the verdict is on standard error. So ends, too, what crashes\n"
     "       a compiler or exhausts its memory or its time\n"
     "  2    bad usage or bad input: nothing ran, nothing was written\n"
     "  3    the environment cannot do it (see bulkhead doctor), or has no such\n"
     "       device (see bulkhead devices)\n"
     "  130  cancelled by SIGINT, 143 by SIGTERM; a second one, half a second\n"
     "       later or more, kills at once"},
    {"JSON",
     "With --json every end prints one object, with the same keys. None is printed where the words "
     "are not understood: an unknown option, one without its value, a needed one that is missing. "
     "What is not known is null.\n\n"
     "  status       \"READY\", \"POISONED\", or \"REFUSED\": no kernel is to blame. Bad input, "
     "no\n"
     "               device, an output that could not be written, a signal before\n"
     "               it ran\n"
     "  code         what happened: \"OK\", \"WORKER_SIGNAL\", \"DEADLINE\", \"COMPILE_FAILED\", "
     "...\n"
     "  signal       number of the signal that killed the worker, or null\n"
     "  kernel       name of the kernel: its file's\n"
     "  kernel_hash  64 hexadecimal digits: code, entry point, constants, --trusted\n"
     "  executed     \"no\", \"unknown\" (it was running) or \"yes\"\n"
     "  blame        \"certain\"; \"suspected\" (its worker had run another kernel before, which\n"
     "               may have done it); \"none\"\n"
     "  event        number of the event\n"
     "  origin       number of the event where the poison began\n"
     "  worker_pid   of the worker where it began\n"
     "  elapsed_ms   from the start on the worker to the end; of the last submission\n"
     "  message      one paragraph for a person\n"
     "  file         of a source that does not compile: the file of the first error\n"
     "  line         its line in it\n"
     "  log          all that the compiler said, warnings too, as lines\n"
     "  submissions  how many were made\n"
     "  min_ms       least time from submission to result of those that are READY\n"
     "  median_ms    its median"},
};

static const struct bhi_example run_examples[] = {
    {"bulkhead run saxpy.spv --groups 4096 --in 0=x.npy --inout 1=y.npy --push f32:2,u32:1048576",
     "y = 2 x + y over a million numbers; y.npy is replaced."},
    {"bulkhead run saxpy.spv --groups 4096 --in X=x.npy --inout Y=y.npy --push a=2,n=1048576",
     "The same by name: bulkhead inspect saxpy.spv shows which there are."},
    {"bulkhead run blur.comp -D RADIUS=3 -I include --groups 16,16 --inout 0=picture.npy",
     "Compiles GLSL, with a define and a folder of includes, and runs it."},
    {"bulkhead run square.spv --groups 16 --in 0=m.safetensors:w --out 1=w2.npy:f32[1024]",
     "The tensor w of a model, squared."},
    {"bulkhead run mandelbrot.spv --groups 64,64 --out 0=set.npy:u32[512,512] --push "
     "u32:512,512,256",
     "A picture of 512 by 512 points."},
    {"bulkhead run untrusted.spv --groups 65535 --inout 0=data.npy:result.npy --deadline 500ms "
     "--json",
     "Half a second for a kernel that may never end; the verdict as JSON."},
    {"make-data | bulkhead run square.spv --groups 16 --in 0=- --out 1=-:f32[1024] | use-data",
     "Reads a stream, writes a stream."},
};

static const struct bhi_section inspect_sections[] = {
    {"Types",
     "f32 is a float, u32x2 a vector, f32x4x4 a matrix, f32[] an array as long as what is bound, "
     "{u32, f32[]} a block with several members; a block of one member is that member. u8[] | "
     "u32[] "
     "is a binding that variables of two types share. Names are the module's own, where it has "
     "them."},
    {"Exit status", "  0    it was inspected\n"
                    "  1    it crashes a compiler, or exhausts its memory or its time\n"
                    "  2    bad usage, no valid kernel, or one that cannot be guarded\n"
                    "  3    the environment cannot do it (see bulkhead doctor)\n"
                    "  130  cancelled by SIGINT, 143 by SIGTERM; a second one, half a second\n"
                    "       later or more, kills at once"},
    {"JSON",
     "  name           its file's\n"
     "  hash           64 hexadecimal digits: code, entry point, constants\n"
     "  entry          the module's entry point that the rest is about\n"
     "  source_entry   the function of an HLSL source that --entry names, which is\n"
     "                 main in the module; null without --entry, and for SPIR-V\n"
     "  entry_points   all of the module for compute; the first 16\n"
     "  local_size     [X, Y, Z] of a workgroup, --spec applied\n"
     "  shared_bytes   of shared memory, at least\n"
     "  bindings       [{set, binding, count, kind, access, type, name}], kind \"storage\" or\n"
     "                 \"uniform\", access \"read\", \"write\" or \"read_write\"\n"
     "  push           {size, members: [{offset, type, name}]}, the first 64\n"
     "  constants      [{id, type, default, name}] for --spec, by id\n"
     "  capabilities   SPIR-V's names\n"
     "  spirv_version  \"1.3\"\n"
     "  guard          null, or with --guarded {set, binding, loops, left_alone,\n"
     "                 covered, lowered, polled, clamps, zeroed, disassembly}"},
    {"JSON of arrays",
     "  file           as it was given\n"
     "  format         \"npy\" or \"safetensors\"\n"
     "  tensors        [{name, type, shape, bytes, offset}], in the order of the\n"
     "                 header; name is null of a .npy, type the file's own word\n"
     "                 where it is none that can be loaded"},
};

static const struct bhi_example inspect_examples[] = {
    {"bulkhead inspect kernel.spv", "What it binds, and what it has to be given."},
    {"bulkhead inspect kernel.comp -D TILE=8 --json | jq '.bindings[].name'",
     "The names of the buffers of a GLSL kernel."},
    {"bulkhead inspect kernel.spv --guarded | less",
     "What the driver sees of an untrusted kernel."},
    {"bulkhead inspect m.safetensors", "Which tensors it has, and of what type and shape."},
    {"bulkhead inspect m.safetensors --json | jq -r '.tensors[].name'", "Their names, one a line."},
};

static const struct bhi_section eval_sections[] = {
    {"Expressions",
     "Statements NAME = ..., separated by ; or line ends. From those operators that bind least: "
     "?: || && == != < <= > >= | ^ & << >> + - * / // % and, before their operand, - + ! ~. // and "
     "% are of integers, rounded down. Numbers are decimal or, after 0x, hexadecimal; pi, inf, "
     "nan, true and false are constants; # begins a comment.\n\n"
     "Functions: abs acos acosh asin asinh atan atanh ceil clamp cos cosh degrees exp exp2 floor "
     "fract inversesqrt isinf isnan log log2 max min mix mod pow radians round sign sin sinh "
     "smoothstep sqrt step tan tanh trunc, and the types as conversions: f32(x). A name that is "
     "assigned and is no output holds a value for the statements after it."},
    {"Types and shapes",
     "Types are NumPy's (version 2): the result's follows from the arrays' and the --set numbers'; "
     "numbers in the expression adapt to what they are used with. i32 / i32 is f64, comparisons "
     "are bool. Arrays have the same shape, but that a single element goes with all. "
     "docs/templates.md has the tables, and what is exact: + - * and comparisons are, as in NumPy, "
     "to the bit; division and functions are as good as the device.\n\n"
     "An array may be larger than what the device binds at once: the expression is computed piece "
     "by "
     "piece then, and what is written is the same."},
    {"Outputs",
     "As with run: whole or not at all, never after a poisoned event, .npy, and no file "
     "that an input is read from, but that of the input of the same name: 'y = 2*y' --in "
     "y=y.npy --out y=y.npy."},
    {"Exit status",
     "  0    every event READY, every output written\n"
     "  1    poisoned: the verdict is on standard error. So ends, too, what crashes\n"
     "       a compiler or exhausts its memory or its time\n"
     "  2    bad usage, expression or input: nothing ran, nothing was written\n"
     "  3    the environment cannot do it (see bulkhead doctor), or has no such\n"
     "       device (see bulkhead devices)\n"
     "  130  cancelled by SIGINT, 143 by SIGTERM; a second one, half a second\n"
     "       later or more, kills at once"},
    {"JSON", "As with run; the kernel's name is eval."},
};

static const struct bhi_example eval_examples[] = {
    {"bulkhead eval 'z = 2*x + y' --in x=x.npy --in y=y.npy --out z=z.npy",
     "One kernel for all of it, whatever the types of x and y."},
    {"bulkhead eval 't = x - m; z = t > 0 ? t : a*t' --in x=x.npy --in m=mean.npy --set a=f32:0.01 "
     "--out z=z.npy",
     "A mean of one element goes with all; a is a parameter of the kernel."},
    {"bulkhead eval 'y = clamp(round(x / 0.1), -128, 127); q = i8(y)' --in x=m.safetensors:w "
     "--out q=-",
     "Quantises a tensor of a model, to standard output."},
};

static const struct bhi_section batch_sections[] = {
    {"Jobs",
     "A line is one JSON object; its keys are the options of bulkhead run:\n\n"
     "  {\"id\": \"j1\", \"kernel\": \"k.spv\", \"groups\": [4, 1, 1], \"in\": {\"0\": "
     "\"x.npy\"},\n"
     "   \"out\": {\"1\": \"y.npy:u32[256]\"}, \"push\": \"u32:256\", \"depends_on\": [\"j0\"]}\n\n"
     "id, kernel and groups have to be there. in, out and inout are objects, binding to file; spec "
     "is one, constant to value; D is one, name to value or null; I is an array of paths; entry, "
     "push, deadline, compile_deadline, memory and device are strings, reinterpret and trusted are "
     "true or false. "
     "In place of kernel and groups a job may have eval, an expression, with in, out and set by "
     "name "
     "and piece, as bulkhead eval has them. A job begins when "
     "all jobs in "
     "depends_on are done; among those that may, the highest priority (default 0) goes first. "
     "retries goes before --retry. Unknown keys are refused. If two jobs write the same "
     "file, or one reads a file that the other writes, one of them must depend on the other "
     "(depends_on), directly or through others. Only inout lets a job replace a file that it "
     "reads. "
     "Paths that do not begin with / are relative to the folder in which the first run of the "
     "batch "
     "was started; --resume uses that folder, too."},
    {"States",
     "submitted: depends on jobs that are not done. waiting: may run. running. done: its outputs "
     "are in place. failed: the kernel, an input or an argument is bad, or a job that it depends "
     "on failed (the origin says which). quarantined: it crashed or hung too often. cancelled: by "
     "a signal; --resume takes it up.\n\n"
     "A job that is lost with another one's worker is tried again without blame. Killed at any "
     "moment, the program loses nothing with --resume and runs nothing twice that was recorded "
     "done: outputs are renamed into place after they are complete and recorded so, and recorded "
     "done after that."},
    {"Exit status", "  0    all jobs are done\n"
                    "  1    some have failed or are quarantined, --halt has ended it for that,\n"
                    "       or --verify has found outputs that are not what was written\n"
                    "  2    bad usage or bad input: nothing was started\n"
                    "  3    the environment cannot do it (see bulkhead doctor), or has no such\n"
                    "       device (see bulkhead devices)\n"
                    "  130  cancelled by SIGINT, 143 by SIGTERM; a second one, half a second\n"
                    "       later or more, kills at once"},
};

static const struct bhi_example batch_examples[] = {
    {"bulkhead batch jobs.jsonl", "Runs the jobs on two workers, with its state in "
                                  "jobs.jsonl.state."},
    {"bulkhead batch jobs.jsonl --resume", "Goes on after a crash, a signal or a power failure."},
    {"bulkhead batch jobs.jsonl --streams 8 --device nvidia --html report.html",
     "Eight workers on one GPU, and a page that shows what happened when."},
    {"bulkhead batch jobs.jsonl --resume --redo j7", "Runs j7 anew, and what depends on it."},
    {"make-jobs | bulkhead batch - --state nightly --json | jq .failures",
     "Jobs from another program, results for the next one."},
};

static const struct bhi_section chaos_sections[] = {
    {"Faults",
     "  kill     SIGKILL to a worker\n"
     "  segv     SIGSEGV to a worker\n"
     "  stop     SIGSTOP to a worker, for good\n"
     "  hang     a kernel that does not end\n"
     "  oom      a kernel that needs more memory than its worker may have\n"
     "  garbage  random bytes on a worker's control socket, as if it had sent them\n"
     "  close    a worker's control socket is shut down\n"
     "  zygote   SIGKILL to the zygote, and so to all its workers\n"
     "  slow     SIGSTOP to a worker, SIGCONT up to 200 ms later\n"
     "  full     no descriptor is left in this process, for up to 200 ms\n\n"
     "garbage and close take the right to trace a worker: root, or CAP_SYS_PTRACE. Without it they "
     "are missed, and the report says so."},
    {"Verdict",
     "valid: no event was lost, each READY result is right to the bit, each poisoned event leads "
     "to "
     "a fault, looking again changed nothing, streams recovered in time, nothing leaked. invalid: "
     "one of these was broken. unknown: nothing can be said, since no fault was injected, too "
     "few operations were compared, or the machine itself stood still. What is checked, and how, "
     "is in docs/chaos.md."},
    {"Exit status", "  0    valid\n"
                    "  1    invalid\n"
                    "  2    bad usage, or no history of a run\n"
                    "  3    the environment cannot do it (see bulkhead doctor), or has no such\n"
                    "       device (see bulkhead devices)\n"
                    "  4    unknown\n"
                    "  130  cancelled by SIGINT, 143 by SIGTERM; a second one, half a second\n"
                    "       later or more, kills at once"},
};

static const struct bhi_example chaos_examples[] = {
    {"bulkhead chaos", "A minute of all kinds of faults, on two streams."},
    {"bulkhead chaos --faults kill --count 10000 --rate 100", "Ten thousand kills."},
    {"bulkhead chaos --seed 7 --outside --duration 10s --json | tail -n 1 | jq -r .verdict",
     "Kills from another process, for a script."},
    {"bulkhead chaos --replay chaos-7.jsonl", "A run that failed, once more."},
};

static const struct bhi_section devices_sections[] = {
    {"Exit status", "  0  there is a device\n"
                    "  2  bad usage\n"
                    "  3  there is none, or no worker can be started (see bulkhead doctor)"},
    {"JSON",
     "One object per device: selector, name, driver, driver_info, type, vendor_id, device_id, "
     "api_version, driver_version, uuid, memory_bytes, max_groups, max_group_invocations, "
     "max_shared_bytes, max_push_bytes, max_storage_range, max_uniform_range, storage_alignment, "
     "uniform_alignment, import_alignment, features."},
};

static const struct bhi_example devices_examples[] = {
    {"bulkhead devices", "A table of the devices, and what each can do."},
    {"bulkhead devices --json | jq -r '.devices[].selector'", "Only the selectors."},
};

static const struct bhi_section doctor_sections[] = {
    {"Exit status",
     "  0  everything required holds\n"
     "  2  bad usage\n"
     "  3  something required is absent, something is broken, or it could not look;\n"
     "     with --trace-driver: the driver makes a call that its table does not\n"
     "     know, or did not come through"},
    {"Tracing a driver",
     "With --trace-driver a throw-away process starts the driver and has it create a device, warm "
     "up, compile, import and run kernels of Bulkhead's own. It is in a worker's sandbox but for "
     "the filters: each call is noted, with how often it was made and with the arguments that a "
     "filter can compare. The phases device and warm-up are behind filter A in a worker, running "
     "is behind filter B. UNKNOWN marks a call that would have killed a worker."},
    {"JSON",
     "One object per check: group (kernel, sandbox, driver), name, required, result (holds, "
     "absent, broken), text, advice.\n\n"
     "With --trace-driver one object: driver, version, made_for (glob patterns), known_version, "
     "tried, complete, unknown, dropped (numbers of calls), failure, calls; each call has phase, "
     "filter (A, B), call, arguments, count, table (allowed, answered, unknown), errno."},
};

static const struct bhi_example doctor_examples[] = {
    {"bulkhead doctor", "What holds on this machine, and what to install or enable."},
    {"bulkhead doctor --json | jq '.checks[] | select(.result != \"holds\")'",
     "Only what does not hold."},
    {"bulkhead doctor --trace-driver --device lavapipe",
     "The calls that lavapipe makes, by phase."},
};

static const struct bhi_section completion_sections[] = {
    {"Installed",
     "Installing Bulkhead puts the scripts where the shells look for them below the same prefix "
     "(share/bash-completion/completions, share/zsh/site-functions, "
     "share/fish/vendor_completions.d)."},
};

static const struct bhi_example completion_examples[] = {
    {"source <(bulkhead completion bash)", "Completes in this shell, for as long as it runs."},
    {"bulkhead completion fish > ~/.config/fish/completions/bulkhead.fish",
     "Completes in every fish from now on."},
};

static const struct bhi_example version_examples[] = {
    {"bulkhead version", "Prints bulkhead X.Y.Z."},
};

static const struct bhi_example help_examples[] = {
    {"bulkhead help run", "The same as bulkhead run --help."},
    {"bulkhead help --man | man -l -", "All of it as a manual page."},
};

#define SECTIONS(array) .sections = (array), .section_count = COUNT(array)
#define EXAMPLES(array) .examples = (array), .example_count = COUNT(array)

const struct bhi_command bhi_commands[BHI_COMMANDS] = {
    [BHI_COMMAND_RUN] =
        {.name = "run",
         .operand = "KERNEL",
         .least_operands = 1,
         .most_operands = 1,
         .summary = "Run a compute kernel on .npy arrays in a sandboxed worker",
         .description =
             "Runs the compute kernel in the file KERNEL (- is standard input) in a sandboxed "
             "worker process. Whatever the kernel or the driver does, crash, hang or exhaust its "
             "memory, ends as a verdict: which kernel, what happened, whether it executed.\n\n"
             "KERNEL is SPIR-V (.spv), GLSL (.comp, .glsl) or HLSL (.hlsl). Where its name says "
             "nothing, what is in it does, or --language. A source is compiled in a sandboxed "
             "worker of its own; what the compiler says goes to standard error. Other languages "
             "are refused, with what makes SPIR-V of them (docs/glsl.md).",
         SECTIONS(run_sections),
         EXAMPLES(run_examples),
         .run = bhi_run_main},
    [BHI_COMMAND_INSPECT] =
        {.name = "inspect",
         .operand = "FILE",
         .least_operands = 1,
         .most_operands = 1,
         .summary = "Say what a kernel declares, or which tensors a file has",
         .description =
             "Says what the kernel in FILE (- is standard input) declares: entry point, "
             "workgroup, bindings, push constants, specialization constants, capabilities. FILE "
             "is SPIR-V, GLSL or HLSL, as for bulkhead run. It is parsed in a sandboxed worker "
             "without a device: no device is asked whether it takes it, and nothing runs.\n\n"
             "Of a FILE whose name ends in .npy or .safetensors it lists the arrays: type, shape, "
             "bytes, the offset of the data in the file, and the name. Only --json and --verbose "
             "are for these. The header is read in a sandboxed worker, the data not at all.",
         SECTIONS(inspect_sections),
         EXAMPLES(inspect_examples),
         .run = bhi_inspect_main},
    [BHI_COMMAND_EVAL] =
        {.name = "eval",
         .operand = "EXPRESSION",
         .least_operands = 1,
         .most_operands = 1,
         .summary = "Compute an elementwise expression of .npy arrays",
         .description =
             "Makes one compute kernel of EXPRESSION, such as 'z = 2*x + y', and runs it "
             "on arrays in a sandboxed worker process.",
         SECTIONS(eval_sections),
         EXAMPLES(eval_examples),
         .run = bhi_eval_main},
    [BHI_COMMAND_BATCH] =
        {.name = "batch",
         .operand = "JOBS",
         .least_operands = 1,
         .most_operands = 1,
         .summary = "Run many jobs, none of which is lost",
         .description =
             "Runs the jobs in the file JOBS, one JSON object a line (- is standard input, which "
             "needs --state), on several sandboxed workers, and keeps what became of each in a "
             "state folder: a job is done once, whatever is killed meanwhile.",
         SECTIONS(batch_sections),
         EXAMPLES(batch_examples),
         .run = bhi_batch_main},
    [BHI_COMMAND_CHAOS] =
        {.name = "chaos",
         .summary = "Break workers on purpose, and check what comes of it",
         .description =
             "Runs a workload with known answers on several sandboxed workers, injects faults "
             "meanwhile, and has the history of all that was asked, seen and broken checked by "
             "what knows nothing of how it came about.",
         SECTIONS(chaos_sections),
         EXAMPLES(chaos_examples),
         .run = bhi_chaos_main},
    [BHI_COMMAND_DEVICES] =
        {.name = "devices",
         .summary = "List the Vulkan devices as a worker sees them",
         .description = "Lists the Vulkan devices of every supported driver here, as a sandboxed "
                        "worker sees them, with the features that Bulkhead uses.",
         SECTIONS(devices_sections),
         EXAMPLES(devices_examples),
         .run = bhi_devices_main},
    [BHI_COMMAND_DOCTOR] =
        {.name = "doctor",
         .summary = "Probe which guarantees hold on this machine",
         .description = "Probes each sandbox layer, kernel feature and driver guarantee, and says "
                        "what holds here, what does not, and what to install or enable.",
         SECTIONS(doctor_sections),
         EXAMPLES(doctor_examples),
         .run = bhi_doctor_main},
    [BHI_COMMAND_COMPLETION] =
        {.name = "completion",
         .operand = "SHELL",
         .least_operands = 1,
         .most_operands = 1,
         .summary = "Print what a shell needs to complete the command line",
         .description =
             "Prints the script with which SHELL (bash, zsh or fish) completes commands, "
             "options, files and types of bulkhead's command line.",
         SECTIONS(completion_sections),
         EXAMPLES(completion_examples),
         .run = bhi_completion_main},
    [BHI_COMMAND_VERSION] = {.name = "version",
                             .summary = "Print the version",
                             .description = "Prints the version.",
                             EXAMPLES(version_examples),
                             .run = bhi_version_main},
    [BHI_COMMAND_HELP] = {.name = "help",
                          .operand = "COMMAND",
                          .most_operands = 1,
                          .summary = "Explain a command",
                          .description = "Prints the help of COMMAND, or the list of commands.",
                          EXAMPLES(help_examples),
                          .run = bhi_help_main},
};

size_t bhi_command_options(enum bhi_command_id command, size_t *out_first) {
    size_t first = 0, end;
    while (first < BHI_OPTION_COUNT && option_owner[first] != command)
        first++;
    for (end = first; end < BHI_OPTION_COUNT && option_owner[end] == command;)
        end++;
    *out_first = first;
    return end;
}

enum bhi_command_id bhi_command_id(const struct bhi_command *command) {
    return (enum bhi_command_id)(command - bhi_commands);
}

const struct bhi_command *bhi_command_find(const char *name) {
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        if (!strcmp(bhi_commands[i].name, name))
            return &bhi_commands[i];
    }
    return NULL;
}

const char *bhi_command_hint(const char *name, char out[160]) {
    struct bhi_nearest nearest = {.word = name};
    for (size_t i = 0; i < BHI_COMMANDS; i++)
        bhi_nearest_try(&nearest, bhi_commands[i].name);
    return bhi_nearest_hint(&nearest, "", out);
}
