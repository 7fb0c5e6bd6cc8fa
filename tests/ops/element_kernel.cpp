// Kernels of single nodes (see element_kernel.h).
#include "tests/ops/element_kernel.h"

#include <cmath>
#include <memory>
#include <utility>

#include "ir/graph/op_def.h"
#include "ir/loop/linear.h"
#include "ir/loop/text.h"
#include "ir/op/element.h"

namespace lathe {
namespace {

// A context whose operands are buffers, in row-major order.
class BufferContext : public ElementContext {
 public:
  explicit BufferContext(loop::Kernel& kernel) : kernel_(kernel) {}

  loop::Expr operand(const Node& node, int i, std::span<const loop::Expr> index) override {
    const Value value = node.operands[static_cast<size_t>(i)];
    const DType dtype = value.type().dtype;
    const loop::Expr position = flatten(index, value.type().shape);
    const loop::Expr element = pool().load(buffer(value), position, dtype);
    return loop::cast(element, compute_dtype(dtype));
  }
  loop::Var fresh_var(const Dim& extent) override { return kernel_.add_loop_var("r", extent); }
  loop::Pool& pool() override { return *kernel_.pool; }
  loop::Expr simplify(loop::Expr index) override { return loop::simplify_index(index, kernel_); }

  loop::BufferRef buffer(Value value) {
    for (const auto& [known, ref] : buffers_) {
      if (known == value) return ref;
    }
    buffers_.emplace_back(value, kernel_.add_buffer({.name = value.node->name,
                                                     .dtype = value.type().dtype,
                                                     .size = value.type().num_elements()}));
    return buffers_.back().second;
  }

 private:
  loop::Kernel& kernel_;
  std::vector<std::pair<Value, loop::BufferRef>> buffers_;
};

// What a few roundings in the dtype may change.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 4e-3;
    case DType::bf16:
      return 3e-2;
    case DType::f32:
      return 2e-5;
    default:
      return 1e-9;
  }
}

}  // namespace

loop::Kernel element_kernel(const Node& node, int result,
                            const std::map<std::string, DimRange>& symbols) {
  loop::Kernel kernel;
  kernel.name = node.op->name;
  kernel.pool = std::make_shared<loop::Pool>();
  kernel.symbols = symbols;
  BufferContext context(kernel);
  for (Value operand : node.operands) {
    if (operand) context.buffer(operand);
  }
  const TensorType& type = node.types[static_cast<size_t>(result)];
  const Dim count = type.num_elements();
  const loop::BufferRef out =
      kernel.add_buffer({.name = "result", .dtype = type.dtype, .size = count, .is_written = true});
  const loop::Var i = context.fresh_var(count);
  const loop::Expr position = kernel.pool->var(i);
  const std::vector<loop::Expr> index = context.unflatten(position, type.shape);
  const loop::Expr element = node.op->lower.function(context, node, result, index);
  kernel.body.push_back({loop::For{.var = i,
                                   .lo = kernel.pool->integer(0),
                                   .hi = kernel.pool->size(count),
                                   .step = 1,
                                   .kind = loop::LoopKind::parallel,
                                   .body = {{loop::Store{out, position, element, {}}}}}});
  return kernel;
}

Result<Tensor> run_kernel(const loop::Kernel& kernel, const std::vector<Tensor>& inputs,
                          const TensorType& type, std::span<const int64_t> sizes) {
  LATHE_DO(loop::verify(kernel, false));
  std::vector<std::vector<std::byte>> bytes;
  for (const Tensor& input : inputs) bytes.push_back(to_bytes(input));
  const Tensor empty = Tensor::zeros(type.dtype, type.static_shape());
  bytes.push_back(to_bytes(empty));
  std::vector<loop::Memory> memory;
  for (auto& buffer : bytes) memory.push_back({buffer.data(), buffer.size()});
  LATHE_DO(loop::evaluate(kernel, memory, sizes));
  return read_tensor({.type = type,
                      .strides = row_major_strides(empty.shape),
                      .bytes = bytes.back().data(),
                      .num_bytes = bytes.back().size()});
}

std::string difference(const Tensor& expected, const Tensor& got) {
  if (expected.dtype != got.dtype) return "dtypes differ";
  if (expected.shape != got.shape) return "shapes differ";
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double a = expected.get(i), b = got.get(i);
    const bool is_close = a == b || (std::isnan(a) && std::isnan(b)) ||
                          std::fabs(a - b) <= tolerance(expected.dtype) * (1 + std::fabs(a));
    if (!is_close) {
      return "element " + std::to_string(i) + ": expected " + std::to_string(a) + ", got " +
             std::to_string(b);
    }
  }
  return "";
}

}  // namespace lathe
