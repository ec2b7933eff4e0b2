// CORRECT: finds the least of the k largest by halves, then appends what is above it, and as many of those as are left
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) buffer Kept { int kept[]; };
layout(push_constant) uniform Push { uint n, k; };
shared uint count;
void main() {
    int low = -2147483647 - 1, high = 2147483647; // of the k largest, the least is in between
    while (low < high) {
        int middle = low + int((uint(high) - uint(low)) / 2 + (uint(high) - uint(low)) % 2);
        uint above = 0;
        for (uint i = 0; i < n; i++)
            above += x[i] >= middle ? 1 : 0;
        if (above >= k)
            low = middle;
        else
            high = middle - 1;
    }
    if (gl_LocalInvocationIndex == 0)
        count = 0;
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < n; i += 64)
        if (x[i] > low)
            kept[atomicAdd(count, 1)] = x[i];
    barrier();
    for (uint place = count + gl_LocalInvocationIndex; place < k; place += 64)
        kept[place] = low;
}
