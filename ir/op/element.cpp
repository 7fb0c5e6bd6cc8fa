// The parts of ElementContext that do not depend on the lowering that implements it.
#include "ir/op/element.h"

#include <algorithm>

namespace lathe {

loop::Expr ElementContext::when_any(const Dim& extent, loop::Expr read) {
  if (extent.is_const()) return read;
  const loop::Expr has_any = simplify(lt(integer(0), integer(extent)));
  return loop::rewrite(read, [&](loop::Expr e) {
    const auto* load = std::get_if<loop::Load>(&e->kind);
    if (load == nullptr) return loop::Expr();
    // What says where to read is read itself.
    const loop::Expr index = when_any(extent, load->index);
    const loop::Expr mask = load->mask ? logical_and(load->mask, has_any) : has_any;
    return pool().load(load->buffer, index, e->dtype, e->lanes, mask);
  });
}

loop::Expr ElementContext::broadcast_operand(const Node& node, int i,
                                             std::span<const loop::Expr> index) {
  const Shape& shape = node.operands[static_cast<size_t>(i)].type().shape;
  std::vector<loop::Expr> own;
  size_t skipped = index.size() - std::min(index.size(), shape.size());
  for (size_t d = 0; d < shape.size() && skipped + d < index.size(); ++d)
    own.push_back(shape[d] == Dim(1) ? integer(0) : index[skipped + d]);
  return operand(node, i, own);
}

loop::Expr ElementContext::literal(const Tensor& tensor, int64_t i) {
  if (is_float(tensor.dtype)) return pool().number(tensor.get(i), tensor.dtype);
  return loop::cast(integer(tensor.integers[static_cast<size_t>(i)]), tensor.dtype);
}

loop::Expr ElementContext::count(const Dim& value, DType dtype) {
  if (value.is_const()) return pool().number(static_cast<double>(value.value()), dtype);
  return loop::cast(integer(value), dtype);
}

loop::Expr ElementContext::reduce(
    loop::ReduceOp op, const Shape& extents,
    const std::function<loop::Expr(std::span<const loop::Expr>)>& body) {
  std::vector<loop::Var> vars;
  std::vector<loop::Expr> sizes;
  std::vector<loop::Expr> index;
  for (const Dim& extent : extents) {
    // A dim of one has no loop; leaving it out keeps row-major positions as they are.
    if (extent == Dim(1)) {
      index.push_back(integer(0));
      continue;
    }
    vars.push_back(fresh_var(extent));
    sizes.push_back(integer(extent));
    index.push_back(pool().var(vars.back()));
  }
  loop::Expr element = body(index);
  if (!element) return element;
  loop::Expr result = loop::reduce(op, std::move(vars), std::move(sizes), element);
  bool is_empty = std::find(extents.begin(), extents.end(), Dim(0)) != extents.end();
  // Nothing to combine: no element may be read, not even by code that runs zero times.
  return is_empty ? pool().number(loop::identity(op, result->dtype), result->dtype) : result;
}

loop::Expr ElementContext::flatten(std::span<const loop::Expr> index, const Shape& shape) {
  loop::Expr position = integer(0);
  for (size_t d = 0; d < shape.size() && d < index.size(); ++d)
    position = position * integer(shape[d]) + index[d];
  return simplify(position);
}

std::vector<loop::Expr> ElementContext::unflatten(loop::Expr position, const Shape& shape) {
  std::vector<loop::Expr> index(shape.size());
  for (size_t d = shape.size(); d-- > 1;) {
    loop::Expr size = integer(shape[d]);
    index[d] = simplify(loop::mod(position, size));
    position = simplify(loop::floor_div(position, size));
  }
  // The outermost index needs no remainder: the position lies in the shape.
  if (!shape.empty()) index[0] = simplify(position);
  return index;
}

DType compute_dtype(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

}  // namespace lathe
