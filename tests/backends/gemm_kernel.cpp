// The kernel of gemm_kernel.h.
#include "tests/backends/gemm_kernel.h"

#include "ir/loop/pool.h"

namespace lathe {
namespace {

using namespace loop;

class Gemm {
 public:
  explicit Gemm(const GemmShape& shape) : s_(shape) {
    kernel_.name = "gemm";
    kernel_.pool = std::make_shared<Pool>();
    a_ = kernel_.add_buffer({"a", DType::f32, s_.m * s_.k});
    b_ = kernel_.add_buffer({"b", DType::f32, s_.n * s_.k});
    bias_ = kernel_.add_buffer({"bias", DType::f32, s_.n});
    c_ = kernel_.add_buffer({"c", DType::f32, s_.m * s_.n, Space::global, true});
  }

  Kernel build() {
    Var panel = loop_var("panel", s_.n / width());
    panel_ = read(panel);
    tiles_ = (s_.m + s_.rows - 1) / s_.rows;
    int64_t low = s_.m / tiles_, num_high = s_.m % tiles_;
    Block body;
    if (num_high > 0) add_tiles(body, low + 1, num_high, 0, 0);
    add_tiles(body, low, tiles_ - num_high, num_high * (low + 1), num_high);
    kernel_.body.push_back(
        {For{panel, constant(0), constant(s_.n / width()), 1, LoopKind::parallel, body}});
    return std::move(kernel_);
  }

 private:
  int64_t width() const { return int64_t{s_.vectors} * s_.lanes; }
  Expr constant(int64_t v) { return kernel_.pool->integer(v); }
  Expr read(Var v) { return kernel_.pool->var(v); }
  Var loop_var(const char* name, int64_t count) {
    return kernel_.add_var({name, VarKind::loop, DType::i64, 1, 0, count - 1});
  }
  Expr reg(RegArray array, std::vector<Expr> at) {
    return kernel_.pool->reg(array, std::move(at), DType::f32, s_.lanes);
  }
  Stmt unroll(Var var, int64_t count, Block body) {
    return {For{var, constant(0), constant(count), 1, LoopKind::unroll, std::move(body)}};
  }

  // `count` tiles of `rows` rows from row `first`; `index` tiles come before.
  void add_tiles(Block& body, int64_t rows, int64_t count, int64_t first, int64_t index) {
    if (count == 0) return;
    Var tile = loop_var("tile", count);
    Expr row0 = read(tile) * constant(rows) + constant(first);
    RegArray acc = kernel_.add_regs({"acc", DType::f32, s_.lanes, {rows, s_.vectors}});
    Block inner = {{DeclareRegs{acc}}};
    Var i = loop_var("i", rows), j = loop_var("j", s_.vectors);
    Expr zero = splat(kernel_.pool->number(0, DType::f32), s_.lanes);
    inner.push_back(
        unroll(i, rows, {unroll(j, s_.vectors, {{SetReg{acc, {read(i), read(j)}, zero}}})}));
    inner.push_back(depth_loop(acc, rows, row0, read(tile) + constant(index)));
    Expr column = panel_ * constant(width()) + read(j) * constant(s_.lanes);
    Expr bias = kernel_.pool->load(bias_, column, DType::f32, s_.lanes);
    Expr sum = reg(acc, {read(i), read(j)}) + bias;
    Store store{c_, (row0 + read(i)) * constant(s_.n) + column, max(sum, zero), {}};
    inner.push_back(unroll(i, rows, {unroll(j, s_.vectors, {{store}})}));
    body.push_back({For{tile, constant(0), constant(count), 1, LoopKind::serial, inner}});
  }

  // The loop over k, which prefetches this tile's share of the next panel.
  Stmt depth_loop(RegArray acc, int64_t rows, Expr row0, Expr tile) {
    Var k = loop_var("k", s_.k), u = loop_var("u", s_.unroll), i = loop_var("ki", rows),
        j = loop_var("kj", s_.vectors);
    RegArray column = kernel_.add_regs({"column", DType::f32, s_.lanes, {s_.vectors}});
    RegArray row = kernel_.add_regs({"row", DType::f32, s_.lanes, {}});
    Expr depth = read(k) + read(u);
    Expr b = kernel_.pool->load(
        b_, (panel_ * constant(s_.k) + depth) * constant(width()) + read(j) * constant(s_.lanes),
        DType::f32, s_.lanes);
    Expr a = splat(kernel_.pool->load(a_, (row0 + read(i)) * constant(s_.k) + depth, DType::f32),
                   s_.lanes);
    Expr product = fma(reg(row, {}), reg(column, {read(j)}), reg(acc, {read(i), read(j)}));
    Block step = {
        unroll(j, s_.vectors, {{SetReg{column, {read(j)}, b}}}),
        unroll(i, rows,
               {{SetReg{row, {}, a}},
                unroll(j, s_.vectors, {{SetReg{acc, {read(i), read(j)}, product}}})}),
    };
    int64_t share = s_.k * width() / tiles_, per_step = share * s_.unroll / s_.k;
    Expr next = (panel_ + constant(1)) * constant(s_.k * width()) + tile * constant(share) +
                read(k) * constant(per_step / s_.unroll);
    Block body = {{DeclareRegs{column}}, {DeclareRegs{row}}};
    for (int64_t line = 0; line < per_step; line += 16)
      body.push_back({Prefetch{b_, next + constant(line), 3}});
    body.push_back(unroll(u, s_.unroll, step));
    return {For{k, constant(0), constant(s_.k), s_.unroll, LoopKind::serial, body}};
  }

  GemmShape s_;
  Kernel kernel_;
  BufferRef a_, b_, bias_, c_;
  Expr panel_;
  int64_t tiles_ = 1;
};

}  // namespace

loop::Kernel make_gemm_kernel(const GemmShape& shape) { return Gemm(shape).build(); }

}  // namespace lathe
