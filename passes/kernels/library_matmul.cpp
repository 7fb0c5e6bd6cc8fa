// Matrix products for a library: operands as strides, batch dims merged.
#include <algorithm>
#include <utility>

#include "passes/lowering/kernel_def.h"
#include "passes/lowering/library.h"

namespace lathe {
namespace {

using loop::Expr;

// A dim of the batch with the strides of every operand along it.
struct BatchDim {
  int64_t extent;
  std::vector<int64_t> strides;
};

class MatmulBatch {
 public:
  explicit MatmulBatch(const MatmulSpec& spec) : operands_{&spec.a, &spec.b, &spec.d} {
    if (spec.epilogue.residual) operands_.push_back(&*spec.epilogue.residual);
    for (size_t i = 0; i < spec.batch.size(); ++i) {
      if (spec.batch[i] == 1) continue;
      BatchDim dim{spec.batch[i], {}};
      for (const Strided* operand : operands_) dim.strides.push_back(operand->strides[i]);
      if (!dims_.empty() && follows(dims_.back(), dim))
        dims_.back() = {dims_.back().extent * dim.extent, dim.strides};
      else
        dims_.push_back(std::move(dim));
    }
  }

  // The innermost dim joins the rows when they go on in it, and all of it reads one B.
  bool join_rows(MatmulSpec& spec) {
    constexpr size_t kB = 1;
    if (dims_.empty() || dims_.back().strides[kB] != 0) return false;
    for (size_t i = 0; i < operands_.size(); ++i)
      if (i != kB && dims_.back().strides[i] != row_stride(i) * spec.m) return false;
    spec.m *= dims_.back().extent;
    dims_.pop_back();
    return true;
  }

  const std::vector<BatchDim>& dims() const { return dims_; }

 private:
  int64_t row_stride(size_t operand) const {
    const std::vector<int64_t>& strides = operands_[operand]->strides;
    return strides[strides.size() - 2];
  }

  static bool follows(const BatchDim& outer, const BatchDim& inner) {
    for (size_t i = 0; i < outer.strides.size(); ++i)
      if (outer.strides[i] != inner.strides[i] * inner.extent) return false;
    return true;
  }

  std::vector<const Strided*> operands_;  // a, b, d and perhaps the residual
  std::vector<BatchDim> dims_;
};

CallTensor operand_of(const Strided& operand, size_t index, const std::vector<BatchDim>& dims,
                      int64_t rows, int64_t columns) {
  CallTensor tensor{operand.buffer, operand.offset, {}, {}};
  for (const BatchDim& dim : dims) {
    tensor.shape.push_back(dim.extent);
    tensor.strides.push_back(dim.strides[index]);
  }
  tensor.shape.insert(tensor.shape.end(), {rows, columns});
  tensor.strides.insert(tensor.strides.end(), operand.strides.end() - 2, operand.strides.end());
  return tensor;
}

class MatmulLowering {
 public:
  MatmulLowering(Lowering& lowering, Node& node, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(*root_of(node)),
        phase_(phase),
        kernel_(lowering, node, phase),
        dtype_(root_.types[0].dtype) {}

  Result<Verdict> run(BufferId out) {
    const Value a = kernel_.resolve(root_.operands[0]), b = kernel_.resolve(root_.operands[1]);
    const std::vector<int64_t> shape = root_.types[0].static_shape();
    if (!is_float(dtype_) || a.type().dtype != dtype_ || b.type().dtype != dtype_)
      return Verdict{"its operands and result are not of one float dtype"};
    if (a.type().rank() < 2 || b.type().rank() < 2) return Verdict{"an operand is a vector"};
    if (lowering_.buffer(out).num_bytes == 0) return Verdict{"it has no elements"};
    spec_.batch.assign(shape.begin(), shape.end() - 2);
    spec_.m = shape[shape.size() - 2];
    spec_.n = shape.back();
    spec_.k = a.type().static_shape().back();
    if (spec_.k == 0) return Verdict{"its sums are of nothing"};
    batch_ = kernel_.variables(spec_.batch);
    m_ = kernel_.variable(spec_.m);
    n_ = kernel_.variable(spec_.n);
    k_ = kernel_.variable(spec_.k);
    LATHE_TRY(bool has_a, place(a, m_, k_, spec_.m, spec_.k, spec_.a));
    LATHE_TRY(const bool has_b, place(b, k_, n_, spec_.k, spec_.n, spec_.b));
    // One product of all rows beats one for each element of the batch.
    if (has_a && has_b && is_shared(spec_.b) && !is_one_matrix(spec_.a)) {
      LATHE_DO(copy_operand(lowering_, kernel_, a));
      LATHE_TRY(has_a, place(a, m_, k_, spec_.m, spec_.k, spec_.a));
    }
    if (!has_a || !has_b) return Verdict{"strides cannot say where an operand lies"};

    const std::vector<Expr> vars = all_vars(m_, n_);
    spec_.epilogue = claim_epilogue(kernel_, node_, vars, vars, n_, spec_.n);
    const size_t members = node_.bodies.empty() ? 1 : node_.bodies[0]->nodes.size();
    if (spec_.epilogue.num_claimed == members && lowering_.buffer(out).type.dtype == dtype_ &&
        place_sums(out, lowering_.buffer(out).type)) {
      emit_matmul(lowering_, spec_, describe(node_), phase_);
      return Verdict{};
    }
    return emit_with_rest(out);
  }

 private:
  std::vector<Expr> all_vars(Expr row, Expr column) const {
    std::vector<Expr> vars = batch_;
    vars.push_back(row);
    vars.push_back(column);
    return vars;
  }

  static bool is_shared(const Strided& operand) {
    return std::all_of(operand.strides.begin(), operand.strides.end() - 2,
                       [](int64_t stride) { return stride == 0; });
  }

  // Whether the rows of all batch elements follow each other.
  bool is_one_matrix(const Strided& operand) const {
    int64_t rows = spec_.m;
    const int64_t row = operand.strides[operand.strides.size() - 2];
    for (size_t i = spec_.batch.size(); i-- > 0; rows *= spec_.batch[i])
      if (spec_.batch[i] != 1 && operand.strides[i] != row * rows) return false;
    return true;
  }

  // Dims of extent 1 are broadcast.
  Result<bool> place(Value value, Expr row, Expr column, int64_t rows, int64_t columns,
                     Strided& into) {
    const TensorType& type = value.type();
    std::vector<Expr> index;
    const size_t own = type.shape.size() - 2;
    for (size_t i = 0; i < own; ++i) {
      const bool is_broadcast = type.shape[i] == Dim(1);
      index.push_back(is_broadcast ? kernel_.integer(0) : batch_[batch_.size() - own + i]);
    }
    index.push_back(row);
    index.push_back(column);
    LATHE_TRY(std::optional<Strided> found, place_operand(lowering_, kernel_, value, index,
                                                          all_vars(row, column), rows, columns));
    if (found) into = *std::move(found);
    return found.has_value();
  }

  bool place_sums(BufferId buffer, const TensorType& type) {
    std::optional<Strided> place = place_result(kernel_, buffer, type, spec_.epilogue.index,
                                                all_vars(m_, n_), spec_.m, spec_.n);
    if (place) spec_.d = *std::move(place);
    return place.has_value();
  }

  const Node& claimed_node() const {
    return node_.bodies.empty() ? root_ : *node_.bodies[0]->nodes[spec_.epilogue.num_claimed - 1];
  }

  // The product and what goes with it into a buffer, the rest of the body in a loop.
  Result<Verdict> emit_with_rest(BufferId out) {
    BufferId sums = -1;
    TensorType type;
    // Less and less of the epilogue, until strides can say where the result goes.
    for (size_t most = spec_.epilogue.num_claimed;; --most) {
      if (most == 0) return Verdict{"strides cannot say where its result goes"};
      const std::vector<Expr> vars = all_vars(m_, n_);
      spec_.epilogue = claim_epilogue(kernel_, node_, vars, vars, n_, spec_.n, {}, most);
      type = claimed_node().types[0];
      type.layout.clear();
      if (!place_sums(sums, type)) continue;
      sums = lowering_.add_temporary(node_.name + "_sums", type, type.static_elements().value_or(0),
                                     phase_);
      spec_.d.buffer = sums;
      break;
    }
    const Node& last = claimed_node();
    emit_matmul(lowering_, spec_, describe(node_), phase_);
    LATHE_DO(emit_rest(lowering_, node_, last, sums, out, phase_));
    return Verdict{};
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  KernelContext kernel_;
  DType dtype_;
  MatmulSpec spec_;
  std::vector<Expr> batch_;
  Expr m_, n_, k_;
};

Result<Verdict> emit(Lowering& lowering, Node& node, BufferId out, Phase phase) {
  return MatmulLowering(lowering, node, phase).run(out);
}

}  // namespace

void emit_matmul(Lowering& lowering, MatmulSpec spec, const LaunchInfo& info, Phase phase) {
  MatmulBatch batch(spec);
  while (batch.join_rows(spec)) {
  }
  const std::vector<BatchDim>& dims = batch.dims();
  MatmulCall call;
  call.a = operand_of(spec.a, 0, dims, spec.m, spec.k);
  call.b = operand_of(spec.b, 1, dims, spec.k, spec.n);
  call.d = operand_of(spec.d, 2, dims, spec.m, spec.n);
  const LibraryEpilogue& epilogue = spec.epilogue;
  if (epilogue.bias)
    call.epilogue.bias = CallTensor{epilogue.bias->buffer, epilogue.bias->offset, {spec.n}, {1}};
  if (epilogue.residual)
    call.epilogue.residual = operand_of(*epilogue.residual, 3, dims, spec.m, spec.n);
  call.epilogue.activation = epilogue.activation;
  lowering.emit_library(std::move(call), info, phase);
}

KernelDef kernel_library_matmul() {
  return {
      .name = "library_matmul",
      .summary =
          "a product by the library of the target, with what the library knows of an epilogue",
      .roots = {"matmul"},
      .members = Members::epilogue,
      .needs = Needs::library,
      .emit = emit,
      .example = R"(
func @main(%x: f32[40, 64], %w: f32[64, 48]) -> f32[40, 48] {
  %0 = matmul(%x, %w)
  return %0
}
)",
      .isa = "sm_90",
  };
}

}  // namespace lathe
