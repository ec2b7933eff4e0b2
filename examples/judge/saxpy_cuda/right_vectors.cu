// CORRECT: four elements a thread, in a loop over the grid
// bulkhead: block=512 grid=min(ceildiv(n,2048),1056)
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    for (unsigned i = first; i < n / 4; i += stride) {
        float4 u = ((const float4 *)x)[i], v = ((float4 *)y)[i];
        v.x += a * u.x, v.y += a * u.y, v.z += a * u.z, v.w += a * u.w;
        ((float4 *)y)[i] = v;
    }
    if (first < n % 4) y[n - 1 - first] += a * x[n - 1 - first];
}
