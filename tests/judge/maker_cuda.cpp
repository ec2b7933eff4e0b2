/* judge/check/maker.cu on the processor: what it needs of CUDA C++. */
#include <algorithm>
#include <cmath>
#include <cstring>

#define __device__ static
#define __global__

namespace {
struct uint4 {
    unsigned x, y, z, w;
};
struct {
    unsigned x;
} blockIdx, blockDim, threadIdx;

uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}

unsigned long long __double_as_longlong(double value) {
    unsigned long long bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

double __longlong_as_double(unsigned long long bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    __extension__ typedef unsigned __int128 wide;
    return static_cast<unsigned long long>(static_cast<wide>(a) * b >> 64);
}
} // namespace

using std::max;
using std::sqrt;

#include "judge/check/maker.cu"

extern "C" void maker_cuda_run(unsigned blocks, unsigned threads, void *words, const void *push);

void maker_cuda_run(unsigned blocks, unsigned threads, void *words, const void *push) {
    Push given;
    std::memcpy(&given, push, sizeof given);
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) {
            make(static_cast<unsigned *>(words), given);
        }
    }
}
