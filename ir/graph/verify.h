// Checks and identities of graphs.
#pragma once
#include <cstdint>
#include <string_view>

#include "ir/graph/node.h"
#include "ir/graph/op_def.h"
#include "ir/support/result.h"

namespace lathe {

// Stages of a compilation, in order; a pass states the one it needs and the one it leaves.
//   imported    as PyTorch wrote it: in-place ops, asserts, composite ops
//   functional  no in-place nodes
//   core        no op that only has a decomposition
//   fused       every node is one launch: a fused group, a contraction with its epilogue, or a
//               lone op
//   loops       a program of launches over loop kernels; the graph is no longer used
//   planned     every temporary has its place in the arena
enum class Form : uint8_t { imported, functional, core, fused, loops, planned };
std::string_view form_name(Form form);

// The invariants are listed at the top of verify.cpp.
Status verify(const Module& module, const Graph& graph, Form form);

// Bytes that are equal exactly for graphs that differ in nothing but names and locations; weights
// count by name, a module by every graph and the symbols' ranges.
std::string canonical_form(const Graph& graph);
std::string canonical_form(const Module& module);
// A hash of the canonical form: a label. Different graphs can be made to have the same.
uint64_t structural_hash(const Graph& graph);
uint64_t structural_hash(const Module& module);

}  // namespace lathe
