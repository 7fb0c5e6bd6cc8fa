// The generator of random_kernel.h.
#include "tests/backends/random_kernel.h"

#include <cmath>
#include <cstring>
#include <random>

#include "ir/loop/pool.h"

namespace lathe {
namespace {

using namespace loop;

constexpr int64_t kIterations = 5;  // of the parallel loop
constexpr int64_t kSlice = 192;     // elements of an output that belong to one iteration
constexpr int64_t kInput = 160;
constexpr int64_t kFar = int64_t{1} << 40;  // elements: beyond what anything has mapped
constexpr DType kAll[] = {DType::b8,  DType::u8,  DType::i8,   DType::i16, DType::i32,
                          DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64};

class Generator {
 public:
  Generator(uint64_t seed, Multipliers target) : random_(seed), target_(target) {
    kernel_.name = "random";
    kernel_.pool = std::make_shared<Pool>();
    constexpr int kLanes[] = {4, 8, 16, 32};
    lanes_ = kLanes[pick(4)];
  }

  Kernel build() {
    for (DType dtype : kAll) {
      inputs_.push_back(kernel_.add_buffer({"in", dtype, kInput}));
      outputs_.push_back(
          kernel_.add_buffer({"out", dtype, kIterations * kSlice, Space::global, true}));
    }
    scratch_ = kernel_.add_buffer({"scratch", DType::f32, 64, Space::scratch, true});
    parallel_ = add_loop_var(kIterations);
    loops_.push_back(read(parallel_));
    Block body = block(3);
    kernel_.body.push_back(
        {For{parallel_, integer(0), integer(kIterations), 1, LoopKind::parallel, body}});
    return std::move(kernel_);
  }

 private:
  struct Regs {
    RegArray array;
    RegInfo info;
  };

  int64_t pick(int64_t count) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(count));
  }
  bool chance(int percent) { return pick(100) < percent; }
  DType any_dtype() { return chance(50) ? DType::f32 : kAll[pick(std::size(kAll))]; }
  Pool& pool() { return *kernel_.pool; }
  Expr integer(int64_t v) { return pool().integer(v); }
  Expr read(Var v) {
    const VarInfo& info = kernel_.vars[v.id];
    return pool().var(v, info.dtype, info.lanes);
  }
  Var add_loop_var(int64_t count) {
    return kernel_.add_var({"i", VarKind::loop, DType::i64, 1, 0, std::max<int64_t>(count - 1, 0)});
  }

  // ---- indices ----
  // A non-negative scalar.
  Expr counter() {
    Expr sum = integer(pick(5));
    for (Expr loop : loops_)
      if (chance(60)) sum = sum + loop * integer(1 + pick(6));
    return sum;
  }
  // In [0, size - count].
  Expr index(int64_t size, int64_t count) { return mod(counter(), integer(size - count + 1)); }

  Expr mask(int lanes) {
    if (lanes == 1) return lt(counter(), integer(pick(12)));
    if (chance(30)) return value(DType::b8, lanes, 2);
    return lt(pool().ramp(counter(), 1, lanes), splat(integer(pick(20)), lanes));
  }

  Expr load(DType dtype, int lanes) {
    BufferRef from = inputs_[static_cast<size_t>(dtype)];
    if (chance(10)) return far_load(from, dtype, lanes);
    Expr on = chance(30) ? mask(lanes) : Expr();
    if (lanes > 1 && chance(30)) {
      Expr at = pool().ramp(counter(), pick(5), lanes);
      if (chance(50)) at = at + cast(value(DType::u8, lanes, 1), DType::i64);
      return pool().load(from, mod(at, splat(integer(kInput), lanes)), dtype, lanes, on);
    }
    if (lanes > 1 && chance(20)) {
      int64_t stride = pick(4);
      return pool().load(from, pool().ramp(index(kInput, stride * lanes + 1), stride, lanes), dtype,
                         lanes, on);
    }
    return pool().load(from, index(kInput, lanes), dtype, lanes, on);
  }

  // Of memory where there is none, unless it is enabled.
  Expr far_load(BufferRef from, DType dtype, int lanes) {
    const auto or_far = [&](Expr on, Expr at, int count) {
      return at + select(on, splat(integer(0), count), splat(integer(kFar), count));
    };
    if (lanes > 1 && chance(30)) {
      Expr on = mask(lanes),
           at = mod(pool().ramp(counter(), pick(5), lanes), splat(integer(kInput), lanes));
      return pool().load(from, or_far(on, at, lanes), dtype, lanes, on);
    }
    Expr on = mask(1), at = or_far(on, index(kInput, lanes), 1);
    return pool().load(from, at, dtype, lanes, splat(on, lanes));
  }

  // ---- values ----
  Expr leaf(DType dtype, int lanes) {
    for (const Regs& regs : regs_)
      if (regs.info.dtype == dtype && regs.info.lanes == lanes && chance(60))
        return pool().reg(regs.array, register_index(regs.info), dtype, lanes);
    for (Var let : lets_)
      if (kernel_.vars[let.id].dtype == dtype && kernel_.vars[let.id].lanes == lanes && chance(50))
        return read(let);
    if (chance(70)) return load(dtype, lanes);
    double number =
        is_float(dtype) ? static_cast<double>(pick(64) - 32) / 8 : static_cast<double>(pick(7));
    Expr constant = pool().number(number, dtype);
    return lanes == 1 ? constant : splat(constant, lanes);
  }

  Expr value(DType dtype, int lanes, int depth) {
    if (depth <= 0 || chance(15)) return leaf(dtype, lanes);
    if (lanes > 1 && chance(10)) return splat(value(dtype, 1, depth - 1), lanes);
    if (lanes > 1 && dtype != DType::b8 && chance(10)) return mixture(dtype, lanes, depth);
    if (lanes == 1 && chance(15)) return lane_reduction(dtype, depth);
    if (chance(15))
      return select(value(DType::b8, lanes, depth - 1), value(dtype, lanes, depth - 1),
                    value(dtype, lanes, depth - 1));
    if (chance(15)) return conversion(dtype, lanes, depth);
    if (dtype == DType::b8) return boolean(lanes, depth);
    return is_float(dtype) ? floating(dtype, lanes, depth) : integral(dtype, lanes, depth);
  }

  Expr mixture(DType dtype, int lanes, int depth) {
    const Expr a = value(dtype, lanes, depth - 1);
    std::vector<int> picked;
    for (int i = 0; i < lanes; ++i) picked.push_back(static_cast<int>(pick(2 * lanes)));
    return shuffle(a, chance(30) ? a : value(dtype, lanes, depth - 1), std::move(picked));
  }

  Expr lane_reduction(DType dtype, int depth) {
    constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::prod};
    Expr x = value(dtype, lanes_, depth - 1);
    if (dtype == DType::b8) return reduce_lanes(chance(50) ? ReduceOp::any : ReduceOp::all, x);
    return reduce_lanes(kOps[pick(is_float(dtype) && dtype < DType::f32 ? 3 : 4)], x);
  }

  Expr boolean(int lanes, int depth) {
    if (chance(20)) return logical_not(value(DType::b8, lanes, depth - 1));
    if (chance(30)) {
      Expr a = value(DType::b8, lanes, depth - 1), b = value(DType::b8, lanes, depth - 1);
      return chance(50) ? logical_and(a, b) : logical_or(a, b);
    }
    DType dtype = any_dtype();
    Expr a = value(dtype, lanes, depth - 1);
    if (is_float(dtype) && chance(20)) return unary(UnaryOp::is_nan, a);
    constexpr BinaryOp kOps[] = {BinaryOp::eq, BinaryOp::ne, BinaryOp::lt, BinaryOp::le};
    return binary(kOps[pick(4)], a, value(dtype, lanes, depth - 1));
  }

  Expr floating(DType dtype, int lanes, int depth) {
    Expr a = value(dtype, lanes, depth - 1);
    if (chance(30)) {
      constexpr UnaryOp kOps[] = {UnaryOp::neg,   UnaryOp::abs,  UnaryOp::floor,     UnaryOp::ceil,
                                  UnaryOp::trunc, UnaryOp::sqrt, UnaryOp::round_even};
      return unary(kOps[pick(7)], a);
    }
    if (target_.has_pair_dot && dtype == DType::f32 && lanes > 2 && lanes < 32 && chance(20))
      return dot(lanes, depth);
    Expr b = value(dtype, lanes, depth - 1);
    if (dtype >= DType::f32 && chance(30)) {
      Expr c = value(dtype, lanes, depth - 1);
      return target_.has_fma ? fma(a, b, c) : a * b + c;
    }
    if (chance(20)) {
      Expr bound = constant_like(a, static_cast<double>(pick(9)) - 4.5);
      return chance(50) ? max(a, bound) : min(bound, a);
    }
    constexpr BinaryOp kOps[] = {BinaryOp::add, BinaryOp::sub, BinaryOp::mul,
                                 BinaryOp::div, BinaryOp::min, BinaryOp::max};
    return binary(kOps[pick(6)], a, b);
  }

  // Of small whole numbers, two alike in a pair.
  Expr dot(int lanes, int depth) {
    const auto small = [&](int64_t most) {
      const Expr x = value(DType::i32, lanes, depth - 1);
      return binary(BinaryOp::bit_and, x, constant_like(x, static_cast<double>(most)));
    };
    const auto pairs = [&](Expr x) {
      const Expr bits = bitcast(cast(cast(x, DType::bf16), DType::f32), DType::i32);
      return binary(BinaryOp::bit_or, bits,
                    binary(BinaryOp::shift_right, bits, constant_like(bits, 16)));
    };
    const Expr a = pairs(small(15)), b = pairs(small(15));
    return pair_dot(a, b, cast(small(1023), DType::f32));
  }

  Expr integral(DType dtype, int lanes, int depth) {
    Expr a = value(dtype, lanes, depth - 1);
    if (chance(15)) return unary(chance(50) ? UnaryOp::neg : UnaryOp::bit_not, a);
    if (chance(10)) return unary(UnaryOp::abs, a);
    constexpr BinaryOp kOps[] = {BinaryOp::add,        BinaryOp::sub,       BinaryOp::mul,
                                 BinaryOp::div,        BinaryOp::floor_div, BinaryOp::mod,
                                 BinaryOp::min,        BinaryOp::max,       BinaryOp::bit_and,
                                 BinaryOp::bit_or,     BinaryOp::bit_xor,   BinaryOp::shift_left,
                                 BinaryOp::shift_right};
    BinaryOp op = kOps[pick(std::size(kOps))];
    if ((op == BinaryOp::div || op == BinaryOp::floor_div || op == BinaryOp::mod) && chance(50))
      return binary(op, a, constant_like(a, static_cast<double>(pick(20) - 8)));
    return binary(op, a, value(dtype, lanes, depth - 1));
  }

  Expr conversion(DType to, int lanes, int depth) {
    DType from = any_dtype();
    bool is_bool = from == DType::b8 || to == DType::b8;  // one bit wide
    if (chance(30) && dtype_bytes(from) == dtype_bytes(to) && from != to && !is_bool)
      return bitcast(value(from, lanes, depth - 1), to);
    Expr x = value(from, lanes, depth - 1);
    const bool makes_half = is_half(to);
    if (makes_half && from == DType::f64) return cast(cast(x, DType::f32), to);
    if (makes_half && (from == DType::i32 || from == DType::i64))  // exact in f32
      return cast(binary(BinaryOp::bit_and, x, constant_like(x, 0xffff)), to);
    if (is_float(from) && !is_float(to) && to != DType::b8) {
      Expr in_range = min(max(x, constant_like(x, -100)), constant_like(x, 100));
      return cast(select(unary(UnaryOp::is_nan, x), constant_like(x, 3), in_range), to);
    }
    return cast(x, to);
  }

  // ---- statements ----
  std::vector<Expr> register_index(const RegInfo& info) {
    std::vector<Expr> at;
    for (int64_t extent : info.shape) {
      Expr i = integer(pick(extent));
      if (!unrolled_.empty() && chance(60))
        i = mod(unrolled_[static_cast<size_t>(pick(static_cast<int64_t>(unrolled_.size())))] + i,
                integer(extent));
      at.push_back(i);
    }
    return at;
  }

  // A new array, set to values everywhere.
  void declare(Block& into) {
    RegInfo info{"r", any_dtype(), chance(60) ? lanes_ : 1, {}};
    for (int64_t rank = pick(3); rank > 0; --rank) info.shape.push_back(1 + pick(3));
    RegArray array = kernel_.add_regs(info);
    into.push_back({DeclareRegs{array}});
    std::vector<Var> vars;
    std::vector<Expr> at;
    for (int64_t extent : info.shape) {
      vars.push_back(add_loop_var(extent));
      at.push_back(read(vars.back()));
    }
    Block body = {{SetReg{array, at, value(info.dtype, info.lanes, 2)}}};
    for (size_t d = vars.size(); d-- > 0;)
      body = {{For{vars[d], integer(0), integer(info.shape[d]), 1, LoopKind::unroll, body}}};
    into.insert(into.end(), body.begin(), body.end());
    regs_.push_back({array, info});
  }

  void store(Block& into) {
    DType dtype = any_dtype();
    int lanes = chance(60) ? lanes_ : 1;
    Store s;
    s.buffer = outputs_[static_cast<size_t>(dtype)];
    s.value = value(dtype, lanes, 3);
    if (chance(30)) s.mask = mask(lanes);
    Expr slice = read(parallel_) * integer(kSlice);
    if (lanes > 1 && chance(20)) {
      int64_t stride = 1 + pick(4);
      s.index = pool().ramp(slice + index(kSlice, stride * lanes), stride, lanes);
    } else {
      s.index = slice + index(kSlice, lanes);
      s.nontemporal = !s.mask && chance(10);
    }
    into.push_back({s});
    if (chance(10))
      into.push_back({Prefetch{inputs_[0], counter(), static_cast<int>(1 + pick(3))}});
  }

  void use_scratch(Block& into) {
    int64_t at = pick(3) * 16;
    into.push_back({Store{scratch_, integer(at), value(DType::f32, lanes_, 2), {}}});
    into.push_back({Store{outputs_[static_cast<size_t>(DType::f32)],
                          read(parallel_) * integer(kSlice) + index(kSlice, 1),
                          pool().load(scratch_, integer(at + pick(lanes_)), DType::f32),
                          {}}});
  }

  void branch(Block& into, int depth) {
    Expr condition = value(DType::b8, 1, 2);
    If result{condition, block(depth - 1), {}};
    if (chance(60)) result.else_body = block(depth - 1);
    into.push_back({result});
  }

  void loop(Block& into, int depth) {
    bool is_unrolled = chance(40);
    int64_t count = pick(4), step = 1 + pick(2);
    Expr lo = integer(is_unrolled || chance(60) ? 0 : 1), hi = integer(count);
    if (!is_unrolled && chance(40)) hi = mod(counter(), integer(4));
    Var var = add_loop_var(4);
    std::vector<Expr>& known = is_unrolled ? unrolled_ : loops_;
    known.push_back(read(var));
    if (is_unrolled) loops_.push_back(read(var));
    Block body = block(depth - 1);
    known.pop_back();
    if (is_unrolled) loops_.pop_back();
    into.push_back(
        {For{var, lo, hi, step, is_unrolled ? LoopKind::unroll : LoopKind::serial, body}});
  }

  Block block(int depth) {
    Block result;
    size_t outer_regs = regs_.size(), outer_lets = lets_.size();
    if (depth == 3 || chance(40)) declare(result);
    for (int64_t n = 1 + pick(depth == 3 ? 6 : 3); n > 0; --n) {
      int64_t what = pick(10);
      if (what < 2 && depth > 0) {
        loop(result, depth);
      } else if (what < 3 && depth > 0) {
        branch(result, depth);
      } else if (what < 4) {
        int lanes = chance(50) ? lanes_ : 1;
        DType dtype = chance(50) ? DType::i64 : any_dtype();
        Expr bound = dtype == DType::i64 && lanes == 1 ? counter() : value(dtype, lanes, 2);
        Var let = kernel_.add_var({"t", VarKind::let, dtype, lanes, INT64_MIN, INT64_MAX});
        result.push_back({Let{let, bound}});
        lets_.push_back(let);
      } else if (what < 7 && !regs_.empty()) {
        const Regs regs = regs_[static_cast<size_t>(pick(static_cast<int64_t>(regs_.size())))];
        result.push_back({SetReg{regs.array, register_index(regs.info),
                                 value(regs.info.dtype, regs.info.lanes, 3)}});
      } else if (what < 8) {
        use_scratch(result);
      } else {
        store(result);
      }
    }
    regs_.resize(outer_regs);
    lets_.resize(outer_lets);
    return result;
  }

  std::mt19937_64 random_;
  Multipliers target_;
  Kernel kernel_;
  int lanes_ = 8;
  std::vector<BufferRef> inputs_, outputs_;
  BufferRef scratch_;
  Var parallel_;
  std::vector<Expr> loops_;     // loop variables in scope
  std::vector<Expr> unrolled_;  // those of them that are constants
  std::vector<Regs> regs_;
  std::vector<Var> lets_;
};

template <class T>
bool same_float(T a, T b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool same_element(DType dtype, const std::byte* a, const std::byte* b) {
  if (dtype == DType::f64) {
    double x, y;
    std::memcpy(&x, a, 8);
    std::memcpy(&y, b, 8);
    return same_float(x, y);
  }
  if (dtype == DType::f32) {
    float x, y;
    std::memcpy(&x, a, 4);
    std::memcpy(&y, b, 4);
    return same_float(x, y);
  }
  if (is_float(dtype)) {
    uint16_t x, y;
    std::memcpy(&x, a, 2);
    std::memcpy(&y, b, 2);
    return dtype == DType::f16 ? same_float(f16_to_f32(x), f16_to_f32(y))
                               : same_float(bf16_to_f32(x), bf16_to_f32(y));
  }
  return std::memcmp(a, b, static_cast<size_t>(dtype_bytes(dtype))) == 0;
}

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

}  // namespace

loop::Kernel make_random_kernel(uint64_t seed, Multipliers target) {
  return Generator(seed, target).build();
}

std::vector<std::vector<std::byte>> make_random_memory(const loop::Kernel& kernel, uint64_t seed) {
  std::mt19937_64 random(seed * 77 + 1);
  std::vector<std::vector<std::byte>> memory;
  for (const Buffer& buffer : kernel.buffers) {
    if (buffer.space != Space::global) continue;
    auto width = static_cast<size_t>(dtype_bytes(buffer.dtype));
    std::vector<std::byte> bytes(static_cast<size_t>(buffer.size.value()) * width);
    for (size_t i = 0; i < bytes.size(); i += width) {
      auto number = static_cast<float>(static_cast<int64_t>(random() % 4001) - 2000) / 160;
      auto word = static_cast<int64_t>(random());
      switch (buffer.dtype) {
        case DType::b8:
          put(&bytes[i], static_cast<uint8_t>(word & 1));
          break;
        case DType::f16:
          put(&bytes[i], f32_to_f16(number));
          break;
        case DType::bf16:
          put(&bytes[i], f32_to_bf16(number));
          break;
        case DType::f32:
          put(&bytes[i], number);
          break;
        case DType::f64:
          put(&bytes[i], static_cast<double>(number) * 1.0625);
          break;
        default:
          std::memcpy(&bytes[i], &word, width);
      }
    }
    memory.push_back(std::move(bytes));
  }
  return memory;
}

int64_t first_difference(DType dtype, const std::vector<std::byte>& a,
                         const std::vector<std::byte>& b) {
  auto width = static_cast<size_t>(dtype_bytes(dtype));
  for (size_t i = 0; i + width <= a.size(); i += width)
    if (!same_element(dtype, &a[i], &b[i])) return static_cast<int64_t>(i / width);
  return -1;
}

}  // namespace lathe
