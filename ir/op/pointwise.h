// The slots of ops that compute each result element from the operands' elements at the same
// broadcast index. A row gives a scalar function; these templates make its slots of it:
//
//   pointwise_reference<[](double x) { return std::exp(x); }>
//   pointwise_lower<[](auto a, auto b) { return a + b; }>
//   pointwise_gradient<[](Term g, Term x, Term y) { return g * y; }>      y is the result
//
// The function takes one to three elements, after the node when it reads attributes:
// [](const Node& node, auto x). References get doubles where the operation runs in a float dtype,
// else int64s. Gradients take the result's gradient, the operands and the result, and return one
// Term, or an array with one per operand.
#pragma once
#include <array>
#include <span>
#include <type_traits>
#include <vector>

#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/promotion.h"
#include "ir/op/term.h"

namespace lathe {

// Inference: the broadcast shape, with the promoted dtype; as a float; as a bool.
Result<std::vector<TensorType>> infer_same(const Node& node);
Result<std::vector<TensorType>> infer_float(const Node& node);
Result<std::vector<TensorType>> infer_bool(const Node& node);
// As infer_same, of floats only; of integers and bools only; of all but bools.
Result<std::vector<TensorType>> infer_of_floats(const Node& node);
Result<std::vector<TensorType>> infer_of_bits(const Node& node);
Result<std::vector<TensorType>> infer_of_numbers(const Node& node);
// As infer_same, with no bool among the operands: a `-` there is mostly meant to invert a mask.
Result<std::vector<TensorType>> infer_difference(const Node& node);

// The dtype the arithmetic runs in: the operands' promoted one, or the result's when only that is
// a float.
DType pointwise_dtype(const Node& node);
// Whether an operand is rounded to that dtype first, as PyTorch rounds integers beside halves; not
// a number, which it takes as it is.
bool is_rounded_first(const TensorType& own, DType dtype);
// The element of operand i in what the arithmetic computes in.
loop::Expr pointwise_operand(ElementContext& context, const Node& node, size_t i,
                             std::span<const loop::Expr> index);

template <auto Fn, class T>
auto apply_scalar(const Node& node, std::span<const T> x) {
  using F = decltype(Fn);
  if constexpr (std::is_invocable_v<F, T>) {
    return Fn(x[0]);
  } else if constexpr (std::is_invocable_v<F, T, T>) {
    return Fn(x[0], x[1]);
  } else if constexpr (std::is_invocable_v<F, T, T, T>) {
    return Fn(x[0], x[1], x[2]);
  } else if constexpr (std::is_invocable_v<F, const Node&, T>) {
    return Fn(node, x[0]);
  } else if constexpr (std::is_invocable_v<F, const Node&, T, T>) {
    return Fn(node, x[0], x[1]);
  } else {
    return Fn(node, x[0], x[1], x[2]);
  }
}

template <auto Fn>
Result<std::vector<Tensor>> pointwise_reference(const Node& node,
                                                std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  std::vector<std::vector<int64_t>> strides;
  for (const Tensor* operand : operands) {
    strides.push_back(broadcast_strides(operand->shape, result.shape));
  }
  std::vector<double> floats(operands.size());
  std::vector<int64_t> integers(operands.size());
  std::vector<bool> is_rounded(operands.size());
  const DType dtype = pointwise_dtype(node);
  for (size_t i = 0; i < operands.size(); ++i)
    is_rounded[i] = is_rounded_first(node.operands[i].type(), dtype);
  const bool runs_in_floats = is_float(dtype);
  walk(result.shape, strides, [&](int64_t position, std::span<const int64_t> offsets, auto) {
    if (runs_in_floats) {
      for (size_t i = 0; i < floats.size(); ++i) {
        const double own = operands[i]->get(offsets[i]);
        floats[i] = is_rounded[i] ? round_to(dtype, own) : own;
      }
      put(result, position, apply_scalar<Fn, double>(node, floats));
    } else {
      for (size_t i = 0; i < integers.size(); ++i) {
        integers[i] = wrap(dtype, operands[i]->integers[static_cast<size_t>(offsets[i])]);
      }
      put(result, position, apply_scalar<Fn, int64_t>(node, integers));
    }
  });
  return std::vector<Tensor>{std::move(result)};
}

// Arithmetic on bools runs in i32 and tests for nonzero at the end, unless the function takes
// bools.
template <auto Fn, bool kTakesBools = false>
loop::Expr pointwise_lower(ElementContext& context, const Node& node, int,
                           std::span<const loop::Expr> index) {
  DType dtype = compute_dtype(pointwise_dtype(node));
  if (dtype == DType::b8 && !kTakesBools) dtype = DType::i32;
  std::vector<loop::Expr> x;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    x.push_back(loop::cast(pointwise_operand(context, node, i, index), dtype));
  }
  return loop::cast(apply_scalar<Fn, loop::Expr>(node, x), node.types.front().dtype);
}

// The same formula as graph code, for ops that are compositions of others.
template <auto Fn>
std::vector<Value> pointwise_decompose(Builder& builder, const Node& node) {
  std::vector<Term> x;
  for (Value operand : node.operands) x.emplace_back(builder, operand);
  return {cast(apply_scalar<Fn, Term>(node, x), node.types.front().dtype)};
}

template <auto Fn>
std::vector<Value> pointwise_gradient(Builder& builder, const Node& node,
                                      std::span<const Value> gradients) {
  using F = decltype(Fn);
  const Term g{builder, gradients.front()};
  const Term a = operand_term(builder, node, 0);
  const Term y = result_term(builder, node);
  if constexpr (std::is_invocable_v<F, Term, Term, Term>) {
    return {sum_to(Fn(g, a, y), node.operands[0].type())};
  } else if constexpr (std::is_invocable_v<F, const Node&, Term, Term, Term>) {
    return {sum_to(Fn(node, g, a, y), node.operands[0].type())};
  } else {
    const Term b = operand_term(builder, node, 1);
    const std::array<Term, 2> partial = Fn(g, a, b, y);
    return {sum_to(partial[0], node.operands[0].type()),
            sum_to(partial[1], node.operands[1].type())};
  }
}

}  // namespace lathe
