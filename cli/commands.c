#include "cli/commands.h"

#include <stdint.h>
#include <string.h>

#include "tool/nearest.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct bhi_section run_sections[] = {
    {"Bindings",
     "B is a binding of descriptor set 0, or SET.BINDING, or a name. The name is that of the "
     "variable; if the variable has none, that of its block. bulkhead inspect shows the names. "
     "Give every binding that the kernel declares exactly once. Give each element of an array of "
     "buffers: 1[0], 1[1], and so on (1 is the same as 1[0]). DTYPE and TYPE are one of f16 f32 "
     "f64 i8 u8 i16 u16 i32 u32 i64 u64 bool. A bool is true or false: a byte in an array, a "
     "word in a constant.\n\n"
     "The type of an array must be the type that the kernel declares at the binding (see "
     "bulkhead inspect). f32 fits a binding of floats, or of vectors, matrices, arrays or "
     "structs that contain only floats. f64 or i32 does not fit it, and i32 does not fit uint. "
     "bool and 8-bit floats are given as 8-bit integers, bf16 as 16-bit integers. A struct "
     "of several types takes any array. If a binding is declared with several types, one must "
     "match. --reinterpret binds the bytes without this check. Push constants by name are "
     "converted to the types that the kernel declares. Push constants in order are not compared "
     "with them: write their types.\n\n"
     "For a CUDA kernel, B is the position of a parameter, counted from 0, which becomes a pointer "
     "to the array; --push has the values of the other parameters, in order (a bool is u8). An "
     "image does not declare types: they are not compared, and an array that the kernel may "
     "write needs --out or --inout.\n\n"
     "An input FILE is .npy (formats 1.0 to 3.0, little endian), .npz (not compressed) or "
     ".safetensors. It "
     "must be a regular file; a sandboxed loader parses and reads it. The file must not change "
     "during the run. As an input FILE, - is standard input (.npy); as an output FILE, standard "
     "output. On a terminal, loading that takes longer than a second shows its progress."},
    {"Outputs",
     "Outputs are written completely or not at all, and never after a poisoned event. Before the "
     "kernel runs, the command checks that they can be written. If there are several, all are "
     "complete on disk before the first is renamed into place. Outputs are .npy files: end their "
     "names in .npy. Also allowed: no ending, an ending of digits (x.1), or an ending of more "
     "than five characters (tmp.AbC123XyZ0). All others (.jpeg, .npz, .f32, ...) "
     "are refused. FILE.safetensors:NAME writes a .safetensors with only that tensor, "
     "also of bf16, f8_e4m3 or f8_e5m2. An output may not be a file that the run reads, under any "
     "name; use --inout to replace an input."},
    {"Exit status",
     "  0    every event is READY, every output is written\n"
     "  1    poisoned: the verdict is on standard error. Also if a source or a module\n"
     "       crashes its compiler or parser, or exhausts its memory or time\n"
     "  2    bad usage or bad input: nothing ran, nothing was written\n"
     "  3    the environment cannot do it (see bulkhead doctor), or the device does\n"
     "       not exist (see bulkhead devices)\n"
     "  130  cancelled by SIGINT, 143 by SIGTERM. A second signal at least half a\n"
     "       second later kills the command at once"},
    {"JSON",
     "With --json the command prints one object, with the same keys for every result. It prints "
     "none if it cannot parse the command line: an unknown option, a missing value, a missing "
     "required option. Unknown values are null.\n\n"
     "  status       \"READY\", \"POISONED\", or \"REFUSED\". REFUSED: there is no verdict. Bad\n"
     "               input (also a kernel that is not valid or does not compile), no\n"
     "               device, an output that cannot be written, a signal before the\n"
     "               kernel ran\n"
     "  code         what happened: \"OK\", \"WORKER_SIGNAL\", \"DEADLINE\", \"COMPILE_FAILED\", "
     "...\n"
     "  reason       why, where code alone does not say it: \"MEMORY_LIMIT\", \"ENTRY_POINT\",\n"
     "               ... (bulkhead/reason_codes.h), or null\n"
     "  subject      what the reason is about: {kind, name}, or null\n"
     "  signal       number of the signal that killed the worker, or null\n"
     "  kernel       name of the kernel: the name of its file; of an image for CUDA,\n"
     "               of its entry point\n"
     "  kernel_hash  64 hexadecimal digits: code, entry point, constants, --trusted\n"
     "  executed     \"no\", \"unknown\" (it was running) or \"yes\"\n"
     "  blame        \"none\", \"certain\" or \"suspected\": something else may be to blame, a\n"
     "               kernel that ran before on the same worker, a process that waited for\n"
     "               the GPU (DEVICE_LOST after more than 3.5 s), or one that used up the\n"
     "               memory (SIGKILL)\n"
     "  event        number of the event\n"
     "  origin       number of the event where the poison began\n"
     "  worker_pid   pid of the worker where the poison began\n"
     "  device       selector of that worker's device, or null\n"
     "  elapsed_ms   from the start on the worker to the end of the last submission\n"
     "  message      one paragraph for a person\n"
     "  file         if the source does not compile: the file of the first error that\n"
     "               names a line; if none does, of the first error\n"
     "  line         its line\n"
     "  log          everything that the compiler printed, warnings too, as lines\n"
     "  submissions  number of submissions\n"
     "  min_ms       minimum time from submission to result of the READY submissions\n"
     "  median_ms    median of these times\n"
     "  times        null, or with --time {device, host}, each {warm_up_ms, min_ms,\n"
     "               median_ms, p99_ms}, or null if it is not known; the last three are null\n"
     "               without --repeat\n"
     "  error        null if READY, otherwise {code, reason, subject, message, file, line,\n"
     "               log}, the key that each command prints when it fails"},
};

static const struct bhi_example run_examples[] = {
    {"bulkhead run saxpy.spv --groups 4096 --in 0=x.npy --inout 1=y.npy --push f32:2,u32:1048576",
     "y = 2 x + y over a million numbers; y.npy is replaced."},
    {"bulkhead run saxpy.spv --groups 4096 --in X=x.npy --inout Y=y.npy --push a=2,n=1048576",
     "The same by name: bulkhead inspect saxpy.spv shows the names."},
    {"bulkhead run blur.comp -D RADIUS=3 -I include --groups 16,16 --inout 0=picture.npy",
     "Compiles GLSL, with a define and a folder of includes, and runs it."},
    {"bulkhead run square.spv --groups 16 --in 0=m.safetensors:w --out 1=w2.npy:f32[1024]",
     "The tensor w of a model, squared."},
    {"bulkhead run saxpy.ptx --entry saxpy --device cuda --grid 4096 --block 256 --in 0=x.npy "
     "--inout 1=y.npy --push f32:2,u32:1048576",
     "Runs saxpy(const float *x, float *y, float a, unsigned n), compiled by nvcc -ptx."},
    {"bulkhead run scale.cu --entry 'scale<float>' --device cuda --grid 4096 --block 256 --inout "
     "0=x.npy --push f32:2,u32:1048576",
     "Compiles CUDA C++, and runs an instance of a template."},
    {"bulkhead run mandelbrot.spv --groups 64,64 --out 0=set.npy:u32[512,512] --push "
     "u32:512,512,256",
     "A picture of 512 by 512 points."},
    {"bulkhead run untrusted.spv --groups 65535 --inout 0=data.npy:result.npy --deadline 500ms "
     "--json",
     "Stops a kernel that may never end after half a second; prints the verdict as JSON."},
    {"make-data | bulkhead run square.spv --groups 16 --in 0=- --out 1=-:f32[1024] | use-data",
     "Reads standard input, writes standard output."},
};

static const struct bhi_section compile_sections[] = {
    {"Output",
     "The module is written completely or not at all. It is what bulkhead run would make of the "
     "source: SPIR-V 1.3 for Vulkan 1.1, optimised, with all names. Its entry point is main. It is "
     "neither validated nor guarded: the worker that runs it does that. PTX is for compute "
     "capability 7.5 and later, or as --compile-options says."},
    {"Exit status", "  0    the module is written\n"
                    "  1    the source crashes the compiler, or exhausts its memory or its time\n"
                    "  2    bad usage, or a source that does not compile\n"
                    "  3    the environment cannot do it (see bulkhead doctor)\n"
                    "  130  cancelled by SIGINT, 143 by SIGTERM"},
};

static const struct bhi_example compile_examples[] = {
    {"bulkhead compile kernel.comp -o kernel.spv", "Compiles GLSL."},
    {"bulkhead compile kernel.hlsl --entry blur -D RADIUS=3 -o - | spirv-dis",
     "Shows one entry point of an HLSL source as assembly."},
};

static const struct bhi_section inspect_sections[] = {
    {"Types",
     "f32 is a float, u32x2 a vector, f32x4x4 a matrix. f32[] is an array as long as its buffer. "
     "{u32, f32[]} is a block with several members; a block with one member is shown as that "
     "member. u8[] | u32[] is a binding that variables of two types share. Names are the debug "
     "names of the module, if it has them."},
    {"Exit status", "  0    the file was inspected\n"
                    "  1    the source crashes a compiler, or exhausts its memory or its time\n"
                    "  2    bad usage, an invalid kernel, or a kernel that cannot be guarded\n"
                    "  3    the environment cannot do it (see bulkhead doctor)\n"
                    "  130  cancelled by SIGINT, 143 by SIGTERM. A second signal at least half a\n"
                    "       second later kills the command at once"},
    {"JSON",
     "  name           name of the file\n"
     "  hash           64 hexadecimal digits: code, entry point, constants\n"
     "  entry          the entry point of the module that the other keys describe\n"
     "  source_entry   the function of an HLSL source that --entry names; in the module it\n"
     "                 is called main. null without --entry, and for SPIR-V\n"
     "  entry_points   the compute entry points of the module, at most 16\n"
     "  local_size     [X, Y, Z], the size of a workgroup with --spec applied\n"
     "  shared_bytes   the least shared memory that a workgroup uses\n"
     "  bindings       [{set, binding, count, kind, access, type, name}], kind \"storage\" or\n"
     "                 \"uniform\", access \"read\", \"write\" or \"read_write\"\n"
     "  push           {size, members: [{offset, type, name}]}, at most 64 members\n"
     "  constants      [{id, type, default, name}] for --spec, by id\n"
     "  capabilities   names of SPIR-V\n"
     "  spirv_version  \"1.3\"\n"
     "  guard          null, or with --guarded {set, binding, loops, left_alone,\n"
     "                 covered, lowered, polled, clamps, zeroed, disassembly}\n\n"
     "Of an image for CUDA, the keys are name, kind (\"PTX\", \"cubin\" or \"fatbin\") and "
     "bytes.\n\n"
     "If the command fails, the object has the one key error: {code, reason, subject, message, "
     "file, line, log}. "
     "code is the name of a status, such as \"COMPILE_FAILED\". file, line and log are those of "
     "bulkhead run --json. No object is printed if the command line cannot be parsed."},
    {"JSON of arrays",
     "  file           the FILE of the command line\n"
     "  format         \"npy\", \"npz\" or \"safetensors\"\n"
     "  tensors        [{name, type, shape, bytes, offset}], in the order of the\n"
     "                 header. For .npy, name is null. A type that cannot be loaded\n"
     "                 is shown in the file's own words"},
};

static const struct bhi_example inspect_examples[] = {
    {"bulkhead inspect kernel.spv", "The bindings and constants of a kernel."},
    {"bulkhead inspect kernel.comp -D TILE=8 --json | jq '.bindings[].name'",
     "The names of the buffers of a GLSL kernel."},
    {"bulkhead inspect kernel.spv --guarded | less", "An untrusted kernel as the driver sees it."},
    {"bulkhead inspect m.safetensors", "The tensors of a file, with their types and shapes."},
    {"bulkhead inspect m.safetensors --json | jq -r '.tensors[].name'",
     "The names of the tensors, one per line."},
};

static const struct bhi_section eval_sections[] = {
    {"Expressions",
     "An expression is one or more statements NAME = ..., separated by ; or line ends. The "
     "operators, from the weakest to the strongest: ?: || && == != < <= > >= | ^ & << >> + - * / "
     "// %, then the prefix operators - + ! ~. // and % take integers and round down. Numbers "
     "are decimal, or hexadecimal after 0x. pi, inf, nan, true and false are constants. # begins "
     "a comment.\n\n"
     "Functions: abs acos acosh asin asinh atan atanh ceil clamp cos cosh degrees exp exp2 floor "
     "fract inversesqrt isinf isnan log log2 max min mix mod pow radians round sign sin sinh "
     "smoothstep sqrt step tan tanh trunc where. Reductions: all any argmax argmin max mean min "
     "prod sum, with axis=1 or axis=(0, 2) and keepdims=true, as in NumPy. A type is a conversion: "
     "f32(x). A name that is "
     "assigned and is not an output is a temporary value for later statements."},
    {"Types and shapes",
     "Types follow the rules of NumPy 2. The type of the result follows from the arrays and the "
     "--set numbers; numbers in the expression adapt to their operands. i32 / i32 is f64; "
     "comparisons are bool. Shapes are broadcast as by NumPy: aligned at the last axis, a size of "
     "1 "
     "fits every size. + - * and comparisons are exact to the bit, as in NumPy. The device "
     "determines the precision of division and of functions. docs/templates.md has the tables.\n\n"
     "An array may be larger than the device binds at once. The expression is then computed "
     "piece by piece; the output is the same."},
    {"Outputs",
     "The rules are those of bulkhead run. One exception: an output may replace the input of the "
     "same name: 'y = 2*y' --in y=y.npy --out y=y.npy."},
    {"Exit status",
     "  0    every event is READY, every output is written\n"
     "  1    poisoned: the verdict is on standard error. Also if the kernel crashes its\n"
     "       compiler, or exhausts the compiler's memory or time\n"
     "  2    bad usage, expression or input: nothing ran, nothing was written\n"
     "  3    the environment cannot do it (see bulkhead doctor), or the device does\n"
     "       not exist (see bulkhead devices)\n"
     "  130  cancelled by SIGINT, 143 by SIGTERM. A second signal at least half a\n"
     "       second later kills the command at once"},
    {"JSON", "As for bulkhead run. The name of the kernel is eval."},
};

static const struct bhi_example eval_examples[] = {
    {"bulkhead eval 'z = 2*x + y' --in x=x.npy --in y=y.npy --out z=z.npy",
     "One kernel for the whole expression, whatever the types of x and y."},
    {"bulkhead eval 't = x - m; z = t > 0 ? t : a*t' --in x=x.npy --in m=mean.npy --set a=f32:0.01 "
     "--out z=z.npy",
     "A mean of one element fits every shape; a is a parameter of the kernel."},
    {"bulkhead eval 'y = clamp(round(x / 0.1), -128, 127); q = i8(y)' --in x=m.safetensors:w "
     "--out q=-",
     "Quantises a tensor of a model, to standard output."},
};

static const struct bhi_section batch_sections[] = {
    {"Jobs",
     "Each line is one JSON object, such as:\n\n"
     "  {\"id\": \"j1\", \"kernel\": \"k.spv\", \"groups\": [4, 1, 1], \"in\": {\"0\": "
     "\"x.npy\"},\n"
     "   \"out\": {\"1\": \"y.npy:u32[256]\"}, \"push\": \"u32:256\", \"depends_on\": [\"j0\"]}\n\n"
     "The keys are id, depends_on, retries, priority, kernel, and these options of bulkhead run: "
     "groups (or grid), block, shared, entry, language, D, I, in, out, inout, push, spec, "
     "deadline, "
     "compile_deadline, memory, device, reinterpret, trusted. The options of the whole batch "
     "(--grace, --tenant, "
     "--memory-limit, --cache-dir) are not keys.\n\n"
     "id, kernel and groups are required. in, out and inout are objects that map a binding to a "
     "file. spec is an object that maps a constant to a value, D one that maps a name to a value "
     "or null. I is an array of paths. entry, language, push, deadline, compile_deadline, memory "
     "and "
     "device are strings. reinterpret and trusted are true or false. groups and block are numbers, "
     "arrays of "
     "up to three or strings, shared is a number. An image for CUDA needs entry, block and a "
     "device "
     "cuda, as in bulkhead run. Instead of kernel and groups a job may have eval, an expression, "
     "with piece, and in, out and set by name, as in "
     "bulkhead eval. Unknown keys are refused.\n\n"
     "A job begins when all jobs in depends_on are done. Among the jobs that may begin, the one "
     "with the highest priority (default 0) goes first. The key retries takes precedence over "
     "--retry. If two jobs write the same file, or one reads a file that the other writes, one "
     "of them must depend on the other (depends_on), directly or through others. A job can "
     "replace a file that it reads only with inout. Paths that do not begin with / are relative "
     "to the folder in which the first run of the batch was started; --resume uses that folder, "
     "too."},
    {"States",
     "  submitted    depends on jobs that are not done\n"
     "  waiting      may begin\n"
     "  running      has a worker\n"
     "  done         its outputs are in place\n"
     "  failed       the kernel, an input or an argument is bad, its device does not\n"
     "               exist, or a job that it depends on is failed or quarantined: the\n"
     "               origin names that job\n"
     "  quarantined  it crashed, passed its deadline, exceeded its memory or lost the\n"
     "               device too often, or the driver cut a loop short (LOOP_LIMIT)\n"
     "  cancelled    by a signal or --cancel; --resume runs it again\n\n"
     "A job that is lost because another job killed its worker is retried, and not blamed. "
     "The program may be killed at any moment: with --resume no job is lost, and no job that was "
     "recorded as done runs again. Outputs are completed, recorded as complete, renamed into "
     "place, and then recorded as done."},
    {"Exit status",
     "  0    all jobs are done\n"
     "  1    jobs have failed or are quarantined, or --verify found outputs, kernels or\n"
     "       inputs that have changed\n"
     "  2    bad usage or bad input, or with --resume a changed kernel or input: nothing\n"
     "       was started\n"
     "  3    the environment cannot do it (see bulkhead doctor), or the device of\n"
     "       --device does not exist (see bulkhead devices)\n"
     "  130  cancelled by SIGINT, 143 by SIGTERM or --cancel. A second signal at least\n"
     "       half a second later kills the command at once"},
};

static const struct bhi_example batch_examples[] = {
    {"bulkhead batch jobs.jsonl",
     "Runs the jobs on two workers; keeps their state in jobs.jsonl.state."},
    {"bulkhead batch jobs.jsonl --resume", "Continues after a crash, a signal or a power failure."},
    {"bulkhead batch jobs.jsonl --streams 8 --device nvidia --html report.html",
     "Eight workers on one GPU, and a page with a timeline."},
    {"bulkhead batch jobs.jsonl --resume --redo j7",
     "Runs j7 and the jobs that depend on it again."},
    {"make-jobs | bulkhead batch - --state nightly --json | jq .failures",
     "Jobs from another program, results for the next one."},
    {"bulkhead batch --status jobs.jsonl.state",
     "Shows the progress of the batch, from any machine."},
};

static const struct bhi_section judge_sections[] = {
    {"Verdicts", "  CORRECT          every output is right, in every size and with every seed\n"
                 "  WRONG            an output is wrong: the message has the first wrong element\n"
                 "  STRAY_WRITE      it wrote outside of its outputs\n"
                 "  STRAY_READ       its outputs depend on what is behind an array\n"
                 "  a status         it did not run to its end: COMPILE_FAILED, DEADLINE,\n"
                 "                   WORKER_SIGNAL and so on, as of bulkhead run\n"
                 "  BINDING_MISMATCH its bindings or push constants are not those of the task\n"
                 "  INVALID_ARGUMENT its plan is wrong\n"
                 "  TIMING_FORGED    with --time: its worker claims times that cannot be\n"
                 "  SLOWER           with --slower-than RATIO: it surely takes more than RATIO\n"
                 "                   times as long as the reference"},
    {"Candidates",
     "A candidate is a kernel, or a plan of several: a JSON file, or a line of a source that "
     "begins "
     "with // bulkhead:. A plan has kernels (each with kernel or source, groups, D, I, spec, "
     "entry) and "
     "scratch that they share; docs/judge.md describes it. -D, -I, --spec and --entry are for the "
     "kernels of all candidates."},
    {"What is checked",
     "Each candidate gets a worker of its own, and each run fresh buffers. Before a run its "
     "outputs hold random bytes, and so do margins around them, which must not change. Each size "
     "of TASK is run with the seeds of TASK and with hidden ones. The first run of each size is "
     "repeated. The first, third, ... repetition has other noise, and the ids of its workgroups in "
     "the opposite order. A repetition must be right, too. If all are right and the outputs "
     "differ, the "
     "candidate is reported as not deterministic, which is no fault."},
    {"Times",
     "With --time, CORRECT candidates are timed when all candidates have been checked. "
     "Candidate and reference take turns on the same fresh inputs, in groups of runs. Each group "
     "has fresh workers, because a worker may be slow for its whole life. Some runs are checked; "
     "the candidate cannot know which. The report has the medians of the device's own times, and "
     "their ratio with its 95 % interval, computed from the groups. The device's times come from "
     "workers. The host has a clock of its own: claims that it refutes three times are "
     "TIMING_FORGED. The measurement is repeated if the host can neither confirm nor refute the "
     "claims, if the reference becomes slower or faster by more than 5 %, or if it is slower than "
     "without the candidate. After the third measurement the ratio is unknown. Noise above 0.5 % "
     "is reported. On a device without timestamps the times are the host's, of warm batches."},
    {"The reference",
     "It is run before any candidate, twice with each input. If it fails, computes different bytes "
     "with the same inputs, or computes a NaN of which TASK says nothing, no candidate is judged. "
     "If "
     "zeros, a constant, a copy of an input or the result of another seed would pass, TASK is "
     "weak: "
     "the report says so, and --strict refuses it."},
    {"Many candidates",
     "With --state, DIR/judge.jsonl gets a line for each verdict as soon as it is known. --resume "
     "judges the candidates that have no verdict there, and those whose files have changed since. "
     "Recorded times are kept; they are compared with the --slower-than of the current run, which "
     "decides whether a candidate is SLOWER. With --time, times that are missing or came out "
     "unknown are measured. A DIR of another task is refused, even if only a file of TASK, what "
     "the reference computes, or the --baseline differs."},
    {"Differences",
     "  bulkhead judge --diff BEFORE AFTER [--json]\n\n"
     "The changes are: worse and better (it was CORRECT, or is now), slower and faster (the 95 % "
     "intervals of its time relative to the reference do not meet), other (another verdict), new "
     "and gone. Times that were measured in different ways (on another device, on one processor "
     "and with --all-processors, with and without --warm, by the device's clock and by the host's, "
     "beside the reference and beside a --baseline or another one) "
     "are not compared; this is said, and changes no exit status. With --json: before, after (the "
     "files), same (how many candidates), changes: for each other candidate file, change, before, "
     "after (verdicts; null: none), message, ratio_before, ratio_after (null: not measured), "
     "not_compared: for each reason condition (device, processors, caches, clock, baseline), "
     "before, after, "
     "candidates (how many)."},
    {"Exit status", "  0    every candidate is CORRECT; with --diff: none is worse or slower\n"
                    "  1    at least one is not; with --diff: at least one is\n"
                    "  2    bad usage, a bad TASK, or a bad reference: no candidate ran\n"
                    "  3    this machine cannot run it (see bulkhead doctor), or a file or the\n"
                    "       state cannot be written\n"
                    "  130  cancelled by SIGINT (SIGTERM: 143)"},
    {"JSON",
     "task, file, device, seeds, hidden_seeds, repeats (how often the first run of each size was "
     "repeated), orders (in how many orders of workgroups these ran: 1 or 2), fixed_inputs (each "
     "run of a size has the same: a "
     "kernel that only stores the results is CORRECT, too), weak (for each output that a kernel "
     "which "
     "computes nothing has right: output, passes (zeros, constant, input, seed: what is right for "
     "another seed), input (null: it copies none), size (null: each)), correct (how many are), "
     "candidates: "
     "for each file, verdict, code (OK, NOT_CORRECT, or why it failed), reason and subject (of a "
     "failure; null: nothing more is known), "
     "message, blame (none, suspected, certain), runs (that ended READY), "
     "deterministic (as far as repeats and orders show; null: "
     "not CORRECT), size, seed and hidden of the run that decided (null: none did), fill (how its "
     "inputs were made; null: by "
     "the generators), wrong: null, "
     "or "
     "output, index, expected, got, ulp, wrong (elements that are), elements. errors: null (it is "
     "not right), or for "
     "each output its largest absolute, relative and ulp error. Seeds, expected, got "
     "and ulp are strings. dump: the folder with its arrays (null: none). timing: null, or for "
     "each size that was timed size, runs, median_ns, "
     "reference_ns, ratio, low, high (null: unknown), doubt (why it is unknown: claims, drift, "
     "load; null: it is known), noise and drift of the reference's median (0.005 is 0.5 %), "
     "host_ns (a run by the host's clock, with one_processor by its worker's processor time, in "
     "batches; null: too short), device "
     "(false: the host's clock), cold, one_processor, baseline (the reference is one), noisy, "
     "guard_ratio (null: not measured). baseline: the file (null: none). "
     "flushed_bytes: "
     "null without --time, otherwise what is written before each timed run. If no candidate is "
     "judged, an object "
     "{error: {code, reason, subject, message, file, line, log}} as of bulkhead inspect --json."},
};

static const struct bhi_example judge_examples[] = {
    {"bulkhead judge task.json mine.comp yours.comp", "Says which of two kernels are right."},
    {"bulkhead judge task.json *.comp --state judged --html board.html",
     "Writes a leaderboard; keeps the verdicts, even if the command is killed."},
    {"bulkhead judge task.json *.comp --state judged --resume",
     "Continues, and judges the other candidates."},
    {"bulkhead judge task.json mine.comp --dump arrays",
     "If it is WRONG, arrays/mine.comp has what it read, what it wrote and what was expected."},
    {"bulkhead judge --diff monday.json tuesday.json",
     "Says which kernels became worse or better."},
    {"bulkhead judge task.json *.comp --seed 42 --json | jq -r '.candidates[] | select(.verdict == "
     "\"CORRECT\").file'",
     "The files of correct candidates, with a hidden seed that you can repeat."},
    {"bulkhead judge task.json tiled.comp -D TILE=16 -I include",
     "Compiles the candidate with a macro and a folder."},
    {"bulkhead judge task.json *.comp --time --slower-than 1",
     "Times the correct candidates. Those slower than the reference fail."},
    {"bulkhead judge task.json *.comp --time --baseline best.comp",
     "Compares their times with the best kernel so far."},
};

static const struct bhi_section chaos_sections[] = {
    {"Faults",
     "  kill       SIGKILL to a worker\n"
     "  segv       SIGSEGV to a worker\n"
     "  stop       SIGSTOP to a worker, for good\n"
     "  hang       a kernel that does not end\n"
     "  oom        a kernel that needs more memory than its worker may have\n"
     "  garbage    random bytes on a worker's control socket, as if the worker had sent them\n"
     "  close      a worker's control socket is shut down\n"
     "  zygote     SIGKILL to the zygote, and so to all its workers\n"
     "  slow       SIGSTOP to a worker, SIGCONT up to 200 ms later\n"
     "  full       this process has no free descriptor for up to 200 ms\n"
     "  device     SIGKILL to a worker while it makes, shares or copies device memory\n"
     "  unguarded  a kernel that does not end, without the guard\n"
     "  illegal    a CUDA kernel that writes where no memory is\n\n"
     "oom and unguarded are left out on a CUDA device, illegal on all others.\n\n"
     "garbage and close need the right to trace a worker: root, or CAP_SYS_PTRACE. Without that "
     "right they are skipped, and the report says so."},
    {"Other hosts",
     "--attach and --run take --seed, --duration, --count, --faults (kill, segv, stop, slow, "
     "garbage, close; default: kill,stop,slow), --targets, --rate (default: 5/s), --schedule and "
     "--log. They hit only Bulkhead's processes below the host, and when they end, they continue "
     "those that they have stopped."},
    {"Verdict",
     "valid: no event was lost; each READY result is right to the bit; each poisoned event leads "
     "to a fault; a second look at an event gave the same answer; streams recovered in time; "
     "nothing leaked, also on the GPU. invalid: one of these does not hold. unknown: no fault was "
     "injected, too few operations were compared, or the machine itself stopped for a time. "
     "docs/chaos.md "
     "explains the checks."},
    {"Exit status",
     "  0    valid\n"
     "  1    invalid\n"
     "  2    bad usage, or FILE is not the history of a run\n"
     "  3    the environment cannot do it (see bulkhead doctor), or the device does\n"
     "       not exist (see bulkhead devices)\n"
     "  4    unknown\n"
     "  130  cancelled by SIGINT, 143 by SIGTERM. A second signal at least half a\n"
     "       second later kills the command at once"},
};

static const struct bhi_example chaos_examples[] = {
    {"bulkhead chaos", "All kinds of faults for a minute, on two streams."},
    {"bulkhead chaos --faults kill --count 10000 --rate 100", "Ten thousand kills."},
    {"bulkhead chaos --seed 7 --outside --duration 10s --json | tail -n 1 | jq -r .verdict",
     "Faults from a second process; prints only the verdict."},
    {"bulkhead chaos --replay chaos-7.jsonl", "Repeats a run that failed."},
    {"bulkhead chaos --attach 4711 --targets worker,compiler --rate 10",
     "Kills and stops workers and compilers of the host 4711 for a minute."},
    {"bulkhead chaos --run --log faults.jsonl -- ./service --selftest",
     "Starts a program, and does the same to it until it ends."},
};

static const struct bhi_section devices_sections[] = {
    {"Exit status", "  0  there is a device\n"
                    "  2  bad usage\n"
                    "  3  there is no device, or no worker can start (see bulkhead doctor)"},
    {"JSON",
     "One object per device: selector, name, driver, driver_info, type, vendor_id, device_id, "
     "api_version, driver_version, uuid, memory_bytes (largest heap), memory_total, memory_free "
     "(null: the driver does not say), pci (null: the same), max_groups, max_group_invocations, "
     "max_shared_bytes, max_push_bytes, max_storage_range, max_uniform_range, storage_alignment, "
     "uniform_alignment, import_alignment, features. If the command fails, an object "
     "{error: {code, reason, subject, message, file, line, log}} as of bulkhead inspect --json."},
};

static const struct bhi_example devices_examples[] = {
    {"bulkhead devices", "A table of the devices and their features."},
    {"bulkhead devices --json | jq -r '.devices[].selector'", "Only the selectors."},
};

static const struct bhi_section doctor_sections[] = {
    {"Results", "  ok       it holds\n"
                "  absent   it does not hold, and is optional\n"
                "  MISSING  it does not hold, and is required\n"
                "  BROKEN   it should hold, and does not: the probe got past it, or failed"},
    {"Exit status",
     "  0  everything that is required holds\n"
     "  2  bad usage\n"
     "  3  something required is absent, something is broken, or a check could not\n"
     "     run. With --trace-driver: the driver makes a call that its table does not\n"
     "     list, or the trace failed"},
    {"Tracing a driver",
     "With --trace-driver a temporary process starts the driver. It creates a device, warms up, "
     "compiles, imports memory and runs kernels of Bulkhead. It runs in the sandbox of a worker, "
     "without the filters. If the device shares its memory, a second process imports some; if it "
     "has a sentinel, a third sets abort words. What the device cannot do is listed as not "
     "traced. The trace lists each call, how often it was made, and the arguments "
     "that a filter can compare. In a worker, filter A covers the phases device, warm-up and "
     "sentinel, filter B the phases running, memory and words. UNKNOWN marks a call that kills a "
     "worker."},
    {"JSON",
     "One object per check: group (kernel, sandbox, driver), name, required, result (holds, "
     "absent, broken), text, advice. device_memory has the numbers behind the checks of that name "
     "(docs/operating.md). If the checks or the trace cannot run, an object "
     "{error: {code, reason, subject, message, file, line, log}} as of bulkhead inspect --json.\n\n"
     "With --trace-driver one object: driver, version, made_for (glob patterns), known_version, "
     "tried, complete, unknown, dropped (numbers of calls), failure, left_out, calls; each call "
     "has phase, "
     "filter (A, B), call, arguments, count, table (allowed, answered, unknown), errno."},
};

static const struct bhi_example doctor_examples[] = {
    {"bulkhead doctor", "All checks, with advice on what to install or enable."},
    {"bulkhead doctor --json | jq '.checks[] | select(.result != \"holds\")'",
     "Only the checks that do not hold."},
    {"bulkhead doctor --trace-driver --device lavapipe",
     "The calls that lavapipe makes, by phase."},
};

static const struct bhi_section completion_sections[] = {
    {"Installed",
     "The installation puts the scripts where shells look for them, below the same prefix "
     "(share/bash-completion/completions, share/zsh/site-functions, "
     "share/fish/vendor_completions.d)."},
};

static const struct bhi_example completion_examples[] = {
    {"source <(bulkhead completion bash)", "Enables completion in this shell."},
    {"bulkhead completion fish > ~/.config/fish/completions/bulkhead.fish",
     "Enables completion in every new fish."},
};

static const struct bhi_example version_examples[] = {
    {"bulkhead version", "Prints bulkhead X.Y.Z."},
};

static const struct bhi_example help_examples[] = {
    {"bulkhead help run", "The same as bulkhead run --help."},
    {"bulkhead help --man | man -l -", "The whole help as a manual page."},
};

#define SECTIONS(array) .sections = (array), .section_count = COUNT(array)
#define EXAMPLES(array) .examples = (array), .example_count = COUNT(array)

const struct bhi_command bhi_commands[BHI_COMMANDS] = {
    [BHI_COMMAND_RUN] =
        {.id = BHI_COMMAND_RUN,
         .name = "run",
         .operand = "KERNEL",
         .least_operands = 1,
         .most_operands = 1,
         .summary = "Run a compute kernel on .npy arrays in a sandboxed worker",
         .description =
             "Runs the compute kernel in the file KERNEL (- is standard input) in a sandboxed "
             "worker process. If the kernel or the driver crashes, hangs or exhausts its memory, "
             "the command prints a verdict: which kernel, what happened, and whether it "
             "executed.\n\n"
             "KERNEL is SPIR-V (.spv), GLSL (.comp, .glsl), HLSL (.hlsl) or CUDA C++ (.cu). If the "
             "name has no "
             "such ending, give --language; without it the content decides. A source is compiled "
             "in a "
             "sandboxed worker of its own; the output of the compiler goes to standard error. "
             "Other languages are refused; the message names a tool that makes SPIR-V from them "
             "(docs/kernels.md).\n\n"
             "A kernel for CUDA needs --device cuda and --block. CUDA C++ is compiled by NVRTC; "
             "bulkhead doctor says whether it is there. KERNEL may also be an image, which its "
             "content tells: PTX text (nvcc -ptx), a cubin or a fatbin, with --entry "
             "(docs/cuda.md).",
         SECTIONS(run_sections),
         EXAMPLES(run_examples)},
    [BHI_COMMAND_COMPILE] =
        {.id = BHI_COMMAND_COMPILE,
         .name = "compile",
         .operand = "SOURCE",
         .least_operands = 1,
         .most_operands = 1,
         .summary = "Compile GLSL or HLSL to SPIR-V, CUDA C++ to PTX",
         .description =
             "Compiles the kernel in SOURCE (- is standard input), GLSL, HLSL or CUDA C++, and "
             "writes its SPIR-V module or its PTX. The compiler runs in a sandboxed worker of its "
             "own, without a device; "
             "its output goes to standard error.",
         SECTIONS(compile_sections),
         EXAMPLES(compile_examples)},
    [BHI_COMMAND_INSPECT] =
        {.id = BHI_COMMAND_INSPECT,
         .name = "inspect",
         .operand = "FILE",
         .least_operands = 1,
         .most_operands = 1,
         .summary = "Print what a kernel declares, or which tensors a file has",
         .description =
             "Prints what the kernel in FILE (- is standard input) declares: entry point, "
             "workgroup, bindings, push constants, specialization constants, capabilities. FILE "
             "is SPIR-V or a source, as for bulkhead run. A sandboxed worker without a device "
             "parses it. Nothing runs, and no device is asked whether it supports the kernel. Of "
             "an "
             "image for CUDA, and of CUDA C++ after it was compiled, only kind and size are "
             "printed.\n\n"
             "If the name of FILE ends in .npy, .npz or .safetensors, lists its arrays: type, "
             "shape, "
             "bytes, the offset of the data in the file, and the name. Only --json and --verbose "
             "apply. A sandboxed worker reads the header, and none of the data.",
         SECTIONS(inspect_sections),
         EXAMPLES(inspect_examples)},
    [BHI_COMMAND_EVAL] = {.id = BHI_COMMAND_EVAL,
                          .name = "eval",
                          .operand = "EXPRESSION",
                          .least_operands = 1,
                          .most_operands = 1,
                          .summary = "Compute an expression of .npy arrays",
                          .description = "Makes compute kernels from EXPRESSION, such as 'z = 2*x "
                                         "+ y' or 'z = mean(x, axis=0)', "
                                         "and runs them on arrays in a sandboxed worker process.",
                          SECTIONS(eval_sections),
                          EXAMPLES(eval_examples)},
    [BHI_COMMAND_BATCH] =
        {.id = BHI_COMMAND_BATCH,
         .name = "batch",
         .operand = "JOBS",
         .most_operands = 1,
         .summary = "Run many jobs; continue after a crash",
         .description =
             "Runs the jobs in the file JOBS on several sandboxed workers. Each line of JOBS is "
             "one JSON object; - is standard input and needs --state. A state folder keeps the "
             "result of each job, so that no job is lost or done twice if the command is killed.",
         SECTIONS(batch_sections),
         EXAMPLES(batch_examples)},
    [BHI_COMMAND_JUDGE] =
        {.id = BHI_COMMAND_JUDGE,
         .name = "judge",
         .operand = "TASK CANDIDATE...",
         .least_operands = 2,
         .most_operands = 10000,
         .summary = "Check untrusted kernels against a reference, and time them",
         .description =
             "Runs each kernel CANDIDATE (SPIR-V, GLSL or HLSL; with --device cuda CUDA C++, PTX, "
             "a cubin or a fatbin) on the inputs that the file TASK describes, and compares its "
             "outputs with those of a reference. docs/judge.md describes TASK. A candidate that "
             "crashes, hangs or takes over its worker does not change the verdict of another.",
         SECTIONS(judge_sections),
         EXAMPLES(judge_examples)},
    [BHI_COMMAND_CHAOS] =
        {.id = BHI_COMMAND_CHAOS,
         .name = "chaos",
         .operand = "-- COMMAND [ARGUMENT]...",
         .most_operands = SIZE_MAX,
         .summary = "Break workers on purpose, and check the results",
         .description =
             "Runs a workload with known answers on several sandboxed workers and injects "
             "faults. Then an independent checker verifies the history of all requests, results "
             "and faults.\n\n"
             "With --attach or --run it injects faults into the workers of another program, and "
             "checks nothing.",
         SECTIONS(chaos_sections),
         EXAMPLES(chaos_examples)},
    [BHI_COMMAND_DEVICES] = {.id = BHI_COMMAND_DEVICES,
                             .name = "devices",
                             .summary = "List the devices as a worker sees them",
                             .description =
                                 "Lists the devices of every supported driver on this machine (of "
                                 "Vulkan, and cuda), as a sandboxed "
                                 "worker sees them, with the features that Bulkhead uses.",
                             SECTIONS(devices_sections),
                             EXAMPLES(devices_examples)},
    [BHI_COMMAND_DOCTOR] =
        {.id = BHI_COMMAND_DOCTOR,
         .name = "doctor",
         .summary = "Probe which guarantees hold on this machine",
         .description =
             "Probes each sandbox layer, kernel feature and driver guarantee. Prints which hold "
             "on this machine, which do not, and what to install or enable.",
         SECTIONS(doctor_sections),
         EXAMPLES(doctor_examples)},
    [BHI_COMMAND_COMPLETION] =
        {.id = BHI_COMMAND_COMPLETION,
         .name = "completion",
         .operand = "SHELL",
         .least_operands = 1,
         .most_operands = 1,
         .summary = "Print a script that completes the command line",
         .description =
             "Prints a script that completes the commands, options, files and types of bulkhead "
             "in SHELL (bash, zsh or fish).",
         SECTIONS(completion_sections),
         EXAMPLES(completion_examples)},
    [BHI_COMMAND_VERSION] = {.id = BHI_COMMAND_VERSION,
                             .name = "version",
                             .summary = "Print the version",
                             .description = "Prints the version.",
                             EXAMPLES(version_examples)},
    [BHI_COMMAND_HELP] = {.id = BHI_COMMAND_HELP,
                          .name = "help",
                          .operand = "-- COMMAND [ARGUMENT]...",
                          .most_operands = 1,
                          .summary = "Explain a command",
                          .description = "Prints the help of COMMAND, or the list of commands.",
                          EXAMPLES(help_examples)},
};

const struct bhi_command *bhi_command_find(const char *name) {
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        if (!strcmp(bhi_commands[i].name, name)) {
            return &bhi_commands[i];
        }
    }
    return NULL;
}

const char *bhi_command_hint(const char *name, char out[160]) {
    struct bhi_nearest nearest = {.word = name};
    for (size_t i = 0; i < BHI_COMMANDS; i++) {
        bhi_nearest_try(&nearest, bhi_commands[i].name);
    }
    return bhi_nearest_hint(&nearest, "", out);
}
