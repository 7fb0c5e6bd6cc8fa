// The emitter's state for one kernel; private to the emit_*.cpp files.
//
// Where values go and how long they are known: backends/placement/scopes.h. A value stands in front
// of the branch that enters the next scope, so it dominates everything that can see it.
#pragma once
#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ValueHandle.h>

#include <optional>
#include <tuple>
#include <vector>

#include "backends/cpu/emit.h"
#include "backends/placement/index.h"
#include "backends/placement/statements.h"
#include "backends/placement/values.h"
#include "ir/loop/pool.h"
#include "ir/loop/ranges.h"

namespace lathe::cpu {

using loop::BinaryOp;
using loop::Expr;
using loop::UnaryOp;

// An LLVM value and the scope it lives in.
struct Placed {
  llvm::Value* value = nullptr;
  int level = 0;
};

class KernelEmitter : private placement::Statements<KernelEmitter> {
 public:
  KernelEmitter(llvm::Module& module, const loop::Kernel& kernel, const EmitOptions& options);
  Status run(const std::string& symbol);

 private:
  friend placement::Statements<KernelEmitter>;
  using Statements::emit_stmt;  // of loops

  // emit_kernel.cpp
  llvm::Function* make_body(const std::string& symbol);
  void make_entry(const std::string& symbol, llvm::Function* body);
  void place_buffers(llvm::Function* body);
  void set_dims(llvm::Function* body);
  llvm::Value* num_elements(const loop::Buffer& buffer);
  void set_attributes(llvm::Function* function) const;
  llvm::Value* fail(std::string_view message);  // keeps the first error; returns a placeholder

  // emit_stmt.cpp
  void emit_loop(const loop::For& loop);
  void set_counter(loop::Var counter, int64_t i);
  void emit_stmt(const loop::If& branch);
  void emit_stmt(const loop::Let& let);
  void emit_stmt(const loop::DeclareRegs& declare);
  void emit_stmt(const loop::SetReg& set);
  llvm::WeakTrackingVH* reg_element(loop::RegArray array, const std::vector<Expr>& indices);
  void open_scope(llvm::Instruction* entry, placement::Scope scope);
  void close_scope();

  // emit_expr.cpp
  Placed emit(Expr e) {
    return values_.of(e, [&] { return emit_node(e); });
  }
  Placed emit_node(Expr e);
  Placed emit_constant(Expr e) const;
  Placed emit_ramp(Expr e);
  Placed emit_operator(Expr e);
  llvm::Value* build(Expr e, llvm::ArrayRef<llvm::Value*> operands);
  llvm::Value* value(Expr e) { return emit(e).value; }
  std::optional<int64_t> constant_of(Expr e);
  // Runs `make` with the builder at the end of the scope `level`.
  template <class F>
  llvm::Value* at_level(int level, F&& make);

  // emit_arith.cpp
  llvm::Value* unary(UnaryOp op, DType dtype, llvm::Value* x);
  llvm::Value* binary(Expr e, llvm::Value* a, llvm::Value* b);
  llvm::Value* float_binary(BinaryOp op, DType dtype, Expr ea, Expr eb, llvm::Value* a,
                            llvm::Value* b);
  llvm::Value* bool_binary(BinaryOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* int_binary(const loop::Binary& node, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* int_division(const loop::Binary& node, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* shift(BinaryOp op, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* compare(BinaryOp op, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* min_max(bool is_min, bool a_is_number, bool b_is_number, llvm::Value* a,
                       llvm::Value* b);
  llvm::Value* reduce_lanes(loop::ReduceOp op, DType dtype, llvm::Value* x);
  llvm::Value* pair_dot(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  std::optional<Placed> index_compare(Expr e);

  // emit_convert.cpp
  llvm::Value* cast(DType from, DType to, llvm::Value* x);
  llvm::Value* bitcast(DType from, DType to, int lanes, llvm::Value* x);
  llvm::Value* round_half(DType dtype, llvm::Value* x);      // to a value of f16 or bf16, as f32
  llvm::Value* from_memory(DType dtype, llvm::Value* bits);  // stored form to computed form
  llvm::Value* to_memory(DType dtype, llvm::Value* x);
  llvm::Type* type(DType dtype, int lanes) const;         // of values
  llvm::Type* memory_type(DType dtype, int lanes) const;  // in buffers

  // emit_memory.cpp
  using Term = placement::Term<Placed>;
  using Index = placement::Index<Placed>;
  struct Address {
    Placed pointer;
    int64_t displacement = 0;  // in elements, added where the access is
    llvm::Type* element = nullptr;
    uint64_t align = 1;
  };
  Index resolve(Expr index);
  Index resolve(const loop::LaneIndex& parts);
  int64_t divisor_of(Expr e) const;
  Placed sum(const Index& index);  // constant and terms, as one i64
  Address address(loop::BufferRef buffer, const Index& index);
  llvm::Value* displaced(const Address& at);
  Placed step_pointer(Placed pointer, llvm::Type* element, const Term& term);
  Placed emit_load(Expr e);
  llvm::Value* contiguous_load(DType dtype, int lanes, const Address& at, llvm::Value* mask);
  llvm::Value* scattered_load(loop::BufferRef buffer, DType dtype, const Index& index,
                              const Address& at, llvm::Value* mask);
  llvm::Value* near_load(loop::BufferRef buffer, DType dtype, const Index& index,
                         llvm::Value* mask);
  llvm::Value* read_windows(loop::BufferRef buffer, DType dtype, llvm::Value* base,
                            llvm::Value* offsets, int windows);
  llvm::Value* read_lane(llvm::Value* vector, int lane);
  llvm::Value* lanewise_load(DType dtype, const Index& index, llvm::Value* base);
  llvm::Value* lane_pointers(llvm::Type* element, const Index& index, llvm::Value* base);
  void emit_stmt(const loop::Store& store);
  void contiguous_store(const loop::Store& store, const Address& at, llvm::Value* bits,
                        llvm::Value* mask);
  void masked_scalar_store(llvm::Value* bits, const Address& at, llvm::Value* mask);
  void emit_stmt(const loop::Prefetch& prefetch);

  struct VarValue {
    llvm::WeakTrackingVH value;
    int64_t divisor = 1;
    std::optional<Index> linear;  // of scalar i64 lets: addresses see through them
  };
  using PointerKey = std::tuple<llvm::Value*, llvm::Value*, int64_t>;  // pointer, value, factor

  llvm::Module& module_;
  loop::Ranges ranges_;
  EmitOptions options_;
  llvm::IRBuilder<> builder_;
  bool has_nontemporal_ = false;

  std::vector<llvm::Value*> buffers_;
  std::vector<VarValue> vars_;
  std::vector<std::vector<llvm::WeakTrackingVH>> regs_;  // by array, row-major
  placement::Values<Placed, PointerKey> values_;
  std::vector<llvm::Instruction*> entries_ = {nullptr};  // of scopes: the branch into each
  placement::LaneSplits splits_;
  llvm::Value* parallel_lo_ = nullptr;
  llvm::Value* parallel_hi_ = nullptr;
};

template <class F>
llvm::Value* KernelEmitter::at_level(int level, F&& make) {
  if (static_cast<size_t>(level) + 1 >= entries_.size()) return make();
  llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(entries_[static_cast<size_t>(level) + 1]);
  return make();
}

}  // namespace lathe::cpu
