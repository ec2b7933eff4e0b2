#include "host.h"

#include <type_traits>
static_assert(std::is_trivially_copyable<bh_verdict>::value, "a verdict can be copied");
