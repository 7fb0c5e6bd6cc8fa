// rand: uniform random numbers in [0, 1), by Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). Element i of call number n is made of the counter (i, n)
// under the key `seed` alone: no state, the same on every target, and the same in every run. They
// are not the numbers that PyTorch draws, which depend on its generator's state.
#include <array>
#include <cmath>

#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::BinaryOp;
using loop::Expr;

constexpr int kRounds = 10;
constexpr int64_t kMultipliers[] = {0xD2511F53, 0xCD9E8D57};
constexpr int64_t kKeySteps[] = {0x9E3779B9, 0xBB67AE85};
constexpr int64_t kWord = 0xFFFFFFFF;

// Words of 32 bits in i64, of numbers and of loop expressions.
struct Numbers {
  using Word = int64_t;
  static Word constant(int64_t x) { return x; }
  static Word low(Word x) { return x & kWord; }
  static Word high(Word x) { return (x >> 32) & kWord; }
  static Word product(Word a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  static Word either(Word a, Word b) { return a ^ b; }
};
struct Expressions {
  using Word = Expr;
  loop::Pool& pool;
  Word constant(int64_t x) const { return pool.integer(x); }
  Word low(Word x) const { return binary(BinaryOp::bit_and, x, pool.integer(kWord)); }
  // The shift copies the sign, which the mask takes off.
  Word high(Word x) const { return low(binary(BinaryOp::shift_right, x, pool.integer(32))); }
  Word product(Word a, int64_t b) const { return a * pool.integer(b); }
  static Word either(Word a, Word b) { return binary(BinaryOp::bit_xor, a, b); }
};

// The first two words of Philox4x32-10.
template <class Words>
std::array<typename Words::Word, 2> philox(const Words& words, typename Words::Word position,
                                           int64_t stream, int64_t seed) {
  std::array<typename Words::Word, 4> c = {words.low(position), words.high(position),
                                           words.constant(stream & kWord),
                                           words.constant((stream >> 32) & kWord)};
  int64_t key[] = {seed & kWord, (seed >> 32) & kWord};
  for (int round = 0; round < kRounds; ++round) {
    const auto first = words.product(c[0], kMultipliers[0]);
    const auto second = words.product(c[2], kMultipliers[1]);
    c = {words.either(words.either(words.high(second), c[1]), words.constant(key[0])),
         words.low(second),
         words.either(words.either(words.high(first), c[3]), words.constant(key[1])),
         words.low(first)};
    for (int i = 0; i < 2; ++i) key[i] = (key[i] + kKeySteps[i]) & kWord;
  }
  return {c[0], c[1]};
}

// As many bits as the dtype's significand has, so that no result is rounded to 1.
int significand_bits(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 53;
    case DType::f16:
      return 11;
    case DType::bf16:
      return 8;
    default:
      return 24;
  }
}

Result<std::vector<TensorType>> infer_rand(const Node& node) {
  const DType dtype = node.dtype_attr("dtype", DType::f32);
  if (!is_float(dtype)) return Diag{code::kAttribute, node.loc, "'rand' draws floats"};
  return std::vector<TensorType>{{dtype, node.dims_attr("size")}};
}

Result<std::vector<Tensor>> rand_reference(const Node& node, std::span<const Tensor* const>) {
  Tensor result = result_tensor(node);
  const int bits = significand_bits(result.dtype);
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const auto words = philox(Numbers{}, i, node.int_attr("stream"), node.int_attr("seed"));
    const int64_t high = bits > 32 ? (words[0] << 21) | (words[1] >> 11) : words[0] >> (32 - bits);
    put(result, i, std::ldexp(static_cast<double>(high), -bits));
  }
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_rand(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const TensorType& type = node.types.front();
  const int bits = significand_bits(type.dtype);
  const Expressions make{context.pool()};
  const auto words = philox(make, context.flatten(index, type.shape), node.int_attr("stream"),
                            node.int_attr("seed"));
  const auto shift = [&](BinaryOp op, Expr x, int by) {
    return binary(op, x, context.pool().integer(by));
  };
  const Expr high = bits > 32 ? binary(BinaryOp::bit_or, shift(BinaryOp::shift_left, words[0], 21),
                                       shift(BinaryOp::shift_right, words[1], 11))
                              : shift(BinaryOp::shift_right, words[0], 32 - bits);
  const DType compute = compute_dtype(type.dtype);
  const Expr scaled = cast(high, compute) * context.pool().number(std::ldexp(1.0, -bits), compute);
  return cast(scaled, type.dtype);
}

// Calls are numbered as they stand in the graph, so that no two draw the same.
Result<std::vector<Value>> import_rand(Builder& b, const ImportCall& call) {
  int64_t stream = 0;
  for (const auto& node : b.graph().nodes) stream += node->op->name == "rand";
  const Value like = call.value("self");
  const DType dtype = call.dtype_attr("dtype", like ? like.type().dtype : DType::f32);
  const std::vector<Dim> size = like ? like.type().shape : call.dims_attr("size");
  return import_node(b, call, "rand", {}, {{"size", size}, {"dtype", dtype}, {"stream", stream}});
}

}  // namespace

std::vector<OpDef> define_rand() {
  const std::string options =
      ", *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
      "pin_memory=None";
  return {{
      .name = "rand",
      .summary = "random numbers in [0, 1), the same in every run",
      .doc = "Element i of the call with `stream` n is Philox4x32-10 of the counter (i, n) under "
             "the key `seed`: as many leading bits as the dtype's significand has.",
      .operands = {},
      .attrs = {{.name = "size", .kind = AttrKind::dims},
                {.name = "dtype", .kind = AttrKind::dtype, .default_value = DType::f32},
                {.name = "stream", .kind = AttrKind::integer, .default_value = int64_t{0}},
                {.name = "seed", .kind = AttrKind::integer, .default_value = int64_t{0}}},
      .traits = {.op_class = OpClass::source, .is_random = true},
      .infer = infer_rand,
      .reference = rand_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_rand,
      .derivative = Absent{"has no operands"},
      .imports = {{.schema = "rand(SymInt[] size" + options + ") -> Tensor", .build = import_rand},
                  {.schema = "rand_like(Tensor self" + options +
                             ", MemoryFormat? memory_format=None) -> Tensor",
                   .build = import_rand}},
      .examples = {{.attrs = {{"size", std::vector<int64_t>{3, 5}}}},
                   {.attrs = {{"size", std::vector<int64_t>{}},
                              {"dtype", DType::f64},
                              {"stream", int64_t{7}}}},
                   {.attrs = {{"size", std::vector<int64_t>{37}},
                              {"dtype", DType::bf16},
                              {"seed", int64_t{0x123456789a}}}},
                   {.attrs = {{"size", std::vector<int64_t>{0, 2}}, {"dtype", DType::f16}}}},
  }};
}

}  // namespace lathe
