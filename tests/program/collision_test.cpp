// Two kernels with the same structural hash are still two kernels: the second's constant is solved
// for, which a 64-bit hash without a key cannot prevent.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "ir/graph/text.h"
#include "ir/loop/text.h"
#include "ir/op/all_ops.h"
#include "ir/support/hash.h"

namespace lathe {
namespace {

constexpr int64_t kFactor = 0x123456789abcd, kAddend = 0x0f1e2d3c4b5a6;

std::string line(const std::string& name, int64_t factor, int64_t addend) {
  return fmt::format(
      "  %c_{0} = constant() {{value = [{1}], dtype = i64, shape = []}}\n"
      "  %d_{0} = constant() {{value = [{2}], dtype = i64, shape = []}}\n"
      "  %e_{0} = mul(%x, %c_{0})\n"
      "  %{0} = add(%e_{0}, %d_{0})\n",
      name, factor, addend);
}

Model model_of(const std::string& body, const std::string& types, const std::string& results) {
  Model model;
  auto module =
      parse("func @main(%x: i64[5]) -> " + types + " {\n" + body + "  return " + results + "\n}\n",
            builtin_registry());
  EXPECT_TRUE(module.ok()) << module.error().message;
  if (module.ok()) model.module = *std::move(module);
  return model;
}

// The hash's state before a word of the canonical form.
uint64_t state_before(const std::string& form, size_t at) {
  Hasher hasher;
  hasher.add(form.size());
  for (size_t i = 0; i < at; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, &form[i], 8);
    hasher.add(word);
  }
  return hasher.value();
}

size_t place_of(const std::string& form, int64_t word) {
  return form.find(std::string(reinterpret_cast<const char*>(&word), sizeof word));
}

class Collision : public testing::Test {
 protected:
  void SetUp() override {
    auto backend = make_backend("cpu", "avx2");
    ASSERT_TRUE(backend.ok()) << backend.error().message;
    backend_ = std::move(*backend);
  }

  Result<Build> built(const Model& model) {
    BuildFailure failure;
    return build(model, *backend_, {}, failure);
  }

  // Another factor and addend that give the hash of kFactor and kAddend.
  std::pair<int64_t, int64_t> solve() {
    auto one = built(model_of(line("y", kFactor, kAddend), "i64[5]", "%y"));
    EXPECT_TRUE(one.ok()) << one.error().message;
    std::string form = loop::canonical_form(one->program().kernels.at(0));
    const size_t factor_at = place_of(form, kFactor), at = place_of(form, kAddend);
    EXPECT_LT(factor_at, at);
    EXPECT_LT(at, form.size());
    // See Hasher::add: a word is added to what the state alone decides.
    const auto with = [](uint64_t state) { return 0x9e3779b97f4a7c15ull + (state << 6); };
    const uint64_t state = state_before(form, at);
    for (int64_t factor = kFactor + 1;; ++factor) {
      std::memcpy(&form[factor_at], &factor, sizeof factor);
      const uint64_t other = state_before(form, at);
      const auto addend = static_cast<int64_t>(
          (state ^ other ^ (static_cast<uint64_t>(kAddend) + with(state))) - with(other));
      if (is_exact_in_double(addend)) return {factor, addend};  // larger ones lie in buffers
    }
  }

  std::unique_ptr<Backend> backend_;
};

TEST_F(Collision, TwoKernelsOfOneHashStayTwo) {
  const auto [factor, addend] = solve();
  const Model model =
      model_of(line("y", kFactor, kAddend) + line("z", factor, addend), "i64[5], i64[5]", "%y, %z");
  auto both = built(model);
  ASSERT_TRUE(both.ok()) << both.error().message;
  std::vector<loop::Kernel>& kernels = both->lowered.unit.program.kernels;
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(loop::structural_hash(kernels[0]), loop::structural_hash(kernels[1]));
  Tensor x = Tensor::zeros(DType::i64, {5});
  for (size_t i = 0; i < 5; ++i) x.integers[i] = static_cast<int64_t>(i);
  auto buffers = CallBuffers::create(both->program(), {x}, model.weights());
  ASSERT_TRUE(buffers.ok()) << buffers.error().message;
  ASSERT_TRUE(buffers->run(*both->executable).ok());
  auto outputs = buffers->outputs();
  ASSERT_TRUE(outputs.ok());
  for (uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(static_cast<uint64_t>((*outputs)[0].integers[i]),
              i * uint64_t{kFactor} + uint64_t{kAddend});
    EXPECT_EQ(static_cast<uint64_t>((*outputs)[1].integers[i]),
              i * static_cast<uint64_t>(factor) + static_cast<uint64_t>(addend));
  }
}

}  // namespace
}  // namespace lathe
