// The parts of kernel_emitter.h that are templates: where code goes, vectors made part by part or
// lane by lane.
#pragma once
#include "backends/wasm/kernel_emitter.h"

namespace lathe::wasm {

template <class F>
auto KernelEmitter::at_level(int level, F&& make) {
  size_t before = builder_.level();
  builder_.set_level(static_cast<size_t>(level));
  auto result = make();
  builder_.set_level(before);
  return result;
}

template <class F>
Lanes KernelEmitter::map(int lanes, int width, F&& make) {
  Lanes result{{}, width};
  for (int part = 0; part < parts_of(lanes, width); ++part)
    result.parts.push_back(make(static_cast<size_t>(part)));
  return result;
}

template <class F>
Lanes KernelEmitter::per_lane(Form form, int lanes, F&& make) {
  constexpr Op kSplat[] = {Op::i32x4_splat, Op::i64x2_splat, Op::f32x4_splat, Op::f64x2_splat};
  constexpr Op kReplace[] = {Op::i32x4_replace_lane, Op::i64x2_replace_lane, Op::f32x4_replace_lane,
                             Op::f64x2_replace_lane};
  int width = form == Form::i64 || form == Form::f64 ? 8 : 4, per_part = 16 / width;
  return map(lanes, width, [&](size_t p) {
    int first = static_cast<int>(p) * per_part;
    Ref part = builder_.op(kSplat[static_cast<size_t>(form)], {make(first)});
    for (int lane = 1; lane < per_part && first + lane < lanes; ++lane) {
      Op op = kReplace[static_cast<size_t>(form)];
      part = builder_.op(op, {part, make(first + lane)},
                         {.op = op, .lane = static_cast<uint32_t>(lane)});
    }
    return part;
  });
}

template <class F>
Ref KernelEmitter::through_vector(F&& make, Ref scalar) {
  Ref vector = make(builder_.op(Op::f32x4_splat, {scalar}));
  return extract(Form::f32, {{vector}, 4}, 0);
}

// `then_code` gives nothing back but what it stores or sets; it makes no constant vectors.
template <class F>
void KernelEmitter::branch(Ref condition, F&& then_code) {
  size_t level = builder_.level();
  builder_.open_scope();
  then_code();
  FunctionBuilder::Code code = builder_.close_scope();
  builder_.set_level(level);
  builder_.branch(condition, code, {});
}

}  // namespace lathe::wasm
