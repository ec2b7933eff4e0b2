#version 450
// Makes what bhi_filler_fill does (judge/data/filler.c), to the last bit. With REALS also numbers that
// double arithmetic makes; without, on devices that have none.
//
// No result depends on how exact a division or a square root of the device is: both are corrected
// here. All that must be exact is the sum and the product of two doubles, and no two operations may be
// contracted, which "precise" says. Elements are made as bits, for any type from 8 to 64 bits; 64 bits
// are an uvec2, the lower half first.
layout(local_size_x = 256) in;
layout(binding = 0) writeonly buffer Out { uint words[]; };

// As struct push in maker.c.
layout(push_constant) uniform Push {
    uvec2 key;
    uvec2 first;     // element of the array that this dispatch begins with
    uint count;      // elements that it makes
    uint place;      // trial << 16 | array
    uint kind;       // enum bhi_filler_kind
    uint size;       // bytes of an element
    uint form;       // what follows
    uint mantissa;   // of a float: its bits
    uint exponent;
    uint is_special; // some elements are special values:
    uvec2 share;     // those whose 53 bits are below this
    uvec2 low;       // UNIFORM, NORMAL: doubles; INTEGERS: the first integer
    uvec2 high;      // UNIFORM: the width, NORMAL: the deviation; INTEGERS: how many there are, 0: 2^64
    uvec2 least;     // of an integer type: doubles
    uvec2 most;
} push;

const uint UNIFORM = 0, NORMAL = 1, INTEGERS = 2;
const uint BOOL = 0, UNSIGNED = 1, SIGNED = 2, FLOAT = 3;
const uint VALUE = 0, CHOICE = 1;

uvec4 draw(uvec2 element, uint use, uint attempt) {
    uvec4 c = uvec4(element, push.place, use << 24 | attempt);
    uvec2 key = push.key;
    for (int round = 0; round < 10; round++) {
        uint a_high, a, b_high, b;
        umulExtended(c.x, 0xD2511F53u, a_high, a);
        umulExtended(c.z, 0xCD9E8D57u, b_high, b);
        c = uvec4(b_high ^ c.y ^ key.x, b, a_high ^ c.w ^ key.y, a);
        key += uvec2(0x9E3779B9u, 0xBB67AE85u);
    }
    return c;
}

// -- 64 bits -----------------------------------------------------------------------------------

uvec2 add(uvec2 a, uvec2 b) {
    uint carry;
    const uint lower = uaddCarry(a.x, b.x, carry);
    return uvec2(lower, a.y + b.y + carry);
}

bool is_less(uvec2 a, uvec2 b) {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

uvec2 left(uvec2 a, uint by) {
    return by == 0  ? a
         : by >= 32 ? uvec2(0, a.x << (by - 32))
                    : uvec2(a.x << by, a.y << by | a.x >> (32 - by));
}

uvec2 right(uvec2 a, uint by) {
    return by == 0  ? a
         : by >= 32 ? uvec2(a.y >> (by - 32), 0)
                    : uvec2(a.x >> by | a.y << (32 - by), a.y >> by);
}

// The upper half of the product.
uvec2 scale(uvec2 a, uvec2 b) {
    uint high00, low00, high01, low01, high10, low10, high11, low11, carry, more;
    umulExtended(a.x, b.x, high00, low00);
    umulExtended(a.x, b.y, high01, low01);
    umulExtended(a.y, b.x, high10, low10);
    umulExtended(a.y, b.y, high11, low11);
    const uint middle = uaddCarry(high00, low01, carry);
    uaddCarry(middle, low10, more);
    const uvec2 crossed = add(uvec2(high01, 0), uvec2(high10, 0));
    return add(uvec2(low11, high11), add(crossed, uvec2(carry + more, 0)));
}

// -- special values ----------------------------------------------------------------------------

const uvec2 ONE = uvec2(1, 0), MINUS_ONE = uvec2(0xFFFFFFFFu);

uvec2 special_float(uint choice) {
    const uint which = choice % 18;
    const uvec2 normal = left(ONE, push.mantissa);
    const uvec2 infinity = left(add(left(ONE, push.exponent), MINUS_ONE), push.mantissa);
    const uvec2 one = left(add(left(ONE, push.exponent - 1), MINUS_ONE), push.mantissa);
    uvec2 value;
    switch (which / 2) {
    case 0: value = infinity; break;
    case 1: value = uvec2(0); break;
    case 2: value = ONE; break;
    case 3: value = add(normal, MINUS_ONE); break;
    case 4: value = normal; break;
    case 5: value = add(infinity, MINUS_ONE); break;
    case 6: value = one; break;
    case 7: value = add(one, MINUS_ONE); break;
    default: value = add(infinity, left(ONE, push.mantissa - 1));
    }
    return add(value, left(uvec2(which % 2, 0), push.exponent + push.mantissa));
}

uvec2 special_value(uint choice) {
    const uvec2 least = left(ONE, push.size * 8 - 1);
    const uint which = choice % (push.form == SIGNED ? 5 : push.form == UNSIGNED ? 4 : 2);
    if (push.form == FLOAT) {
        return special_float(choice);
    }
    return which < 2  ? uvec2(which, 0)
         : which == 2 ? MINUS_ONE
         : which == 4 ? add(least, MINUS_ONE)
         : push.form == SIGNED ? least : add(MINUS_ONE, MINUS_ONE);
}

// -- numbers -----------------------------------------------------------------------------------

#ifdef REALS
const double POWER_32 = 4294967296.0lf, POWER_52 = 4503599627370496.0lf;

double unit_of(uint high, uint low) {
    precise double upper = double(high) * (1 / POWER_32);
    precise double lower = double(low >> 11) * (0.5lf / POWER_52);
    precise double unit = upper + lower;
    return unit;
}

// a - b * c for a product near |a|: no rounding (Dekker, "A floating-point technique for extending the
// available precision", 1971).
double rest(double a, double b, double c) {
    const double split = 134217729.0lf;
    precise double b_far = b * split, c_far = c * split;
    precise double b_high = b_far - (b_far - b), c_high = c_far - (c_far - c);
    precise double b_low = b - b_high, c_low = c - c_high;
    precise double product = b * c;
    precise double error =
        ((b_high * c_high - product) + b_high * c_low + b_low * c_high) + b_low * c_low;
    precise double left = (a - product) - error;
    return left;
}

double divide(double a, double b) {
    precise double inverse = 1.0lf / b;
    precise double quotient = a * inverse;
    for (int i = 0; i < 2; i++) {
        precise double change = rest(a, quotient, b) * inverse;
        quotient = quotient + change;
    }
    return quotient;
}

double root(double a) {
    precise double value = sqrt(a);
    precise double inverse = 0.5lf / value;
    for (int i = 0; i < 2; i++) {
        precise double change = rest(a, value, value) * inverse;
        value = value + change;
    }
    return value;
}

double logarithm(double x) {
    const double terms[12] = double[12](
        1.0lf / 23, 1.0lf / 21, 1.0lf / 19, 1.0lf / 17, 1.0lf / 15, 1.0lf / 13,
        1.0lf / 11, 1.0lf / 9, 1.0lf / 7, 1.0lf / 5, 1.0lf / 3, 1.0lf);
    const uvec2 bits = unpackDouble2x32(x);
    const double halved = packDouble2x32(uvec2(bits.x, (bits.y & 0xFFFFFu) | 0x3FE00000u));
    const bool doubled = halved < 0.70710678118654752lf;
    const double e = double(int(bits.y >> 20) - 1022 - (doubled ? 1 : 0));
    precise double m = doubled ? halved * 2 : halved;
    precise double z = divide(m - 1, m + 1);
    precise double square = z * z;
    precise double sum = terms[0];
    for (int i = 1; i < 12; i++) {
        sum = sum * square + terms[i];
    }
    precise double value = e * 0.69314718055994531lf + 2 * z * sum;
    return value;
}

double normal(uvec2 element) {
    precise double x, s;
    uint attempt = 0;
    do {
        const uvec4 bits = draw(element, VALUE, attempt++);
        x = 2 * unit_of(bits.x, bits.y) - 1;
        precise double y = 2 * unit_of(bits.z, bits.w) - 1;
        s = x * x + y * y;
    } while (!(s > 0 && s < 1));
    precise double value = x * root(divide(-2 * logarithm(s), s));
    return value;
}

// Rounds to nearest even; overflow gives infinity. Of NaN there is none.
uvec2 narrow(uvec2 bits) {
    if (push.mantissa == 52) {
        return bits;
    }
    const uint bias = (1u << (push.exponent - 1)) - 1, sign = bits.y >> 31;
    const int exponent = int(bits.y >> 20 & 0x7FFu) - 1023 + int(bias);
    const uvec2 whole = uvec2(bits.x, (bits.y & 0xFFFFFu) | 0x100000u);
    const uint shift = 52 - push.mantissa + uint(max(1 - exponent, 0));
    const uint infinity = ((1u << push.exponent) - 1) << push.mantissa;
    uint value = 0;
    if (shift < 54) {
        const uvec2 odd = right(whole, shift) & uvec2(1, 0);
        const uvec2 half_less = add(left(ONE, shift - 1), MINUS_ONE);
        value = right(add(whole, add(half_less, odd)), shift).x;
        value += uint(max(exponent - 1, 0)) << push.mantissa;
    }
    if (exponent >= int((1u << push.exponent) - 1) || value > infinity) {
        value = infinity;
    }
    return uvec2(value | sign << (push.exponent + push.mantissa), 0);
}

// The element of a type that holds |value| or the number nearest to it.
uvec2 element_of(double value) {
    if (push.form == FLOAT) {
        return narrow(unpackDouble2x32(value));
    }
    const double least = packDouble2x32(push.least), most = packDouble2x32(push.most);
    const double above = value < least ? least : value;
    const double inside = above > most ? most : above;
    precise double shifted = inside + 1.5lf * POWER_52;
    return uvec2(unpackDouble2x32(shifted).x, 0);
}

uvec2 real(uvec2 element) {
    precise double number;
    if (push.kind == NORMAL) {
        number = normal(element);
    } else {
        const uvec4 bits = draw(element, VALUE, 0);
        number = unit_of(bits.x, bits.y);
    }
    precise double value = packDouble2x32(push.low) + packDouble2x32(push.high) * number;
    return element_of(value);
}
#endif

uvec2 whole(uvec2 element) {
    const uvec2 random = draw(element, VALUE, 0).xy;
    const uvec2 step = push.high == uvec2(0) ? random : scale(random, push.high);
    if (push.kind != INTEGERS) {
        return push.form == BOOL ? random & uvec2(1, 0) : random;
    }
    const uvec2 value = add(push.low, step);
#ifdef REALS
    if (push.form == FLOAT) {
        precise double upper = double(int(value.y)) * POWER_32;
        precise double sum = upper + double(value.x);
        return element_of(sum);
    }
#endif
    return value;
}

uvec2 make(uint index) {
    const uvec2 element = add(push.first, uvec2(index, 0));
    if (push.is_special != 0) {
        const uvec4 bits = draw(element, CHOICE, 0);
        if (is_less(right(bits.yx, 11), push.share)) {
            return special_value(bits.z);
        }
    }
#ifdef REALS
    if (push.kind == UNIFORM || push.kind == NORMAL) {
        return real(element);
    }
#endif
    return whole(element);
}

void main() {
    const uint word = gl_GlobalInvocationID.x;
    if (push.size == 8) {
        if (word < push.count) {
            const uvec2 bits = make(word);
            words[2 * word] = bits.x;
            words[2 * word + 1] = bits.y;
        }
        return;
    }
    const uint several = 4 / push.size;
    if (word >= (push.count + several - 1) / several) {
        return;
    }
    uint all = 0;
    for (uint i = 0; i < several && word * several + i < push.count; i++) {
        const uint bits = make(word * several + i).x;
        all |= (several == 1 ? bits : bits & ((1u << 8 * push.size) - 1)) << (8 * push.size * i);
    }
    words[word] = all;
}
