#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer Which { uint which[]; };
layout(set = 0, binding = 1) readonly buffer Data { uint values[]; } data[3];
layout(set = 0, binding = 2) buffer Sums { uint sum[]; } sums[2];
void main() {
    uint i = gl_WorkGroupID.x;
    sums[1].sum[i] = sums[0].sum[i] + data[which[i]].values[i];
}
