// Compiled programs in files, for processes to come: what passes and code generation made of a
// graph, without its weights. A file is there whole or not at all, has its key in it, says when it
// is torn, and knows no path: folders may be moved, copied and shared.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "frontend/driver/cache_key.h"
#include "frontend/driver/model.h"
#include "frontend/driver/options.h"
#include "frontend/driver/places.h"
#include "ir/program/program.h"
#include "ir/support/result.h"
#include "ir/target/target.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {

struct ProgramKey {
  CacheKey parts;     // the build of Lathe, the graph, options, the machine
  std::string graph;  // the whole text that the part of that name is a hash of
};
// kUnavailable where nothing can be kept: the build has no id, or there is no home.
Result<ProgramKey> program_key(const Model& model, const Target& target,
                               const CompileRequest& request);

struct CachedProgram {
  Program program;  // planned
  LocTable locs;    // of its text
  KernelCode code;
  std::vector<Source> sources;        // of each of its steps
  std::vector<KernelChoice> choices;  // without candidates and places
};

// $XDG_CACHE_HOME/lathe/programs or ~/.cache/lathe/programs.
std::string program_cache_folder();
std::string cached_program_path(const Model& model, const ProgramKey& key);

// kMissingFile when there is none, with the part of the key in which the nearest differs;
// kBadValue for a file that is torn or of another graph.
Result<CachedProgram> load_cached_program(const Model& model, const ProgramKey& key);

// Of processes that save at once, one's file stays. The folder then has at most kMostCachedBytes:
// the files that nobody has asked for longest go.
Status save_cached_program(const Model& model, const ProgramKey& key, const Program& program,
                           const KernelCode& code, const std::vector<Source>& sources,
                           const std::vector<const KernelChoice*>& choices);
inline constexpr int64_t kMostCachedBytes = int64_t{1} << 30;

// The key alone, of a file.
Result<CacheKey> read_cached_key(const std::string& path);

// Leaves the newest files that have no more bytes than that together, and no leftovers of
// processes that ended while they wrote, an hour ago or more.
void trim_cache(const std::string& folder, int64_t most_bytes);

}  // namespace lathe
