// Keys that are in the order of the elements: see sorting.h.
#include "passes/lowering/sorting.h"

#include "ir/op/reduction.h"
#include "passes/lowering/lowering.h"

namespace lathe {
namespace {

using loop::BinaryOp;
using loop::Expr;

// Bits that tell elements apart; those of halves are widened to f32, whose last bits are 0.
int bits_of(DType dtype) {
  if (dtype == DType::b8) return 1;
  if (dtype == DType::f16) return 19;
  return static_cast<int>(8 * dtype_bytes(dtype));
}

// The signed integer that is as many floats are less: NaN, all alike, come last, and both zeros
// are one.
Expr rank_of(Expr x) {
  const DType dtype = dtype_bytes(x->dtype) == 8 ? DType::i64 : DType::i32;
  loop::Pool& pool = *x->pool;
  const int64_t most = dtype == DType::i64 ? INT64_MAX : INT32_MAX;
  const Expr zero = loop::constant_like(x, 0);
  const Expr bits = loop::bitcast(loop::select(loop::eq(x, zero), zero, x), dtype);
  const Expr sign =
      loop::binary(BinaryOp::shift_right, bits, pool.integer(8 * dtype_bytes(dtype) - 1, dtype));
  const Expr turned = loop::binary(
      BinaryOp::bit_xor, bits, loop::binary(BinaryOp::bit_and, sign, pool.integer(most, dtype)));
  return loop::select(loop::ne(x, x), pool.integer(most, dtype), turned);
}

}  // namespace

Sorting::Sorting(const Node& root, const TensorType& result, const Lowering& lowering)
    : root_(root),
      result_(result),
      dim_(static_cast<size_t>(known_dim(root, result.rank()))),
      length_(root.operands[0].type().shape[dim_]),
      start_(std::get<Dim>(root.attr("start"))),
      dtype_(root.operands[0].type().dtype),
      key_bits_(bits_of(dtype_)) {
  for (size_t i = 0; i < result.shape.size(); ++i) {
    const size_t own = result.layout.empty() ? i : static_cast<size_t>(result.layout[i]);
    if (own == dim_) continue;
    order_.push_back(own);
    lines_ = lines_ * result.shape[own];
  }
  const int64_t most = length_.bounds(lowering.symbols()).max.value_or(INT64_MAX);
  // Two halves of elements have places of 32 bits.
  is_packed_ = key_bits_ <= 32 && most <= int64_t{1} << (kPositionBits - 1);
}

std::vector<Expr> Sorting::index(loop::Pool& pool, Expr line, Expr at) const {
  std::vector<Expr> index(result_.shape.size(), at);
  for (size_t i = order_.size(); i-- > 0;) {
    const Expr extent = pool.size(result_.shape[order_[i]]);
    index[order_[i]] = i == 0 ? line : loop::mod(line, extent);
    line = loop::floor_div(line, extent);
  }
  return index;
}

// In [0, 2^key_bits), or of 64 bits.
Expr Sorting::key(Expr x) const {
  loop::Pool& pool = *x->pool;
  const Expr rank = is_float(x->dtype) ? rank_of(x) : x;
  Expr key = loop::cast(rank, DType::i64);
  const bool is_descending = root_.bool_attr("descending");
  if (key_bits_ == 64) return is_descending ? loop::unary(loop::UnaryOp::bit_not, key) : key;
  if (is_half(dtype_)) key = loop::binary(BinaryOp::shift_right, key, pool.integer(32 - key_bits_));
  if (!is_unsigned(dtype_)) key = key + pool.integer(int64_t{1} << (key_bits_ - 1));
  return is_descending ? pool.integer((int64_t{1} << key_bits_) - 1) - key : key;
}

Expr Sorting::is_wanted(loop::Pool& pool, Expr at) const {
  const Dim& count = result_.shape[dim_];
  if (count == length_) return {};
  return loop::logical_and(loop::le(pool.integer(0), at), loop::lt(at, pool.size(count)));
}

Expr Sorting::element(KernelContext& kernel, Expr line, Expr at) const {
  loop::Pool& pool = kernel.pool();
  const Expr own = key(kernel.element(root_.operands[0], index(pool, line, at)));
  if (!is_packed_) return own;
  const Expr high = loop::binary(BinaryOp::shift_left, own, pool.integer(kPositionBits));
  return loop::binary(BinaryOp::bit_or, high, at);
}

ResultElement Sorting::result(KernelContext& kernel, BufferId out, Expr line, Expr at,
                              Expr position) const {
  const Expr address = kernel.address(result_, index(kernel.pool(), line, at));
  return {kernel.use(out, true), address, position};
}

SortSpec Sorting::spec(KernelContext& kernel, BufferId out) const {
  SortSpec spec{lines_, length_, start_, result_.shape[dim_], key_bits_, is_packed_, {}, {}};
  spec.element = [this, &kernel](Expr line, Expr at) { return element(kernel, line, at); };
  spec.result = [this, &kernel, out](Expr line, Expr at, Expr position) {
    return result(kernel, out, line, at, position);
  };
  return spec;
}

}  // namespace lathe
