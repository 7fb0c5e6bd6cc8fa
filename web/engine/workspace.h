// What the engine keeps between requests: files that are being opened, models, runs of pipelines.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/driver/model.h"
#include "frontend/pt2/archive.h"
#include "passes/pipeline/pipeline.h"
#include "web/engine/remote_file.h"
#include "web/engine/request.h"

namespace lathe {

// A file that stays with the page, opened over several requests: each brings ranges of it.
struct OpeningFile {
  std::string name;
  std::unique_ptr<RemoteFile> remote;
};

struct OpenModel {
  std::unique_ptr<RemoteFile> remote;  // of an archive that stays with the page
  std::optional<pt2::ModelFile> file;  // the archive's directory, to find weights
  std::string name;
  Model model;
};

// A step of a pipeline, and what it left. Steps that changed nothing share their predecessor's.
struct Step {
  PassRecord record;
  std::shared_ptr<const Module> graph;     // null once there is a program
  std::shared_ptr<const Program> program;  // null before lowering
};

// [0] of the steps is the import: a record without a pass.
struct PipelineRun {
  int64_t model = 0;
  std::string passes;
  const Target* target = nullptr;
  std::vector<Step> steps;
  LocTable locs;
  Form form = Form::imported;
  double milliseconds = 0;
  // Where each box was drawn after each step that changed something, for one way to draw (its key).
  std::string drawn_for;
  std::map<size_t, std::map<std::string, double>> drawn;

  const Program* program() const { return steps.back().program.get(); }
};

class Workspace {
 public:
  template <class T>
  using Table = std::map<int64_t, std::unique_ptr<T>>;

  Table<OpeningFile> files;
  Table<OpenModel> models;
  Table<PipelineRun> runs;

  int64_t next_handle() { return next_handle_++; }

 private:
  int64_t next_handle_ = 1;
};

// The thing that a member of the request names, such as "model": 3.
Result<OpenModel*> model_of(Workspace& workspace, const Request& request);
Result<PipelineRun*> run_of(Workspace& workspace, const Request& request);
// The handle of the file that the request begins to open ("name", "size") or goes on with ("file"),
// which has the ranges that came with it.
Result<int64_t> opening_of(Workspace& workspace, const Request& request);
// What to answer when reading that file failed for want of ranges; none when it failed otherwise.
std::optional<Answer> ask_for_more(const Workspace& workspace, int64_t handle, const Diag& why);

// The member "step": 0 (the import) to the last one, which is the default.
Result<size_t> step_of(const PipelineRun& run, const Request& request);

// What "do" can be. Diags of a handler have locations in Request::locs(); for those of a model or a
// run it answers `refused` with their own table.
struct Handler {
  const char* name;
  Result<Answer> (*handle)(Workspace& workspace, const Request& request);
};
Result<Answer> handle_about(Workspace& workspace, const Request& request);
Result<Answer> handle_bundle(Workspace& workspace, const Request& request);
Result<Answer> handle_catalogue(Workspace& workspace, const Request& request);
Result<Answer> handle_open(Workspace& workspace, const Request& request);
Result<Answer> handle_close(Workspace& workspace, const Request& request);
Result<Answer> handle_weights(Workspace& workspace, const Request& request);
Result<Answer> handle_weight_places(Workspace& workspace, const Request& request);
Result<Answer> handle_make_weight(Workspace& workspace, const Request& request);
Result<Answer> handle_make_input(Workspace& workspace, const Request& request);
Result<Answer> handle_compile(Workspace& workspace, const Request& request);
Result<Answer> handle_text(Workspace& workspace, const Request& request);
Result<Answer> handle_diff(Workspace& workspace, const Request& request);
Result<Answer> handle_graph(Workspace& workspace, const Request& request);
Result<Answer> handle_program(Workspace& workspace, const Request& request);
Result<Answer> handle_sizes(Workspace& workspace, const Request& request);
Result<Answer> handle_kernel(Workspace& workspace, const Request& request);
Result<Answer> handle_emit(Workspace& workspace, const Request& request);
Result<Answer> handle_check(Workspace& workspace, const Request& request);

}  // namespace lathe
