// Short round trips beside the endless kernel of hog.js.
(async () => {
    let device = await open(), made = pipeline(device, short), buffer = data(device);
    let lost = 0, over = false, slowest = 0, trips = 0;
    const watch = d => d.lost.then(() => { lost++; });
    watch(device);
    const usual = [];
    for (let i = 0; i < 200; i++) usual.push(await trip(device, made, buffer));
    usual.sort((a, b) => a - b);
    await post('/ready', {driver: device.driver});
    await (await fetch('/go')).text();
    fetch('/over').then(answer => answer.text()).then(() => { over = true; });
    let began = performance.now();
    setInterval(() => post('/neighbour-beat', {usual: usual[100], lost, trips,
        slowest: Math.max(slowest, performance.now() - began)}), 1000);
    while (!over) {
        const before = lost;
        began = performance.now();
        for (;;) { // a round trip lasts until one has been done, on a new device where need be
            try {
                await Promise.race([trip(device, made, buffer), device.lost]);
                if (lost === before) break;
            } catch (error) { await new Promise(done => setTimeout(done, 20)); }
            try {
                device = await open(); made = pipeline(device, short); buffer = data(device);
                watch(device); await trip(device, made, buffer); break;
            } catch (error) { await new Promise(done => setTimeout(done, 20)); }
        }
        slowest = Math.max(slowest, performance.now() - began);
        trips++;
    }
    await post('/neighbour', {usual: usual[100], slowest, trips, lost});
})().catch(error => post('/neighbour', {error: String(error)}));
