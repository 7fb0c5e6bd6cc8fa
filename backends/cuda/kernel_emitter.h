// The emitter's state for one kernel; private to the emit_*.cpp files.
//
// NVRTC optimises: it hoists, shares and unrolls. So the text keeps the kernel's own structure, and
// what is written here is meant to be read.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cuda/emit.h"
#include "backends/cuda/spelling.h"
#include "ir/loop/pool.h"
#include "ir/loop/ranges.h"

namespace lathe::cuda {

using loop::BinaryOp;
using loop::Expr;
using loop::UnaryOp;

// An expression as text. Precedences are those of C++, higher binds tighter.
struct Text {
  std::string code;
  int precedence = kPrimary;
  bool is_wide = false;  // an i64 that is not an int
  static constexpr int kPrimary = 20;
};

class KernelEmitter {
 public:
  KernelEmitter(const loop::Kernel& kernel, const LaunchShape& shape, const EmitOptions& options);
  Result<std::string> run(const std::string& symbol);

 private:
  // emit_kernel.cpp
  void scan(const loop::Block& block);
  void narrow(const loop::For& loop);
  void scan_accesses(Expr root);
  void note_access(Expr index, int lanes);
  std::string signature(const std::string& symbol);
  void emit_shared();
  void fail(const std::string& message);  // keeps the first error

  // emit_stmt.cpp
  void emit_block(const loop::Block& block);
  void emit_stmt(const loop::Stmt& stmt);
  void emit_for(const loop::For& loop);
  void emit_if(const loop::If& branch);
  void emit_let(const loop::Let& let);
  void emit_regs(loop::RegArray array);
  void emit_set(const loop::SetReg& set);
  void line(const std::string& text);
  std::string index_list(const std::vector<Expr>& indices);

  // emit_packs.cpp
  void name_first_lane();
  void pack_rows();
  void pack_stores(loop::Block& block);
  bool pack_access(Expr& index, Expr& mask, int lanes);
  Expr packed_index(Expr index);
  Expr packed_mask(Expr mask);
  Expr at_first_lane(Expr vector);
  bool starts_pack(Expr vector);
  std::optional<int64_t> step_of(Expr e);

  // emit_choices.cpp
  // Where `x` lies: from lo on, before hi.
  struct Place {
    Expr x;
    std::optional<int64_t> lo, hi;
  };
  struct Arm {
    loop::BufferRef buffer;
    Expr index;
    std::optional<int64_t> end;  // of the places that choose it; none: the last
  };
  struct Choice {
    Expr x, mask;  // what chooses; the loads', which may be null
    std::vector<Arm> arms;
  };
  void emit_choices(const std::vector<Expr>& roots, bool at_once,
                    std::vector<const loop::ExprNode*>& made);
  bool emit_pack_choice(Expr e, Choice choice);
  bool emit_lane_choice(Expr e, const Choice& choice);
  bool add_arms(Expr e, const Place& place, Choice& choice);
  bool pack_arms(Choice& choice);
  static bool ends_rise(const Choice& choice);
  std::string chosen_address(const Choice& choice, const std::string& x, const std::string& lane);
  Expr within(Expr index, const Place& place);

  // emit_tiles.cpp
  void emit_load_tile(const loop::LoadTile& load);
  void emit_store_tile(const loop::StoreTile& store);
  void emit_mma(const loop::Mma& mma);
  static std::string tile_type(const loop::RegInfo& info);
  std::string tile_name(const loop::TileRef& tile);
  void prepare_tile(const loop::TileRef& tile, Expr index);

  // emit_memory.cpp
  void emit_store(const loop::Store& store);
  void emit_atomic(const loop::Store& store);
  bool is_packed(Expr index, int lanes) const;
  std::string element_address(loop::BufferRef buffer, Expr index);
  Text load_text(Expr e, const loop::Load& load);
  bool emit_pack(Expr e);  // a vector that a thread reads at once; false when it cannot
  std::optional<std::string> pack_condition(Expr mask);
  int64_t alignment(Expr index) const;
  bool is_synchronised(loop::BufferRef buffer) const;
  void sync();

  // emit_expr.cpp
  // Names what `roots` share, and their reductions: all that stands before an element loop.
  void define_scalars(const std::vector<Expr>& roots);
  // Runs `body` for each lane of the thread; the vectors under `roots` have texts in it.
  template <class F>
  void for_each_lane(const std::vector<Expr>& roots, F&& body);
  void open_lanes(const std::vector<Expr>& roots, std::vector<const loop::ExprNode*>& made);
  void close_lanes(const std::vector<const loop::ExprNode*>& made);
  void define(Expr e, std::vector<const loop::ExprNode*>* made);
  void emit_reduction(Expr e);
  void count_uses(const std::vector<Expr>& roots);
  std::vector<Expr> undefined_under(const std::vector<Expr>& roots) const;
  Text text(Expr e);  // of something defined, or a leaf
  std::string code(Expr e, int at_least = 0);
  Text make_text(Expr e);
  Text unary_text(Expr e, const loop::Unary& node);
  Text binary_text(Expr e, const loop::Binary& node);
  Text integer_binary(Expr e, const loop::Binary& node);
  Text infix(Expr e, const loop::Binary& node, const char* mark, int precedence);
  Text cast_text(Expr e, Expr from);
  Text finish(Expr e, Text computed);
  std::string operand(Expr e, DType as);  // as an argument of a function
  bool is_wide(Expr e) { return e->dtype == DType::i64 && !fits_int(e); }
  bool fits_int(Expr e);
  std::string ctype(Expr e) { return variable_type(e->dtype, is_wide(e)); }
  static std::string variable_type(DType dtype, bool is_wide);
  std::string at_lane(const std::string& name) const {
    return shape_.lanes_a_thread > 1 ? name + "[e]" : name;
  }

  loop::Kernel kernel_;  // a copy: lets get the ranges of their values
  LaunchShape shape_;
  EmitOptions options_;
  loop::Ranges ranges_;
  Names names_;
  std::vector<std::string> vars_, buffers_, regs_;
  std::vector<int64_t> var_alignment_;  // the largest known power of two that divides it
  loop::Var first_;                     // the first of a thread's lanes, where it has several
  std::vector<bool> is_read_;
  bool makes_halves_;            // and nothing else: what is computed need not be closer than that
  bool is_blocked_ = true;       // a thread's lanes are neighbours
  bool has_contiguous_ = false;  // an access of neighbouring elements
  std::unordered_map<const loop::ExprNode*, int> uses_;    // in this statement
  std::unordered_map<const loop::ExprNode*, Text> texts_;  // in this statement
  std::string out_;
  int depth_ = 0;
  std::optional<Diag> error_;
};

template <class F>
void KernelEmitter::for_each_lane(const std::vector<Expr>& roots, F&& body) {
  std::vector<const loop::ExprNode*> made;
  open_lanes(roots, made);
  body();
  close_lanes(made);
}

}  // namespace lathe::cuda
