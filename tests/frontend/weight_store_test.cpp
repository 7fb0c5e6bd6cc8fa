// Weights are read where they lie, which may be on a GPU, as long as their elements lie in rows.
#include "frontend/driver/weight_store.h"

#include <gtest/gtest.h>

#include <vector>

namespace lathe {
namespace {

const float kElements[] = {1, 2, 3, 4, 5, 6};

const std::byte* place_of(std::vector<int64_t> strides) {
  Module module;
  const Shape shape = {2, 3, 1, 1};
  module.weights["w"].data = {.type = {DType::f32, shape},
                              .strides = std::move(strides),
                              .bytes = reinterpret_cast<const std::byte*>(kElements),
                              .num_bytes = sizeof kElements};
  WeightStore store(module, {}, nullptr);
  const Result<BufferView> view = store.get("w");
  EXPECT_TRUE(view.ok());
  EXPECT_EQ(view->num_bytes, sizeof kElements);
  return view->bytes;
}

TEST(WeightStoreTest, ReadsRowsWhereTheyLieWhateverStridesExtentsOf1Have) {
  const auto* given = reinterpret_cast<const std::byte*>(kElements);
  EXPECT_EQ(place_of({3, 1, 1, 1}), given);
  EXPECT_EQ(place_of({3, 1, 3, 3}), given);  // as filters have them in format channels_last
  EXPECT_EQ(place_of({3, 1, 0, 77}), given);
}

TEST(WeightStoreTest, CopiesElementsThatLieInAnotherOrder) {
  EXPECT_NE(place_of({1, 2, 1, 1}), reinterpret_cast<const std::byte*>(kElements));
}

}  // namespace
}  // namespace lathe
