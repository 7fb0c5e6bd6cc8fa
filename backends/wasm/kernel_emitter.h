// The emitter's state for one kernel; private to the emit_*.cpp files.
//
// Where values go and how long they are known: backends/placement/scopes.h.
//
// A scalar i64 (an index) is an i32 wherever its range fits, so a Ref of either type may stand for
// one; as_i32 and as_i64 convert.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "backends/placement/index.h"
#include "backends/placement/statements.h"
#include "backends/placement/values.h"
#include "backends/wasm/emit.h"
#include "backends/wasm/function_builder.h"
#include "backends/wasm/lanes.h"
#include "ir/loop/pool.h"
#include "ir/loop/ranges.h"

namespace lathe::wasm {

using loop::BinaryOp;
using loop::Expr;
using loop::UnaryOp;

class KernelEmitter : private placement::Statements<KernelEmitter> {
 public:
  KernelEmitter(const loop::Kernel& kernel, const EmitOptions& options);
  Status run(const std::string& symbol, Function& out);

 private:
  friend placement::Statements<KernelEmitter>;
  using Statements::emit_stmt;  // of loops

  // emit_kernel.cpp
  void place_buffers();
  Ref num_elements(const loop::Buffer& buffer);
  Ref fail(std::string_view message);  // keeps the first error; returns a placeholder
  Lanes failed(std::string_view message, const loop::ExprNode& like);

  // emit_stmt.cpp
  void emit_loop(const loop::For& loop);
  void set_counter(loop::Var counter, int64_t i);
  void emit_stmt(const loop::If& branch);
  void emit_stmt(const loop::Let& let);
  void emit_stmt(const loop::DeclareRegs& declare);
  void emit_stmt(const loop::SetReg& set);
  void emit_stmt(const loop::Prefetch&) {}  // WebAssembly has none
  Placed read_reg(Expr e);
  void open_scope(placement::Scope scope);
  FunctionBuilder::Code close_scope();

  // emit_expr.cpp
  Placed emit(Expr e) {
    return values_.of(e, [&] { return emit_node(e); });
  }
  Placed emit_node(Expr e);
  Placed emit_constant(Expr e, int lanes);
  Placed emit_ramp(Expr e);
  Placed emit_operator(Expr e);
  Lanes build(Expr e, const std::vector<Lanes>& operands);
  Lanes splat(DType dtype, int lanes, const Lanes& scalar);
  Lanes shuffle(const loop::Shuffle& node, const Lanes& a, const Lanes& b);
  Lanes fma(Expr e, const std::vector<Lanes>& x);
  Lanes select(DType dtype, int lanes, const std::vector<Lanes>& x);
  std::optional<Placed> index_compare(Expr e);
  std::optional<int64_t> constant_of(Expr e);
  // Runs `make` with the builder at the end of the scope `level`.
  template <class F>
  auto at_level(int level, F&& make);
  Lanes select_lanes(int lanes, const Lanes& mask, const Lanes& a, const Lanes& b);
  Placed vector_constant(uint64_t low, uint64_t high);
  Ref splat_bits(int width, uint64_t bits);  // a vector constant
  Lanes constant_lanes(int width, const std::vector<int64_t>& values);
  bool fits_i32(Expr e) { return fits_i32(ranges_.of(e)); }
  static bool fits_i32(loop::Interval i) { return i.min >= INT32_MIN && i.max <= INT32_MAX; }

  // emit_arith.cpp
  Lanes unary(UnaryOp op, Expr e, int lanes, const Lanes& x);
  Lanes binary(Expr e, const Lanes& a, const Lanes& b);
  Lanes float_binary(BinaryOp op, DType dtype, int lanes, Expr ea, Expr eb, const Lanes& a,
                     const Lanes& b);
  Lanes bool_binary(BinaryOp op, int lanes, Lanes a, Lanes b);
  Lanes compare(BinaryOp op, DType dtype, int lanes, Lanes a, Lanes b);
  Lanes min_max(bool is_min, DType dtype, int lanes, bool a_is_number, bool b_is_number,
                const Lanes& a, const Lanes& b);
  Lanes reduce_lanes(loop::ReduceOp op, DType dtype, int lanes, Lanes x);
  Lanes combine(loop::ReduceOp op, DType dtype, int lanes, const Lanes& a, const Lanes& b);

  // emit_integer.cpp
  Lanes int_binary(BinaryOp op, DType dtype, int lanes, const loop::Binary* node, bool is_narrow,
                   const Lanes& a, const Lanes& b);
  Ref int_scalar(BinaryOp op, DType dtype, const loop::Binary* node, bool is_narrow, Ref a, Ref b);
  Lanes int_vector(BinaryOp op, DType dtype, int lanes, const Lanes& a, const Lanes& b);
  Ref divide(BinaryOp op, Form form, bool is_natural, Ref a, Ref b);
  Ref shift_scalar(BinaryOp op, DType dtype, Form form, Ref a, Ref b);
  Lanes shift_vector(BinaryOp op, DType dtype, int lanes, const Lanes& a, const Lanes& b);
  Lanes normalize(DType dtype, int lanes, Lanes x);  // wraps i32 lanes to a narrower dtype
  Ref as_i32(Ref value);
  Ref as_i64(Ref value);
  Ref int_of(Form form, int64_t value);
  Ref int_op(Form form, BinaryOp op, Ref a, Ref b);  // add, sub, mul; folds constants
  std::optional<int64_t> uniform_int(Form form, int lanes, const Lanes& x) const;

  // emit_convert.cpp
  Lanes cast(DType from, DType to, int lanes, const Lanes& x, bool is_small);
  Lanes cast_scalar(DType from, DType to, Ref x);
  Lanes cast_lanes(DType from, DType to, int lanes, const Lanes& x, bool is_small);
  Lanes bitcast(DType from, DType to, int lanes, const Lanes& x);
  Lanes round_half(DType dtype, int lanes, Lanes x);  // to values of f16 or bf16, as f32
  Ref round_f16(Ref x);
  Ref round_bf16(Ref x);
  Ref f16_bits(Ref x);
  Ref f16_value(Ref bits);
  Ref from_raw(DType dtype, Ref part);  // stored bits in a lane each to the computed form
  Ref to_raw(DType dtype, Ref part);
  Lanes mask_width(int lanes, const Lanes& mask, int width);
  Lanes narrow_lanes(int lanes, const Lanes& x);  // the low halves of 8-byte lanes
  Ref extract(Form form, const Lanes& x, int lane);
  // Lanes made one by one.
  template <class F>
  Lanes per_lane(Form form, int lanes, F&& make);
  template <class F>
  Lanes map(int lanes, int width, F&& make);  // make(part) for every part
  template <class F>
  Ref through_vector(F&& make, Ref scalar);  // a vector function of an f32 scalar
  Ref shuffle_words(Ref a, Ref b, int w0, int w1, int w2, int w3);  // words of a: 0-3, of b: 4-7

  // emit_address.cpp
  using Term = placement::Term<Placed>;
  struct Index : placement::Index<Placed> {
    loop::Interval range = {INT64_MIN, INT64_MAX};  // of the sum of the terms
  };
  struct Address {
    Ref pointer;
    uint32_t offset = 0;
    int level = 0;
  };
  Index resolve(const loop::LaneIndex& parts);
  Placed sum(const Index& index, bool is_narrow);  // constant and terms
  Address address(loop::BufferRef buffer, const Index& index);
  Placed step_pointer(Placed pointer, const Term& term, int64_t bytes);
  Placed moved_pointer(Placed pointer, int64_t bytes);
  using LaneAddresses = std::vector<std::pair<Ref, int64_t>>;  // a pointer and an offset each
  LaneAddresses lane_addresses(DType dtype, const Index& index, const Address& at);

  // emit_load.cpp
  int level_of_load(Expr e, const Index& index, int mask_level);
  Placed emit_load(Expr e);
  std::optional<Placed> emit_splat_load(Expr e);
  Lanes contiguous_load(DType dtype, int lanes, const Address& at, const Lanes* mask);
  Ref masked_part(DType dtype, const Address& at, int64_t offset, int count, Ref mask);
  Ref raw_part(DType dtype, Ref pointer, int64_t offset, int count);
  Ref raw_scalar(DType dtype, Ref pointer, int64_t offset);
  Lanes scalar_of_raw(DType dtype, Ref raw);
  Lanes masked_scalar_load(DType dtype, Ref pointer, int64_t offset, loop::BufferRef buffer,
                           Ref mask);
  Lanes scattered_load(DType dtype, int lanes, const Index& index, const Address& at,
                       loop::BufferRef buffer, const Lanes* mask);
  Ref mask_bit(Ref mask, int width, int lane);  // of one part
  Ref all_true(Ref mask, int width);
  template <class F>
  void branch(Ref condition, F&& then_code);

  // emit_store.cpp
  void emit_stmt(const loop::Store& store);
  void contiguous_store(DType dtype, int lanes, const Address& at, const Lanes& raw,
                        const Lanes* mask);
  void scattered_store(DType dtype, const LaneAddresses& addresses, const Lanes& raw,
                       const Lanes* mask);
  void store_if(Ref mask, DType dtype, const Address& at, Ref value);
  void store_part(DType dtype, Ref pointer, int64_t offset, Ref raw, int count);
  void store_lane(DType dtype, Ref pointer, int64_t offset, Ref raw, int lane);
  void store_scalar(DType dtype, Ref pointer, int64_t offset, Ref value);

  struct VarValue {
    Lanes lanes;                  // empty: no value
    std::optional<Index> linear;  // of scalar i64 lets: addresses see through them
  };
  struct Element {  // of a register array
    std::vector<Local> parts;
    Lanes outer;  // read in an outer scope, at `time`
    uint64_t time = 0;
  };
  struct Bump {
    Local pointer;
    int64_t bytes;
  };
  struct ScopeCode {
    std::map<std::pair<uint64_t, uint64_t>, Ref> constants;
    Ref counter = {};  // of a serial loop
    Ref lo = {};
    int64_t step = 0;
    std::vector<Bump> bumps = {};  // pointers that move with the counter
  };

  loop::Ranges ranges_;
  EmitOptions options_;
  FunctionBuilder builder_;

  std::vector<Ref> buffers_;
  std::vector<VarValue> vars_;
  std::vector<std::vector<Element>> regs_;                     // by array, row-major
  using PointerKey = std::tuple<uint32_t, uint32_t, int64_t>;  // pointer, value, bytes
  placement::Values<Placed, PointerKey> values_;
  std::vector<ScopeCode> scopes_ = std::vector<ScopeCode>(1);  // of the open scopes
  placement::LaneSplits splits_;
  Ref parallel_lo_, parallel_hi_, scratch_;
};

}  // namespace lathe::wasm
