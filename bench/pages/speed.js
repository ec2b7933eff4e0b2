// How long small and large work takes: the rows of bench-dispatch, with its kernels in WGSL.
const TRIPS = 2000, BATCH = 1000, REPEATS = 5, FLOATS = 16 * 1024 * 1024;
const empty = '@compute @workgroup_size(1) fn main() {}';
const count = '@group(0) @binding(0) var<storage, read_write> counter: u32;' +
    '@compute @workgroup_size(1) fn main() { counter = counter + 1u; }';
const saxpy = 'struct Push { a: f32, count: u32 };' +
    '@group(0) @binding(0) var<storage, read> x: array<vec4f>;' +
    '@group(0) @binding(1) var<storage, read_write> y: array<vec4f>;' +
    '@group(0) @binding(2) var<uniform> push: Push;' +
    '@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3u) {' +
    '    let i = id.x;' +
    '    if (i < push.count) { y[i] = push.a * x[i] + y[i]; } }';

const STORAGE = GPUBufferUsage.STORAGE, IN = GPUBufferUsage.COPY_DST, OUT = GPUBufferUsage.COPY_SRC;
const READ = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
const middle = values => values.sort((a, b) => a - b)[Math.ceil(values.length / 2) - 1];

// The smallest step of the clock: a browser rounds it.
function step() {
    let smallest = Infinity;
    for (let i = 0; i < 50; i++) {
        const began = performance.now();
        let now = began;
        while (now === began) now = performance.now();
        smallest = Math.min(smallest, now - began);
    }
    return smallest;
}

function group(device, made, buffers) {
    return device.createBindGroup({layout: made.getBindGroupLayout(0),
        entries: buffers.map((buffer, binding) => ({binding, resource: {buffer}}))});
}

// |times| dispatches in one command buffer.
function encode(device, made, bind, groups, times, copy) {
    const encoder = device.createCommandEncoder(), pass = encoder.beginComputePass();
    pass.setPipeline(made);
    if (bind) pass.setBindGroup(0, bind);
    for (let i = 0; i < times; i++) pass.dispatchWorkgroups(groups);
    pass.end();
    if (copy) encoder.copyBufferToBuffer(copy.from, 0, copy.to, 0, copy.bytes);
    return encoder.finish();
}

async function fastest(run) {
    let best = Infinity;
    for (let i = 0; i < REPEATS; i++) {
        const began = performance.now();
        await run();
        best = Math.min(best, performance.now() - began);
    }
    return best;
}

async function measure() {
    const device = await open(), queue = device.queue;
    device.addEventListener('uncapturederror', e => post('/speed', {error: e.error.message}));
    const nothing = pipeline(device, empty), counts = pipeline(device, count), adds = pipeline(device, saxpy);

    const counter = device.createBuffer({size: 4, usage: STORAGE | OUT});
    const word = device.createBuffer({size: 4, usage: READ}), bound = group(device, counts, [counter]);
    let counted = 0;
    const trip = async () => {
        queue.submit([encode(device, nothing, null, 1, 1)]);
        await queue.onSubmittedWorkDone();
    };
    const result = async () => {
        queue.submit([encode(device, counts, bound, 1, 1, {from: counter, to: word, bytes: 4})]);
        await word.mapAsync(GPUMapMode.READ);
        const is = new Uint32Array(word.getMappedRange())[0];
        word.unmap();
        if (is !== ++counted) throw new Error('the counter is ' + is + ', must be ' + counted);
    };
    const commands = async () => {
        queue.submit([encode(device, nothing, null, 1, BATCH)]);
        await queue.onSubmittedWorkDone();
    };
    const submissions = async () => {
        for (let i = 0; i < BATCH; i++) queue.submit([encode(device, nothing, null, 1, 1)]);
        await queue.onSubmittedWorkDone();
    };
    const several = async run => {
        for (let i = 0; i < TRIPS / 10; i++) await run();
        const times = [];
        for (let i = 0; i < TRIPS; i++) {
            const began = performance.now();
            await run();
            times.push(performance.now() - began);
        }
        return middle(times);
    };

    const bytes = FLOATS * 4, x = new Float32Array(FLOATS), y = new Float32Array(FLOATS);
    const out = new Float32Array(FLOATS), push = device.createBuffer({size: 8, usage: GPUBufferUsage.UNIFORM | IN});
    for (let i = 0; i < FLOATS; i++) {
        x[i] = i % 1021;
        y[i] = (i * 7) % 509;
    }
    const scalars = new ArrayBuffer(8);
    new Float32Array(scalars)[0] = 3;
    new Uint32Array(scalars)[1] = FLOATS / 4;
    queue.writeBuffer(push, 0, scalars);
    const array = mappedAtCreation => device.createBuffer({size: bytes, usage: STORAGE | IN | OUT, mappedAtCreation});
    const add = async (bx, by, read) => {
        const bind = group(device, adds, [bx, by, push]);
        queue.submit([encode(device, adds, bind, FLOATS / 4 / 256, 1, {from: by, to: read, bytes})]);
        await read.mapAsync(GPUMapMode.READ);
        out.set(new Float32Array(read.getMappedRange()));
        read.unmap();
    };
    const kept = {x: array(false), y: array(false), read: device.createBuffer({size: bytes, usage: READ})};
    const warm = async () => {
        queue.writeBuffer(kept.x, 0, x);
        queue.writeBuffer(kept.y, 0, y);
        await add(kept.x, kept.y, kept.read);
    };
    const cold = async () => {
        const bx = array(true), by = array(true), read = device.createBuffer({size: bytes, usage: READ});
        new Float32Array(bx.getMappedRange()).set(x);
        new Float32Array(by.getMappedRange()).set(y);
        bx.unmap();
        by.unmap();
        await add(bx, by, read);
        for (const one of [bx, by, read]) one.destroy();
    };
    const checked = async run => {
        out.fill(-1);
        const began = performance.now();
        await run();
        const time = performance.now() - began;
        for (let i = 0; i < FLOATS; i++) {
            if (out[i] !== 3 * x[i] + y[i]) throw new Error('saxpy: element ' + i + ' is ' + out[i]);
        }
        return time;
    };

    await commands();
    await submissions();
    await checked(warm);
    await post('/ready', {driver: device.driver});
    await post('/speed', {step: step(), isolated: crossOriginIsolated, round_trip_p50: await several(trip),
        result_p50: await several(result), commands: await fastest(commands),
        submissions: await fastest(submissions), saxpy_cold: await checked(cold), saxpy_warm: await checked(warm)});
}
measure().catch(error => post('/speed', {error: String(error)}));
