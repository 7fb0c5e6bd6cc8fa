// Handles of files, models and runs.
#include "web/engine/workspace.h"

#include <fmt/format.h>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

template <class T>
Result<T*> find(Workspace::Table<T>& table, const Request& request, std::string_view key) {
  LATHE_TRY(int64_t handle, request.integer(key));
  auto found = table.find(handle);
  if (found == table.end()) return request.bad(key, fmt::format("no {} {} is open", key, handle));
  return found->second.get();
}

}  // namespace

Result<OpenModel*> model_of(Workspace& workspace, const Request& request) {
  return find(workspace.models, request, "model");
}

Result<PipelineRun*> run_of(Workspace& workspace, const Request& request) {
  return find(workspace.runs, request, "run");
}

Result<int64_t> opening_of(Workspace& workspace, const Request& request) {
  int64_t handle = 0;
  if (request.has("file")) {
    LATHE_TRY(handle, request.integer("file"));
    if (workspace.files.count(handle) == 0)
      return request.bad("file", fmt::format("no file {} is being opened", handle));
  } else {
    LATHE_TRY(int64_t size, request.integer("size"));
    if (size < 0) return request.bad("size", fmt::format("'size' is {}, expected bytes", size));
    LATHE_TRY(std::string name, request.text("name"));
    handle = workspace.next_handle();
    auto remote = std::make_unique<RemoteFile>(static_cast<uint64_t>(size));
    workspace.files[handle] =
        std::make_unique<OpeningFile>(OpeningFile{std::move(name), std::move(remote)});
  }
  LATHE_DO(take_ranges(request, *workspace.files[handle]->remote));
  return handle;
}

std::optional<Answer> ask_for_more(const Workspace& workspace, int64_t handle, const Diag& why) {
  const RemoteFile& file = *workspace.files.at(handle)->remote;
  if (why.code != code::kUnavailable || file.needed().empty()) return std::nullopt;
  Answer answer;
  answer.json["file"] = handle;
  answer.json["need"] = needed_json(file);
  return answer;
}

Result<size_t> step_of(const PipelineRun& run, const Request& request) {
  const int64_t last = static_cast<int64_t>(run.steps.size()) - 1;
  LATHE_TRY(int64_t step, request.integer("step", last));
  if (step < 0 || step > last)
    return request.bad("step", fmt::format("no step {}, expected 0 to {}", step, last));
  return static_cast<size_t>(step);
}

Result<Answer> handle_close(Workspace& workspace, const Request& request) {
  bool closes_all = true;
  for (const char* key : {"model", "run", "file"}) {
    if (!request.has(key)) continue;
    closes_all = false;
    LATHE_TRY(int64_t handle, request.integer(key));
    workspace.runs.erase(handle);
    workspace.models.erase(handle);
    workspace.files.erase(handle);
  }
  if (closes_all) workspace = Workspace();
  return Answer();
}

}  // namespace lathe
