// Masks, edges and nodes of rounded sizes (see padding.h).
#include "passes/padding/padding.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "ir/graph/op_def.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// In a tensor of `rank` dims, of extent 1 along all dims but one; those before it are left out.
Value along(Builder& b, Value line, size_t dim, size_t rank) {
  if (!line) return line;
  Shape shape(rank - dim, Dim(1));
  shape[0] = line.type().shape[0];
  return shape.size() == 1 ? line : b.call("reshape", {line}, {{"shape", std::move(shape)}});
}

Value both(Builder& b, Value mask, Value other) {
  return mask ? b.call("bitwise_and", {mask, other}) : other;
}

// Zeros after the elements of each dim; a negative count crops.
Value with_ends(Builder& b, Value value, const Shape& counts) {
  std::vector<Dim> pad;
  for (size_t d = counts.size(); d-- > 0;) pad.insert(pad.end(), {Dim(0), counts[d]});
  while (!pad.empty() && pad.back() == Dim(0)) pad.resize(pad.size() - 2);
  return pad.empty() ? value : b.call("pad", {value}, {{"pad", std::move(pad)}});
}

Value reshaped(Builder& b, Value value, const Shape& shape) {
  if (!value || value.type().shape == shape) return value;
  return b.call("reshape", {value}, {{"shape", shape}});
}

}  // namespace

Diag Padding::refusal(const Node& node, std::string_view why) const {
  return {code::kUnsupported, node.loc,
          fmt::format("pad_shapes: '{}' stands in the way: {}", node.op->name, why)};
}

const Padded* Padding::find(Value value) const {
  const auto found = known_.find(value);
  return found == known_.end() ? nullptr : &found->second;
}

Padded Padding::of(Value value) const {
  if (const Padded* padded = find(value)) return *padded;
  return value ? Padded{value, factors_of(value.type().shape)} : Padded{};
}

bool Padding::concerns(const Node& node) const {
  return std::any_of(node.operands.begin(), node.operands.end(),
                     [&](Value v) { return is_padded(of(v)); }) ||
         std::any_of(node.types.begin(), node.types.end(),
                     [&](const TensorType& type) { return rounding_.changes(type.shape); });
}

Result<std::vector<Value>> Padding::emit(const Node& node, std::vector<Value> operands,
                                         const NamedAttrs& attrs) {
  NamedAttrs all = attrs;
  for (size_t i = 0; i < node.attrs.size(); ++i) {
    const std::string& name = node.op->attrs[i].name;
    const bool is_given = std::any_of(attrs.begin(), attrs.end(),
                                      [&](const auto& attr) { return attr.first == name; });
    if (!is_given) all.emplace_back(name, node.attrs[i]);
  }
  Node* made = builder_->create(*node.op, std::move(operands), node.list_sizes, std::move(all));
  if (made == nullptr) return refusal(node, builder_->error().message);
  std::vector<Value> results;
  for (size_t i = 0; i < made->types.size(); ++i) {
    const Shape &have = made->types[i].shape, want = rounding_.up(node.types[i].shape);
    if (have != want)
      return refusal(node, fmt::format("of padded sizes it makes {} and not {}", to_string(have),
                                       to_string(want)));
    results.push_back(made->result(static_cast<int>(i)));
  }
  return results;
}

PaddedResults Padding::emit_as(const Node& node, std::vector<Value> operands,
                               std::vector<Factors> dims, const NamedAttrs& attrs) {
  LATHE_TRY(const std::vector<Value> made, emit(node, std::move(operands), attrs));
  return std::vector<Padded>{{made.front(), std::move(dims)}};
}

Value Padding::line(const Factors& factors) {
  Value& mask = lines_[spell(factors)];
  if (mask) return mask;
  Builder& b = *builder_;
  const Shape up = rounding_.up(factors);
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!rounding_.changes(factors[i])) continue;
    const Value at = b.call("arange", {}, {{"end", up[i]}});
    const Value size = b.call("size_value", {}, {{"value", factors[i]}});
    mask = both(b, mask, along(b, b.call("lt", {at, size}), i, factors.size()));
  }
  if (factors.size() > 1)
    mask = reshaped(b, b.call("expand", {mask}, {{"size", up}}), {extent(up)});
  return mask;
}

Value Padding::places(const Padded& x, const std::vector<size_t>& dims) {
  Value mask;
  for (size_t d : dims) {
    if (!is_padded(x.dims[d])) continue;
    const Value own = line(tidy(x.dims[d], rounding_));
    mask = both(*builder_, mask, along(*builder_, own, d, x.dims.size()));
  }
  return mask;
}

Value Padding::masked(const Padded& x, const std::vector<size_t>& dims, const Attr& fill) {
  const Value mask = places(x, dims);
  if (!mask) return x.value;
  ++num_masks_;
  const DType dtype = x.value.type().dtype;
  const auto* integer = std::get_if<int64_t>(&fill);
  const Value other = integer != nullptr ? builder_->integer(*integer, dtype)
                                         : builder_->scalar(std::get<double>(fill), dtype);
  return builder_->call("where", {mask, x.value, other});
}

Value Padding::zeroed(const Padded& x, const std::vector<size_t>& dims) {
  return x.is_zero ? x.value : masked(x, dims, int64_t{0});
}

Status Padding::check_room(const Node& node, const Shape& shape) const {
  for (const Dim& size : shape)
    if (!rounding_.grows(size))
      return refusal(node,
                     fmt::format("a size of {} need not grow with what is padded", size.str()));
  return Ok{};
}

Padded Padding::enter(Value value) {
  const Shape shape = value.type().shape;
  Shape counts;
  for (const Dim& size : shape) counts.push_back(rounding_.up(size) - size);
  return {with_ends(*builder_, value, counts), factors_of(shape), true};
}

Value Padding::leave(const Padded& x) {
  Shape parts, counts;
  for (const Factors& factors : x.dims) {
    for (const Dim& factor : tidy(factors, rounding_)) {
      parts.push_back(factor);
      counts.push_back(factor - rounding_.up(factor));
    }
  }
  const Value apart = reshaped(*builder_, x.value, rounding_.up(parts));
  return reshaped(*builder_, with_ends(*builder_, apart, counts), shape_of(x.dims));
}

Value Padding::cut(Value x, size_t dim, const Dim& start, const Dim& length) {
  if (!x) return x;
  const Shape& shape = x.type().shape;
  std::vector<Dim> pad(2 * (shape.size() - dim), Dim(0));
  pad[pad.size() - 2] = 0 - start;
  pad[pad.size() - 1] = start + length - shape[dim];
  return builder_->call("pad", {x}, {{"pad", std::move(pad)}});
}

Result<std::vector<Factors>> Padding::joined(const Node& node,
                                             const std::vector<Padded>& operands) const {
  std::vector<Factors> dims;  // from the last
  for (const Padded& x : operands) {
    for (size_t i = 0; i < x.dims.size(); ++i) {
      if (i == dims.size()) dims.push_back({Dim(1)});
      const Factors& own = x.dims[x.dims.size() - 1 - i];
      if (extent(own) == Dim(1)) continue;
      if (extent(dims[i]) == Dim(1)) {
        dims[i] = own;
      } else if ((is_padded(own) || is_padded(dims[i])) && !are_equal(own, dims[i])) {
        return refusal(node, fmt::format("its operands are padded in different places, {} and {}",
                                         spell(dims[i]), spell(own)));
      }
    }
  }
  std::reverse(dims.begin(), dims.end());
  return dims;
}

PaddedResults Padding::apart(const Node& node) {
  if (!node.op->decompose) return refusal(node, "no rule pads the dims that it works along");
  Graph& graph = *apart_.emplace_back(std::make_unique<Graph>());
  Builder b(graph, builder_->ops(), node.loc);
  Node twin;
  twin.op = node.op;
  twin.name = node.name;
  twin.list_sizes = node.list_sizes;
  twin.attrs = node.attrs;
  twin.types = node.types;
  twin.loc = node.loc;
  for (Value operand : node.operands) {
    if (operand) {
      const Padded padded = of(operand);
      const TensorType type{operand.type().dtype, shape_of(padded.dims)};
      operand = b.param(type, "operand");
      know(operand, padded);
    }
    twin.operands.push_back(operand);
  }
  const std::vector<Value> parts = node.op->decompose.function(b, twin);
  if (b.failed()) return refusal(node, b.error().message);
  for (const auto& part : graph.nodes) {
    LATHE_TRY(const std::vector<Padded> results, pad_node(*this, *part));
    for (size_t i = 0; i < results.size(); ++i) know(part->result(static_cast<int>(i)), results[i]);
  }
  std::vector<Padded> results;
  for (Value part : parts) results.push_back(of(part));
  return results;
}

}  // namespace lathe
