// The window template against plain sums and maxima.
#include "ir/templates/window.h"

#include <cmath>
#include <string>

#include "tests/templates/run_kernel.h"

namespace lathe {
namespace {

using loop::Expr;
using Index = std::span<const Expr>;

enum class Rest { none, cheap, costly };  // of the epilogue: nothing, a bias, long arithmetic

struct WindowCase {
  int64_t images, channels;
  std::vector<WindowDim> dims;  // their outputs follow from the others
  bool is_weighted = true;
  loop::ReduceOp op = loop::ReduceOp::sum;
  Rest rest = Rest::cheap;
  int64_t group = 1;
};

WindowDim sized(WindowDim dim) {
  const int64_t room = dim.input.value() + 2 * dim.padding - (dim.taps - 1) * dim.dilation - 1;
  dim.output = room / dim.stride + 1;
  return dim;
}

std::string describe(const WindowCase& test) {
  std::string text = std::to_string(test.images) + " images of " + std::to_string(test.channels);
  for (const WindowDim& dim : test.dims) {
    text += ", [";
    for (int64_t number :
         {dim.input.value(), dim.output.value(), dim.taps, dim.stride, dim.padding, dim.dilation})
      text += " " + std::to_string(number);
    text += " ]";
  }
  return text + (test.is_weighted ? " weighted" : "") + " in groups of " +
         std::to_string(test.group) + " rest " + std::to_string(static_cast<int>(test.rest));
}

// Of the dims, outermost first, and then the channels.
int64_t flat(const std::vector<int64_t>& index, const std::vector<int64_t>& extents) {
  int64_t at = 0;
  for (size_t i = 0; i < index.size(); ++i) at = at * extents[i] + index[i];
  return at;
}

// Calls visit for every index within the extents.
template <class F>
void for_each_index(const std::vector<int64_t>& extents, F&& visit) {
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  std::vector<int64_t> index(extents.size());
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n;
    for (size_t i = extents.size(); i-- > 0; rest /= extents[i]) index[i] = rest % extents[i];
    visit(index);
  }
}

// The template's kernel and buffers for one case, and what it should give.
class Windows {
 public:
  Windows(const WindowCase& test, const Target& target) : test_(test), target_(target) {
    for (WindowDim& dim : test_.dims) dim = sized(dim);
    images_ = {test_.images};
    results_ = {test_.images};
    for (const WindowDim& dim : test_.dims) {
      images_.push_back(dim.input.value());
      results_.push_back(dim.output.value());
      taps_.push_back(dim.taps);
    }
    images_.push_back(test_.channels);
    results_.push_back(test_.channels);
    spec_.images = test_.images;
    spec_.channels = test_.channels;
    spec_.dims = test_.dims;
    spec_.op = test_.op;
    spec_.is_weighted = test_.is_weighted;
    spec_.group = test_.group;
  }

  loop::Kernel kernel() {
    loop::Kernel kernel;
    kernel.pool = std::make_shared<loop::Pool>();
    loop::Pool& pool = *kernel.pool;
    const auto x = kernel.add_buffer({"x", DType::f32, count(images_)});
    const auto bias = kernel.add_buffer({"bias", DType::f32, test_.channels});
    const auto packed = kernel.add_buffer({"packed", DType::f32, num_packed()});
    const auto out =
        kernel.add_buffer({"out", DType::f32, count(results_), loop::Space::global, true});
    const auto place = [&](const std::vector<int64_t>& extents, Expr image, Index at, Expr c) {
      for (size_t i = 0; i < at.size(); ++i) image = image * pool.integer(extents[i + 1]) + at[i];
      return image * pool.integer(test_.channels) + c;
    };
    spec_.input = [&](Expr image, Index at, Expr channel) {
      return pool.load(x, place(images_, image, at, channel), DType::f32);
    };
    spec_.epilogue = [&](Expr image, Index at, Expr channel, Expr total) {
      const Expr added = pool.load(bias, channel, DType::f32);
      if (test_.rest == Rest::cheap) total = total + added;
      if (test_.rest == Rest::costly)
        total = loop::max(loop::abs(total) - loop::abs(added), loop::abs(total * 0.5) + added);
      return ResultElement{out, place(results_, image, at, channel), total};
    };
    build_window(kernel, spec_, packed, target_);
    return kernel;
  }

  void expect_plain_results() {
    Floats xs = numbers(count(images_), 1),
           ws = numbers(count(taps_) * test_.channels * test_.group, 2),
           biases = numbers(test_.channels, 3), packs(size_t(num_packed()), NAN),
           outs(size_t(count(results_)), NAN);
    if (test_.is_weighted) pack(ws, packs);
    const loop::Kernel made = kernel();
    run_kernel(made, {&xs, &biases, &packs, &outs});
    for_each_index(results_, [&](const std::vector<int64_t>& at) {
      const float total = plain(xs, ws, at), added = biases[size_t(at.back())];
      float want = total;
      if (test_.rest == Rest::cheap) want += added;
      if (test_.rest == Rest::costly)
        want = std::max(std::fabs(total) - std::fabs(added), std::fabs(total * 0.5f) + added);
      ASSERT_EQ(outs[size_t(flat(at, results_))], want) << flat(at, results_);
    });
  }

  int64_t num_rows() const { return count(results_) / test_.channels / results_.end()[-2]; }

 private:
  static int64_t count(const std::vector<int64_t>& extents) {
    int64_t product = 1;
    for (int64_t extent : extents) product *= extent;
    return product;
  }
  int64_t num_packed() const {
    return count(taps_) * test_.group * packed_channels(spec_, target_);
  }

  void pack(Floats& ws, Floats& packs) {
    loop::Kernel packer;
    packer.pool = std::make_shared<loop::Pool>();
    loop::Pool& pool = *packer.pool;
    const auto w = packer.add_buffer({"w", DType::f32, int64_t(ws.size())});
    const auto out =
        packer.add_buffer({"packed", DType::f32, num_packed(), loop::Space::global, true});
    const auto weight = [&](Index taps, Expr member, Expr channel) {
      Expr at = channel * pool.integer(test_.group) + member;
      for (size_t i = 0; i < taps.size(); ++i) at = at * pool.integer(taps_[i]) + taps[i];
      return pool.load(w, at, DType::f32);
    };
    LoopNest nest = pack_window_nest(packer, spec_, out, target_, weight);
    run_kernel(schedule(std::move(nest), target_), {&ws, &packs});
  }

  // All of the numbers are few binary digits, so that sums in any order are the same.
  float plain(const Floats& xs, const Floats& ws, const std::vector<int64_t>& result) const {
    double total = loop::identity(test_.op, DType::f32);
    for_each_index(taps_, [&](const std::vector<int64_t>& tap) {
      std::vector<int64_t> at = result;
      for (size_t i = 0; i < tap.size(); ++i) {
        const WindowDim& dim = test_.dims[i];
        at[i + 1] = at[i + 1] * dim.stride - dim.padding + tap[i] * dim.dilation;
        if (at[i + 1] < 0 || at[i + 1] >= dim.input.value()) return;
      }
      const int64_t channel = at.back(), first = channel - channel % test_.group;
      for (int64_t member = 0; member < test_.group; ++member) {
        at.back() = first + member;
        double value = xs[size_t(flat(at, images_))];
        const int64_t row = (channel * test_.group + member) * count(taps_);
        if (test_.is_weighted) value *= ws[size_t(row + flat(tap, taps_))];
        total = test_.op == loop::ReduceOp::sum ? total + value : std::max(total, value);
      }
    });
    return static_cast<float>(total);
  }

  WindowCase test_;
  const Target& target_;
  WindowSpec spec_;
  std::vector<int64_t> images_, results_, taps_;  // extents; the first two with the channels
};

class Window : public ::testing::TestWithParam<const char*> {
 protected:
  const Target& target() const { return *find_target(GetParam()); }
  void check(const WindowCase& test) {
    SCOPED_TRACE(describe(test));
    Windows(test, target()).expect_plain_results();
  }
};

TEST_P(Window, AgreesWithPlainSumsOfAnyWidth) {
  for (int64_t channels : {1, 3, 16, 17, 40, 100}) {
    for (Rest rest : {Rest::none, Rest::cheap, Rest::costly})
      check({2,
             channels,
             {{9, 0, 3, 1, 1, 1}, {17, 0, 3, 1, 1, 1}},
             true,
             loop::ReduceOp::sum,
             rest});
    check({1, channels, {{9, 0, 3, 2, 1, 1}, {20, 0, 2, 2, 0, 1}}, false, loop::ReduceOp::max});
  }
}

TEST_P(Window, SumsOverGroupsOfFewChannels) {
  for (int64_t group : {2, 4, 8}) {
    for (int64_t channels : {8, 16, 24, 104}) {
      for (int64_t stride : {1, 2})
        check({2,
               channels,
               {{5, 0, 3, 1, 1, 2}, {17, 0, 3, stride, 1, 1}},
               true,
               loop::ReduceOp::sum,
               Rest::cheap,
               group});
      check({1, channels, {{25, 0, 9, 2, 4, 2}}, true, loop::ReduceOp::sum, Rest::none, group});
    }
  }
}

TEST_P(Window, LeavesOutWindowsWhollyInThePadding) {
  for (loop::ReduceOp op : {loop::ReduceOp::sum, loop::ReduceOp::max}) {
    check({1, 20, {{2, 0, 2, 1, 4, 1}}, false, op});
    check({2, 5, {{1, 0, 3, 3, 7, 2}, {3, 0, 2, 2, 5, 1}}, false, op});
  }
  check({2, 17, {{3, 0, 2, 1, 3, 2}, {1, 0, 1, 1, 2, 1}}, true});
}

TEST_P(Window, TakesWindowsLargerThanTheInput) {
  check({1, 17, {{3, 0, 9, 1, 4, 1}}, true});
  check({2, 3, {{2, 0, 5, 1, 3, 2}, {1, 0, 7, 2, 3, 1}}, true});
  check({1, 16, {{2, 0, 5, 1, 2, 1}, {2, 0, 12, 1, 6, 1}}, false, loop::ReduceOp::max});
}

TEST_P(Window, TakesMoreTapsThanAreUnrolled) {
  check({1, 19, {{30, 0, 11, 1, 5, 1}}, true});
  check({1, 8, {{3, 0, 2, 1, 0, 1}, {25, 0, 9, 2, 4, 2}}, false});
}

// Drawn from a fixed sequence.
TEST_P(Window, AgreesWithPlainSumsAtRandomExtents) {
  uint32_t state = 1;
  const auto draw = [&](int64_t least, int64_t most) {
    state = state * 1664525u + 1013904223u;
    return least + static_cast<int64_t>(state >> 8) % (most - least + 1);
  };
  const int64_t widths[] = {1, 3, 16, 17, 40, 100};
  for (int n = 0; n < 120; ++n) {
    WindowCase test{draw(1, 2), widths[draw(0, 5)], {}};
    for (int64_t rank = draw(1, 3); rank > 0; --rank) {
      WindowDim dim{draw(1, rank == 1 ? 20 : 5), 0, draw(1, 4), draw(1, 3), 0, draw(1, 2)};
      const int64_t reach = (dim.taps - 1) * dim.dilation + 1;
      dim.padding = draw(std::max<int64_t>(0, (reach - dim.input.value() + 1) / 2), reach);
      test.dims.push_back(dim);
    }
    test.is_weighted = draw(0, 1) == 1;
    if (!test.is_weighted && draw(0, 1) == 1) test.op = loop::ReduceOp::max;
    test.rest = static_cast<Rest>(draw(0, 2));
    check(test);
  }
}

TEST_P(Window, DividesManyChannelsOfFewRows) {
  for (int64_t channels : {4096, 4099, 9000}) {
    for (bool is_weighted : {true, false}) {
      const WindowCase test{1, channels, {{2, 0, 3, 1, 1, 1}, {5, 0, 3, 1, 1, 1}}, is_weighted};
      check(test);
      Windows windows(test, target());
      const loop::Kernel kernel = windows.kernel();
      const auto* tasks = loop::as_int(std::get<loop::For>(kernel.body[0].kind).hi);
      ASSERT_NE(tasks, nullptr);
      EXPECT_GT(tasks->value, windows.num_rows());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Window, ::testing::Values("avx512", "avx2", "simd128"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace lathe
