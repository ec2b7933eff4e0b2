// CORRECT: through shared memory of the launch
// bulkhead: block=128 shared=512
extern __shared__ float staged[];
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    staged[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) y[i] += a * staged[threadIdx.x];
}
