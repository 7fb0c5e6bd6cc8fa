// Matrix products for a library: operands and result as strides.
#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "ir/templates/loop_nest.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/matmul.h"
#include "passes/lowering/operand.h"

namespace lathe {
namespace {

using loop::Expr;

constexpr int64_t kRowBytes = 16;          // where rows start, in the fast kernels of libraries
constexpr int64_t kManyResults = 1 << 18;  // of halves: what a second launch is nothing beside
constexpr int64_t kLongSum = 128;          // terms that cost more than a copy of the result

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
    const Shape& shape = root_.types[0].shape;
    if (!is_float(dtype_) || a.type().dtype != dtype_ || b.type().dtype != dtype_)
      return Verdict{"its operands and result are not of one float dtype"};
    if (a.type().rank() < 2 || b.type().rank() < 2) return Verdict{"an operand is a vector"};
    spec_.batch.assign(shape.begin(), shape.end() - 2);
    spec_.m = shape[shape.size() - 2];
    spec_.n = shape.back();
    spec_.k = a.type().shape.back();
    if (spec_.k == Dim(0)) return Verdict{"its sums are of nothing"};
    if (!has_terms(lowering_, spec_.k, shape))
      return Verdict{fmt::format("its sums are of nothing where {} is 0", spec_.k.str())};
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
    LibrarySums sums{.index = vars, .vars = vars, .rows = spec_.m, .columns = spec_.n};
    sums.padded_columns = padded_columns();
    LATHE_TRY(auto result, place_sums(lowering_, kernel_, node_, sums, out));
    if (!result) return Verdict{"strides cannot say where its result goes"};
    take(*result);
    if (!spec_.epilogue.is_nothing() && !has_one_batch(spec_)) {
      sums.is_bare = true;
      LATHE_TRY(result, place_sums(lowering_, kernel_, node_, sums, out));
      if (!result) return Verdict{"strides cannot say where its sums go"};
      take(*result);
    }
    emit_matmul(lowering_, spec_, describe(node_), phase_);
    LATHE_DO(emit_rest(lowering_, node_, *result->last, spec_.d.buffer, out, phase_));
    return Verdict{};
  }

 private:
  void take(const LibraryResult& result) {
    spec_.d = result.place;
    spec_.epilogue = result.epilogue;
  }

  std::vector<Expr> all_vars(Expr row, Expr column) const {
    std::vector<Expr> vars = batch_;
    vars.push_back(row);
    vars.push_back(column);
    return vars;
  }

  // Rows of an odd number of halves start at addresses from which tensor cores are not fed: where
  // the operands' do not, a large product and a copy of it are several times faster.
  int64_t padded_columns() const {
    const int64_t step = kRowBytes / dtype_bytes(dtype_);
    if (!spec_.n.is_const()) return 0;
    const int64_t columns = spec_.n.value();
    Dim results = spec_.m * spec_.n;
    for (const Dim& extent : spec_.batch) results = results * extent;
    const bool is_large = size_at(results, lowering_.hints()) >= kManyResults &&
                          size_at(spec_.k, lowering_.hints()) >= kLongSum;
    const bool is_uneven = dtype_bytes(dtype_) == 2 && columns % step != 0;
    if (!is_large || !is_uneven || !is_even(spec_.a, step) || !is_even(spec_.b, step)) return 0;
    return (columns + step - 1) / step * step;
  }

  // Whether everything but neighbours lies whole steps apart.
  static bool is_even(const Strided& operand, int64_t step) {
    const auto is_whole = [&](const Dim& size) { return Dim::mod(size, step) == Dim(0); };
    return is_whole(operand.offset) &&
           std::all_of(operand.strides.begin(), operand.strides.end(),
                       [&](const Dim& stride) { return stride == Dim(1) || is_whole(stride); });
  }

  static bool is_shared(const Strided& operand) {
    return std::all_of(operand.strides.begin(), operand.strides.end() - 2,
                       [](const Dim& stride) { return stride == Dim(0); });
  }

  // Whether the rows of all batch elements follow each other.
  bool is_one_matrix(const Strided& operand) const {
    Dim rows = spec_.m;
    const Dim& row = operand.strides[operand.strides.size() - 2];
    for (size_t i = spec_.batch.size(); i-- > 0; rows = rows * spec_.batch[i])
      if (spec_.batch[i] != Dim(1) && operand.strides[i] != row * rows) return false;
    return true;
  }

  Result<bool> place(Value value, Expr row, Expr column, const Dim& rows, const Dim& columns,
                     Strided& into) {
    const std::vector<Expr> index = batch_index(value.type().shape, batch_, row, column);
    LATHE_TRY(std::optional<Strided> found, place_operand(lowering_, kernel_, value, index,
                                                          all_vars(row, column), rows, columns));
    if (found) into = *std::move(found);
    return found.has_value();
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

Result<Verdict> emit_library_matmul(Lowering& lowering, Node& node,
                                    std::span<const Destination> outs, Phase phase) {
  return MatmulLowering(lowering, node, phase).run(outs.front().buffer);
}

}  // namespace

KernelDef kernel_library_matmul() {
  return {
      .name = "library_matmul",
      .summary =
          "a product by the library of the target, with what the library knows of an epilogue",
      .roots = {"matmul"},
      .members = Members::epilogue,
      .needs = Needs::library,
      .takes_sizes = true,
      .emit = emit_library_matmul,
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
