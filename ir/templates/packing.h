// The packed B of a contraction: [batch][panel][k][panel width], so that a panel is read in order.
// Columns that a last panel has beyond n hold anything.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/templates/contraction.h"
#include "ir/templates/loop_nest.h"

namespace lathe {

// Panels that one nest fills: those of columns that all exist, or the last.
struct PanelRange {
  Dim first, count;
};
std::vector<PanelRange> panel_ranges(const ContractionSpec& spec, const PackedLayout& layout);

// An element of B.
using ColumnElement = std::function<loop::Expr(std::span<const loop::Expr> batch,
                                               std::span<const loop::Expr> k, loop::Expr n)>;

// The nest that fills these panels of packed B from b(batch, k, n), which is asked for n below
// spec.n only. `b` may add to the kernel, which the nest then has a copy of.
LoopNest pack_nest(loop::Kernel& kernel, const ContractionSpec& spec, const PackedLayout& layout,
                   const PanelRange& range, loop::BufferRef packed, const ColumnElement& b);

// Along what a B of pairs lies side by side: the last k, or n.
enum class Neighbours : uint8_t { elements, columns };

// Appends to `kernel` the body that fills all of such a packed B; b gives the load of an element.
void build_pair_packing(loop::Kernel& kernel, const ContractionSpec& spec,
                        const PackedLayout& layout, loop::BufferRef packed, const ColumnElement& b,
                        Neighbours neighbours, const Target& target);

}  // namespace lathe
