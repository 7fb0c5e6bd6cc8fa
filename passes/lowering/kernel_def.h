// A kind of kernel, described by itself: a way to make what a region computes.
//
// A region is an op by itself, or a fused node: its root is the one member that gives it its loops,
// what stands before the root is its prologue, what follows it its epilogue.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/node.h"
#include "ir/program/program.h"
#include "ir/support/result.h"
#include "ir/target/target.h"

namespace lathe {

class Lowering;
enum class Phase : uint8_t;

// What a kind says to a region: nothing when it made it, otherwise why it cannot.
struct Verdict {
  std::string why_not = {};  // "its weights have no fixed strides", to follow the name and a colon
  double seconds = 0;        // that it takes, by its own reckoning; 0: it has none
  bool is_made() const { return why_not.empty(); }
};

// A result of a region, and the buffer that it goes to.
struct Destination {
  int result;
  BufferId buffer;
};

// Members of a region beside its root.
enum class Members : uint8_t { any, epilogue, prologue };

// What a kind needs of the target.
enum class Needs : uint8_t {
  any,
  registers,  // a vector is a register of one thread
  threads,    // threads share a vector
  library,    // a library for the root
};

struct KernelDef {
  std::string name;                     // file stem, and in text, flags and tables
  std::string summary;                  // one line
  std::vector<std::string> roots = {};  // ops that it makes; none: any
  Members members = Members::any;       // that it takes
  Needs needs = Needs::any;
  bool has_tile = false;     // of registers, which a plan may choose
  bool takes_sizes = false;  // regions with symbolic sizes
  // Appends launches that write results of the region, which have elements and lie alike, with the
  // tile of the node's plan where that has one. Kinds that have roots make one result, the
  // region's only one. Launches appended before a refusal are to be dropped by the caller.
  using Emit = Result<Verdict>(Lowering& lowering, Node& region, std::span<const Destination> outs,
                               Phase phase);
  Emit* emit;
  std::string example;  // "func ..." with a region that the kind makes on `isa`
  std::string isa = "avx2";
};

// All kinds, by existence, sorted by name.
std::vector<KernelDef> all_kernels();

// Why the target has nothing that the kind needs to make `root`.
Verdict suits(const KernelDef& kind, std::string_view root, const Target& target);

// Why the kind is not for the region on any sizes: its root, other members, its results, the
// target.
Verdict applies(const KernelDef& kind, const Node& region, const Target& target);
// Why the kind is not for the region's sizes: one that is symbolic, where it takes numbers alone.
Verdict fits_sizes(const KernelDef& kind, const Node& region);
// The kind of that name; null when there is none.
const KernelDef* find_kernel(const std::vector<KernelDef>& kinds, std::string_view name);

// The error for a name that is none, with the nearest that is.
Diag unknown_kernel(const std::vector<KernelDef>& kinds, const std::string& name, Loc loc);

// The member that gives the region its loops, the last of a body that has several; null when every
// member is elementwise or a view.
const Node* root_of(const Node& region);

}  // namespace lathe
