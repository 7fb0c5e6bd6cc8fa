// Factorizations and what belongs to them: operands and results of whole matrices as expressions
// for the template of their steps.
#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "ir/templates/factorize.h"
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
    const Dim m = behind == 2 ? given[given.size() - 2] : Dim(1), n = given.back();
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
  static const MatrixKind kKinds[8];

  void set_cholesky(const Dim&, const Dim&) {
    if (!node_.bool_attr("upper")) turn_operand();
    spec_.steps = [](MatrixSteps& steps, Index) { cholesky_steps(steps); };
  }

  void set_ldl(const Dim& m, const Dim&) {
    leave_row(m);
    spec_.steps = [](MatrixSteps& steps, Index) { ldl_steps(steps); };
  }

  void set_lu(const Dim& m, const Dim& n) {
    leave_row(m);
    spec_.steps = [this, m, n](MatrixSteps& steps, Index) {
      lu_steps(steps, Dim::min(m, n), node_.bool_attr("pivot"));
    };
  }

  void set_householder(const Dim& m, const Dim& n) {
    turn_operand();
    spec_.rows = n;
    spec_.parts = {m};
    spec_.steps = [m, n](MatrixSteps& steps, Index) { householder_steps(steps, Dim::min(m, n)); };
  }

  // Room for pivots behind the last row.
  void leave_row(const Dim& m) {
    spec_.rows = m + Dim(1);
    spec_.initial = [this, m](Index batch, Expr row, size_t, Expr column) {
      const Expr rows = kernel_.pool().size(m), first = kernel_.pool().integer(0);
      const Expr inside = loop::lt(row, rows);
      const Expr x = element(0, batch, {loop::select(inside, row, first), column});
      return loop::select(inside, x, loop::constant_like(x, 0));
    };
  }

  // Columns of the operand lie as rows.
  void turn_operand() {
    spec_.initial = [&](Index batch, Expr row, size_t, Expr column) {
      return element(0, batch, {column, row});
    };
  }

  void set_jacobi(const Dim& m, const Dim& n) {
    spec_.rows = n;
    spec_.parts = {m, Dim(2)};  // with the length of each column, and its place in order
    if (node_.bool_attr("vectors")) spec_.parts = {m, n, Dim(2)};
    spec_.initial = [this](Index batch, Expr row, size_t part, Expr column) {
      if (part == 0) return element(0, batch, {column, row});
      loop::Pool& pool = kernel_.pool();
      if (part + 1 == spec_.parts.size()) return pool.number(0, spec_.dtype);
      return loop::select(loop::eq(row, column), pool.number(1, spec_.dtype),
                          pool.number(0, spec_.dtype));
    };
    spec_.steps = [](MatrixSteps& steps, Index) { jacobi_steps(steps); };
  }

  void set_triangle(const Dim&, const Dim&) {
    const Shape& right = node_.operands[1].type().shape;
    spec_.parts = {right.back()};
    spec_.initial = [&](Index batch, Expr row, size_t, Expr column) {
      return element(1, batch, {row, column});
    };
    spec_.steps = [this](MatrixSteps& steps, Index batch) {
      triangular_steps(steps,
                       {node_.bool_attr("upper"), node_.bool_attr("unitriangular"),
                        [&](Expr row, Expr column) { return element(0, batch, {row, column}); }});
    };
  }

  void set_ldl_solve(const Dim& m, const Dim& n) {
    set_triangle(m, n);
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
  Expr turned(MatrixSteps& steps, Index at, std::vector<Expr>&) { return steps.at(at[1], at[0]); }
  Expr first_row(MatrixSteps& steps, Index at, std::vector<Expr>&) {
    return steps.at(kernel_.pool().integer(0), at[0]);
  }

  Expr triangle(MatrixSteps& steps, Index at, std::vector<Expr>&) {
    const bool is_upper = node_.bool_attr("upper");
    const Expr row = at[is_upper ? 0 : 1], column = at[is_upper ? 1 : 0];
    return loop::select(loop::le(row, column), steps.at(row, column), steps.number(0));
  }

  // The pivots are whole, of the rest one triangle.
  Expr triangle_with_pivots(MatrixSteps& steps, Index at, std::vector<Expr>&) {
    return loop::select(loop::logical_or(loop::le(at[1], at[0]), loop::eq(at[0], steps.end(0))),
                        steps.at(at[0], at[1]), steps.number(0));
  }

  // In order; `index` is where.
  Expr ordered(MatrixSteps& steps, Index at, std::vector<Expr>& index) {
    const Expr column = at.back(), own = steps.begin(steps.num_parts() - 1);
    index.back() = loop::cast(steps.at(column, own + kernel_.pool().integer(1)), DType::i64);
    if (at.size() == 1) return steps.at(column, own);
    // U S above V: the second part begins at a whole vector.
    const Expr m = steps.end(0);
    const Expr place = loop::select(loop::lt(at[0], m), at[0], at[0] - m + steps.begin(1));
    return steps.at(column, place);
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
    {"householder", &Made::set_householder, &Made::turned},
    {"jacobi_svd", &Made::set_jacobi, &Made::ordered},
    {"ldl", &Made::set_ldl, &Made::triangle_with_pivots},
    {"ldl_solve", &Made::set_ldl_solve, &Made::plain},
    {"lu", &Made::set_lu, &Made::plain},
    {"swapped", &Made::set_swaps, &Made::first_row, 1},
    {"triangular_solve", &Made::set_triangle, &Made::plain},
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
