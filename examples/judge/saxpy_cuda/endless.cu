// DEADLINE: it waits for a word that nobody writes
__device__ volatile unsigned word;
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    while (word == 0) {
    }
    if (i < n) y[i] += a * x[i];
}
