// Pytree specs.
#include <gtest/gtest.h>

#include "frontend/import/signature.h"

namespace lathe {
namespace {

constexpr char kLeaf[] = R"({"type": null, "context": null, "children_spec": []})";

std::string node(const std::string& type, const std::string& context, int leaves) {
  std::string text =
      R"({"type": ")" + type + R"(", "context": )" + context + R"(, "children_spec": [)";
  for (int i = 0; i < leaves; ++i) text += (i ? "," : "") + std::string(kLeaf);
  return text + "]}";
}

Result<TreeSpec> parsed(const std::string& spec) {
  static LocTable locs;
  return parse_tree_spec("[1, " + spec + "]", "in_spec", locs, {{"m.Point", {"left", "right"}}});
}

TEST(TreeSpec, ReadsPythonsContainers) {
  auto leaf = parsed(kLeaf);
  ASSERT_TRUE(leaf.ok());
  EXPECT_EQ(leaf->num_leaves(), 1u);
  auto dict = parsed(node("builtins.dict", R"("[\"a\", 3]")", 2));
  ASSERT_TRUE(dict.ok());
  EXPECT_EQ(dict->kind, TreeSpec::Kind::dict);
  EXPECT_EQ(dict->keys, (std::vector<std::string>{"a", "3"}));
  auto point = parsed(node("collections.namedtuple", R"("m.Point")", 2));
  ASSERT_TRUE(point.ok());
  EXPECT_EQ(point->type, "m.Point");
  EXPECT_EQ(point->keys[1], "right");
  auto defaults = parsed(
      node("collections.defaultdict", R"({"dict_context": ["k"], "default_factory": 1})", 1));
  ASSERT_TRUE(defaults.ok());
  EXPECT_EQ(defaults->keys[0], "k");
  auto output = parsed(node("transformers.Output", R"("[\"logits\"]")", 1));
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->kind, TreeSpec::Kind::other);
  EXPECT_EQ(output->keys[0], "logits");
  auto dataclass = parsed(node("m.Pair", R"("[[\"left\", \"right\"], [\"middle\"]]")", 2));
  ASSERT_TRUE(dataclass.ok());
  EXPECT_EQ(dataclass->keys, (std::vector<std::string>{"left", "right"}));
}

TEST(TreeSpec, RefusesWhatIsNone) {
  for (const std::string& spec :
       {std::string("null"), std::string("[]"), std::string(R"({"type": null})"),
        node("builtins.dict", R"("[\"a\"]")", 2), node("builtins.dict", "null", 1),
        std::string(R"({"type": null, "children_spec": [)") + kLeaf + "]}"})
    EXPECT_FALSE(parsed(spec).ok()) << spec;
  LocTable locs;
  EXPECT_FALSE(parse_tree_spec(std::string("[2, ") + kLeaf + "]", "s", locs).ok());
}

}  // namespace
}  // namespace lathe
