// Factorizations and what belongs to them: operands and results of whole matrices as expressions
// for the template of their steps.
#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/templates/factorize.h"
#include "ir/templates/factorize_complex.h"
#include "ir/templates/spectrum.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"

namespace lathe {
namespace {

using loop::Expr;
using Index = MatrixSpec::Index;

class MatrixLowering {
 public:
  MatrixLowering(Lowering& lowering, Node& node, Phase phase)
      : lowering_(lowering), node_(node), phase_(phase), kernel_(lowering, node, phase) {}

  static std::vector<std::string> ops();

  Result<Verdict> run(BufferId out) {
    const TensorType& type = lowering_.buffer(out).type;
    const Shape& given = node_.operands[0].type().shape;
    const MatrixKind& kind =
        *std::find_if(std::begin(kKinds), std::end(kKinds),
                      [&](const MatrixKind& own) { return own.op == node_.op->name; });
    const size_t behind = kind.num_dims;
    spec_.batch.assign(given.begin(), given.end() - static_cast<int64_t>(behind));
    spec_.results.assign(type.shape.begin() + static_cast<int64_t>(spec_.batch.size()),
                         type.shape.end());
    spec_.dtype = node_.types[0].dtype;
    spec_.initial = [&](Index batch, Expr row, size_t, Expr column) {
      return element(0, batch, {row, column});
    };
    const Dim m = behind == 1 ? Dim(1) : given[spec_.batch.size()];
    const Dim n = given[given.size() - (behind == 3 ? 2 : 1)];
    spec_.rows = m;
    spec_.parts = {n};
    (this->*kind.prepare)(m, n);
    const loop::BufferRef buffer = kernel_.use(out, true);
    spec_.result = [&](MatrixSteps& steps, Index batch, Index at) {
      std::vector<Expr> index(batch.begin(), batch.end());
      index.insert(index.end(), at.begin(), at.end());
      const Expr value = (this->*kind.value)(steps, at, index);
      return ResultElement{buffer, kernel_.address(type, index), loop::cast(value, type.dtype)};
    };
    spec_.global_workspace = [&](const Dim& size) {
      const BufferId workspace =
          lowering_.add_temporary(node_, "_workspace", {spec_.dtype, {size}}, size, phase_);
      return kernel_.use(workspace, true);
    };
    build_matrix_steps(kernel_.kernel(), spec_, lowering_.target());
    if (kernel_.error()) return *kernel_.error();
    LATHE_DO(lowering_.emit_kernel(kernel_.kernel(), kernel_.buffers(), describe(node_), phase_));
    return Verdict{};
  }

 private:
  Expr element(size_t operand, Index batch, std::initializer_list<Expr> place) {
    std::vector<Expr> index(batch.begin(), batch.end());
    index.insert(index.end(), place.begin(), place.end());
    return kernel_.element(node_.operands[operand], index);
  }

  // What differs between the ops: how the workspace is filled and worked on, and which element of
  // it stands at a place of the result.
  struct MatrixKind {
    std::string_view op;
    void (MatrixLowering::*prepare)(const Dim& m, const Dim& n);
    Expr (MatrixLowering::*value)(MatrixSteps& steps, Index at, std::vector<Expr>& index);
    size_t num_dims = 2;  // of the first operand, behind those of the batch
  };
  static const MatrixKind kKinds[11];

  void set_cholesky(const Dim&, const Dim&) {
    if (!node_.bool_attr("upper")) turn_operand();
    spec_.is_in_strips = true;
    spec_.steps = [](MatrixSteps& steps, Index) { cholesky_steps(steps); };
  }

  void set_ldl(const Dim&, const Dim&) {
    turn_operand();
    spec_.spare_rows = 1;  // of pivots
    spec_.steps = [](MatrixSteps& steps, Index) { ldl_steps(steps); };
  }

  void set_lu(const Dim& m, const Dim& n) {
    spec_.spare_rows = 2;  // of pivots and of the steps
    spec_.is_in_strips = true;
    spec_.steps = [this, m, n](MatrixSteps& steps, Index) {
      lu_steps(steps, Dim::min(m, n), node_.bool_attr("pivot"));
    };
  }

  void set_householder(const Dim& m, const Dim& n) {
    turn_operand();
    spec_.rows = n;
    spec_.parts = {m};
    spec_.spare_rows = kBlockRows + 1;
    spec_.steps = [m, n](MatrixSteps& steps, Index) {
      householder_steps(steps, steps.pool().size(Dim::min(m, n)), steps.rows(),
                        {[](Expr column) { return column; }});
    };
  }

  // Pairs apart: real parts, and behind them imaginary ones.
  void set_complex_lu(const Dim& m, const Dim& n) {
    spec_.parts = {n, n};
    spec_.spare_rows = 1;  // of pivots
    spec_.initial = [&](Index batch, Expr row, size_t part, Expr column) {
      return element(0, batch, {row, column, part_number(part)});
    };
    spec_.steps = [this, m, n](MatrixSteps& steps, Index) {
      complex_lu_steps(steps, Dim::min(m, n), node_.bool_attr("pivot"));
    };
  }

  // Columns lie as rows.
  void set_complex_householder(const Dim& m, const Dim& n) {
    spec_.rows = n;
    spec_.parts = {m, m, kReflectionNumbers};
    spec_.spare_rows = kReflectionRows;
    spec_.initial = [&](Index batch, Expr row, size_t part, Expr column) {
      if (part == 2) return kernel_.pool().number(0, spec_.dtype);
      return element(0, batch, {column, row, part_number(part)});
    };
    spec_.steps = [this, m, n](MatrixSteps& steps, Index) {
      complex_householder_steps(steps, {m, n, static_cast<ReflectedForm>(node_.int_attr("form"))});
    };
  }

  Expr part_number(size_t part) { return kernel_.pool().integer(static_cast<int64_t>(part)); }

  // Columns of the operand lie as rows.
  void turn_operand() {
    spec_.initial = [&](Index batch, Expr row, size_t, Expr column) {
      return element(0, batch, {column, row});
    };
  }

  bool has_threads() const { return lowering_.target().groups.has_value(); }

  // Workspaces of a spectrum: `size` columns that lie as rows, of `length`, which are more than
  // the operand has; in a part behind, the identity, if there is to be one; then numbers.
  void set_spectrum(const Dim& size, const Dim& length, bool has_identity,
                    std::function<Expr(Index batch, Expr row, Expr column)> given) {
    constexpr int64_t kVectorsAtOnce = 4;
    spec_.wide = kVectorsAtOnce;
    spec_.rows = size;
    spec_.spare_rows = kSpectrumRows;
    spec_.parts = {length};
    if (has_identity) spec_.parts.push_back(size);
    spec_.parts.push_back(kSpectrumNumbers);
    spec_.initial = [this, given = std::move(given)](Index batch, Expr row, size_t part,
                                                     Expr column) {
      loop::Pool& pool = kernel_.pool();
      const Expr none = pool.number(0, spec_.dtype);
      if (part + 1 == spec_.parts.size()) return none;
      if (part == 1) return loop::select(loop::eq(row, column), pool.number(1, spec_.dtype), none);
      return given(batch, row, column);
    };
  }

  // Rows of zeros below, until there are as many as columns.
  void set_svd(const Dim& m, const Dim& n) {
    set_spectrum(n, Dim::max(m, n), node_.bool_attr("vectors"),
                 [this, m, n](Index batch, Expr row, Expr column) {
                   if (m == Dim::max(m, n)) return element(0, batch, {column, row});
                   const Expr is_there = loop::lt(column, kernel_.pool().size(m));
                   const Expr zero = kernel_.pool().integer(0);
                   const Expr x = element(0, batch, {loop::select(is_there, column, zero), row});
                   return loop::select(is_there, x, loop::constant_like(x, 0));
                 });
    spec_.steps = [n](MatrixSteps& steps, Index) { svd_steps(steps, n); };
  }

  void set_eigh(const Dim&, const Dim& n) {
    const auto whole = [this](Index batch, Expr row, Expr column) {
      const Expr least = loop::min(row, column), most = loop::max(row, column);
      if (node_.bool_attr("upper")) return element(0, batch, {least, most});
      return element(0, batch, {most, least});
    };
    set_spectrum(n, n, has_threads(), whole);
    spec_.steps = [this, n, whole](MatrixSteps& steps, Index batch) {
      eigh_steps(steps, {n, node_.bool_attr("vectors"),
                         [&](Expr row, Expr column) { return whole(batch, row, column); }});
    };
  }

  void set_right() {
    spec_.parts = {node_.operands[1].type().shape.back()};
    spec_.initial = [&](Index batch, Expr row, size_t, Expr column) {
      return element(1, batch, {row, column});
    };
  }

  // Products of rows, which are long enough then, read A in vectors; that is not cheap everywhere.
  bool has_few_columns() const {
    constexpr int64_t kFew = 2, kLong = 64;
    const Dim& rows = node_.operands[1].type().shape.end()[-2];
    if (rows.is_const() && rows.value() < kLong) return false;
    const Dim& columns = node_.operands[1].type().shape.back();
    const Target& target = lowering_.target();
    return columns.is_const() && columns.value() <= kFew && target.has_masked_memory &&
           !target.groups;
  }

  // Of an upper triangle the last row is the first one.
  Expr row_of_triangle(Expr row) {
    return node_.bool_attr("upper") ? kernel_.pool().size(spec_.rows - Dim(1)) - row : row;
  }

  void set_triangle(const Dim& m, const Dim&) {
    set_right();
    spec_.is_in_strips = !has_few_columns();
    if (has_few_columns()) {
      spec_.rows = spec_.parts[0];
      spec_.parts = {m};
    }
    spec_.initial = [&](Index batch, Expr row, size_t, Expr column) {
      if (has_few_columns()) return element(1, batch, {column, row});
      return element(1, batch, {row_of_triangle(row), column});
    };
    spec_.steps = [this](MatrixSteps& steps, Index batch) {
      triangular_steps(
          steps, {node_.bool_attr("upper"), has_few_columns(), node_.bool_attr("unitriangular"),
                  [&](Expr row, Expr column) { return element(0, batch, {row, column}); }});
    };
  }

  void set_ldl_solve(const Dim&, const Dim&) {
    set_right();
    spec_.steps = [this](MatrixSteps& steps, Index batch) {
      ldl_solve_steps(steps,
                      {[&](Expr row, Expr column) { return element(0, batch, {row, column}); },
                       [&](Expr i) { return loop::cast(element(2, batch, {i}), DType::i64); }});
    };
  }

  void set_swaps(const Dim&, const Dim& size) {
    spec_.initial = [&](Index batch, Expr, size_t, Expr column) {
      return element(0, batch, {column});
    };
    const Dim count = Dim::min(size, node_.operands[1].type().shape.back());
    spec_.steps = [this, count](MatrixSteps& steps, Index batch) {
      swap_steps(steps, count,
                 [&](Expr i) { return loop::cast(element(1, batch, {i}), DType::i64); });
    };
  }

  Expr plain(MatrixSteps& steps, Index at, std::vector<Expr>&) { return steps.at(at[0], at[1]); }
  Expr of_triangle(MatrixSteps& steps, Index at, std::vector<Expr>&) {
    if (has_few_columns()) return steps.at(at[1], at[0]);
    return steps.at(row_of_triangle(at[0]), at[1]);
  }
  // The row of pivots stands behind the others.
  Expr with_pivots(MatrixSteps& steps, Index at, std::vector<Expr>&) {
    const Expr is_pivot = loop::eq(at[0], steps.rows());
    return steps.at(loop::select(is_pivot, steps.spare(0), at[0]), at[1]);
  }
  Expr pairs_with_pivots(MatrixSteps& steps, Index at, std::vector<Expr>&) {
    const Expr is_pivot = loop::eq(at[0], steps.rows());
    const Expr column = at[1] + at[2] * steps.begin(1);
    return steps.at(loop::select(is_pivot, steps.spare(0), at[0]), column);
  }
  // The numbers of reflections stand behind the rows that there are.
  Expr pairs_with_reflections(MatrixSteps& steps, Index at, std::vector<Expr>&) {
    const Expr behind = at[0] - steps.end(0), two = kernel_.pool().integer(2);
    const Expr is_number = loop::le(kernel_.pool().integer(0), behind);
    const Expr number = steps.begin(2) + behind * two + at[2];
    const Expr element = at[0] + at[2] * steps.begin(1);
    return steps.at(at[1], loop::select(is_number, number, element));
  }
  Expr turned(MatrixSteps& steps, Index at, std::vector<Expr>&) { return steps.at(at[1], at[0]); }
  Expr first_row(MatrixSteps& steps, Index at, std::vector<Expr>&) {
    return steps.at(kernel_.pool().integer(0), at[0]);
  }

  Expr triangle(MatrixSteps& steps, Index at, std::vector<Expr>&) {
    const bool is_upper = node_.bool_attr("upper");
    const Expr row = at[is_upper ? 0 : 1], column = at[is_upper ? 1 : 0];
    return loop::select(loop::le(row, column), steps.at(row, column), steps.number(0));
  }

  // The pivots are whole, of the rest one triangle, whose columns lie as rows.
  Expr triangle_with_pivots(MatrixSteps& steps, Index at, std::vector<Expr>&) {
    const Expr is_pivot = loop::eq(at[0], steps.end(0)), is_there = loop::le(at[1], at[0]);
    const Expr row = loop::select(is_pivot, at[0], at[1]);
    const Expr x = steps.at(row, loop::select(is_pivot, at[1], at[0]));
    return loop::select(loop::logical_or(is_there, is_pivot), x, steps.number(0));
  }

  // Vectors above values, in order; `index` is where.
  Expr ordered(MatrixSteps& steps, Index at, std::vector<Expr>& index) {
    const Expr row = at.back(), value = steps.begin(steps.num_parts() - 1);
    index.back() = loop::cast(steps.at(row, value + kernel_.pool().integer(1)), DType::i64);
    if (at.size() == 1) return steps.at(row, value);
    const Dim num_vectors = spec_.results[0] - Dim(1);
    Expr place = steps.begin(steps.num_parts() - 2) + at[0];
    if (node_.op->name == "svd") {  // of U and then of V
      const Expr m = kernel_.pool().size(num_vectors - spec_.results[1]);
      place = loop::select(loop::lt(at[0], m), at[0], at[0] - m + steps.begin(1));
    }
    const Expr is_vector = loop::lt(at[0], kernel_.pool().size(num_vectors));
    return steps.at(row, loop::select(is_vector, place, value));
  }

  Lowering& lowering_;
  Node& node_;
  Phase phase_;
  KernelContext kernel_;
  MatrixSpec spec_;
};

using Made = MatrixLowering;
const Made::MatrixKind Made::kKinds[] = {
    {"cholesky", &Made::set_cholesky, &Made::triangle},
    {"complex_householder", &Made::set_complex_householder, &Made::pairs_with_reflections, 3},
    {"complex_lu", &Made::set_complex_lu, &Made::pairs_with_pivots, 3},
    {"eigh", &Made::set_eigh, &Made::ordered},
    {"householder", &Made::set_householder, &Made::turned},
    {"ldl", &Made::set_ldl, &Made::triangle_with_pivots},
    {"ldl_solve", &Made::set_ldl_solve, &Made::plain},
    {"lu", &Made::set_lu, &Made::with_pivots},
    {"svd", &Made::set_svd, &Made::ordered},
    {"swapped", &Made::set_swaps, &Made::first_row, 1},
    {"triangular_solve", &Made::set_triangle, &Made::of_triangle},
};

std::vector<std::string> MatrixLowering::ops() {
  std::vector<std::string> names;
  for (const MatrixKind& kind : kKinds) names.emplace_back(kind.op);
  return names;
}

Result<Verdict> emit_matrix(Lowering& lowering, Node& node, std::span<const Destination> outs,
                            Phase phase) {
  if (!node.bodies.empty()) return Verdict{"it takes no other members"};
  return MatrixLowering(lowering, node, phase).run(outs.front().buffer);
}

}  // namespace

KernelDef kernel_matrix() {
  return {
      .name = "matrix",
      .summary = "whole matrices, one step after another, each in a workspace of its own",
      .roots = MatrixLowering::ops(),
      .members = Members::epilogue,
      .needs = Needs::any,
      .takes_sizes = true,
      .emit = emit_matrix,
      .example = R"(
func @main(%a: f32[3, 9, 7]) -> f32[3, 10, 7] {
  %0 = lu(%a)
  return %0
}
)",
  };
}

}  // namespace lathe
