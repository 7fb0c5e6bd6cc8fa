// Assertions: those that the exporter leaves in a graph, and those that index ops make of their
// positions. They have effects, so that no pass drops them by accident. What types say is decided
// when a graph is built; numbers are read by the host behind the run (ir/type/bounds.h).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/graph/op_def.h"
#include "ir/graph/tensor.h"
#include "ir/op/demands.h"
#include "ir/op/position.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"
#include "ir/type/bounds.h"

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

using Types = Result<std::vector<TensorType>>;
using Tensors = Result<std::vector<Tensor>>;

Types check_number(const Node& node) {
  const TensorType& type = node.operands[0].type();
  if (type.rank() == 0 && type.dtype == DType::i64) return std::vector<TensorType>{};
  return Diag{code::kDtypeMismatch, node.loc,
              fmt::format("'{}' takes one number, i64[], got {}", node.op->name, to_string(type))};
}

Types check_index(const Node& node) {
  LATHE_DO(check_positions(node, node.operands[0].type()));
  return std::vector<TensorType>{};
}

// The bound as a number; sizes are numbers when a node is computed.
int64_t bound(const Node& node, std::string_view name) {
  const Dim* dim = std::get_if<Dim>(&node.attr(name));
  return dim != nullptr && dim->is_const() ? dim->value() : 0;
}

// Of keys, or of the numbers themselves.
Tensors check_all(const Node& node, std::span<const Tensor* const> operands) {
  const int64_t low = bound(node, "low"), high = bound(node, "high");
  const bool has_keys = node.op->traits.asserts == Asserts::key;
  const Tensor& numbers = *operands[0];
  for (int64_t i = 0; i < numbers.num_elements(); ++i) {
    const int64_t given = numbers.integers[static_cast<size_t>(i)];
    const auto less_low =
        static_cast<int64_t>(static_cast<uint64_t>(given) - static_cast<uint64_t>(low));
    const int64_t key =
        has_keys ? given : std::clamp(less_low, kLeastNumber, kMostNumber) & kNumberMask;
    LATHE_DO(check_bounds(key, low, high, node.string_attr("message"), node.loc));
  }
  return std::vector<Tensor>{};
}

constexpr int64_t kLongRow = 64, kMostOfRow = 4096;

// Rows of the index, for who reads it may find the largest key of each: its own where they are
// long, else parts that scatters walk through in whole steps. See passes/lowering/sweeps.cpp.
Term in_rows(Builder& builder, Value index) {
  const Shape& shape = index.type().shape;
  const int64_t count = index.type().static_elements().value_or(0);
  const bool has_rows = shape.size() > 1 && shape.back().is_const();
  if (count < kMostOfRow || (has_rows && shape.back().value() >= kLongRow)) return {builder, index};
  int64_t length = kMostOfRow;
  while (length >= kLongRow && count % length != 0) length -= 8;
  if (length < kLongRow || length == count) return {builder, index};
  return reshape({builder, index}, {Dim(count / length), Dim(length)});
}

// The largest key is outside if any is. Of rows it is the largest number without a sign, which
// takes fewer operations for each, and comes in the same order.
std::vector<Value> largest_key(Builder& builder, const Node& node) {
  const Value index = node.operands[0];
  const Shape& given = index.type().shape;
  if (std::find(given.begin(), given.end(), Dim(0)) != given.end()) return {};
  const auto number = [&](int64_t value) {
    return Term(builder, builder.integer(value, DType::i64));
  };
  const Dim* low = std::get_if<Dim>(&node.attr("low"));
  Term key = cast(in_rows(builder, index), DType::i64);
  if (low != nullptr && *low != Dim(0)) key = key - size_like(key, *low);
  Shape shape = key.shape();
  if (shape.size() > 1 && shape.back().is_const() && shape.back().value() >= kLongRow) {
    key = amax(apply("bitwise_xor", {key, number(INT64_MIN)}), {-1}, false);
    key = apply("bitwise_xor", {key, number(INT64_MIN)});
    shape.pop_back();
  }
  key = min(max(key, number(kLeastNumber)), number(kMostNumber));
  key = apply("bitwise_and", {key, number(kNumberMask)});
  std::vector<int64_t> dims(shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  if (!dims.empty()) key = amax(key, dims, false);
  apply(
      "assert_bounds", {key},
      {{"low", node.attr("low")}, {"high", node.attr("high")}, {"message", node.attr("message")}});
  return {};
}

OpDef number_row(const char* name, const char* operand, const char* summary, Asserts asserts,
                 Slot<InferFn> infer, Slot<DecomposeFn> decompose) {
  return {
      .name = name,
      .summary = summary,
      .operands = {{operand}},
      .attrs = {{.name = "low", .kind = AttrKind::dim},
                {.name = "high", .kind = AttrKind::dim},
                {.name = "message",
                 .kind = AttrKind::string,
                 .doc = "\"{index}\" and \"{size}\" are the number and `high`"}},
      .num_results = 0,
      .traits = {.op_class = OpClass::opaque, .has_effects = true, .asserts = asserts},
      .infer = infer,
      .reference = check_all,
      .decompose = decompose,
      .lower = kNoResult,
      .derivative = kNoResult,
  };
}

OpDef assert_index() {
  OpDef row = number_row("assert_index", "index", "ends the run unless low <= index < high",
                         Asserts::positions, check_index, largest_key);
  row.examples = {{.operands = {{.dtype = DType::i64, .shape = {2, 2}, .values = {4, 0, -5, 1}}},
                   .attrs = {{"low", Dim(-5)}, {"high", Dim(5)}, {"message", std::string("x")}}},
                  {.operands = {{.dtype = DType::i32, .shape = {}, .values = {3}}},
                   .attrs = {{"low", Dim(0)}, {"high", Dim(4)}, {"message", std::string("x")}}}};
  return row;
}

OpDef assert_bounds() {
  OpDef row = number_row("assert_bounds", "key", "ends the run unless low <= number < high",
                         Asserts::key, check_number, Absent{"the host reads the number"});
  row.doc = "The key is the number less `low`, without its sign bit.";
  row.examples = {{.operands = {{.dtype = DType::i64, .values = {3}}},
                   .attrs = {{"low", Dim(0)}, {"high", Dim(4)}, {"message", std::string("x")}}}};
  return row;
}

OpDef assert_metadata() {
  return {
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
  };
}

}  // namespace

std::vector<OpDef> define_assertion() {
  return {assert_bounds(), assert_index(), assert_metadata()};
}

}  // namespace lathe
