// How loop IR's values are held: the vocabulary of the kernel emitter.
#pragma once
#include <vector>

#include "backends/wasm/function_builder.h"
#include "ir/type/dtype.h"

namespace lathe::wasm {

// What an expression became: one Ref for a scalar, v128 parts for lanes, lowest first. The last
// part's surplus lanes hold anything.
struct Lanes {
  std::vector<Ref> parts;
  int width = 4;  // bytes of a computed lane: 4 or 8; of bools, what the comparison gave
  Ref ref() const { return parts.front(); }
};
struct Placed {
  Lanes lanes;
  int level = 0;  // the scope it lives in
  Ref ref() const { return lanes.parts.front(); }
};

// How a dtype is computed; indices of the tables of instructions.
enum class Form : uint8_t { i32, i64, f32, f64 };
Form form_of(DType dtype);
int width_of(DType dtype);  // of a computed lane
Type type_of(DType dtype);  // of a computed scalar in a register or variable
inline int parts_of(int lanes, int width) { return (lanes * width + 15) / 16; }

}  // namespace lathe::wasm
