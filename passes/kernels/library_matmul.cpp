// Matrix products for a library: operands and result as strides.
#include <algorithm>
#include <numeric>
#include <utility>

#include "fmt/format.h"
#include "ir/templates/loop_nest.h"
#include "passes/lowering/evening.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/matmul.h"
#include "passes/lowering/operand.h"

namespace lathe {
namespace {

using loop::Expr;

constexpr int64_t kMostParts = 16;
constexpr int64_t kRowBytes = 16;  // where rows start, in the fast kernels of libraries

// cuBLASLt's. cuDNN puts more behind a product, but makes convnext_tiny's of bf16 at 105 TFLOP/s:
// cuBLASLt and a loop take two thirds of that.
constexpr Activation kActivations[] = {Activation::relu, Activation::gelu_tanh};

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
    if (is_short()) return Verdict{"its sums are short, of a vector for each matrix of a batch"};
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

    const Evening evening = choose(a, b);
    LATHE_DO(carry_out(evening, a, b));
    const std::vector<Expr> vars = all_vars(m_, n_);
    LibrarySums sums{.index = vars, .vars = vars, .rows = spec_.m, .columns = spec_.n};
    if (evening.pads_rows) sums.padded_columns = rounded_up(spec_.n);
    sums.parts = evening.pads_rows ? num_parts(out) : 1;
    sums.is_bare = evening.fills_columns || sums.parts > 1;
    sums.activations = kActivations;
    LATHE_TRY(auto result, place_sums(lowering_, kernel_, node_, sums, out));
    if (!result) return Verdict{"strides cannot say where its result goes"};
    take(*result);
    if (!spec_.epilogue.is_nothing() && !has_one_batch(spec_)) {
      sums.is_bare = true;
      LATHE_TRY(result, place_sums(lowering_, kernel_, node_, sums, out));
      if (!result) return Verdict{"strides cannot say where its sums go"};
      take(*result);
    }
    if (sums.parts > 1) return emit_parts(evening, sums.parts, out);
    emit(evening, spec_, describe(node_));
    LATHE_DO(emit_rest(lowering_, node_, *result->last, spec_.d.buffer, out, phase_));
    return Verdict{};
  }

 private:
  // A library reads a vector for each matrix in a launch of many small ones, of operands that are
  // copied for it; a loop has such a sum in a thread.
  bool is_short() const {
    constexpr int64_t kMostTerms = 32;
    const bool has_batch = std::any_of(spec_.batch.begin(), spec_.batch.end(),
                                       [](const Dim& dim) { return dim != Dim(1); });
    return has_batch && (spec_.m == Dim(1) || spec_.n == Dim(1)) && spec_.k.is_const() &&
           spec_.k.value() <= kMostTerms;
  }

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

  int64_t step() const { return kRowBytes / dtype_bytes(dtype_); }
  int64_t rounded_up(const Dim& extent) const {
    return (extent.value() + step() - 1) / step() * step();
  }

  // Of halves: rows of an odd number of them start at addresses from which tensor cores are not
  // fed. Of extents that are sizes nothing is known.
  Evening choose(Value a, Value b) const {
    const Shape& own = b.type().shape;
    const bool are_numbers = spec_.n.is_const() && spec_.k.is_const() && own.back() == spec_.n &&
                             own[own.size() - 2] == spec_.k;
    if (dtype_bytes(dtype_) != 2 || !are_numbers) return {};
    const auto at = [&](const Dim& size) {
      return static_cast<double>(size_at(size, lowering_.hints()));
    };
    UnevenProduct product{.m = at(spec_.m), .n = at(spec_.n), .k = at(spec_.k)};
    for (const Dim& extent : spec_.batch) product.m *= at(extent);
    product.a_elements = at(a.type().num_elements());
    product.b_elements = at(b.type().num_elements());
    product.is_a_even = is_even(spec_.a, step());
    product.is_b_even = is_even(spec_.b, step());
    product.is_a_constant = lowering_.is_constant(a);
    product.is_b_constant = lowering_.is_constant(b);
    return choose_evening(product, step());
  }

  // Copies of A with its terms side by side, and of B likewise: [k, n] as columns.
  Status carry_out(const Evening& evening, Value a, Value b) {
    if (evening.copies_a) {
      TensorType type = a.type();
      type.shape.back() = rounded_up(spec_.k);
      type.layout = {};
      LATHE_DO(copy_evenly(a, type));
      LATHE_TRY(const bool is_placed, place(a, m_, k_, spec_.m, spec_.k, spec_.a));
      LATHE_CHECK(is_placed, "a copy of rows that strides cannot say");
    }
    if (evening.copies_b) {
      TensorType type = b.type();
      const size_t rank = type.shape.size();
      type.shape[rank - 2] = rounded_up(spec_.k);
      if (evening.fills_columns) type.shape[rank - 1] = rounded_up(spec_.n);
      type.layout.resize(rank);
      std::iota(type.layout.begin(), type.layout.end(), 0);
      std::swap(type.layout[rank - 2], type.layout[rank - 1]);
      LATHE_DO(copy_evenly(b, type));
      LATHE_TRY(const bool is_placed, place(b, k_, n_, spec_.k, spec_.n, spec_.b));
      LATHE_CHECK(is_placed, "a copy of columns that strides cannot say");
    }
    if (evening.copies_a) spec_.k = rounded_up(spec_.k);
    return Ok{};
  }

  Status copy_evenly(Value value, const TensorType& type) {
    const Phase phase = lowering_.phase_of(value, phase_);
    LATHE_TRY(const BufferId copy,
              copy_filled_up(lowering_, node_, value, type, "filled_up", phase));
    kernel_.read_from(value, copy, type);
    return Ok{};
  }

  // Into how many equal parts of its divided dim a result is made whose rows are padded, so that
  // those rows take little memory beside it.
  int64_t num_parts(BufferId out) const {
    constexpr int64_t kMostBytes = 64 << 20;
    const TensorType& type = lowering_.buffer(out).type;
    const std::optional<int64_t> elements = type.static_elements();
    if (!node_.bodies.empty() || !elements || !type.layout.empty()) return 1;
    const int64_t divided = type.shape[divided_dim(type.shape)].value();
    int64_t parts = 1;
    for (int64_t count = 2; count <= std::min<int64_t>(divided, kMostParts); ++count) {
      if (*elements / parts * dtype_bytes(dtype_) <= kMostBytes) break;
      const bool is_even = *elements / count % (kBufferAlignment / dtype_bytes(dtype_)) == 0;
      if (divided % count == 0 && is_even) parts = count;
    }
    return parts;
  }

  // Sums of one part at a time, in the same buffer.
  Result<Verdict> emit_parts(const Evening& evening, int64_t parts, BufferId out) {
    MatmulSpec part = spec_;
    const size_t dim = divided_dim(root_.types[0].shape);
    const bool is_batch = dim < part.batch.size();
    Dim& divided = is_batch ? part.batch[dim] : part.m;
    divided = Dim::floor_div(divided, parts);
    LaunchInfo info = describe(node_);
    info.flops = Dim::floor_div(info.flops, parts);
    for (int64_t i = 0; i < parts; ++i) {
      emit(evening, part, info);
      LATHE_DO(emit_part(lowering_, node_, part.d.buffer, out, i, phase_));
      part.a.offset = part.a.offset + part.a.strides[dim] * divided;
      if (is_batch) part.b.offset = part.b.offset + part.b.strides[dim] * divided;
    }
    return Verdict{};
  }

  void emit(const Evening& evening, MatmulSpec spec, LaunchInfo info) {
    const int64_t columns = evening.pads_rows ? spec.n.value() : 0;
    if (evening.fills_columns) spec.n = rounded_up(spec.n);
    const int64_t over = evening.pads_rows && !evening.fills_columns ? columns % step() : 0;
    if (over == 0) return emit_matmul(lowering_, spec, info, phase_);
    const Dim flops = info.flops;
    MatmulSpec part = std::move(spec);
    part.n = columns - over;
    info.flops = Dim::floor_div(flops * part.n, columns);
    emit_matmul(lowering_, part, info, phase_);
    const int64_t first = columns - over;
    part.n = over;
    part.b.offset = part.b.offset + part.b.strides.back() * first;
    part.d.offset = part.d.offset + Dim(first);
    if (part.epilogue.bias) part.epilogue.bias->offset = part.epilogue.bias->offset + Dim(first);
    info.flops = Dim::floor_div(flops * over, columns);
    info.label += "_last_columns";
    emit_matmul(lowering_, part, info, phase_);
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
