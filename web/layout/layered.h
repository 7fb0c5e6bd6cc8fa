// One level of a drawing: boxes in ranks, top to bottom, and the lines between them.
//
// Ranks are longest paths, so every line goes down. Lines of one net share the places where they
// pass through a rank. Orders come from barycentre sweeps, places from least squares under the
// boxes' widths (pool adjacent violators), so no two boxes overlap.
#pragma once
#include <cstdint>
#include <vector>

namespace lathe {

struct Point {
  double x = 0;
  double y = 0;
};

enum class Pin : uint8_t { none, top, bottom };  // alone in the first or the last rank

struct Element {
  double width = 0;
  double height = 0;
  Pin pin = Pin::none;
  bool has_place = false;  // it was drawn before, at `place`: among such, the order stays
  double place = 0;
};

// All lines from one element. Offsets are from the middle of a box.
struct NetEnd {
  int element = 0;
  double offset = 0;
};
struct Net {
  NetEnd source;
  std::vector<NetEnd> targets;
};

struct Layered {
  std::vector<Point> places;  // of each element's left upper corner
  std::vector<int> ranks;
  double width = 0;
  double height = 0;
  // Of each target of each net, from the source's lower edge to the target's upper edge.
  std::vector<std::vector<std::vector<Point>>> routes;
};

struct Spacing {
  double between_boxes = 16;
  double between_lines = 8;
  double between_ranks = 28;
};

// Elements are in an order of execution: a net goes from one to later ones. A target that is not
// later has no rank below its source, and its line goes up.
Layered lay_out_ranks(const std::vector<Element>& elements, const std::vector<Net>& nets,
                      const Spacing& spacing = {});

}  // namespace lathe
