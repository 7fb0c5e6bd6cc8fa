// Strides and epilogues of library launches: see library.h.
#include "passes/lowering/library.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "ir/loop/sized.h"
#include "passes/lowering/epilogue.h"
#include "passes/lowering/operand.h"

namespace lathe {

using loop::Expr;

namespace {

// Nothing when a term of the index is none of the variables by a stride.
std::optional<Strided> strided(BufferId buffer, Expr index, const std::vector<Expr>& vars) {
  const loop::SizedLinear form = loop::sized(loop::linear(index));
  Strided result{buffer, form.constant, {}};
  size_t known = 0;
  for (Expr var : vars) {
    result.strides.push_back(step_along(form, var));
    known += result.strides.back() != Dim(0);
  }
  if (known != form.terms.size()) return std::nullopt;
  return result;
}

}  // namespace

bool may_end_product(const Node& node) {
  constexpr std::string_view kTaken[] = {"add", "relu", "gelu_tanh"};
  return std::find(std::begin(kTaken), std::end(kTaken), node.op->name) != std::end(kTaken);
}

std::optional<Strided> as_strided(const KernelContext& kernel, Expr element, DType dtype,
                                  const std::vector<Expr>& vars) {
  if (auto* cast = std::get_if<loop::Cast>(&element->kind)) element = cast->x;
  auto* load = std::get_if<loop::Load>(&element->kind);
  if (load == nullptr || element->dtype != dtype) return std::nullopt;
  return strided(kernel.buffers()[load->buffer.id], load->index, vars);
}

bool is_at_least(const Lowering& lowering, const Dim& size, const Dim& least) {
  if (size == least) return true;
  std::map<std::string, DimRange> ranges = lowering.symbols();
  for (auto& [symbol, range] : ranges) range.min = std::max<int64_t>(range.min.value_or(1), 1);
  return (size - least).bounds(ranges).min.value_or(-1) >= 0;
}

bool has_terms(const Lowering& lowering, const Dim& depth, const Shape& result) {
  return depth.bounds(lowering.symbols()).min.value_or(0) > 0 ||
         std::find(result.begin(), result.end(), depth) != result.end();
}

namespace {

// Elements of a row or of a column side by side, the others at least as far apart as those reach.
bool is_matrix(const Lowering& lowering, const Dim& rows, const Dim& columns, const Dim& row_stride,
               const Dim& column_stride) {
  auto fits = [&](const Dim& inner, const Dim& inner_stride, const Dim& outer,
                  const Dim& outer_stride) {
    return (inner == Dim(1) || inner_stride == Dim(1)) &&
           (outer == Dim(1) || is_at_least(lowering, outer_stride, inner));
  };
  return fits(columns, column_stride, rows, row_stride) ||
         fits(rows, row_stride, columns, column_stride);
}

// The part of a sum that `sum` does not stand in; null when `e` is no such sum.
Expr other_term(Expr e, Expr sum) {
  auto* node = std::get_if<loop::Binary>(&e->kind);
  if (node == nullptr || node->op != loop::BinaryOp::add) return {};
  return node->a == sum ? node->b : node->b == sum ? node->a : Expr();
}

// The value before it was rounded to the dtype that it is stored in: the library rounds once, at
// the end.
Expr unrounded(Expr e) {
  while (auto* widened = std::get_if<loop::Cast>(&e->kind)) {
    auto* rounded = std::get_if<loop::Cast>(&widened->x->kind);
    if (rounded == nullptr || rounded->x->dtype != e->dtype) break;
    e = rounded->x;
  }
  return e;
}

// The other side of op(value, limit) or op(limit, value); null when `e` is none.
Expr beside_limit(Expr e, loop::BinaryOp op, double limit) {
  auto* node = std::get_if<loop::Binary>(&e->kind);
  if (node == nullptr || node->op != op) return {};
  for (const auto& [value, other] : {std::pair(node->a, node->b), std::pair(node->b, node->a)}) {
    const loop::FloatConst* number = loop::as_float(other);
    if (number != nullptr && number->value == limit) return value;
  }
  return {};
}

bool is_relu(Expr e, Expr sum) { return beside_limit(e, loop::BinaryOp::max, 0) == sum; }

// What the member does to `sum`, of which it makes `value`.
Activation activation_of(const Node& member, Expr value, Expr sum) {
  if (is_relu(value, sum)) return Activation::relu;
  const Expr below = beside_limit(value, loop::BinaryOp::min, 6);
  if (below && is_relu(below, sum)) return Activation::relu6;
  const std::string& name = member.op->name;
  if (name == "gelu")
    return member.string_attr("approximate") == "tanh" ? Activation::gelu_tanh : Activation::gelu;
  for (const Activation each : {Activation::silu, Activation::sigmoid, Activation::tanh})
    if (name == row_of(each).name) return each;
  return Activation::none;
}

// Whether the pixels of images follow each other at one distance; other sums have none.
bool has_even_pixels(const LibrarySums& sums, const Strided& place) {
  std::optional<Dim> next;
  for (size_t i = sums.pixels.size(); i-- > 0;) {
    if (sums.pixels[i] == Dim(1)) continue;
    if (next && place.strides[i] != *next) return false;
    next = place.strides[i] * sums.pixels[i];
  }
  return true;
}

class EpilogueReader {
 public:
  EpilogueReader(const Lowering& lowering, KernelContext& kernel, const LibrarySums& sums,
                 DType dtype)
      : lowering_(lowering), kernel_(kernel), sums_(sums), dtype_(dtype) {}

  // Whether the library does what turns `sum` into `value`.
  bool claim(const Node& member, Expr value, Expr sum, LibraryEpilogue& into) {
    if (is_activated_ || member.types[0].dtype != dtype_) return false;
    value = unrounded(value);
    if (value == sum) return true;  // a cast to the dtype that it has
    const Activation activation = activation_of(member, value, sum);
    if (activation != Activation::none) {
      const auto& known = sums_.activations;
      return std::find(known.begin(), known.end(), activation) != known.end() &&
             activate(activation, into);
    }
    const Expr term = other_term(value, sum);
    if (!term) return false;
    std::optional<Strided> place = as_strided(kernel_, term, dtype_, sums_.vars);
    if (!place) return false;
    const bool is_bias = moves_with_column_alone(*place);
    std::optional<Strided>& slot = is_bias ? into.bias : into.residual;
    // What is added lies in rows, as the result does.
    const bool has_rows =
        place->strides.back() == Dim(1) && sums_.padded_columns == 0 &&
        has_even_pixels(sums_, *place) &&
        is_at_least(lowering_, place->strides[sums_.vars.size() - 2], sums_.columns);
    if (slot || (!is_bias && !has_rows)) return false;
    slot = std::move(place);
    return true;
  }

 private:
  bool activate(Activation activation, LibraryEpilogue& into) {
    into.activation = activation;
    return is_activated_ = true;
  }

  bool moves_with_column_alone(const Strided& place) const {
    return place.strides.back() == Dim(1) &&
           std::all_of(place.strides.begin(), place.strides.end() - 1,
                       [](const Dim& stride) { return stride == Dim(0); });
  }

  const Lowering& lowering_;
  KernelContext& kernel_;
  const LibrarySums& sums_;
  DType dtype_;
  bool is_activated_ = false;
};

// The first members of a region, which the library does.
struct Claim {
  LibraryEpilogue epilogue;
  size_t num_members = 1;   // the root among them
  std::vector<Expr> index;  // of what the last of them gives
};

size_t num_members(const Node& region) {
  return region.bodies.empty() ? 1 : region.bodies[0]->nodes.size();
}

const Node* member(const Node& region, const Claim& claim) {
  return region.bodies.empty() ? &region : region.bodies[0]->nodes[claim.num_members - 1].get();
}

// At most `most` members, and none from the first that the library does not know.
Claim claim_epilogue(const Lowering& lowering, KernelContext& kernel, const Node& region,
                     const LibrarySums& sums, size_t most) {
  Claim claim{{.bias = sums.bias, .residual = sums.residual}, 1, sums.index};
  if (region.bodies.empty()) return claim;
  const Graph& body = *region.bodies[0];
  const Node& root = *body.nodes[0];
  EpilogueReader reader(lowering, kernel, sums, root.types[0].dtype);
  // A variable that stands for the value so far: no element of memory equals it.
  const DType dtype = compute_dtype(root.types[0].dtype);
  const loop::Var so_far =
      kernel.kernel().add_var({"sum", loop::VarKind::let, dtype, 1, INT64_MIN, INT64_MAX});
  const Expr sum = kernel.pool().var(so_far, dtype);
  std::vector<Expr> index = sums.index;
  for (size_t i = 1; i < std::min(body.nodes.size(), most); ++i) {
    const Node& before = *body.nodes[i - 1];
    Node& next = *body.nodes[i];
    kernel.clear_bindings();
    kernel.bind({const_cast<Node*>(&before), 0}, sum);
    if (next.op->traits.op_class == OpClass::view) {
      index = rename_index(kernel, next, index);
    } else if (!reader.claim(next, kernel.compute(next.result(), index), sum, claim.epilogue)) {
      break;
    }
    claim.num_members = i + 1;
    claim.index = index;
  }
  kernel.clear_bindings();
  return claim;
}

}  // namespace

Result<BufferId> copy_filled_up(Lowering& lowering, Node& reader, Value value,
                                const TensorType& type, const std::string& label, Phase phase) {
  const BufferId out =
      lowering.add_temporary(*value.node, "_" + label, type, type.num_elements(), phase);
  KernelContext kernel(lowering, phase, label);
  loop::Pool& pool = kernel.pool();
  LATHE_DO(
      lowering.emit_elements(kernel, out, {label, &reader, 0}, [&](std::span<const Expr> index) {
        std::vector<Expr> at(index.begin(), index.end());
        Expr is_inside;
        for (size_t i = 0; i < at.size(); ++i) {
          const Dim& extent = value.type().shape[i];
          if (type.shape[i] == extent) continue;
          const Expr last = pool.integer(extent.value() - 1);
          const Expr is_within = loop::le(index[i], last);
          is_inside = is_inside ? loop::logical_and(is_inside, is_within) : is_within;
          at[i] = loop::min(index[i], last);
        }
        const Expr element = kernel.element(value, at);
        if (!is_inside) return element;
        return loop::select(is_inside, element, loop::constant_like(element, 0));
      }));
  return out;
}

Status copy_operand(Lowering& lowering, KernelContext& kernel, Value value) {
  LATHE_TRY(const BufferId copy, copy_to_layout(lowering, value, {}, kernel.phase()));
  kernel.read_from(value, copy);
  return Ok{};
}

Result<std::optional<Strided>> place_operand(Lowering& lowering, KernelContext& kernel, Value value,
                                             const std::vector<Expr>& index,
                                             const std::vector<Expr>& vars, const Dim& rows,
                                             const Dim& columns) {
  for (bool is_copied : {false, true}) {
    if (is_copied) LATHE_DO(copy_operand(lowering, kernel, value));
    std::optional<Strided> found =
        as_strided(kernel, kernel.element(value, index), value.type().dtype, vars);
    if (kernel.error()) return *kernel.error();
    if (!found) continue;
    const size_t last = vars.size() - 1;
    if (is_matrix(lowering, rows, columns, found->strides[last - 1], found->strides[last]))
      return found;
  }
  return std::optional<Strided>();
}

std::optional<Strided> place_result(const Lowering& lowering, KernelContext& kernel,
                                    BufferId buffer, const TensorType& type,
                                    const std::vector<Expr>& index, const std::vector<Expr>& vars,
                                    const Dim& rows, const Dim& columns) {
  const std::optional<Strided> place = strided(buffer, kernel.address(type, index), vars);
  if (!place) return std::nullopt;
  const Dim &row_stride = place->strides[vars.size() - 2], &column_stride = place->strides.back();
  const bool has_rows = (columns == Dim(1) || column_stride == Dim(1)) &&
                        (rows == Dim(1) || is_at_least(lowering, row_stride, columns));
  return has_rows ? place : std::nullopt;
}

Result<std::optional<LibraryResult>> place_sums(Lowering& lowering, KernelContext& kernel,
                                                const Node& region, const LibrarySums& sums,
                                                BufferId out) {
  const auto place = [&](BufferId buffer, const TensorType& type, const std::vector<Expr>& index) {
    std::optional<Strided> found =
        place_result(lowering, kernel, buffer, type, index, sums.vars, sums.rows, sums.columns);
    return found && has_even_pixels(sums, *found) ? found : std::nullopt;
  };
  const TensorType& root = root_of(region)->types[0];
  const TensorType& whole = lowering.buffer(out).type;
  Claim claim = claim_epilogue(lowering, kernel, region, sums, sums.is_bare ? 1 : SIZE_MAX);
  if (kernel.error()) return *kernel.error();
  const bool is_padded = sums.padded_columns > 0;
  if (claim.num_members == num_members(region) && whole.dtype == root.dtype && !is_padded) {
    if (std::optional<Strided> found = place(out, whole, claim.index))
      return std::optional(LibraryResult{claim.epilogue, *found, member(region, claim)});
  }
  for (size_t most = claim.num_members; most > 0; --most) {
    claim = claim_epilogue(lowering, kernel, region, sums, most);
    const Node* last = member(region, claim);
    TensorType type = last->types[0];
    if (is_padded) {
      if (claim.index != sums.index) continue;
      const auto column = std::find(claim.index.begin(), claim.index.end(), sums.vars.back());
      type.shape[static_cast<size_t>(column - claim.index.begin())] = Dim(sums.padded_columns);
      Dim& divided = type.shape[divided_dim(type.shape)];
      if (sums.parts > 1) divided = Dim::floor_div(divided, sums.parts);
    }
    type.layout = type.rank() == root.rank() ? sums.layout : Layout();
    std::optional<Strided> found = place(-1, type, claim.index);
    if (!found) continue;
    found->buffer =
        lowering.add_temporary(region, "_sums", type, type.num_elements(), kernel.phase());
    return std::optional(LibraryResult{claim.epilogue, *found, last});
  }
  return std::optional<LibraryResult>();
}

size_t divided_dim(const Shape& shape) {
  size_t dim = 0;
  while (dim + 2 < shape.size() && shape[dim] == Dim(1)) ++dim;
  return dim;
}

Status emit_part(Lowering& lowering, const Node& node, BufferId made, BufferId out, int64_t part,
                 Phase phase) {
  KernelContext kernel(lowering, node, phase);
  const Value value{const_cast<Node*>(&node), 0};
  kernel.read_from(value, made, lowering.buffer(made).type);
  Lowering::Part own = {lowering.buffer(out).type};
  const Dim columns = own.type.shape.back();
  own.type.shape = lowering.buffer(made).type.shape;
  own.type.shape.back() = columns;
  own.first = part * own.type.num_elements().value();
  return lowering.emit_part(
      kernel, out, own, {"epilogue", &node, 0},
      [&](std::span<const Expr> index) { return kernel.element(value, index); });
}

Status emit_rest(Lowering& lowering, const Node& region, const Node& done, BufferId made,
                 BufferId out, Phase phase) {
  if (made == out) return Ok{};
  KernelContext rest(lowering, region, phase);
  const Value value{const_cast<Node*>(&done), 0};
  rest.read_from(value, made, lowering.buffer(made).type);
  const Value result = region.bodies.empty() ? value : region.bodies[0]->outputs[0];
  return lowering.emit_elements(
      rest, out, {"epilogue", &region, 0},
      [&](std::span<const Expr> index) { return rest.element(result, index); });
}

}  // namespace lathe
