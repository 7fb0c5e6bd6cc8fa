// Matrix products and convolutions: operands and epilogue as expressions for the contraction
// template.
#include "ir/templates/contraction.h"

#include <algorithm>
#include <utility>

#include "ir/loop/linear.h"
#include "passes/lowering/epilogue.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/lowering.h"

namespace lathe {
namespace {

using loop::Expr;
using Index = std::span<const Expr>;

// What both kinds of contraction are to the template.
struct Operands {
  ContractionSpec spec;
  Value rows;  // read in place
  std::function<std::vector<Expr>(Index batch, Index m, Index k)> row_index;
  std::function<Expr(KernelContext&, Index batch, Index k, Expr n)> column;
  std::function<std::vector<Expr>(Index batch, Index m, Expr n)> result_index;
  Value bias = {};  // over n
};

std::vector<int64_t> extents(const TensorType& type) { return type.static_shape(); }

// Index into an operand of a batched product: dims of extent 1 are broadcast.
std::vector<Expr> batch_index(const TensorType& type, Index batch, Expr row, Expr column,
                              loop::Pool& pool) {
  std::vector<Expr> index;
  const size_t own = type.shape.size() - 2;
  for (size_t i = 0; i < own; ++i) {
    const bool is_broadcast = type.shape[i] == Dim(1);
    index.push_back(is_broadcast ? pool.integer(0) : batch[batch.size() - own + i]);
  }
  index.push_back(row);
  index.push_back(column);
  return index;
}

std::optional<Operands> matmul_operands(const Node& node, KernelContext& kernel) {
  const Value self = kernel.resolve(node.operands[0]), other = kernel.resolve(node.operands[1]);
  const TensorType &a = self.type(), &b = other.type(), &out = node.types[0];
  if (a.rank() < 2 || b.rank() < 2) return std::nullopt;
  const std::vector<int64_t> shape = extents(out), b_shape = extents(b);
  bool is_shared = true;  // one right operand for every batch element
  for (size_t i = 0; i + 2 < b_shape.size(); ++i) is_shared = is_shared && b_shape[i] == 1;

  Operands result;
  const size_t num_batch = is_shared ? 0 : shape.size() - 2;
  result.spec.batch.assign(shape.begin(), shape.begin() + static_cast<long>(num_batch));
  result.spec.m.assign(shape.begin() + static_cast<long>(num_batch), shape.end() - 1);
  result.spec.n = shape.back();
  result.spec.k = {extents(a).back()};
  result.rows = self;
  auto full = [](Index batch, Index m) {
    std::vector<Expr> index(batch.begin(), batch.end());
    index.insert(index.end(), m.begin(), m.end());
    return index;
  };
  result.row_index = [a, full](Index batch, Index m, Index k) {
    std::vector<Expr> index = full(batch, m);
    const Expr row = index.back();
    index.pop_back();
    return batch_index(a, index, row, k[0], *row->pool);
  };
  result.column = [b, other](KernelContext& context, Index batch, Index k, Expr n) {
    return context.element_within(other, batch_index(b, batch, k[0], n, context.pool()));
  };
  result.result_index = [full](Index batch, Index m, Expr n) {
    std::vector<Expr> index = full(batch, m);
    index.push_back(n);
    return index;
  };
  return result;
}

// The input with a border of zeros, in a buffer of its own with the input's layout.
Result<BufferId> pad_input(Lowering& lowering, Value input, const std::vector<int64_t>& padding,
                           const Node& node, Phase phase) {
  TensorType type = input.type();
  for (size_t i = 0; i < padding.size(); ++i)
    type.shape[i + 2] = type.shape[i + 2] + Dim(2 * padding[i]);
  const int64_t size = type.static_elements().value_or(0);
  const BufferId out = lowering.add_temporary(input.node->name + "_padded", type, size, phase);
  KernelContext kernel(lowering, phase, "pad");
  loop::Pool& pool = kernel.pool();
  LATHE_DO(lowering.emit_elements(kernel, out, {"pad", node.loc, 0}, [&](Index index) {
    std::vector<Expr> inner(index.begin(), index.end());
    Expr is_inside = pool.boolean(true);
    for (size_t i = 0; i < padding.size(); ++i) {
      if (padding[i] == 0) continue;
      const Expr last = pool.integer(input.type().shape[i + 2].value() - 1);
      const Expr at = index[i + 2] - pool.integer(padding[i]);
      is_inside = loop::logical_and(
          is_inside, loop::logical_and(loop::le(pool.integer(0), at), loop::le(at, last)));
      inner[i + 2] = loop::min(loop::max(at, pool.integer(0)), last);
    }
    Expr value = kernel.element(input, inner);
    return loop::select(is_inside, value, loop::constant_like(value, 0));
  }));
  return out;
}

Result<std::optional<Operands>> convolution_operands(Lowering& lowering, const Node& node,
                                                     KernelContext& kernel, Phase phase) {
  const Value input = kernel.resolve(node.operands[0]), weight = kernel.resolve(node.operands[1]);
  const std::vector<int64_t> in = extents(input.type()), w = extents(weight.type());
  const size_t spatial = w.size() - 2;
  if (node.int_attr("groups", 1) != 1 || node.bool_attr("transposed") || in.size() != w.size() ||
      spatial < 1) {
    return std::optional<Operands>();
  }
  auto per_dim = [&](const char* name, int64_t fallback) {
    std::vector<int64_t> values = node.ints_attr(name);
    values.resize(spatial, values.empty() ? fallback : values.back());
    return values;
  };
  const std::vector<int64_t> stride = per_dim("stride", 1), padding = per_dim("padding", 0),
                             dilation = per_dim("dilation", 1);
  TensorType type = input.type();
  if (std::any_of(padding.begin(), padding.end(), [](int64_t p) { return p != 0; })) {
    LATHE_TRY(const BufferId padded, pad_input(lowering, input, padding, node, phase));
    kernel.read_from(input, padded);
    type = lowering.buffer(padded).type;
  }
  // The reduction runs over the taps and, innermost, over what lies side by side in memory.
  const bool channels_inside = !type.layout.empty() && type.layout.back() == 1;
  Operands result;
  const std::vector<int64_t> out = extents(node.types[0]);
  result.spec.m.push_back(out[0]);
  result.spec.m.insert(result.spec.m.end(), out.begin() + 2, out.end());
  result.spec.n = out[1];
  result.spec.k.assign(w.begin() + 2, w.end());
  result.spec.k.insert(channels_inside ? result.spec.k.end() : result.spec.k.begin(), w[1]);
  result.rows = input;
  auto split = [channels_inside](Index k) {
    const Expr channel = channels_inside ? k.back() : k.front();
    const Index taps = channels_inside ? k.first(k.size() - 1) : k.subspan(1);
    return std::pair(channel, taps);
  };
  result.row_index = [=](Index, Index m, Index k) {
    const auto [channel, taps] = split(k);
    std::vector<Expr> index = {m[0], channel};
    for (size_t i = 0; i < spatial; ++i) {
      loop::Pool& pool = *channel->pool;
      index.push_back(m[i + 1] * pool.integer(stride[i]) + taps[i] * pool.integer(dilation[i]));
    }
    return index;
  };
  result.column = [weight, split](KernelContext& context, Index, Index k, Expr n) {
    const auto [channel, taps] = split(k);
    std::vector<Expr> index = {n, channel};
    index.insert(index.end(), taps.begin(), taps.end());
    return context.element_within(weight, index);
  };
  result.result_index = [](Index, Index m, Expr n) {
    std::vector<Expr> index = {m[0], n};
    index.insert(index.end(), m.begin() + 1, m.end());
    return index;
  };
  result.bias = node.operands.size() > 2 ? kernel.resolve(node.operands[2]) : Value{};
  return std::optional<Operands>(std::move(result));
}

std::vector<Expr> fresh_vars(KernelContext& kernel, const std::vector<int64_t>& extents) {
  std::vector<Expr> vars;
  for (int64_t extent : extents) {
    vars.push_back(kernel.pool().var(kernel.fresh_var(std::max<int64_t>(1, extent))));
  }
  return vars;
}

// Elements between the starts of neighbouring rows, when the template can walk them in place: a
// plain load whose index is linear.
std::optional<int64_t> row_stride(KernelContext& kernel, const Operands& operands) {
  const ContractionSpec& spec = operands.spec;
  const std::vector<Expr> batch = fresh_vars(kernel, spec.batch), m = fresh_vars(kernel, spec.m),
                          k = fresh_vars(kernel, spec.k);
  Expr element = kernel.element(operands.rows, operands.row_index(batch, m, k));
  if (auto* cast = std::get_if<loop::Cast>(&element->kind)) element = cast->x;
  auto* load = std::get_if<loop::Load>(&element->kind);
  if (load == nullptr) return std::nullopt;
  const loop::Linear form = loop::linear(load->index);
  for (const auto& [atom, coefficient] : form.terms) {
    if (!std::holds_alternative<loop::VarRead>(atom->kind)) return std::nullopt;
  }
  return form.coefficient(std::get<loop::VarRead>(m.back()->kind).var);
}

Result<BufferId> pack(Lowering& lowering, const Operands& operands, const PackedLayout& layout,
                      const Node& node, Phase phase) {
  TensorType type{operands.spec.dtype, {Dim(layout.num_elements())}};
  const BufferId out =
      lowering.add_temporary(node.name + "_packed", type, layout.num_elements(), phase);
  KernelContext kernel(lowering, phase, "pack");
  const loop::BufferRef packed = kernel.use(out, true);
  LoopNest nest =
      pack_nest(kernel.kernel(), operands.spec, layout, packed,
                [&](Index batch, Index k, Expr n) { return operands.column(kernel, batch, k, n); });
  if (kernel.error()) return *kernel.error();
  LATHE_DO(lowering.emit_kernel(schedule(std::move(nest), lowering.target()), kernel.buffers(),
                                {"pack", node.loc, 0}, phase));
  return out;
}

// True when consecutive columns of a row lie side by side in the result, so that vectors can be
// stored.
bool is_row_contiguous(KernelContext& probe, const Operands& operands, const Node& node,
                       BufferId out, const TensorType& type) {
  const ContractionSpec& spec = operands.spec;
  const loop::Var n = probe.fresh_var(spec.n);
  Epilogue epilogue(probe, node, out, type);
  const ResultElement result =
      epilogue.apply(operands.result_index(fresh_vars(probe, spec.batch), fresh_vars(probe, spec.m),
                                           probe.pool().var(n)),
                     probe.pool().number(0, spec.dtype));
  const loop::Linear form = loop::linear(result.index);
  for (const auto& [atom, coefficient] : form.terms) {
    if (!std::holds_alternative<loop::VarRead>(atom->kind) && loop::depends_on(atom, n))
      return false;
  }
  return spec.n == 1 || form.coefficient(n) == 1;
}

class ContractionLowering {
 public:
  ContractionLowering(Lowering& lowering, Node& node, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(node.bodies.empty() ? node : *node.bodies[0]->nodes[0]),
        phase_(phase) {}

  Result<bool> run(BufferId out) {
    const DType dtype = compute_dtype(root_.types[0].dtype);
    if (!is_float(dtype) || lowering_.buffer(out).num_bytes == 0) return false;
    KernelContext kernel = context(), probe = context();
    std::optional<Operands> found;
    if (root_.op->name == "matmul") {
      found = matmul_operands(root_, kernel);
    } else {
      LATHE_TRY(found, convolution_operands(lowering_, root_, kernel, phase_));
    }
    if (!found) return false;
    Operands& operands = *found;
    if (std::count(operands.spec.k.begin(), operands.spec.k.end(), 0) > 0) return false;
    operands.spec.dtype = dtype;
    std::optional<int64_t> stride = row_stride(probe, operands);
    if (!stride && !kernel.is_forced(operands.rows)) {
      LATHE_TRY(const BufferId copied, materialize_copy(lowering_, operands.rows, phase_));
      kernel.read_from(operands.rows, copied);
      KernelContext copy = context();
      copy.read_from(operands.rows, copied);
      stride = row_stride(copy, operands);
    }
    operands.spec.row_bytes = stride.value_or(0) * dtype_bytes(operands.rows.type().dtype);
    if (is_row_contiguous(probe, operands, node_, out, lowering_.buffer(out).type)) {
      LATHE_DO(emit(kernel, operands, node_, out));
    } else {
      LATHE_DO(emit_in_two(kernel, operands, out));
    }
    return true;
  }

 private:
  KernelContext context() {
    KernelContext kernel(lowering_, phase_, node_.name);
    if (!node_.bodies.empty()) kernel.enter(node_);
    return kernel;
  }

  // `computed` is the contraction alone, or with its epilogue.
  Status emit(KernelContext& kernel, Operands& operands, const Node& computed, BufferId out) {
    const PackedLayout layout = packed_layout(operands.spec, lowering_.target());
    const Value columns = kernel.resolve(root_.operands[1]);
    const Phase pack_phase = lowering_.is_constant(columns) ? Phase::init : phase_;
    LATHE_TRY(const BufferId packed, pack(lowering_, operands, layout, node_, pack_phase));
    Epilogue epilogue(kernel, computed, out, lowering_.buffer(out).type);
    operands.spec.a = [&](Index batch, Index m, Index k) {
      return kernel.element_within(operands.rows, operands.row_index(batch, m, k));
    };
    operands.spec.epilogue = [&](Index batch, Index m, Expr n, Expr sum) {
      std::vector<Expr> index = operands.result_index(batch, m, n);
      if (operands.bias) sum = sum + kernel.element(operands.bias, std::vector<Expr>{n});
      return epilogue.apply(std::move(index), sum);
    };
    const loop::BufferRef packed_ref = kernel.use(packed);
    build_contraction(kernel.kernel(), operands.spec, layout, packed_ref, lowering_.target());
    if (kernel.error()) return *kernel.error();
    return lowering_.emit_kernel(kernel.kernel(), kernel.buffers(), describe(node_), phase_);
  }

  // The sums with their columns side by side first; a loop then puts the results where they belong.
  Status emit_in_two(KernelContext& kernel, Operands& operands, BufferId out) {
    TensorType type = root_.types[0];
    type.layout.clear();
    if (root_.op->name == "convolution") {
      type.layout = {0};
      for (int i = 2; i < type.rank(); ++i) type.layout.push_back(i);
      type.layout.push_back(1);
    }
    const int64_t size = type.static_elements().value_or(0);
    const BufferId sums = lowering_.add_temporary(node_.name + "_sums", type, size, phase_);
    LATHE_DO(emit(kernel, operands, root_, sums));
    KernelContext rest = context();
    const Value root{const_cast<Node*>(&root_), 0};
    rest.read_from(root, sums, type);
    const Value result = node_.bodies.empty() ? root : node_.bodies[0]->outputs[0];
    return lowering_.emit_elements(rest, out, {"scatter", node_.loc, 0},
                                   [&](Index index) { return rest.element(result, index); });
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
};

}  // namespace

Result<bool> lower_contraction(Lowering& lowering, Node& node, BufferId out, Phase phase) {
  return ContractionLowering(lowering, node, phase).run(out);
}

}  // namespace lathe
