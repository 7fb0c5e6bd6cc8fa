// Every ATen operator that is imported, called with whatever its schema's types allow: it builds
// nodes or says what is wrong with the call. What is read out of bounds the sanitizers see.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "ir/op/all_ops.h"
#include "ir/op/import_call.h"

namespace lathe {
namespace {

constexpr int kCalls = 60;  // of each operator

const ImportTable& table() {
  static const Result<ImportTable> created = ImportTable::create(builtin_registry());
  return *created;
}

class AnyCall {
 public:
  AnyCall(uint64_t seed, NumberKind numbers)
      : random_(seed), builder_(graph_, builtin_registry(), Loc::unknown()), numbers_(numbers) {}

  Result<std::vector<Value>> make(const std::string& target, const Schema& schema) {
    ImportCall call{.target = target};
    for (const SchemaArg& arg : schema.args) {
      if (arg.default_value && one_in(3)) continue;
      if (arg.is_optional && one_in(3)) {
        call.args.emplace_back(arg.name, Attr{});
      } else {
        call.args.emplace_back(arg.name, argument(arg));
      }
    }
    return import_call(builder_, table(), std::move(call));
  }

 private:
  bool one_in(int n) { return number(0, n - 1) == 0; }
  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  // Mostly of the rank and sizes of the others, so that some calls are right.
  Value tensor() {
    constexpr DType kDTypes[] = {DType::f32, DType::f32, DType::f32, DType::i64,
                                 DType::b8,  DType::f16, DType::i32};
    const DType dtype = kDTypes[static_cast<size_t>(number(0, 6))];
    if (rank_ < 0 || one_in(4)) rank_ = static_cast<int>(number(0, 5));
    Shape shape;
    for (int d = 0; d < rank_; ++d) {
      if (one_in(12)) {
        shape.push_back(Dim::symbol("s0"));
      } else {
        shape.push_back(one_in(5) ? Dim(number(0, 3)) : Dim(4));
      }
    }
    if (numbers_ == NumberKind::float8 && !one_in(3)) {
      const Value bytes = builder_.param({DType::u8, std::move(shape)}, "q");
      builder_.mark(bytes, one_in(9) ? Encoding::float8_e5m2 : Encoding::float8_e4m3fn);
      return bytes;
    }
    if (numbers_ == NumberKind::complex && !one_in(3)) {
      shape.push_back(2);
      const Value pairs = builder_.param({DType::f32, std::move(shape)}, "z");
      builder_.mark_complex(pairs);
      return pairs;
    }
    return builder_.param({dtype, std::move(shape)}, "x");
  }

  CallArg argument(const SchemaArg& arg) {
    const int64_t length = arg.list_size > 0 && !one_in(4) ? arg.list_size : number(0, 4);
    if (arg.type == SchemaType::tensor) {
      if (!arg.is_list) return tensor();
      std::vector<Value> list;
      for (int64_t i = 0; i < length; ++i)
        list.push_back(arg.has_optional_elements && one_in(3) ? Value{} : tensor());
      return list;
    }
    if (!arg.is_list) return scalar(arg.type);
    switch (arg.type) {
      case SchemaType::boolean: {
        std::vector<bool> list;
        for (int64_t i = 0; i < length; ++i) list.push_back(one_in(2));
        return Attr{std::move(list)};
      }
      case SchemaType::number:
      case SchemaType::scalar: {
        std::vector<double> list;
        for (int64_t i = 0; i < length; ++i)
          list.push_back(0.5 * static_cast<double>(number(-3, 9)));
        return Attr{std::move(list)};
      }
      default: {
        std::vector<int64_t> list;
        for (int64_t i = 0; i < length; ++i) list.push_back(number(-2, 5));
        return Attr{std::move(list)};
      }
    }
  }

  CallArg scalar(SchemaType type) {
    constexpr const char* kWords[] = {"sum",       "mean",   "constant", "reflect",
                                      "replicate", "none",   "floor",    "ij,jk->ik",
                                      "i...->...", "linear", "",         ","};
    switch (type) {
      case SchemaType::boolean:
        return Attr{one_in(2)};
      case SchemaType::number:
        return Attr{0.5 * static_cast<double>(number(-3, 9))};
      case SchemaType::scalar:
        if (numbers_ == NumberKind::complex && one_in(4)) return ComplexNumber{0.5, 2};
        if (one_in(2)) return Attr{0.5 * static_cast<double>(number(-3, 9))};
        return Attr{number(-3, 9)};
      case SchemaType::string:
        return Attr{std::string(kWords[static_cast<size_t>(number(0, 11))])};
      case SchemaType::dtype:
        if (numbers_ == NumberKind::complex && one_in(2)) return ComplexDType{DType::f32};
        if (numbers_ == NumberKind::float8 && one_in(2))
          return Float8DType{Encoding::float8_e4m3fn};
        return Attr{one_in(2) ? DType::f32 : DType::i64};
      default:
        return Attr{number(-3, 9)};
    }
  }

  std::mt19937_64 random_;
  Graph graph_;
  Builder builder_;
  NumberKind numbers_;
  int rank_ = -1;
};

void expect_built_or_blamed(const std::string& target, NumberKind numbers) {
  const ImportTable::Match match = table().find(target, numbers);
  ASSERT_TRUE(match);
  for (int i = 0; i < kCalls; ++i) {
    const auto seed = std::hash<std::string>{}(target) + static_cast<uint64_t>(i);
    AnyCall call(seed, numbers);
    const auto results = call.make(target, match.entry->schema);
    if (results) continue;
    EXPECT_FALSE(results.error().is_internal) << "seed " << seed << ": " << results.error().message;
  }
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (c == '.') c = '_';
  return name + "_" + std::to_string(info.index);
}

class AnyCallTest : public testing::TestWithParam<std::string> {};
TEST_P(AnyCallTest, BuildsNodesOrBlamesTheCall) {
  expect_built_or_blamed(GetParam(), NumberKind::real);
}
INSTANTIATE_TEST_SUITE_P(Targets, AnyCallTest, testing::ValuesIn(table().targets()), name_of);

class AnyComplexCallTest : public testing::TestWithParam<std::string> {};
TEST_P(AnyComplexCallTest, BuildsNodesOrBlamesTheCall) {
  expect_built_or_blamed(GetParam(), NumberKind::complex);
}
INSTANTIATE_TEST_SUITE_P(Targets, AnyComplexCallTest,
                         testing::ValuesIn(table().targets(NumberKind::complex)), name_of);

class AnyFloat8CallTest : public testing::TestWithParam<std::string> {};
TEST_P(AnyFloat8CallTest, BuildsNodesOrBlamesTheCall) {
  expect_built_or_blamed(GetParam(), NumberKind::float8);
}
INSTANTIATE_TEST_SUITE_P(Targets, AnyFloat8CallTest,
                         testing::ValuesIn(table().targets(NumberKind::float8)), name_of);

}  // namespace
}  // namespace lathe
