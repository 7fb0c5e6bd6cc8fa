// What models assert of elements.
#include "ir/op/composite.h"

namespace lathe {
namespace {

void assert_true(const Aten& aten) {
  const std::string said = aten.call().string_attr("assert_msg");
  aten.assert_none(aten("eq.Scalar", {aten.tensor("self"), 0}),
                   said.empty() ? "the model asserts what is not true" : said);
}

Built assert_async(Builder& builder, const ImportCall& call) {
  assert_true({builder, call});
  return std::vector<Value>{};
}

constexpr auto kFunctionalAssertAsync = [](const Aten& aten) {
  assert_true(aten);
  return aten.tensor("dep_token");
};

}  // namespace

std::vector<Import> import_assertion() {
  return imports_of({
      {"_assert_async(Tensor self) -> ()", assert_async},
      {"_assert_async.msg(Tensor self, str assert_msg) -> ()", assert_async},
      {"_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor",
       composed<kFunctionalAssertAsync>},
  });
}

}  // namespace lathe
