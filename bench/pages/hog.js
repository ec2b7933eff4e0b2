// The endless kernel: shaders/hang.comp in WGSL.
const hang = '@group(0) @binding(0) var<storage, read_write> data: array<u32>;' +
    '@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {' +
    '    var x = f32(id.x);' +
    '    while (data[0] != 0x600D600Du) {' +
    '        for (var i = 0u; i < 60000u && data[0] != 0x600D600Du; i++) {' +
    '            x = fract(sin(x) * 43758.5453) + sqrt(abs(cos(x))) + f32(data[i % 64u]);' +
    '        }' +
    '    }' +
    '    data[1] = bitcast<u32>(x); }';
// Headless Chromium opens one page. The neighbour is a frame of another site: it has a renderer of
// its own (site isolation), as another page would.
const frame = document.createElement('iframe');
frame.src = 'http://localhost:' + location.port + '/neighbour.html';
document.body.append(frame);
(async () => {
    let device = await open();
    await trip(device, pipeline(device, short), data(device));
    const made = pipeline(device, hang), buffer = data(device);
    await post('/ready', {driver: device.driver});
    await (await fetch('/go')).text();
    const began = performance.now();
    run(device, made, buffer, 64);
    setInterval(() => post('/hog-beat', {waiting: performance.now() - began}), 1000);
    const lost = await Promise.race([device.lost, device.queue.onSubmittedWorkDone().then(() => null)]);
    const stopped = performance.now() - began;
    let again = null;
    for (let i = 0; i < 100 && again === null; i++) {
        try {
            device = await open();
            await trip(device, pipeline(device, short), data(device));
            again = performance.now() - began;
        } catch (error) { await new Promise(done => setTimeout(done, 50)); }
    }
    await post('/hog', {stopped, again, how: lost ? 'device lost: ' + lost.reason : 'completed'});
})().catch(error => post('/hog', {error: String(error)}));
