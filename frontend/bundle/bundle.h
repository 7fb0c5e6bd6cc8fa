// What lathe.capture wrote: the frames that Dynamo compiled, their graphs, guards, graph breaks and
// recompiles. frontend/python/lathe/capture/bundle.py says which files there are.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/bundle/bundle_files.h"

namespace lathe::bundle {

inline constexpr int64_t kVersion = 1;
inline constexpr const char* kRowFiles[] = {"breaks.jsonl", "recompiles.jsonl", "sources.json"};

// A code object that Dynamo compiled.
struct Frame {
  int64_t number = 0;
  std::string function = {};
  bool is_resumed = false;  // behind a graph break of that function
  std::string file = {};
  int64_t line = 0;
};

struct Input {
  std::string name = {};
  std::string source = {};  // as guards name it: L['x']
  bool is_state = false;    // a weight or buffer
};

struct CapturedGraph {
  std::string id = {};  // "F_C"
  int64_t ops = 0;
  std::string ends = {};                   // "break" or "return"
  std::optional<std::string> json = {};    // a bundle's file; none: `refused` says why
  std::optional<std::string> python = {};  // likewise
  std::optional<std::string> refused = {};
  std::vector<Input> inputs = {};
};

// One compilation of a frame.
struct Compile {
  int64_t frame = 0;
  int64_t compile = 0;  // from 0
  std::optional<int64_t> call = {};
  std::optional<CapturedGraph> graph = {};
  std::optional<std::string> guards = {};  // files without their endings .txt and .json
  std::optional<double> seconds = {};
  std::optional<std::string> failure = {};  // why Dynamo gave up

  std::string id() const { return std::to_string(frame) + "_" + std::to_string(compile); }
};

struct Break {
  int64_t frame = 0;
  int64_t compile = 0;
  std::string reason = {};  // one line
  std::string explanation = {};
  std::vector<std::string> hints = {};
  std::string file = {};  // the innermost line that is not PyTorch's
  int64_t line = 0;
  std::string code = {};
  std::string url = {};
};

struct Recompile {
  int64_t frame = 0;
  int64_t compile = 0;
  int64_t call = 0;
  std::vector<std::string> reasons = {};  // PyTorch's, one for each compilation that failed
  std::string kind = {};                  // of change: "size", "dtype", ...
  std::string reason = {};                // the nearest compilation's, one line
  int64_t cause = 0;                      // index of the one that it follows from, or its own
  std::string file = {};                  // the line that asked for the guard; may be unknown
  int64_t line = 0;
  std::string code = {};
};

struct Guard {
  std::string kind = {};
  std::string source = {};
  std::string code = {};
  std::string line = {};
  std::string place = {};
};

struct Bundle {
  std::string model = {};
  std::string torch = {};
  std::string origin = {};  // "dynamo", "torch.export" or "torch.fx"
  int64_t calls = 0;
  std::optional<bool> dynamic = {};
  std::vector<Frame> frames = {};
  std::vector<Compile> compiles = {};
  std::vector<Break> breaks = {};  // as often as one was met
  std::vector<Recompile> recompiles = {};
  std::map<std::string, std::map<std::string, std::string>> sources = {};  // by file and line

  const Frame* find_frame(int64_t number) const;           // null when there is none
  const Compile* find_graph(const std::string& id) const;  // one that has a graph, likewise
  std::vector<std::string> graph_ids() const;
};

// Reads and checks all but the graphs and guards. Diags have their locations in `locs`.
Result<Bundle> read(const BundleFiles& files, LocTable& locs);

// The guards of one of its compilations; none where it has none.
Result<std::vector<Guard>> read_guards(const BundleFiles& files, const Compile& compile,
                                       LocTable& locs);

}  // namespace lathe::bundle
