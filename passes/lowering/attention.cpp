// Scaled dot-product attention: operands and mask as expressions for the attention template.
#include "ir/templates/attention.h"

#include <cmath>
#include <limits>

#include "ir/loop/linear.h"
#include "passes/lowering/epilogue.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/library.h"
#include "passes/lowering/lowering.h"

namespace lathe {
namespace {

using loop::Expr;

std::vector<Expr> join(std::span<const Expr> batch, Expr row, Expr column) {
  std::vector<Expr> index(batch.begin(), batch.end());
  index.push_back(row);
  index.push_back(column);
  return index;
}

// The values' rows are read as vectors: their elements must lie side by side.
bool is_contiguous(KernelContext& probe, Value value) {
  std::vector<Expr> index;
  for (const Dim& dim : value.type().shape) {
    index.push_back(probe.pool().var(probe.fresh_var(std::max<int64_t>(1, dim.value()))));
  }
  Expr element = probe.element(value, index);
  if (auto* cast = std::get_if<loop::Cast>(&element->kind)) element = cast->x;
  auto* load = std::get_if<loop::Load>(&element->kind);
  if (load == nullptr) return false;
  const loop::Var last = std::get<loop::VarRead>(index.back()->kind).var;
  for (const auto& [atom, coefficient] : loop::linear(load->index).terms) {
    if (!std::holds_alternative<loop::VarRead>(atom->kind)) return false;
  }
  return loop::linear(load->index).coefficient(last) == 1;
}

// An additive or boolean mask, broadcast over the scores.
Expr masked(KernelContext& kernel, Value mask, std::span<const Expr> batch, Expr i, Expr t,
            Expr score) {
  const Shape& shape = mask.type().shape;
  const std::vector<Expr> full = join(batch, i, t);
  std::vector<Expr> index;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool is_broadcast = shape[d] == Dim(1);
    index.push_back(is_broadcast ? kernel.integer(0) : full[full.size() - shape.size() + d]);
  }
  Expr value = kernel.element_within(mask, index);
  if (value->dtype == DType::b8) {
    return loop::select(value, score,
                        loop::constant_like(score, -std::numeric_limits<double>::infinity()));
  }
  return score + loop::cast(value, score->dtype);
}

}  // namespace

Result<bool> lower_attention(Lowering& lowering, Node& node, BufferId out, Phase phase) {
  const Node& root = node.bodies.empty() ? node : *node.bodies[0]->nodes[0];
  KernelContext kernel(lowering, phase, node.name), probe(lowering, phase, "probe");
  if (!node.bodies.empty()) {
    kernel.enter(node);
    probe.enter(node);
  }
  const Value query = kernel.resolve(root.operands[0]), key = kernel.resolve(root.operands[1]),
              value = kernel.resolve(root.operands[2]);
  const Value mask = root.operands.size() > 3 ? kernel.resolve(root.operands[3]) : Value{};
  const std::vector<int64_t> shape = root.types[0].static_shape(), q = query.type().static_shape(),
                             k = key.type().static_shape();
  if (shape.size() < 2 || lowering.buffer(out).num_bytes == 0 || k[k.size() - 2] == 0) return false;

  AttentionSpec spec;
  spec.batch.assign(shape.begin(), shape.end() - 2);
  spec.queries = q[q.size() - 2];
  spec.keys = k[k.size() - 2];
  spec.depth = q.back();
  spec.width = shape.back();
  spec.scale = root.float_attr("scale", 1 / std::sqrt(static_cast<double>(spec.depth)));
  spec.is_causal = root.bool_attr("is_causal");
  spec.dtype = compute_dtype(root.types[0].dtype);
  if (!is_contiguous(probe, value)) {
    LATHE_TRY(const BufferId copied, materialize_copy(lowering, value, phase));
    kernel.read_from(value, copied);
  }
  // Batch dims broadcast; with grouped queries, several heads share one of the keys.
  auto read = [&](Value tensor, std::span<const Expr> batch, Expr row, Expr column) {
    std::vector<Expr> index = join(batch, row, column);
    const Shape& own = tensor.type().shape;
    index.erase(index.begin(), index.end() - static_cast<long>(own.size()));
    for (size_t d = 0; d + 2 < own.size(); ++d) {
      const int64_t heads = shape[shape.size() - own.size() + d], extent = own[d].value();
      if (extent == 1) {
        index[d] = kernel.integer(0);
      } else if (extent < heads) {
        index[d] = loop::floor_div(index[d], kernel.integer(heads / extent));
      }
    }
    return kernel.element_within(tensor, index);
  };
  using Batch = AttentionSpec::Batch;
  spec.query = [&](Batch batch, Expr i, Expr d) { return read(query, batch, i, d); };
  spec.key = [&](Batch batch, Expr t, Expr d) { return read(key, batch, t, d); };
  spec.value = [&](Batch batch, Expr t, Expr e) { return read(value, batch, t, e); };
  if (mask) {
    spec.mask = [&](Batch batch, Expr i, Expr t, Expr score) {
      return masked(kernel, mask, batch, i, t, score);
    };
  }
  Epilogue epilogue(kernel, node, out, lowering.buffer(out).type);
  spec.result = [&](Batch batch, Expr i, Expr e, Expr sum) {
    return epilogue.apply(join(batch, i, e), sum);
  };
  build_attention(kernel.kernel(), spec, lowering.target());
  if (kernel.error()) return *kernel.error();
  LATHE_DO(lowering.emit_kernel(kernel.kernel(), kernel.buffers(), describe(node), phase));
  return true;
}

// ---- through a library --------------------------------------------------------------------------

namespace {

constexpr int64_t kRowStep = 8;  // elements

// Attention as two products over the same batch. Where several heads share a key, the dim of the
// heads is two: the keys' and the heads of each, so that strides can say what is read.
class LibraryAttention {
 public:
  LibraryAttention(Lowering& lowering, Node& node, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(node.bodies.empty() ? node : *node.bodies[0]->nodes[0]),
        phase_(phase),
        kernel_(lowering, phase, node.name),
        shape_(root_.types[0].static_shape()),
        dtype_(root_.types[0].dtype) {
    if (!node.bodies.empty()) kernel_.enter(node);
  }

  Result<bool> run(BufferId out) {
    const Value query = operand(0), key = operand(1), value = operand(2);
    const std::vector<int64_t> q = query.type().static_shape(), k = key.type().static_shape();
    for (Value each : {query, key, value})
      if (each.type().dtype != dtype_ || each.type().rank() < 2) return false;
    if (!is_float(dtype_) || lowering_.buffer(out).num_bytes == 0 || k[k.size() - 2] == 0)
      return false;
    queries_ = q[q.size() - 2];
    keys_ = k[k.size() - 2];
    const int64_t depth = q.back(), width = shape_.back();
    make_batch(key.type());
    const Expr i = variable(queries_), t = variable(keys_), d = variable(depth),
               e = variable(width);

    MatmulSpec scores{queries_, keys_, depth, extents_, {}, {}, {}, {}};
    MatmulSpec sums{queries_, width, keys_, extents_, {}, {}, {}, {}};
    LATHE_TRY(auto a, place(query, i, d, i, d, queries_, depth));
    LATHE_TRY(auto b, place(key, t, d, d, t, depth, keys_));
    LATHE_TRY(auto v, place(value, t, e, t, e, keys_, width));
    if (!a || !b || !v) return false;
    // Rows begin where wide accesses may: nobody reads what fills them up.
    std::vector<int64_t> square(shape_.begin(), shape_.end() - 2);
    square.insert(square.end(), {queries_, (keys_ + kRowStep - 1) / kRowStep * kRowStep});
    const BufferId scored = temporary("scores", compute_dtype(dtype_), square);
    const BufferId weights = temporary("weights", dtype_, square);
    scores.a = *a;
    scores.b = *b;
    scores.d = *result(scored, lowering_.buffer(scored).type, i, t, queries_, keys_);
    LaunchInfo info = describe(node_);
    info.flops /= 2;
    info.label += "_scores";
    emit_matmul(lowering_, scores, info, phase_);
    LATHE_DO(emit_softmax(scored, weights));

    sums.a = *result(weights, lowering_.buffer(weights).type, i, t, queries_, keys_);
    sums.b = *v;
    auto place_out = result(out, lowering_.buffer(out).type, i, e, queries_, width);
    const bool is_direct =
        node_.bodies.empty() && place_out && lowering_.buffer(out).type.dtype == dtype_;
    const BufferId made = is_direct ? out : temporary("sums", dtype_, shape_);
    sums.d = *result(made, lowering_.buffer(made).type, i, e, queries_, width);
    info.label = describe(node_).label + "_values";
    emit_matmul(lowering_, sums, info, phase_);
    if (is_direct) return true;
    KernelContext rest(lowering_, phase_, node_.name);
    if (!node_.bodies.empty()) rest.enter(node_);
    const Value root{const_cast<Node*>(&root_), 0};
    rest.read_from(root, made, lowering_.buffer(made).type);
    const Value last = node_.bodies.empty() ? root : node_.bodies[0]->outputs[0];
    LATHE_DO(lowering_.emit_elements(
        rest, out, {"epilogue", node_.loc, 0},
        [&](std::span<const Expr> index) { return rest.element(last, index); }));
    return true;
  }

 private:
  Value operand(size_t i) const {
    return i < root_.operands.size() ? kernel_.resolve(root_.operands[i]) : Value{};
  }

  Expr variable(int64_t extent) {
    return kernel_.pool().var(kernel_.fresh_var(std::max<int64_t>(1, extent)));
  }

  BufferId temporary(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
    TensorType type{dtype, {}};
    for (int64_t extent : shape) type.shape.push_back(Dim(extent));
    const int64_t size = type.static_elements().value_or(0);
    return lowering_.add_temporary(node_.name + "_" + name, type, size, phase_);
  }

  void make_batch(const TensorType& key) {
    const size_t num_batch = shape_.size() - 2, own = key.shape.size() - 2;
    for (size_t d = 0; d < num_batch; ++d) {
      const bool is_shared = d + own >= num_batch;
      const int64_t heads = is_shared ? key.shape[d + own - num_batch].value() : 1;
      const int64_t outer = heads > 1 && heads < shape_[d] ? heads : 1, inner = shape_[d] / outer;
      Expr at = variable(inner);
      if (outer > 1) {
        vars_.push_back(variable(outer));
        extents_.push_back(outer);
        batch_.push_back(vars_.back() * kernel_.integer(inner) + at);
      } else {
        batch_.push_back(at);
      }
      vars_.push_back(at);
      extents_.push_back(inner);
    }
  }

  // Element (row, column) of a tensor, as a matrix over (m, n), which are these in some order.
  Result<std::optional<Strided>> place(Value tensor, Expr row, Expr column, Expr m, Expr n,
                                       int64_t rows, int64_t columns) {
    std::vector<Expr> index = join(batch_, row, column);
    const Shape& own = tensor.type().shape;
    index.erase(index.begin(), index.end() - static_cast<long>(own.size()));
    for (size_t d = 0; d + 2 < own.size(); ++d) {
      const int64_t heads = shape_[shape_.size() - own.size() + d], extent = own[d].value();
      if (extent == 1)
        index[d] = kernel_.integer(0);
      else if (extent < heads)
        index[d] = kernel_.simplify(loop::floor_div(index[d], kernel_.integer(heads / extent)));
    }
    return place_operand(lowering_, kernel_, tensor, index, join(vars_, m, n), rows, columns);
  }

  std::optional<Strided> result(BufferId buffer, const TensorType& type, Expr row, Expr column,
                                int64_t rows, int64_t columns) {
    return place_result(kernel_, buffer, type, join(batch_, row, column), join(vars_, row, column),
                        rows, columns);
  }

  // A row whose scores are all -inf gives zeros, as PyTorch's does.
  Status emit_softmax(BufferId scored, BufferId weights) {
    KernelContext kernel(lowering_, phase_, "softmax");
    if (!node_.bodies.empty()) kernel.enter(node_);
    const TensorType& type = lowering_.buffer(scored).type;
    const Value mask = operand(3);
    const double depth = static_cast<double>(operand(0).type().static_shape().back());
    const double scale = root_.float_attr("scale", 1 / std::sqrt(depth));
    const bool is_causal = root_.bool_attr("is_causal");
    const double least = -std::numeric_limits<double>::infinity();
    return lowering_.emit_elements(
        kernel, weights, {"softmax", node_.loc, 0}, [&](std::span<const Expr> index) {
          const Expr row = index[index.size() - 2];
          const bool is_filled = type.shape.back().value() != keys_;
          auto score = [&](Expr t, bool may_be_beyond = false) {
            std::vector<Expr> at(index.begin(), index.end());
            at.back() = t;
            Expr x = kernel.load(scored, type, at) * scale;
            if (may_be_beyond) t = loop::min(t, kernel.integer(keys_ - 1));
            if (mask) x = masked(kernel, mask, index.first(index.size() - 2), row, t, x);
            if (is_causal) x = loop::select(loop::le(t, row), x, loop::constant_like(x, least));
            return x;
          };
          const Expr most = kernel.reduce(loop::ReduceOp::max, {keys_},
                                          [&](std::span<const Expr> r) { return score(r[0]); });
          const Expr top = loop::select(loop::eq(most, loop::constant_like(most, least)),
                                        loop::constant_like(most, 0), most);
          const Expr sum = kernel.reduce(loop::ReduceOp::sum, {keys_},
                                         [&](auto r) { return loop::exp(score(r[0]) - top); });
          const Expr none = loop::constant_like(sum, 0), one = loop::constant_like(sum, 1);
          const Expr divisor = loop::select(loop::eq(sum, none), one, sum);
          return loop::exp(score(index.back(), is_filled) - top) / divisor;
        });
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  KernelContext kernel_;
  std::vector<int64_t> shape_;
  DType dtype_;
  int64_t queries_ = 1, keys_ = 1;
  std::vector<Expr> batch_;       // the index of each batch dim of the result
  std::vector<Expr> vars_;        // what strides are over
  std::vector<int64_t> extents_;  // of those
};

}  // namespace

Result<bool> lower_library_attention(Lowering& lowering, Node& node, BufferId out, Phase phase) {
  return LibraryAttention(lowering, node, phase).run(out);
}

}  // namespace lathe
