// Makes what bhi_filler_fill does (judge/data/filler.c), to the last bit, as maker.comp does on other
// devices. CUDA rounds each operation on doubles as IEEE 754 says, division and square root too, if none
// is contracted (--fmad=false).
typedef unsigned long long u64;

// As struct push in maker.c.
struct Push {
    u64 key, first;
    unsigned count, place, kind, size, form, mantissa, exponent, is_special;
    u64 share, low, high, least, most;
};

enum { UNIFORM, NORMAL, INTEGERS };
enum { BOOL, UNSIGNED, SIGNED, FLOAT };
enum { VALUE, CHOICE };

__device__ uint4 draw(const Push &push, u64 element, unsigned use, unsigned attempt) {
    uint4 c = make_uint4(element, element >> 32, push.place, use << 24 | attempt);
    unsigned key0 = push.key, key1 = push.key >> 32;
    for (int round = 0; round < 10; round++) {
        const u64 a = (u64)c.x * 0xD2511F53u, b = (u64)c.z * 0xCD9E8D57u;
        c = make_uint4((unsigned)(b >> 32) ^ c.y ^ key0, b, (unsigned)(a >> 32) ^ c.w ^ key1, a);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return c;
}

__device__ u64 special_float(const Push &push, unsigned choice) {
    const u64 infinity = ((1ull << push.exponent) - 1) << push.mantissa;
    const u64 one = ((1ull << (push.exponent - 1)) - 1) << push.mantissa;
    const u64 normal = 1ull << push.mantissa;
    const u64 values[] = {infinity,     0,   1,       normal - 1,            normal,
                          infinity - 1, one, one - 1, infinity | normal / 2};
    return values[choice % 18 / 2] | (u64)(choice % 2) << (push.exponent + push.mantissa);
}

__device__ u64 special_value(const Push &push, unsigned choice) {
    const u64 least = 1ull << (push.size * 8 - 1);
    const u64 values[] = {0, 1, ~0ull, push.form == SIGNED ? least : ~0ull - 1, least - 1};
    return push.form == FLOAT
               ? special_float(push, choice)
               : values[choice % (push.form == SIGNED ? 5 : push.form == UNSIGNED ? 4 : 2)];
}

__device__ double unit_of(unsigned high, unsigned low) {
    return high * 0x1p-32 + (low >> 11) * 0x1p-53;
}

__device__ double logarithm(double x) {
    const double terms[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                            1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
    const u64 bits = __double_as_longlong(x);
    const double half =
        __longlong_as_double((bits & 0x000FFFFFFFFFFFFFull) | 0x3FE0000000000000ull);
    const bool doubled = half < 0.70710678118654752;
    const double e = (double)(int)(bits >> 52) - 1022 - (doubled ? 1 : 0);
    const double m = doubled ? half * 2 : half;
    const double z = (m - 1) / (m + 1), square = z * z;
    double sum = terms[0];
    for (int i = 1; i < 12; i++) {
        sum = sum * square + terms[i];
    }
    return e * 0.69314718055994531 + 2 * z * sum;
}

__device__ double normal(const Push &push, u64 element) {
    double x, s;
    unsigned attempt = 0;
    do {
        const uint4 bits = draw(push, element, VALUE, attempt++);
        x = 2 * unit_of(bits.x, bits.y) - 1;
        const double y = 2 * unit_of(bits.z, bits.w) - 1;
        s = x * x + y * y;
    } while (!(s > 0 && s < 1));
    return x * sqrt(-2 * logarithm(s) / s);
}

// Rounds to nearest even; overflow gives infinity. Of NaN there is none.
__device__ u64 narrow(const Push &push, u64 bits) {
    if (push.mantissa == 52) {
        return bits;
    }
    const int bias = (1 << (push.exponent - 1)) - 1, most = (1 << push.exponent) - 1;
    const int exponent = (int)(bits >> 52 & 0x7FF) - 1023 + bias;
    const u64 whole = (bits & 0x000FFFFFFFFFFFFFull) | 1ull << 52;
    const unsigned shift = 52 - push.mantissa + max(1 - exponent, 0);
    const u64 infinity = (u64)most << push.mantissa;
    u64 value = 0;
    if (shift < 54) {
        value = (whole + ((1ull << (shift - 1)) - 1 + (whole >> shift & 1))) >> shift;
        value += (u64)max(exponent - 1, 0) << push.mantissa;
    }
    if (exponent >= most || value > infinity) {
        value = infinity;
    }
    return value | bits >> 63 << (push.exponent + push.mantissa);
}

// The element of a type that holds |value| or the number nearest to it.
__device__ u64 element_of(const Push &push, double value) {
    if (push.form == FLOAT) {
        return narrow(push, __double_as_longlong(value));
    }
    const double least = __longlong_as_double(push.least), most = __longlong_as_double(push.most);
    const double above = value < least ? least : value;
    const double inside = above > most ? most : above;
    return (unsigned)__double_as_longlong(inside + 0x1.8p52);
}

__device__ u64 real(const Push &push, u64 element) {
    double number;
    if (push.kind == NORMAL) {
        number = normal(push, element);
    } else {
        const uint4 bits = draw(push, element, VALUE, 0);
        number = unit_of(bits.x, bits.y);
    }
    return element_of(push, __longlong_as_double(push.low) +
                                __longlong_as_double(push.high) * number);
}

__device__ u64 whole(const Push &push, u64 element) {
    const uint4 bits = draw(push, element, VALUE, 0);
    const u64 random = (u64)bits.y << 32 | bits.x;
    if (push.kind != INTEGERS) {
        return push.form == BOOL ? random & 1 : random;
    }
    const u64 value = push.low + (push.high ? __umul64hi(random, push.high) : random);
    return push.form == FLOAT ? element_of(push, (double)(long long)value) : value;
}

__device__ u64 element(const Push &push, unsigned index) {
    const u64 element = push.first + index;
    if (push.is_special) {
        const uint4 bits = draw(push, element, CHOICE, 0);
        if (((u64)bits.x << 32 | bits.y) >> 11 < push.share) {
            return special_value(push, bits.z);
        }
    }
    return push.kind == UNIFORM || push.kind == NORMAL ? real(push, element) : whole(push, element);
}

extern "C" __global__ void make(unsigned *words, Push push) {
    const unsigned word = blockIdx.x * blockDim.x + threadIdx.x, several = 4 / push.size;
    if (push.size == 8) {
        if (word < push.count) {
            reinterpret_cast<u64 *>(words)[word] = element(push, word);
        }
        return;
    }
    if (word >= (push.count + several - 1) / several) {
        return;
    }
    unsigned all = 0;
    for (unsigned i = 0; i < several && word * several + i < push.count; i++) {
        const unsigned bits = element(push, word * several + i);
        all |= (several == 1 ? bits : bits & ((1u << 8 * push.size) - 1)) << (8 * push.size * i);
    }
    words[word] = all;
}
