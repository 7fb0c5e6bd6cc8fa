// Assertions that the exporter leaves in a graph. They have effects, so that no pass drops them by
// accident; the ones below are decided when a graph is built.
#include <fmt/format.h>

#include "ir/graph/op_def.h"
#include "ir/graph/tensor.h"
#include "ir/op/demands.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr Absent kNoResult{"has no result"};

Result<std::vector<TensorType>> check_metadata(const Node& node) {
  const TensorType& type = node.operands[0].type();
  if (node.dtype_attr("dtype", type.dtype) != type.dtype) {
    return Diag{code::kDtypeMismatch, node.loc,
                fmt::format("the model asserts a tensor of {}, got {}",
                            dtype_name(node.dtype_attr("dtype", type.dtype)), to_string(type))};
  }
  const std::vector<Dim> size = node.dims_attr("size");
  bool fits = node.is_none("size") || size.size() == type.shape.size();
  for (size_t d = 0; fits && d < size.size(); ++d) {
    fits = !differ(size[d], type.shape[d]);
  }
  if (!fits) {
    return Diag{
        code::kShapeMismatch, node.loc,
        fmt::format("the model asserts the shape {}, got {}", to_string(size), to_string(type))};
  }
  return std::vector<TensorType>{};
}

std::vector<Guard> metadata_demands(const Node& node) {
  Demands demands(node);
  if (!node.is_none("size"))
    demands.equal(node.operands[0].type().shape, node.dims_attr("size"), "is in the model");
  return demands.take();
}

}  // namespace

std::vector<OpDef> define_assertion() {
  return {{
      .name = "assert_metadata",
      .summary =
          "asserts the shape and dtype of a tensor, which are checked when the graph is built",
      .operands = {{"a"}},
      .attrs = {{.name = "size", .kind = AttrKind::dims, .is_optional = true},
                {.name = "dtype", .kind = AttrKind::dtype, .is_optional = true}},
      .num_results = 0,
      .traits = {.op_class = OpClass::opaque, .has_effects = true},
      .infer = check_metadata,
      .demands = metadata_demands,
      .reference = [](const Node&, std::span<const Tensor* const>) -> Result<std::vector<Tensor>> {
        return std::vector<Tensor>{};
      },
      .decompose = [](Builder&, const Node&) { return std::vector<Value>{}; },
      .lower = kNoResult,
      .derivative = kNoResult,
      .imports = {{.schema = "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? "
                             "stride=None, ScalarType? dtype=None, *, Device? device=None, Layout? "
                             "layout=None) -> ()",
                   .renames = {{"stride", ""}}}},
      .examples = {{.operands = {{.shape = {2, 3}}},
                    .attrs = {{"size", std::vector<int64_t>{2, 3}}, {"dtype", DType::f32}}}},
  }};
}

}  // namespace lathe
