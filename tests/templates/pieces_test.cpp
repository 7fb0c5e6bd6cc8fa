// Cuts of index sets, and the schedule of what is cut.
#include "ir/templates/pieces.h"

#include <cmath>
#include <functional>

#include "ir/loop/linear.h"
#include "ir/templates/loop_nest.h"
#include "tests/templates/run_kernel.h"

namespace lathe {
namespace {

using loop::Expr;

constexpr int64_t kMin = INT64_MIN, kMax = INT64_MAX;

// A variable of its own kernel.
struct Ranged {
  loop::Kernel kernel;
  loop::Var var;
  Ranged(int64_t min, int64_t max) {
    kernel.pool = std::make_shared<loop::Pool>();
    var = kernel.add_var({"i", loop::VarKind::loop, DType::i64, 1, min, max});
  }
  Expr read() { return kernel.pool->var(var); }
  Expr number(int64_t value) { return kernel.pool->integer(value); }
  std::vector<int64_t> starts(Expr e, size_t most = 64) const {
    return piece_starts({&e, 1}, var, kernel, most);
  }
};

using Form = std::function<Expr(Expr a, Expr b)>;

// The starts by trying every value: where `form` of the line and b is another than before.
std::vector<int64_t> tried(Ranged& i, const Form& form, Expr line, int64_t b) {
  std::vector<int64_t> starts;
  const auto value = [&](int64_t at) {
    return loop::as_int(form(loop::substitute(line, i.var, i.number(at)), i.number(b)))->value;
  };
  const loop::VarInfo& range = i.kernel.vars[i.var.id];
  for (int64_t at = range.min + 1; at <= range.max; ++at)
    if (value(at) != value(at - 1)) starts.push_back(at);
  return starts;
}

// `form` is cut where `rising` steps when its first argument rises with the variable, and where
// `falling` does when it falls.
void expect_cuts(const Form& form, const Form& rising, const Form& falling) {
  for (int64_t factor : {-7, -3, -1, 1, 2, 5}) {
    for (int64_t constant : {-11, -1, 0, 4, 30}) {
      for (int64_t b : {-9, 0, 1, 8, 21}) {
        Ranged i(-6, 13);
        const Expr line = i.read() * i.number(factor) + i.number(constant);
        const Form& changes = factor > 0 ? rising : falling;
        EXPECT_EQ(i.starts(form(line, i.number(b))), tried(i, changes, line, b))
            << factor << " * i + " << constant << ", " << b;
      }
    }
  }
}

void expect_cuts(const Form& form, const Form& changes) { expect_cuts(form, changes, changes); }

TEST(PieceStarts, AreWhereComparisonsChange) {
  const Form swapped_lt = [](Expr a, Expr b) { return loop::lt(b, a); };
  const Form swapped_le = [](Expr a, Expr b) { return loop::le(b, a); };
  expect_cuts(loop::lt, loop::lt);
  expect_cuts(loop::le, loop::le);
  expect_cuts(swapped_lt, swapped_lt);
  expect_cuts(swapped_le, swapped_le);
}

// Where both sides are equal either piece may have it: it goes where a guard's does.
TEST(PieceStarts, AreWhereTheSmallerChanges) {
  expect_cuts(loop::min, loop::le, loop::lt);
  expect_cuts(loop::max, loop::lt, loop::le);
}

// An equation that no integer solves is cut all the same, where the difference changes its sign.
TEST(PieceStarts, AreOnBothSidesOfAnEqualValue) {
  const auto signs = [](Expr a, Expr b) {
    const Expr one = a->pool->integer(1), none = a->pool->integer(0);
    return loop::select(loop::lt(a, b), none - one, loop::select(loop::lt(b, a), one, none));
  };
  expect_cuts(loop::eq, signs);
  expect_cuts(loop::ne, signs);
}

TEST(PieceStarts, AreWhereQuotientsStep) {
  for (int64_t factor : {-3, -1, 1, 2}) {
    for (int64_t constant : {-25, -4, 0, 7, 24}) {
      for (int64_t divisor : {10, 25, 40}) {
        Ranged i(-2, 14);
        const Expr line = i.read() * i.number(factor) + i.number(constant);
        const auto want = tried(i, loop::floor_div, line, divisor);
        ASSERT_LE(want.size(), 5u);
        const auto few = want.size() > 4 ? std::vector<int64_t>{} : want;
        EXPECT_EQ(i.starts(loop::floor_div(line, i.number(divisor))), few);
        EXPECT_EQ(i.starts(loop::mod(line, i.number(divisor))), few)
            << factor << " * i + " << constant << " by " << divisor;
      }
    }
  }
}

TEST(PieceStarts, AreNoneOfQuotientsThatStepOften) {
  Ranged i(0, 100);
  EXPECT_TRUE(i.starts(loop::mod(i.read(), i.number(2))).empty());
  EXPECT_TRUE(i.starts(loop::floor_div(i.read(), i.number(0) - i.number(3))).empty());
  EXPECT_TRUE(i.starts(loop::mod(i.read(), i.number(0))).empty());
}

TEST(PieceStarts, AreNoneBeyondTheMost) {
  Ranged i(0, 100);
  Expr sum = i.number(0);
  for (int64_t at : {10, 20, 30}) sum = sum + loop::min(i.read(), i.number(at));
  EXPECT_EQ(i.starts(sum, 3), (std::vector<int64_t>{11, 21, 31}));
  EXPECT_TRUE(i.starts(sum, 2).empty());
  EXPECT_TRUE(i.starts(sum, 0).empty());
}

TEST(PieceStarts, AreNoneBetweenVariables) {
  Ranged i(0, 100);
  const loop::Var other = i.kernel.add_var({"j", loop::VarKind::loop, DType::i64, 1, 0, 9});
  EXPECT_TRUE(i.starts(loop::lt(i.read(), i.kernel.pool->var(other))).empty());
  EXPECT_TRUE(i.starts(loop::lt(i.kernel.pool->var(other), i.number(3))).empty());
}

// What does not fit in 64 bits is left alone.
TEST(PieceStarts, DoNotOverflow) {
  Ranged all(kMin, kMax);
  EXPECT_EQ(all.starts(loop::lt(all.read(), all.number(5))), std::vector<int64_t>{5});
  for (int64_t large : {kMin, kMin + 1, kMax - 1, kMax}) {
    for (int64_t other : {kMin, int64_t{-1}, int64_t{0}, int64_t{1}, kMax}) {
      for (const auto& [min, max] : {std::pair(kMin, kMax), std::pair(int64_t{0}, int64_t{9})}) {
        Ranged i(min, max);
        const Expr line = i.read() * i.number(large) + i.number(other);
        for (const Form& form :
             {Form(loop::lt), Form(loop::le), Form(loop::eq), Form(loop::floor_div)}) {
          EXPECT_TRUE(i.starts(form(line, i.number(large))).empty()) << large << ", " << other;
          EXPECT_TRUE(i.starts(form(i.read() + i.number(other), i.number(large))).size() < 3);
        }
      }
    }
  }
}

// --- nests

struct Shape {
  int64_t rows, columns;
};
class Pieces : public ::testing::TestWithParam<std::tuple<Shape, const char*>> {
 protected:
  // Element [i, j] of a nest over the shape, read from x and y of `size` elements each, is
  // want(i, j).
  using Element = std::function<Expr(Expr i, Expr j)>;
  using Want = std::function<float(int64_t i, int64_t j)>;
  void check(const Element& element, const Want& want) {
    nest_.values = {element(at_[0], at_[1])};
    Floats outs(size_t(shape_.rows * shape_.columns), NAN);
    const Target& target = *find_target(std::get<1>(GetParam()));
    const loop::Kernel kernel = schedule(nest_, target);
    run_kernel(kernel, {&outs, &xs_, &ys_});
    // No element is chosen between two: every piece has its own code.
    if (!target.groups)
      EXPECT_EQ(loop::print(kernel).find("select"), std::string::npos) << loop::print(kernel);
    for (int64_t i = 0; i < shape_.rows; ++i)
      for (int64_t j = 0; j < shape_.columns; ++j)
        ASSERT_EQ(outs[size_t(i * shape_.columns + j)], want(i, j)) << i << ", " << j;
  }

  void SetUp() override {
    shape_ = std::get<0>(GetParam());
    nest_.kernel.pool = std::make_shared<loop::Pool>();
    const int64_t size = shape_.rows * shape_.columns;
    for (int64_t extent : {shape_.rows, shape_.columns}) {
      nest_.vars.push_back(
          nest_.kernel.add_var({"i", loop::VarKind::loop, DType::i64, 1, 0, extent - 1}));
      nest_.extents.push_back(extent);
      at_.push_back(pool().var(nest_.vars.back()));
    }
    nest_.index = at_[0] * number(shape_.columns) + at_[1];
    nest_.outs = {nest_.kernel.add_buffer({"out", DType::f32, size, loop::Space::global, true})};
    x_ = nest_.kernel.add_buffer({"x", DType::f32, size});
    y_ = nest_.kernel.add_buffer({"y", DType::f32, size});
    xs_ = numbers(size, 1);
    ys_ = numbers(size, 2);
  }

  loop::Pool& pool() { return *nest_.kernel.pool; }
  Expr number(int64_t value) { return pool().integer(value); }
  Expr load(loop::BufferRef from, Expr index) { return pool().load(from, index, DType::f32); }
  Expr clamped(Expr e, int64_t extent) {
    return loop::min(loop::max(e, number(0)), number(extent - 1));
  }

  Shape shape_;
  LoopNest nest_;
  std::vector<Expr> at_;
  loop::BufferRef x_, y_;
  Floats xs_, ys_;
};

// The first rows, or columns, are x's; the others y's.
TEST_P(Pieces, ConcatenateRows) {
  const int64_t c = shape_.columns, first = shape_.rows / 3, others = shape_.rows - first;
  check(
      [&](Expr i, Expr j) {
        const Expr y = load(y_, clamped(i - number(first), others) * number(c) + j);
        if (first == 0) return y;
        const Expr x = load(x_, clamped(i, first) * number(c) + j);
        return loop::select(loop::lt(i, number(first)), x, y);
      },
      [&](int64_t i, int64_t j) {
        return i < first ? xs_[size_t(i * c + j)] : ys_[size_t((i - first) * c + j)];
      });
}

TEST_P(Pieces, ConcatenateColumns) {
  const int64_t first = shape_.columns / 3, others = shape_.columns - first;
  check(
      [&](Expr i, Expr j) {
        const Expr y = load(y_, i * number(others) + clamped(j - number(first), others));
        if (first == 0) return y;
        const Expr x = load(x_, i * number(first) + clamped(j, first));
        return loop::select(loop::lt(j, number(first)), x, y);
      },
      [&](int64_t i, int64_t j) {
        return j < first ? xs_[size_t(i * first + j)] : ys_[size_t(i * others + j - first)];
      });
}

TEST_P(Pieces, Pad) {
  const int64_t top = shape_.rows / 4, left = shape_.columns / 5;
  const int64_t h = shape_.rows - 2 * top, w = shape_.columns - 2 * left;
  check(
      [&](Expr i, Expr j) {
        const auto within = [&](Expr e, int64_t extent) {
          return loop::logical_and(loop::le(number(0), e), loop::le(e, number(extent - 1)));
        };
        const Expr y = i - number(top), x = j - number(left);
        const Expr value = load(x_, clamped(y, h) * number(w) + clamped(x, w));
        return loop::select(loop::logical_and(within(y, h), within(x, w)), value,
                            loop::constant_like(value, 7));
      },
      [&](int64_t i, int64_t j) {
        const int64_t y = i - top, x = j - left;
        return y < 0 || y >= h || x < 0 || x >= w ? 7.0f : xs_[size_t(y * w + x)];
      });
}

TEST_P(Pieces, Roll) {
  const int64_t r = shape_.rows, c = shape_.columns, down = r / 2, right = c / 4;
  check(
      [&](Expr i, Expr j) {
        return load(x_, loop::mod(i - number(down), number(r)) * number(c) +
                            loop::mod(j - number(right), number(c)));
      },
      [&](int64_t i, int64_t j) {
        return xs_[size_t((i - down + r) % r * c + (j - right + c) % c)];
      });
}

TEST_P(Pieces, Transpose) {
  const int64_t r = shape_.rows, c = shape_.columns;
  check([&](Expr i, Expr j) { return load(x_, j * number(r) + i) + load(y_, i * number(c) + j); },
        [&](int64_t i, int64_t j) { return xs_[size_t(j * r + i)] + ys_[size_t(i * c + j)]; });
}

// Both at once: a transposed copy whose columns turn.
TEST_P(Pieces, TransposeWhatTheyRoll) {
  const int64_t r = shape_.rows, c = shape_.columns, right = c / 3, down = r / 3;
  check(
      [&](Expr i, Expr j) {
        return load(x_, loop::mod(j - number(right), number(c)) * number(r) +
                            loop::mod(i - number(down), number(r)));
      },
      [&](int64_t i, int64_t j) {
        return xs_[size_t((j - right + c) % c * r + (i - down + r) % r)];
      });
}

INSTANTIATE_TEST_SUITE_P(
    Extents, Pieces,
    ::testing::Combine(::testing::Values(Shape{1, 1}, Shape{1, 37}, Shape{5, 7}, Shape{35, 1},
                                         Shape{19, 53}, Shape{37, 16}, Shape{3, 5003},
                                         Shape{1031, 3}),
                       ::testing::Values("avx512", "avx2", "simd128", "sm_90")));

}  // namespace
}  // namespace lathe
