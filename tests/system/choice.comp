// A branch on a uniform alone. What is behind it takes a driver's compiler much longer than it runs.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Words { uint words[]; };
layout(set = 0, binding = 1) uniform Choice { uint choice; };

#define ONE(k)     x = x * 1664525u + words[(x + k) & 63u];
#define FIVE(k)    ONE(k) ONE(k + 1u) ONE(k + 2u) ONE(k + 3u) ONE(k + 4u)
#define TWENTY(k)  FIVE(k) FIVE(k + 5u) FIVE(k + 10u) FIVE(k + 15u)
#define HUNDRED(k) TWENTY(k) TWENTY(k + 20u) TWENTY(k + 40u) TWENTY(k + 60u) TWENTY(k + 80u)

void main()
{
    uint x = words[0];
    if (choice > 2u) {
        HUNDRED(0u)
        HUNDRED(100u)
    }
    words[0] = x + 1u;
}
