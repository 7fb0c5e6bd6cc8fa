// The function around a kernel: parameters, buffers, and what callers must know.
#include <fmt/format.h>

#include <algorithm>

#include "backends/wasm/kernel_emitter.h"
#include "ir/loop/lift_sizes.h"

namespace lathe::wasm {
namespace {

std::vector<Type> params_of(const loop::Kernel& kernel) {
  std::vector<Type> params(3 + loop::dims(kernel).size(), Type::i32);
  for (const loop::Buffer& buffer : kernel.buffers)
    if (buffer.space == loop::Space::global) params.push_back(Type::i32);
  return params;
}

}  // namespace

Form form_of(DType dtype) {
  switch (dtype) {
    case DType::i64:
      return Form::i64;
    case DType::f64:
      return Form::f64;
    case DType::f16:
    case DType::bf16:
    case DType::f32:
      return Form::f32;
    default:
      return Form::i32;
  }
}

// Sizes are of things in memory, so they fit 32 bits; who binds them makes sure.
loop::Kernel with_narrow_dims(loop::Kernel kernel) {
  for (loop::Var dim : loop::dims(kernel)) {
    loop::VarInfo& info = kernel.vars[dim.id];
    info.min = std::clamp<int64_t>(info.min, INT32_MIN, INT32_MAX);
    info.max = std::clamp<int64_t>(info.max, INT32_MIN, INT32_MAX);
  }
  return kernel;
}

int width_of(DType dtype) { return dtype == DType::i64 || dtype == DType::f64 ? 8 : 4; }

Type type_of(DType dtype) {
  constexpr Type kTypes[] = {Type::i32, Type::i64, Type::f32, Type::f64};
  return kTypes[static_cast<size_t>(form_of(dtype))];
}

Result<KernelFrame> kernel_frame(const loop::Kernel& kernel) {
  LATHE_TRY(KernelFrame frame, placement::kernel_frame(kernel, "wasm"));
  constexpr int64_t kLimit = INT32_MAX;
  if (frame.lo.number < -kLimit || frame.hi.number > kLimit ||
      frame.step > kLimit - frame.hi.number)
    return placement::unsupported(kernel, "wasm",
                                  "the bounds of its parallel loop need more than 32 bits");
  return frame;
}

Result<Function> emit_kernel(const loop::Kernel& kernel, const std::string& symbol,
                             const EmitOptions& options) {
  LATHE_TRY(KernelFrame frame, kernel_frame(kernel));
  (void)frame;
  Function function;
  const loop::Kernel narrow = with_narrow_dims(kernel);
  LATHE_DO(KernelEmitter(narrow, options).run(symbol, function));
  return function;
}

KernelEmitter::KernelEmitter(const loop::Kernel& kernel, const EmitOptions& options)
    : Statements(kernel, "wasm"),
      ranges_(kernel),
      options_(options),
      builder_(params_of(kernel)),
      vars_(kernel.vars.size()),
      regs_(kernel.regs.size()),
      values_(kernel, options.is_noalias) {}

Status KernelEmitter::run(const std::string& symbol, Function& out) {
  out.name = symbol;
  for (const loop::Buffer& buffer : kernel_.buffers)
    if (buffer.space == loop::Space::global)
      out.param_names.push_back(fmt::format("{}.{}", buffer.name, out.param_names.size()));
  for (loop::Var dim : loop::dims(kernel_)) out.param_names.push_back(kernel_.vars[dim.id].name);
  out.param_names.insert(out.param_names.end(), {"lo", "hi", "scratch"});
  place_buffers();
  emit_block(kernel_.body);
  if (error_) return *std::move(error_);
  builder_.finish(out);
  return Ok{};
}

void KernelEmitter::place_buffers() {
  uint32_t num_globals = 0;
  for (const loop::Buffer& buffer : kernel_.buffers)
    if (buffer.space == loop::Space::global) ++num_globals;
  uint32_t next = num_globals;
  for (loop::Var dim : loop::dims(kernel_)) vars_[dim.id].lanes = {{builder_.param(next++)}, 8};
  parallel_lo_ = builder_.param(next);
  parallel_hi_ = builder_.param(next + 1);
  scratch_ = builder_.param(next + 2);
  int64_t offset = 0;
  uint32_t arg = 0;
  std::vector<size_t> sized;  // behind those of a number of elements, as in placement::KernelFrame
  for (const loop::Buffer& buffer : kernel_.buffers) {
    if (buffer.space == loop::Space::global) {
      buffers_.push_back(builder_.param(arg++));
      continue;
    }
    if (!buffer.size.is_const()) sized.push_back(buffers_.size());
    buffers_.push_back(int_op(Form::i32, BinaryOp::add, scratch_, int_of(Form::i32, offset)));
    if (buffer.size.is_const()) offset += placement::padded_bytes(buffer);
  }
  if (sized.empty()) return;
  Ref at = int_op(Form::i32, BinaryOp::add, scratch_, int_of(Form::i32, offset));
  for (size_t i : sized) {
    const loop::Buffer& buffer = kernel_.buffers[i];
    buffers_[i] = at;
    constexpr int64_t kAlign = placement::kScratchAlign;
    Ref bytes = int_op(Form::i32, BinaryOp::mul, num_elements(buffer),
                       int_of(Form::i32, dtype_bytes(buffer.dtype)));
    bytes = int_op(Form::i32, BinaryOp::add, bytes, int_of(Form::i32, kAlign - 1));
    bytes = builder_.op(Op::i32_and, {bytes, int_of(Form::i32, -kAlign)});
    at = int_op(Form::i32, BinaryOp::add, at, bytes);
  }
}

// Of a buffer whose size is a dim.
Ref KernelEmitter::num_elements(const loop::Buffer& buffer) {
  for (loop::Var dim : loop::dims(kernel_))
    if (kernel_.vars[dim.id].name == buffer.size.symbol_name())
      return as_i32(vars_[dim.id].lanes.ref());
  return fail(fmt::format("the size of '{}' is none of its dims", buffer.name));
}

Ref KernelEmitter::fail(std::string_view message) {
  set_error(message);
  return builder_.i32(0);
}

// Of the right shape, so that what goes on until the error is seen stays in bounds.
Lanes KernelEmitter::failed(std::string_view message, const loop::ExprNode& like) {
  Ref ref = fail(message);
  int width = width_of(like.dtype);
  size_t count = like.lanes == 1 ? 1 : static_cast<size_t>(parts_of(like.lanes, width));
  return {std::vector<Ref>(count, ref), width};
}

}  // namespace lathe::wasm
