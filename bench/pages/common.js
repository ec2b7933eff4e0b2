// What the pages of bench/browser have in common.
const post = (path, value) => fetch(path, {method: 'POST', body: JSON.stringify(value)});
async function open() {
    const adapter = await navigator.gpu.requestAdapter();
    if (!adapter) throw new Error('no adapter');
    const device = await adapter.requestDevice();
    const info = adapter.info;
    device.driver = [info.vendor, info.architecture, info.description].filter(Boolean).join(' ');
    return device;
}
function pipeline(device, code) {
    return device.createComputePipeline({layout: 'auto', compute: {
        module: device.createShaderModule({code}), entryPoint: 'main'}});
}
function run(device, made, buffer, groups) {
    const bind = device.createBindGroup({layout: made.getBindGroupLayout(0),
        entries: [{binding: 0, resource: {buffer}}]});
    const encoder = device.createCommandEncoder(), pass = encoder.beginComputePass();
    pass.setPipeline(made); pass.setBindGroup(0, bind); pass.dispatchWorkgroups(groups); pass.end();
    device.queue.submit([encoder.finish()]);
}
const data = device => device.createBuffer({size: 256, usage: GPUBufferUsage.STORAGE});
const short = '@group(0) @binding(0) var<storage, read_write> data: array<u32>;' +
    '@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {' +
    '    data[id.x % 64u] = id.x; }';
async function trip(device, made, buffer) {
    const began = performance.now();
    run(device, made, buffer, 1);
    await device.queue.onSubmittedWorkDone();
    return performance.now() - began;
}
