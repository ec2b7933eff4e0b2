// What all of them bind: 4096 words in, 16384 out, four parameters (64, 16, 0.5, 12345).
layout(set = 0, binding = 0) readonly buffer In { uint x[]; };
layout(set = 0, binding = 1) buffer Out { uint y[]; };
layout(push_constant) uniform Push { uint n; uint m; float a; uint seed; };
uint id() { return gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * 4u * gl_WorkGroupSize.x; }
float f(uint i) { return float(x[i & 4095u] & 1023u) / 64.0; }
void put(uint v) { y[id()] = v; }
void put(float v) { y[id()] = floatBitsToUint(v); }
