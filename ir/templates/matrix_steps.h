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
#include <type_traits>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/target/target.h"
#include "ir/templates/contraction.h"

namespace lathe {

class MatrixSteps;

// A function that a call takes and nobody keeps: steps are mostly such, and a std::function has
// code to copy each of them.
template <class>
class FunctionRef;
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& function)
      : function_(&function), call_([](const void* made, Args... args) -> Result {
          return (*static_cast<const std::remove_reference_t<F>*>(made))(args...);
        }) {}
  Result operator()(Args... args) const { return call_(function_, args...); }

 private:
  const void* function_;
  Result (*call_)(const void* function, Args... args);
};

struct MatrixSpec {
  using Index = std::span<const loop::Expr>;
  std::vector<Dim> batch;  // dims in which matrices differ; may be empty
  Dim rows = 1;            // of the workspace
  int64_t spare_rows = 0;  // behind them, of zeros
  std::vector<Dim> parts;  // its columns; each part begins at a whole vector
  // Columns lie in strips of a register tile's width, one strip behind the other, so that what a
  // tile reads is near each other; one part alone. Not where threads share a matrix.
  bool is_in_strips = false;
  int64_t wide = 1;  // vectors that `across_wide` walks at once, where rows have as many
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
  using Fill = FunctionRef<void(loop::Expr i)>;

  MatrixSteps(loop::Kernel& kernel, const MatrixSpec& spec, const Target& target);

  loop::Pool& pool() const { return *kernel_.pool; }
  loop::Expr integer(int64_t value) const { return pool().integer(value); }
  loop::Expr number(double value) const { return pool().number(value, spec_.dtype); }
  loop::Expr rows() const { return pool().size(spec_.rows); }
  loop::Expr spare(int64_t i) const { return pool().size(first_spare_ + Dim(i)); }
  size_t num_parts() const { return spec_.parts.size(); }
  // The first column of a part, and the one behind its last.
  loop::Expr begin(size_t part) const { return pool().size(begins_[part]); }
  loop::Expr end(size_t part) const { return pool().size(begins_[part] + spec_.parts[part]); }
  bool has_threads() const { return threads_ > 0; }
  // What a product of two rows' first parts, of length 1, is when it is none but for rounding.
  double tolerance() const;
  // The last column up to one that a vector may begin at.
  loop::Expr aligned(loop::Expr column) const {
    return loop::floor_div(column, integer(lanes_)) * integer(lanes_);
  }
  double epsilon() const { return spec_.dtype == DType::f64 ? 0x1p-52 : 0x1p-23; }
  // A number that has an inverse.
  double least_normal() const { return spec_.dtype == DType::f64 ? 1e-300 : 1e-37; }
  double smallest() const { return spec_.dtype == DType::f64 ? 1e-290 : 1e-30; }

  // An element; within `across` and `fold` as many as the vector has.
  loop::Expr at(loop::Expr row, loop::Expr column) const;
  void put(loop::Expr row, loop::Expr column, loop::Expr value);
  // One element, also within those.
  loop::Expr scalar(loop::Expr row, loop::Expr column) const;
  // A value that is computed here, whatever is stored behind.
  loop::Expr keep(const char* name, loop::Expr value);
  // A scalar that changes.
  loop::RegArray cell(const char* name, loop::Expr first);
  loop::Expr get(loop::RegArray cell) const;
  void set(loop::RegArray cell, loop::Expr value);

  void serial(loop::Expr lo, loop::Expr hi, const Fill& fill);
  void stepped(loop::Expr lo, loop::Expr hi, int64_t step, const Fill& fill) {
    loop(lo, hi, step, fill);
  }
  void when(loop::Expr condition, const FunctionRef<void()>& fill);
  // Independent of each other.
  void each(loop::Expr lo, loop::Expr hi, const Fill& fill);
  void once(const FunctionRef<void()>& fill) {
    each(integer(0), integer(1), [&](loop::Expr) { fill(); });
  }
  // Columns up to a part's end, in vectors.
  void across(loop::Expr lo, loop::Expr hi, const Fill& fill);
  // Where columns lie in strips: each of them, in order, and its first column.
  bool is_in_strips() const { return strip_ > 0; }
  void each_strip(const FunctionRef<void(loop::Expr strip, loop::Expr column)>& fill);
  loop::Expr strip_width() const { return integer(strip_); }
  // Columns [0, end) of a strip that there are, from the first of all on.
  void along_strip(loop::Expr strip, loop::Expr end, const Fill& fill);
  // All of its vectors, one behind the other.
  void across_strip(loop::Expr strip, const Fill& fill);
  // The first of as many rows as are eliminated at once.
  void tiles(loop::Expr lo, loop::Expr hi, const Fill& fill) { loop(lo, hi, tile_rows_, fill); }
  // Such rows of a strip lose what they have of rows before: of rows [0, depth), a multiple of 4,
  // and, where `has_triangle`, each of those of the tile before it: a(row, k) of row k.
  struct Elimination {
    loop::Expr strip, row, depth;
    loop::Expr has_triangle = {};  // null: yes
    std::function<loop::Expr(loop::Expr row, loop::Expr k)> a;
    // What a row of the triangle is then multiplied by; until then it stands there. Null: 1.
    std::function<loop::Expr(loop::Expr row)> factor = {};
  };
  void eliminate(const Elimination& elimination);
  // A whole part, from at or before its column `lo` on, in as many vectors at once as there is a
  // fill for: what each begins with, then for each row in [first, last) what is done there, and
  // last.
  struct Wide {
    FunctionRef<loop::Expr(loop::Expr column)> first;
    FunctionRef<loop::Expr(loop::Expr row, loop::Expr column, loop::Expr so_far)> next;
    FunctionRef<void(loop::Expr column, loop::Expr total)> last;
  };
  void across_wide(size_t part, loop::Expr lo, loop::Expr first, loop::Expr last, const Wide& wide);
  // The same, to numbers: a step has the vectors so far and gives the next ones.
  using Step =
      FunctionRef<std::vector<loop::Expr>(loop::Expr column, std::span<const loop::Expr> so_far)>;
  std::vector<loop::Expr> fold(loop::ReduceOp op, size_t count, loop::Expr lo, loop::Expr hi,
                               const Step& step);

 private:
  friend void build_matrix_steps(loop::Kernel&, const MatrixSpec&, const Target&);
  void build();
  void load(MatrixSpec::Index batch);
  void store(MatrixSpec::Index batch);
  void emit(loop::Stmt stmt) { block_->push_back(std::move(stmt)); }
  void barrier();
  // Of what is below `extent`, where that is given.
  void loop(loop::Expr lo, loop::Expr hi, int64_t step, const Fill& fill, const Dim& extent = 0);
  void spread(loop::Expr lo, loop::Expr hi, const Fill& fill);
  void finish_rows(const Elimination& elimination, loop::RegArray rest);
  void store_row(const Elimination& elimination, loop::RegArray rest, int64_t row);
  void load_rows(MatrixSpec::Index batch);
  void load_strips(MatrixSpec::Index batch);
  loop::Expr index(loop::Expr row, loop::Expr column) const;
  loop::Expr variable(const char* name, loop::VarKind kind, DType dtype, int lanes);

  loop::Kernel& kernel_;
  const MatrixSpec& spec_;
  int lanes_ = 1;
  int64_t wide_ = 1;                   // vectors
  int64_t strip_ = 0, tile_rows_ = 1;  // columns of a strip; none: one row lies behind the other
  int64_t threads_ = 0;                // that share a matrix; none: one has it
  std::vector<Dim> begins_;
  Dim stride_ = 0, size_ = 0, first_spare_ = 0;
  loop::Block* block_ = nullptr;
  loop::BufferRef workspace_;
  loop::Expr first_, thread_;
  int width_ = 1;          // of what `at` and `put` move here
  bool is_apart_ = false;  // what threads do here differs
};

}  // namespace lathe
