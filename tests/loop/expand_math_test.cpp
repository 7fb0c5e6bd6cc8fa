// The expansions of mathematical functions, run by the loop interpreter: their greatest error in
// f64 over dense samples against a wider type (tests/math has f32), and their values at the edges.
#include "ir/loop/expand_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <random>

#include "ir/loop/pool.h"
#include "ir/loop/strict.h"
#include "ir/loop/text.h"

namespace lathe::loop {
namespace {

using Build = std::function<Expr(Expr x, Expr y)>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int kLanes = 16;

template <class T>
DType dtype_of() {
  return sizeof(T) == 4 ? DType::f32 : DType::f64;
}

// build(x, y), expanded, for every element; `strict`: without fma.
template <class T>
std::vector<T> run(const Build& build, std::vector<T> x, std::vector<T> y = {},
                   bool strict = false) {
  DType dtype = dtype_of<T>();
  size_t count = x.size();
  size_t padded = (count + kLanes - 1) / kLanes * kLanes;
  x.resize(padded);
  y.resize(padded);
  std::vector<T> out(padded);
  Kernel kernel;
  kernel.name = "math";
  kernel.pool = std::make_shared<Pool>();
  auto size = static_cast<int64_t>(padded);
  BufferRef bx = kernel.add_buffer({"x", dtype, size});
  BufferRef by = kernel.add_buffer({"y", dtype, size});
  BufferRef bz = kernel.add_buffer({"z", dtype, size, Space::global, true});
  Var i = kernel.add_var({"i", VarKind::loop, DType::i64, 1, 0, size - 1});
  Pool& pool = *kernel.pool;
  Expr index = pool.var(i);
  Expr value = build(pool.load(bx, index, dtype, kLanes), pool.load(by, index, dtype, kLanes));
  kernel.body = {{For{i,
                      pool.integer(0),
                      pool.integer(size),
                      kLanes,
                      LoopKind::parallel,
                      {{Store{bz, index, value, {}}}}}}};
  strict ? make_strict(kernel) : expand_math(kernel);
  auto bytes = [&](std::vector<T>& v) {
    return Memory{reinterpret_cast<std::byte*>(v.data()), v.size() * sizeof(T)};
  };
  Status status = evaluate(kernel, {bytes(x), bytes(y), bytes(out)});
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
  out.resize(count);
  return out;
}

template <class T>
T one(const Build& build, T x, T y = 0) {
  return run<T>(build, {x}, {y})[0];
}

Build of(UnaryOp op) {
  return [op](Expr x, Expr) { return unary(op, x); };
}
Expr power(Expr x, Expr y) { return binary(BinaryOp::pow, x, y); }

// The distance in units of the exact result's last place; huge where only one is finite.
template <class T>
double ulps(T got, long double exact) {
  T rounded = static_cast<T>(exact);
  if (std::isnan(got) || std::isnan(rounded))
    return std::isnan(got) == std::isnan(rounded) ? 0 : 1e30;
  if (std::isinf(got) || std::isinf(rounded)) return got == rounded ? 0 : 1e30;
  int exponent = exact == 0 ? std::numeric_limits<T>::min_exponent : std::ilogb(exact) + 1;
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  long double unit = std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) / unit);
}

// Evenly spaced, and spread over all magnitudes of the range.
template <class T>
std::vector<T> samples(double low, double high, size_t count) {
  std::vector<T> values;
  std::mt19937_64 random(3);
  double largest = std::max(std::fabs(low), std::fabs(high));
  for (size_t i = 0; i < count; ++i) {
    double u = static_cast<double>(random() >> 11) * 0x1p-53;
    double v = low + (high - low) * (static_cast<double>(i) + u) / static_cast<double>(count);
    if (i % 4 == 0) v = std::copysign(largest * std::exp2(-40 * u), v);
    values.push_back(static_cast<T>(std::min(std::max(v, low), high)));
  }
  return values;
}

struct Case {
  const char* name;
  UnaryOp op;
  long double (*exact)(long double);
  double low, high;
  double bound;
};

template <class T>
void check(const Case& c, size_t count, bool strict) {
  std::vector<T> x = samples<T>(c.low, c.high, count);
  std::vector<T> y = run<T>(of(c.op), x, {}, strict);
  double worst = 0;
  T at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double error = ulps(y[i], c.exact(static_cast<long double>(x[i])));
    if (error > worst) worst = error, at = x[i];
  }
  EXPECT_LE(worst, c.bound) << c.name << " at " << at;
  std::printf("%-6s f%zu [%g, %g]: %.3f ulp at %.9g\n", c.name, 8 * sizeof(T), c.low, c.high, worst,
              static_cast<double>(at));
}

TEST(ExpandMath, ErrorsInDoublePrecision) {
  const Case cases[] = {
      {"exp", UnaryOp::exp, std::exp, -745, 709, 1.0},
      {"exp", UnaryOp::exp, std::exp, -1, 1, 1.0},
      {"expm1", UnaryOp::expm1, std::expm1, -40, 700, 2.0},
      {"expm1", UnaryOp::expm1, std::expm1, -1.5, 1.5, 2.0},
      {"log", UnaryOp::log, std::log, 5e-324, 1e-307, 1.0},
      {"log", UnaryOp::log, std::log, 0.2, 5, 1.0},
      {"log1p", UnaryOp::log1p, std::log1p, -0.9999, 3, 1.0},
      {"log1p", UnaryOp::log1p, std::log1p, -1e-3, 1e-3, 1.0},
      {"tanh", UnaryOp::tanh, std::tanh, -21, 21, 2.5},
      {"tanh", UnaryOp::tanh, std::tanh, -1, 1, 2.5},
      {"erf", UnaryOp::erf, std::erf, -7, 7, 1.2},
      {"erf", UnaryOp::erf, std::erf, -1.2, 1.2, 1.2},
      {"sin", UnaryOp::sin, std::sin, -10, 10, 1.6},
      {"sin", UnaryOp::sin, std::sin, -1e9, 1e9, 1.6},
      {"cos", UnaryOp::cos, std::cos, -10, 10, 1.6},
      {"cos", UnaryOp::cos, std::cos, -1e9, 1e9, 1.6},
      {"rsqrt", UnaryOp::rsqrt, [](long double v) { return 1 / std::sqrt(v); }, 1e-200, 100, 1.5},
  };
  for (const Case& c : cases)
    for (bool strict : {false, true}) check<double>(c, 40000, strict);
}

template <class T>
void check_pow(double low, double high, double low_y, double high_y, double bound, bool strict) {
  std::vector<T> x = samples<T>(low, high, 50000);
  std::vector<T> y = samples<T>(low_y, high_y, 50000);
  std::shuffle(y.begin(), y.end(), std::mt19937(5));
  std::vector<T> z = run<T>(power, x, y, strict);
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double error =
        ulps(z[i], std::pow(static_cast<long double>(x[i]), static_cast<long double>(y[i])));
    if (error > worst) worst = error, at = i;
  }
  EXPECT_LE(worst, bound) << x[at] << " ^ " << y[at];
  std::printf("pow    f%zu [%g, %g] ^ [%g, %g]: %.3f ulp at %.9g ^ %.9g\n", 8 * sizeof(T), low,
              high, low_y, high_y, worst, static_cast<double>(x[at]), static_cast<double>(y[at]));
}

TEST(ExpandMath, ErrorsOfPow) {
  for (bool strict : {false, true}) {
    check_pow<double>(1e-6, 10, -50, 50, 1.1, strict);
    check_pow<double>(0.9, 1.1, -7000, 7000, 1.1, strict);
    check_pow<double>(1e-308, 1e308, -1, 1, 1.1, strict);
  }
}

template <class T>
void check_edges() {
  constexpr T kMax = std::numeric_limits<T>::max();
  constexpr T kTiny = std::numeric_limits<T>::denorm_min();
  const T inf = static_cast<T>(kInf);
  const T nan = static_cast<T>(NAN);
  struct Edge {
    UnaryOp op;
    T x, expected;
  };
  const Edge edges[] = {
      {UnaryOp::exp, inf, inf},       {UnaryOp::exp, -inf, 0},        {UnaryOp::exp, 0, 1},
      {UnaryOp::exp, -0.0, 1},        {UnaryOp::exp, kMax, inf},      {UnaryOp::exp, -kMax, 0},
      {UnaryOp::exp, nan, nan},       {UnaryOp::exp, kTiny, 1},       {UnaryOp::expm1, inf, inf},
      {UnaryOp::expm1, -inf, -1},     {UnaryOp::expm1, -0.0, -0.0},   {UnaryOp::expm1, 0, 0},
      {UnaryOp::expm1, kTiny, kTiny}, {UnaryOp::expm1, nan, nan},     {UnaryOp::log, 0, -inf},
      {UnaryOp::log, -0.0, -inf},     {UnaryOp::log, 1, 0},           {UnaryOp::log, inf, inf},
      {UnaryOp::log, -1, nan},        {UnaryOp::log, -inf, nan},      {UnaryOp::log, nan, nan},
      {UnaryOp::log1p, -1, -inf},     {UnaryOp::log1p, -2, nan},      {UnaryOp::log1p, inf, inf},
      {UnaryOp::log1p, -0.0, -0.0},   {UnaryOp::log1p, kTiny, kTiny}, {UnaryOp::log1p, nan, nan},
      {UnaryOp::tanh, inf, 1},        {UnaryOp::tanh, -inf, -1},      {UnaryOp::tanh, -0.0, -0.0},
      {UnaryOp::tanh, 0, 0},          {UnaryOp::tanh, nan, nan},      {UnaryOp::tanh, kTiny, kTiny},
      {UnaryOp::erf, inf, 1},         {UnaryOp::erf, -inf, -1},       {UnaryOp::erf, -0.0, -0.0},
      {UnaryOp::erf, nan, nan},       {UnaryOp::erf, kTiny, kTiny},   {UnaryOp::sin, inf, nan},
      {UnaryOp::sin, -0.0, -0.0},     {UnaryOp::sin, 0, 0},           {UnaryOp::sin, nan, nan},
      {UnaryOp::sin, kTiny, kTiny},   {UnaryOp::cos, 0, 1},           {UnaryOp::cos, -inf, nan},
      {UnaryOp::cos, nan, nan},       {UnaryOp::rsqrt, 0, inf},       {UnaryOp::rsqrt, inf, 0},
      {UnaryOp::rsqrt, -1, nan},
  };
  for (const Edge& edge : edges) {
    T got = one<T>(of(edge.op), edge.x);
    int op = static_cast<int>(edge.op);
    if (std::isnan(edge.expected)) {
      EXPECT_TRUE(std::isnan(got)) << "op " << op << " of " << edge.x << " gave " << got;
    } else {
      EXPECT_EQ(got, edge.expected) << "op " << op << " of " << edge.x;
      EXPECT_EQ(std::signbit(got), std::signbit(edge.expected)) << "op " << op << " of " << edge.x;
    }
  }
  for (T x : {kMax, static_cast<T>(1e15), static_cast<T>(-3e30)}) {
    EXPECT_LE(std::fabs(one<T>(of(UnaryOp::sin), x)), 1);
    EXPECT_LE(std::fabs(one<T>(of(UnaryOp::cos), x)), 1);
  }
}

// 1 + erf(x) is a function of its own in f32, which keeps its digits where erf is near -1.
TEST(ExpandMath, OnePlusErfAtItsEdges) {
  const Build f = [](Expr x, Expr) { return erf(x) + 1.0; };
  EXPECT_EQ(one<float>(f, static_cast<float>(kInf)), 2.0f);
  EXPECT_EQ(one<float>(f, -static_cast<float>(kInf)), 0.0f);
  EXPECT_TRUE(std::isnan(one<float>(f, NAN)));
  EXPECT_EQ(one<float>(f, 0.0f), 1.0f);
  EXPECT_EQ(one<float>(f, -0.0f), 1.0f);
  for (float x : {1e-45f, -1e-30f, 1e30f, -1e30f, -4.0f, 4.0f, -0.5f, 0.5f, -0.99f, 1.01f})
    EXPECT_NEAR(one<float>(f, x), 1 + std::erf(x), 0x1p-22) << x;
}

TEST(ExpandMath, EdgesInSinglePrecision) { check_edges<float>(); }
TEST(ExpandMath, EdgesInDoublePrecision) { check_edges<double>(); }

// Every pair of unusual operands, against the C library.
template <class T>
void check_pow_edges() {
  const T inf = static_cast<T>(kInf);
  std::vector<T> unusual = {0,
                            -0.0f,
                            1,
                            -1,
                            2,
                            -2,
                            3,
                            -3,
                            0.5f,
                            -0.5f,
                            inf,
                            -inf,
                            static_cast<T>(NAN),
                            1.5f,
                            -1.5f,
                            100,
                            -101,
                            1e30f,
                            -1e30f,
                            std::numeric_limits<T>::denorm_min()};
  std::vector<T> x, y;
  for (T a : unusual)
    for (T b : unusual) x.push_back(a), y.push_back(b);
  std::vector<T> z = run<T>(power, x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    long double exact = std::pow(static_cast<long double>(x[i]), static_cast<long double>(y[i]));
    EXPECT_LE(ulps(z[i], exact), 1.0) << x[i] << " ^ " << y[i] << " gave " << z[i];
    bool has_sign = !std::isnan(z[i]);
    EXPECT_TRUE(!has_sign || std::signbit(z[i]) == std::signbit(exact)) << x[i] << " ^ " << y[i];
  }
}

TEST(ExpandMath, EdgesOfPow) {
  check_pow_edges<float>();
  check_pow_edges<double>();
}

TEST(ExpandMath, CommonExponentsBecomeProducts) {
  for (double exponent : {-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0}) {
    auto build = [&](Expr x, Expr) { return power(x, constant_like(x, exponent)); };
    std::vector<float> x = samples<float>(0.1, 50, 1000);
    std::vector<float> z = run<float>(build, x);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_LE(ulps(z[i], std::pow(static_cast<long double>(x[i]), exponent)), 2.0) << exponent;
  }
}

TEST(ExpandMath, IntegerPowersAreExact) {
  auto build = [](DType dtype) {
    return
        [dtype](Expr x, Expr y) { return cast(power(cast(x, dtype), cast(y, dtype)), DType::f64); };
  };
  EXPECT_EQ(one<double>(build(DType::i64), 3, 30), 205891132094649.0);
  EXPECT_EQ(one<double>(build(DType::i64), -2, 63), -0x1p63);
  EXPECT_EQ(one<double>(build(DType::i64), 5, 0), 1);
  EXPECT_EQ(one<double>(build(DType::i64), 0, 0), 1);
  EXPECT_EQ(one<double>(build(DType::i32), -1, -3), -1);
  EXPECT_EQ(one<double>(build(DType::i32), 2, -1), 0);
  EXPECT_EQ(one<double>(build(DType::u8), 3, 5), 243);
  EXPECT_EQ(one<double>(build(DType::u8), 2, 200), 0);
}

// store z[i] = build(x[i]), expanded, as text.
std::string expanded_text(const Build& build, DType dtype) {
  Kernel kernel;
  kernel.name = "math";
  kernel.pool = std::make_shared<Pool>();
  Pool& pool = *kernel.pool;
  BufferRef x = kernel.add_buffer({"x", dtype, 64});
  BufferRef z = kernel.add_buffer({"z", dtype, 64, Space::global, true});
  Var i = kernel.add_var({"i", VarKind::loop, DType::i64, 1, 0, 63});
  Expr value = build(pool.load(x, pool.var(i), dtype, kLanes), {});
  For loop{i, pool.integer(0), pool.integer(64), kLanes, LoopKind::parallel, {}};
  loop.body = {{Store{z, pool.var(i), value, {}}}};
  kernel.body = {{loop}};
  expand_math(kernel);
  return print(kernel);
}

TEST(ExpandMath, WindowsOfLargeOperandsAreABranchOfTheirOwn) {
  const Build both = [](Expr x, Expr) {
    return unary(UnaryOp::sin, x) + unary(UnaryOp::cos, x + 1.0);
  };
  const std::string text = expanded_text(both, DType::f32);
  const size_t branch = text.find("if reduce_lanes(any,"), rest = text.find("} else {");
  ASSERT_NE(branch, std::string::npos) << text;
  ASSERT_NE(rest, std::string::npos) << text;
  EXPECT_NE(text.substr(branch, rest - branch).find("i64("), std::string::npos) << text;
  EXPECT_EQ(text.substr(rest).find("i64("), std::string::npos) << text;
  EXPECT_EQ(expanded_text(both, DType::f64).find("if "), std::string::npos);
  EXPECT_EQ(expanded_text(of(UnaryOp::exp), DType::f32).find("if "), std::string::npos);
}

TEST(ExpandMath, NothingIsLeft) {
  Build all = [](Expr x, Expr y) {
    return tanh(exp(x)) + erf(log(y)) * rsqrt(abs(x)) + unary(UnaryOp::sin, power(abs(x), y));
  };
  EXPECT_TRUE(std::isfinite(one<float>(all, 0.3f, 1.7f)));
}

}  // namespace
}  // namespace lathe::loop
