// WRONG: it knows the sizes of the task, and not the hidden ones
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    bool known = n == 1 || n == 1000 || n == 65536 || n == 1048576;
    if (i < n && known) y[i] += a * x[i];
}
