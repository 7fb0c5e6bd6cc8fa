// Recorded stacks as locations.
#include "frontend/stacks/stacks.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

constexpr char kTrace[] =
    "File \"model.py\", line 9, in forward\n    y = self.net(x)\n"
    "  File \"torch/nn/modules/linear.py\", line 134, in forward\n"
    "    return F.linear(input, self.weight, self.bias)";

TEST(Stacks, FramesAreInternedOutermostFirst) {
  LocTable locs;
  StackReader reader(locs);
  Loc a = reader.locate({"linear", "torch.ops.aten.linear.default", kTrace, {}, {}});
  Loc b = reader.locate({"linear_1", "torch.ops.aten.linear.default", kTrace, {}, {}});
  EXPECT_EQ(locs.num_frames(), 2u);
  EXPECT_EQ(locs[a].frame, locs[b].frame);
  const Frame& inner = locs.frame(locs[a].frame);
  EXPECT_EQ(inner.file, "torch/nn/modules/linear.py");
  EXPECT_EQ(inner.line, 134);
  const Frame& user = locs.frame(locs.user_frame(locs[a].frame));
  EXPECT_EQ(user.code, "y = self.net(x)");
  EXPECT_EQ(user.function, "forward");
  EXPECT_EQ(locs[a].fx_target, "aten.linear.default");
}

TEST(Stacks, CodeLinesMayBeMissingAndMarkersAreSkipped) {
  LocTable locs;
  StackReader reader(locs);
  Loc loc = reader.locate({"a",
                           "t.x",
                           "  File \"m.py\", line 3, in f\n  File \"n.py\", line 4, in g\n"
                           "    ~~^~~\n    x + y\n\n  garbage \"",
                           {},
                           {}});
  const Frame& inner = locs.frame(locs[loc].frame);
  EXPECT_EQ(inner.file, "n.py");
  EXPECT_EQ(inner.code, "x + y");
  EXPECT_EQ(locs.frame(locs.frame_parent(locs[loc].frame)).code, "");
}

TEST(Stacks, GeneratedCodeIsNoPlace) {
  LocTable locs;
  StackReader reader(locs);
  Loc loc = reader.locate({"a",
                           "t.x",
                           "File \"m.py\", line 3, in f\n    g(x)\n"
                           "  File \"<eval_with_key>.12\", line 4, in forward\n    cond = ...",
                           {},
                           {}});
  EXPECT_EQ(locs.frame(locs[loc].frame).file, "m.py");
}

TEST(Stacks, ModuleStacksSplitOutsideBrackets) {
  LocTable locs;
  StackReader reader(locs);
  Loc loc = reader.locate(
      {"a", "t.x", {}, "L__self__,,m.Net;L__self__proj@1,blocks.0.proj,m.Proj[int, (2, 3)]", {}});
  EXPECT_EQ(locs[loc].module_path, "blocks.0.proj");
  EXPECT_EQ(locs[loc].module_class, "m.Proj[int, (2, 3)]");
}

TEST(Stacks, DecomposedNodesKeepTheirOrigin) {
  LocTable locs;
  StackReader reader(locs);
  Loc loc = reader.locate({"permute",
                           "torch.ops.aten.permute.default",
                           kTrace,
                           {},
                           R"([{"name": "linear", "target": "aten.linear.default", "from_node":
                               [{"name": "linear_7", "target": "aten.linear.default",
                                 "from_node": []}]}])"});
  EXPECT_EQ(locs[loc].kind, LocRow::Kind::derived);
  EXPECT_EQ(locs[loc].by, "run_decompositions");
  EXPECT_EQ(locs[locs.origin(loc)].fx_node, "linear_7");
}

TEST(Stacks, BrokenMetadataIsNoError) {
  LocTable locs;
  StackReader reader(locs);
  Loc loc = reader.locate({"a", "", "File \"", ",,;(((", "[[[{"});
  EXPECT_EQ(locs[loc].frame, -1);
  EXPECT_EQ(locs[loc].fx_node, "a");
}

}  // namespace
}  // namespace lathe
