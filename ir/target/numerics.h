// How exactly a program's arithmetic is fixed.
#pragma once
#include <cstdint>
#include <string_view>

namespace lathe {

// `standard`, which users call "default": as accurate as the libraries. `strict`: the same bits on
// every target, at the price of fused multiply-adds.
enum class Numerics : uint8_t { standard, strict };
inline constexpr std::string_view kNumericsNames[] = {"default", "strict"};

}  // namespace lathe
