// Whole matrices, step by step: what a factorization does after it has read all of one matrix and
// before it writes a result.
//
// Each matrix of a batch lies in a workspace, row after row, and its steps run in order. Where
// vectors are registers, rows are walked in vectors; each row has zeros behind it, so that no
// vector is masked. Where threads share vectors, a group of threads has the matrix, and what `each`
// and `across` walk is spread over them, with a barrier before and behind.
//
// Not a library's routines: Lathe runs where there is none, in a page and in a bare system.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/target/target.h"
#include "ir/templates/contraction.h"

namespace lathe {

class MatrixSteps;

struct MatrixSpec {
  using Index = std::span<const loop::Expr>;
  std::vector<Dim> batch;  // dims in which matrices differ; may be empty
  Dim rows = 1;            // of the workspace
  std::vector<Dim> parts;  // its columns; each part begins at a whole vector
  DType dtype = DType::f32;
  // What an element is before the first step.
  std::function<loop::Expr(Index batch, loop::Expr row, size_t part, loop::Expr column)> initial;
  std::function<void(MatrixSteps& steps, Index batch)> steps;
  // Writes results behind the last step: as stores of `at` at these elements.
  std::vector<Dim> results;  // extents
  std::function<ResultElement(MatrixSteps& steps, Index batch, Index at)> result;
  // A buffer of so many elements, for the workspaces of all matrices: where threads share one, and
  // where one is large.
  std::function<loop::BufferRef(const Dim& num_elements)> global_workspace;
};

// Appends the body to `kernel`, which has its buffers.
void build_matrix_steps(loop::Kernel& kernel, const MatrixSpec& spec, const Target& target);

// What steps are written with. Rows and columns are those of the workspace.
class MatrixSteps {
 public:
  using Fill = std::function<void(loop::Expr i)>;

  MatrixSteps(loop::Kernel& kernel, const MatrixSpec& spec, const Target& target);

  loop::Pool& pool() const { return *kernel_.pool; }
  loop::Expr integer(int64_t value) const { return pool().integer(value); }
  loop::Expr number(double value) const { return pool().number(value, spec_.dtype); }
  loop::Expr rows() const { return pool().size(spec_.rows); }
  size_t num_parts() const { return spec_.parts.size(); }
  // The first column of a part, and the one behind its last.
  loop::Expr begin(size_t part) const { return pool().size(begins_[part]); }
  loop::Expr end(size_t part) const { return pool().size(begins_[part] + spec_.parts[part]); }
  bool has_threads() const { return threads_ > 0; }
  // What a product of two rows' first parts, of length 1, is when it is none but for rounding.
  double tolerance() const;
  double smallest() const { return spec_.dtype == DType::f64 ? 1e-290 : 1e-30; }

  // An element; within `across` and `fold` as many as the vector has.
  loop::Expr at(loop::Expr row, loop::Expr column) const;
  void put(loop::Expr row, loop::Expr column, loop::Expr value);
  // A value that is computed here, whatever is stored behind.
  loop::Expr keep(const char* name, loop::Expr value);
  // A scalar that changes.
  loop::RegArray cell(const char* name, loop::Expr first);
  loop::Expr get(loop::RegArray cell) const;
  void set(loop::RegArray cell, loop::Expr value);

  void serial(loop::Expr lo, loop::Expr hi, const Fill& fill);
  void when(loop::Expr condition, const std::function<void()>& fill);
  // Independent of each other.
  void each(loop::Expr lo, loop::Expr hi, const Fill& fill);
  void once(const std::function<void()>& fill) {
    each(integer(0), integer(1), [&](loop::Expr) { fill(); });
  }
  // Columns up to a part's end, in vectors.
  void across(loop::Expr lo, loop::Expr hi, const Fill& fill);
  // The same, to numbers: a step has the vectors so far and gives the next ones.
  using Step =
      std::function<std::vector<loop::Expr>(loop::Expr column, std::span<const loop::Expr> so_far)>;
  std::vector<loop::Expr> fold(loop::ReduceOp op, size_t count, loop::Expr lo, loop::Expr hi,
                               const Step& step);

 private:
  friend void build_matrix_steps(loop::Kernel&, const MatrixSpec&, const Target&);
  void build();
  void load(MatrixSpec::Index batch);
  void store(MatrixSpec::Index batch);
  void emit(loop::Stmt stmt) { block_->push_back(std::move(stmt)); }
  void barrier();
  void loop(loop::Expr lo, loop::Expr hi, int64_t step, const Fill& fill);
  void spread(loop::Expr lo, loop::Expr hi, const Fill& fill);
  loop::Expr variable(const char* name, loop::VarKind kind, DType dtype, int lanes);

  loop::Kernel& kernel_;
  const MatrixSpec& spec_;
  int lanes_ = 1;
  int64_t threads_ = 0;  // that share a matrix; none: one has it
  std::vector<Dim> begins_;
  Dim stride_ = 0, size_ = 0;
  loop::Block* block_ = nullptr;
  loop::BufferRef workspace_;
  loop::Expr first_, thread_;
  int width_ = 1;          // of what `at` and `put` move here
  bool is_apart_ = false;  // what threads do here differs
};

}  // namespace lathe
