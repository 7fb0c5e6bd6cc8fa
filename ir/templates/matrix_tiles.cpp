// The template for products of matrix tiles: see matrix_tiles.h.
#include "ir/templates/matrix_tiles.h"

#include <algorithm>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/loop/vectorize.h"
#include "ir/templates/ceil_div.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;

constexpr int64_t kSteps = 2;  // tiles along k of what lies in shared memory
constexpr int64_t kPad = 8;    // elements behind a line there: the next one is in other banks

// A block of the result: threads in rows and columns, each with rows and columns of tiles.
struct BlockShape {
  int64_t thread_rows, thread_columns, rows, columns;
  int64_t threads() const { return thread_rows * thread_columns; }
};
// Larger ones read their operands less often; smaller ones are more, and narrow ones do not
// multiply by columns that are not there.
constexpr BlockShape kBlocks[] = {
    {2, 4, 4, 2}, {4, 2, 2, 2}, {4, 1, 2, 2}, {2, 2, 2, 2}, {2, 2, 1, 1}};

int64_t product(const std::vector<int64_t>& extents) {
  int64_t all = 1;
  for (int64_t extent : extents) all *= extent;
  return all;
}

// A load, perhaps widened or narrowed again: where it is masked it is zero.
bool is_plain_load(Expr e) {
  while (auto* cast = std::get_if<loop::Cast>(&e->kind)) e = cast->x;
  return std::holds_alternative<loop::Load>(e->kind);
}

class TileProduct {
 public:
  TileProduct(loop::Kernel& kernel, const MatrixTileSpec& spec, const MatrixTile& tile,
              const Target& target)
      : kernel_(kernel),
        pool_(*kernel.pool),
        spec_(spec),
        tile_(tile),
        lanes_(tile.m * tile.n),
        rows_(product(spec.m)),
        depth_(product(spec.k)) {
    choose_block(target);
  }

  void build() {
    left_ = shared("left", spec_.dtype, halves() * left_size());
    right_ = shared("right", spec_.dtype, halves() * right_size());
    sums_ = shared("sums", DType::f32, shape_.threads() * lanes_);
    const int64_t down = ceil_div(rows_, height()), across = ceil_div(spec_.n, width());
    const int64_t batches = product(spec_.batch);
    Block group;
    const Var task = loop_var("task", down * across * batches);
    Expr rest = pool_.var(task);
    first_column_ = take(group, "column", rest, across, down * batches) * pool_.integer(width());
    first_row_ = take(group, "row", rest, down, batches) * pool_.integer(height());
    batch_ = unflatten(rest, spec_.batch);
    const Var thread = loop_var("worker", shape_.threads());
    thread_ = pool_.var(thread);
    group.push_back({For{thread, pool_.integer(0), pool_.integer(shape_.threads()), 1,
                         LoopKind::thread, thread_body()}});
    kernel_.body.push_back({For{task, pool_.integer(0), pool_.integer(down * across * batches), 1,
                                LoopKind::parallel, std::move(group)}});
  }

 private:
  int64_t height() const { return shape_.thread_rows * shape_.rows * tile_.m; }
  int64_t width() const { return shape_.thread_columns * shape_.columns * tile_.n; }
  int64_t step() const { return kSteps * tile_.k; }
  int64_t left_stride() const { return step() + kPad; }
  int64_t right_stride() const { return width() + kPad; }
  int64_t left_size() const { return height() * left_stride(); }
  int64_t right_size() const { return step() * right_stride(); }
  int64_t steps() const { return ceil_div(depth_, step()); }
  // Of shared memory: one is multiplied from while the other is filled.
  int64_t halves() const { return steps() > 1 ? 2 : 1; }

  // The largest block of which there are enough for half of the machine's threads, and that is not
  // twice as wide as the product.
  void choose_block(const Target& target) {
    const int64_t columns = ceil_div(spec_.n, tile_.n) * tile_.n;
    for (const BlockShape& shape : kBlocks) {
      shape_ = shape;
      if (width() >= 2 * columns) continue;
      const int64_t blocks =
          ceil_div(rows_, height()) * ceil_div(spec_.n, width()) * product(spec_.batch);
      if (blocks * shape.threads() * target.groups->warp >= target.groups->filling / 2) return;
    }
  }

  Var loop_var(const char* name, int64_t extent) {
    return kernel_.add_var({name, loop::VarKind::loop, DType::i64, 1, 0, extent - 1});
  }
  Expr let(Block& block, const char* name, Expr value, int64_t max) {
    const Var var = kernel_.add_var({name, loop::VarKind::let, DType::i64, 1, 0, max});
    block.push_back({loop::Let{var, value}});
    return pool_.var(var);
  }
  loop::BufferRef shared(const char* name, DType dtype, int64_t size) {
    return kernel_.add_buffer({name, dtype, size, loop::Space::shared, true});
  }
  // The innermost digit of `number`, which counts to extent * others; leaves the others.
  Expr take(Block& block, const char* name, Expr& number, int64_t extent, int64_t others) {
    if (extent == 1) return pool_.integer(0);
    const Expr digit = let(block, name, loop::mod(number, pool_.integer(extent)), extent - 1);
    number = let(block, "rest", loop::floor_div(number, pool_.integer(extent)), others - 1);
    return digit;
  }
  std::vector<Expr> unflatten(Expr number, const std::vector<int64_t>& extents) {
    std::vector<Expr> digits(extents.size());
    for (size_t i = extents.size(); i-- > 0;) {
      digits[i] = i == 0 ? number : loop::mod(number, pool_.integer(extents[i]));
      if (i > 0) number = loop::floor_div(number, pool_.integer(extents[i]));
    }
    return digits;
  }
  For unroll(Var var, int64_t extent, Block body) {
    return {var, pool_.integer(0), pool_.integer(extent), 1, LoopKind::unroll, std::move(body)};
  }
  loop::RegArray tiles(Block& block, const char* name, loop::TileRole role, DType dtype,
                       std::vector<int64_t> shape) {
    const loop::TileShape of{tile_.m, tile_.n, tile_.k};
    const loop::RegArray array = kernel_.add_regs({name, dtype, 1, std::move(shape), role, of});
    block.push_back({loop::DeclareRegs{array}});
    return array;
  }

  Block thread_body() {
    Block body;
    const int64_t columns = shape_.thread_columns;
    own_row_ =
        let(body, "own_row",
            loop::floor_div(thread_, pool_.integer(columns)) * pool_.integer(shape_.rows * tile_.m),
            height() - 1);
    own_column_ =
        let(body, "own_column",
            loop::mod(thread_, pool_.integer(columns)) * pool_.integer(shape_.columns * tile_.n),
            width() - 1);
    acc_ = tiles(body, "acc", loop::TileRole::sum, DType::f32, {shape_.rows, shape_.columns});
    each_sum(body, [&](Expr i, Expr j, Block& inside) {
      inside.push_back({loop::SetReg{acc_, {i, j}, pool_.number(0, DType::f32)}});
    });
    fetch_and_multiply(body);
    each_sum(body, [&](Expr i, Expr j, Block& inside) { finish(inside, i, j); });
    return body;
  }

  // What the next step multiplies is on its way from memory while this one's is multiplied.
  void fetch_and_multiply(Block& body) {
    put(body, fetch(body, pool_.integer(0)), pool_.integer(0));
    body.push_back({loop::Barrier{}});
    if (steps() > 1) {
      const Var number = loop_var("number", steps() - 1);
      const Expr next = pool_.var(number) + pool_.integer(1);
      Block along;
      const std::vector<Fetched> fetched = fetch(along, next * pool_.integer(step()));
      multiply(along, half(pool_.var(number)));
      put(along, fetched, half(next));
      along.push_back({loop::Barrier{}});
      body.push_back({For{number, pool_.integer(0), pool_.integer(steps() - 1), 1, LoopKind::serial,
                          std::move(along)}});
    }
    multiply(body, half(pool_.integer(steps() - 1)));
  }
  Expr half(Expr number) {
    return halves() == 1 ? pool_.integer(0) : loop::mod(number, pool_.integer(2));
  }

  template <class F>
  void each_sum(Block& block, const F& body) {
    const Var i = loop_var("i", shape_.rows), j = loop_var("j", shape_.columns);
    Block inside, row;
    body(pool_.var(i), pool_.var(j), inside);
    row.push_back({unroll(j, shape_.columns, std::move(inside))});
    block.push_back({unroll(i, shape_.rows, std::move(row))});
  }

  // A vector of an operand in registers, and where it belongs in shared memory.
  struct Fetched {
    loop::BufferRef buffer;
    int64_t half = 0;  // elements of it
    Var at;
    Expr place, vector;
  };

  // Every thread takes every so manieth vector of `lines` lines of `length` elements each:
  // take(block, first element, line, place in it), of which the last two are over the first.
  template <class F>
  void each_vector(Block& block, int64_t lines, int64_t length, const F& take) {
    const int64_t count = lines * length / (lanes_ * shape_.threads());
    for (int64_t v = 0; v < count; ++v) {
      const Expr vector = pool_.integer(v * shape_.threads()) + thread_;
      const Var at =
          kernel_.add_var({"at", loop::VarKind::let, DType::i64, 1, 0, lines * length - 1});
      block.push_back({loop::Let{at, vector * pool_.integer(lanes_)}});
      const Expr first = pool_.var(at);
      take(at, loop::floor_div(first, pool_.integer(length)),
           loop::mod(first, pool_.integer(length)));
    }
  }

  Expr within(Expr index, int64_t extent, int64_t block) {
    return extent % block == 0 ? Expr() : loop::lt(index, pool_.integer(extent));
  }
  static Expr both(Expr a, Expr b) { return a && b ? loop::logical_and(a, b) : a ? a : b; }

  // Both operands from term `k` on.
  std::vector<Fetched> fetch(Block& block, Expr k) {
    std::vector<Fetched> fetched;
    each_vector(block, height(), step(), [&](Var at, Expr line, Expr place) {
      const Expr row = first_row_ + line, depth = k + place;
      const Expr mask = both(within(row, rows_, height()), within(depth, depth_, step()));
      const Expr x = spec_.left(batch_, unflatten(row, spec_.m), unflatten(depth, spec_.k));
      fetched.push_back({left_, left_size(), at, line * pool_.integer(left_stride()) + place,
                         fetch(block, x, at, mask)});
    });
    each_vector(block, step(), width(), [&](Var at, Expr line, Expr place) {
      const Expr depth = k + line, column = first_column_ + place;
      const Expr mask = both(within(depth, depth_, step()), within(column, spec_.n, width()));
      const Expr x = spec_.right(batch_, unflatten(depth, spec_.k), column);
      fetched.push_back({right_, right_size(), at, line * pool_.integer(right_stride()) + place,
                         fetch(block, x, at, mask)});
    });
    return fetched;
  }

  // A vector of elements, zero where they are masked.
  Expr fetch(Block& block, Expr x, Var at, Expr inside) {
    x = simplified(loop::cast(x, spec_.dtype));
    const Expr mask = inside ? loop::vectorize(inside, {at, lanes_, {}}) : Expr();
    Expr vector = loop::vectorize(x, {at, lanes_, mask});
    if (mask && !is_plain_load(x))
      vector = loop::select(mask, vector, loop::constant_like(vector, 0));
    const Var held =
        kernel_.add_var({"held", loop::VarKind::let, spec_.dtype, lanes_, 0, INT64_MAX});
    block.push_back({loop::Let{held, vector}});
    return pool_.var(held, spec_.dtype, lanes_);
  }

  // To that half of shared memory.
  void put(Block& block, const std::vector<Fetched>& fetched, Expr half) {
    for (const Fetched& each : fetched) {
      const Expr index = each.place + half * pool_.integer(each.half);
      block.push_back({loop::Store{
          each.buffer, loop::vectorize(index, {each.at, lanes_, {}}), each.vector, {}, false}});
    }
  }
  // Positions that were taken apart and put together again are one number.
  Expr simplified(Expr e) {
    return loop::rewrite(e, [&](Expr part) {
      const auto* load = std::get_if<loop::Load>(&part->kind);
      if (!load || load->mask) return Expr();
      return pool_.load(load->buffer, loop::simplify_index(load->index, kernel_), part->dtype,
                        part->lanes);
    });
  }

  void multiply(Block& block, Expr half) {
    const Var s = loop_var("s", kSteps);
    const Expr depth = pool_.var(s) * pool_.integer(tile_.k);
    Block inside;
    const loop::RegArray left =
        tiles(inside, "a", loop::TileRole::left, spec_.dtype, {shape_.rows});
    const loop::RegArray right =
        tiles(inside, "b", loop::TileRole::right, spec_.dtype, {shape_.columns});
    const Var i = loop_var("i", shape_.rows), j = loop_var("j", shape_.columns);
    const Expr row = own_row_ + pool_.var(i) * pool_.integer(tile_.m);
    const Expr column = own_column_ + pool_.var(j) * pool_.integer(tile_.n);
    Block rows, columns;
    rows.push_back({loop::LoadTile{
        {left, {pool_.var(i)}},
        left_,
        row * pool_.integer(left_stride()) + depth + half * pool_.integer(left_size()),
        left_stride(),
        false}});
    columns.push_back({loop::LoadTile{
        {right, {pool_.var(j)}},
        right_,
        depth * pool_.integer(right_stride()) + column + half * pool_.integer(right_size()),
        right_stride(),
        false}});
    inside.push_back({unroll(i, shape_.rows, std::move(rows))});
    inside.push_back({unroll(j, shape_.columns, std::move(columns))});
    each_sum(inside, [&](Expr m, Expr n, Block& into) {
      into.push_back({loop::Mma{{acc_, {m, n}}, {left, {m}}, {right, {n}}}});
    });
    block.push_back({unroll(s, kSteps, std::move(inside))});
  }

  // A sum's elements as a vector, through the epilogue.
  void finish(Block& block, Expr i, Expr j) {
    const Expr own = thread_ * pool_.integer(lanes_);
    block.push_back({loop::StoreTile{sums_, own, tile_.n, {acc_, {i, j}}}});
    const Var at = kernel_.add_var({"at", loop::VarKind::let, DType::i64, 1, 0, lanes_ - 1});
    block.push_back({loop::Let{at, pool_.integer(0)}});
    const Expr first = pool_.var(at);
    const Expr row = first_row_ + own_row_ + i * pool_.integer(tile_.m) +
                     loop::floor_div(first, pool_.integer(tile_.n));
    const Expr column = first_column_ + own_column_ + j * pool_.integer(tile_.n) +
                        loop::mod(first, pool_.integer(tile_.n));
    const Expr inside = both(within(row, rows_, height()), within(column, spec_.n, width()));
    const Expr sum = pool_.load(sums_, own + first, DType::f32);
    const ResultElement result = spec_.epilogue(batch_, unflatten(row, spec_.m), column, sum);
    const Expr mask = inside ? loop::vectorize(inside, {at, lanes_, {}}) : Expr();
    const Expr index = loop::simplify_index(result.index, kernel_);
    block.push_back(
        {loop::Store{result.buffer, loop::vectorize(index, {at, lanes_, {}}),
                     loop::vectorize(simplified(result.value), {at, lanes_, mask}), mask, false}});
  }

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const MatrixTileSpec& spec_;
  const MatrixTile& tile_;
  int lanes_;
  int64_t rows_, depth_;
  BlockShape shape_ = kBlocks[0];
  loop::BufferRef left_, right_, sums_;
  loop::RegArray acc_;
  Expr first_row_, first_column_, thread_, own_row_, own_column_;
  std::vector<Expr> batch_;
};

}  // namespace

std::optional<MatrixTile> matrix_tile(DType dtype, const Target& target) {
  if (!target.groups) return std::nullopt;
  // A tile of sums is one vector then.
  const int64_t lanes = int64_t{target.groups->warp} * target.groups->most_lanes;
  for (const MatrixTile& tile : target.groups->tiles)
    if (tile.dtype == dtype && int64_t{tile.m} * tile.n == lanes) return tile;
  return std::nullopt;
}

void build_matrix_tiles(loop::Kernel& kernel, const MatrixTileSpec& spec, const MatrixTile& tile,
                        const Target& target) {
  TileProduct(kernel, spec, tile, target).build();
}

}  // namespace lathe
