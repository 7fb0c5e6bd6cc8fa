// The slots of ops whose every result element is one operand element at another index.
//
// A row says where an element comes from, once for numbers and once for loop expressions:
//
//   constexpr auto kFlip = [](const Node& node, auto index, auto) { ...; return source; };
//   .reference = view_reference<kFlip>, .lower = view_lower<kFlip>
//
// `index` is a vector with one int64_t or loop::Expr per dim of the result, `number` makes an index
// of a Dim; the result has one per dim of operand 0.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ir/op/arithmetic.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"

namespace lathe {

inline int64_t index_mod(int64_t a, int64_t b) { return arithmetic::mod(a, b); }
inline loop::Expr index_mod(loop::Expr a, loop::Expr b) { return loop::mod(a, b); }

// Extent of dim `d` of operand 0.
inline const Dim& source_extent(const Node& node, size_t d) {
  return node.operands[0].type().shape[d];
}

template <auto Source>
Result<std::vector<Tensor>> view_reference(const Node& node,
                                           std::span<const Tensor* const> operands) {
  const Tensor& self = *operands[0];
  Tensor result = result_tensor(node);
  const std::vector<int64_t> strides = row_major_strides(self.shape);
  walk(result.shape, [&](int64_t position, std::span<const int64_t> index) {
    const std::vector<int64_t> source =
        Source(node, std::vector<int64_t>(index.begin(), index.end()),
               [](const Dim& n) { return n.value(); });
    int64_t offset = 0;
    for (size_t d = 0; d < source.size(); ++d) offset += source[d] * strides[d];
    copy_element(result, position, self, offset);
  });
  return std::vector<Tensor>{std::move(result)};
}

template <auto Source>
loop::Expr view_lower(ElementContext& context, const Node& node, int,
                      std::span<const loop::Expr> index) {
  std::vector<loop::Expr> source = Source(node, std::vector<loop::Expr>(index.begin(), index.end()),
                                          [&](const Dim& n) { return context.integer(n); });
  for (loop::Expr& e : source) e = context.simplify(e);
  return loop::cast(context.operand(node, 0, source), node.types.front().dtype);
}

// A row of that kind, from what differs.
struct View {
  std::string name;
  std::string summary;
  ViewKind kind = ViewKind::select;
  std::vector<AttrSpec> attrs;
  InferFn* infer;
  DemandsFn* demands = nullptr;
  Slot<ReferenceFn> reference;
  Slot<LowerFn> lower;
  Slot<DerivativeFn> derivative;
  std::vector<Import> imports;
  std::vector<Example> examples;
};

OpDef view_row(View row);

}  // namespace lathe
