// What the schedulers of loop nests share: a class of which each makes its decisions by overriding
// them. loop_nest.h says what is decided, and who asks for it calls schedule().
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/loop/vectorize.h"
#include "ir/target/target.h"
#include "ir/templates/collapse.h"
#include "ir/templates/loop_nest.h"

namespace lathe {

// Where a vector is registers of one thread, and where a group of threads shares it.
loop::Kernel schedule_for_registers(LoopNest nest, const Target& target);
loop::Kernel schedule_for_groups(LoopNest nest, const Target& target);

inline constexpr int64_t kTaskOperations = 20000;  // about 10 us of scalar-equivalent work

// What code for a vector may be.
struct VectorStyle {
  // Where a variable is compared with constants, every piece between them has code of its own, in
  // which nothing is compared and nothing read that only another piece needs.
  bool has_pieces;
  bool clamps_equal_blocks;  // though their ends lie within
  bool moves_lanes;          // of what is loaded side by side
  bool asks_lanes;           // of a whole vector at once, whether any needs what is dear
};

class NestScheduler {
 public:
  NestScheduler(LoopNest nest, const Target& target, VectorStyle style)
      : target_(target), style_(style), nest_(std::move(nest)) {}
  virtual ~NestScheduler() = default;
  NestScheduler(const NestScheduler&) = delete;
  NestScheduler& operator=(const NestScheduler&) = delete;
  loop::Kernel run();

 protected:
  using Block = loop::Block;
  using Expr = loop::Expr;
  using Var = loop::Var;
  using Exprs = std::vector<Expr>;
  using Loops = std::vector<std::pair<Var, Dim>>;

  // --- decisions, in this order

  // Makes more loops of those that collapsed.
  virtual void split_loops(LoopVars& /*loops*/, Exprs& /*indices*/) {}
  // Whether it put a variable last along which the results do not lie side by side.
  virtual bool turn_results() { return false; }
  // Whether lanes are elements of one sum, not a sum each.
  virtual bool sums_along_rows() = 0;
  // Lanes of the kernel's vectors.
  virtual int choose_lanes(bool vectorize_inner) = 0;
  // Gives a loop around the vector loop a place inside it: tile_, tile_lo_ and tile_hi_.
  virtual void tile_transposed() {}
  // Whether what a row computes twice may lie in memory of its own.
  virtual bool may_keep_rows() const { return false; }
  // Elements of the innermost loop in one task, when `rows` of them may be cut.
  virtual int64_t choose_block(int64_t rows) = 0;
  // Rows that one task computes side by side, of so many.
  virtual int64_t choose_rows(int64_t /*rows*/) { return 1; }
  // Of a thread, where threads share vectors; otherwise 0.
  virtual int64_t lanes_of_thread() const { return 0; }
  // Stores of a vector of which `count` lanes exist, where they are no plain ones: false otherwise.
  // Not asked where how many do depends on a size.
  virtual bool store_squares(Block& /*body*/, const Exprs& /*values*/, Expr /*index*/,
                             const loop::VectorAxis& /*axis*/, int64_t /*count*/) {
    return false;
  }
  // The same of reductions, which are bound.
  virtual bool store_turned(Block& /*body*/, const Exprs& /*values*/, Expr /*index*/,
                            const loop::VectorAxis& /*axis*/, int64_t /*count*/,
                            const loop::Bindings& /*bound*/) {
    return false;
  }

  loop::Pool& pool() { return *nest_.kernel.pool; }
  // The size itself, or the one that choices reckon with.
  int64_t hint(const Dim& size) const {
    return size.is_const() ? size.value() : size_at(size, nest_.hints);
  }
  std::vector<loop::Reduce> collapsed_reductions();
  Block wrap(const Loops& loops, Block inside);

  const Target& target_;
  const VectorStyle style_;
  LoopNest nest_;
  int lanes_ = 1;
  Var inner_;
  Var tile_;  // runs from tile_lo_ to tile_hi_ inside the vector loop; these are null without one
  Expr tile_lo_, tile_hi_;
  Loops shared_;  // inside the vector loop
  Dim inner_extent_ = 0;

 private:
  // What the nest is for one position of the loops outside the innermost one.
  struct Row {
    Exprs values;
    Expr index;
    std::vector<Var> vars;  // what the loops around it have become
    Expr exists;            // null: it does
  };

  void split_serial(bool vectorize_inner);
  void split_shared();
  void emit_serial_loops(Block& body);
  loop::BufferRef row_buffer(DType dtype);
  void decode_outer(Block& body);
  Row decode_row(Block& body, Expr position);
  Expr let(Block& body, const std::string& name, Expr value, const Dim& extent);
  size_t most_pieces() const;
  void emit_rows(Block& body, const Row& row, const Exprs& values);
  void emit_branches(Block& body, const Row& row, const Exprs& values, Var var,
                     std::span<const int64_t> starts, int64_t min, int64_t max);
  Exprs simplify_within(Exprs values, Var var, int64_t min, int64_t max);
  void emit_row(Block& body, Expr index, const Exprs& values);
  void emit_vectors(Block& body, Expr index, const Exprs& values, const Dim& start, const Dim& end);
  void emit_vector_loop(Block& body, Expr index, const Exprs& values, Expr lo, Expr hi);
  void emit_tail(Block& body, Expr index, const Exprs& values, const Dim& start, const Dim& end);
  void emit_rest(Block& body, Expr index, const Exprs& values, const Dim& start, const Dim& count);
  Dim whole_vectors(const Dim& extent) const;

  void emit_stores(Block& body, const Exprs& values, Expr index, const loop::VectorAxis& axis,
                   std::optional<int64_t> count);
  bool store_needed(Block& body, const Exprs& values, Expr index, const loop::VectorAxis& axis,
                    std::optional<int64_t> count);
  void finish(Block body);

  Var task_;
  Loops serial_;                                     // around the vector loop
  std::vector<Row> rows_;                            // of a task
  bool is_split_ = false;                            // its range has pieces
  size_t num_pieces_ = 0;                            // of the loops around it
  std::unordered_set<const loop::ExprNode*> asked_;  // of what lanes have been asked already
  int num_asked_ = 0;
  Dim block_extent_ = 0, blocks_ = 1, tasks_ = 1;
  Expr block_;
};

}  // namespace lathe
