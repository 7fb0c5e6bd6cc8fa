// Reads the shared flags with the readers of the options.
#include "frontend/cli/model_flags.h"

#include "frontend/driver/backends.h"
#include "frontend/driver/files.h"
#include "frontend/driver/flags.h"
#include "ir/support/diag_codes.h"

namespace lathe {

void ModelFlags::add_to(CLI::App& command) {
  for (const FlagRow& row : option_flags()) {
    const std::string names = row.key == "model" ? "model,--model" : "--" + row.key;
    command.add_option_function<std::string>(
        names, [this, key = row.key](const std::string& value) { values[key] = value; }, row.help);
  }
}

std::string ModelFlags::model() const {
  const auto given = values.find("model");
  return given == values.end() ? "" : given->second;
}

std::vector<std::string> ModelFlags::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : values) keys.push_back(key);
  return keys;
}

Result<Loaded> load(const ModelFlags& flags, const std::string& command_line, LocTable& locs) {
  Loaded loaded;
  CompileRequest& request = loaded.request;
  request = flags.request;
  std::vector<Flag> given;
  for (const auto& [key, value] : flags.values) given.push_back({key, value});
  LATHE_DO(apply_flags(given, option_flags(), command_line, locs,
                       [&](json::Value object, const LocateFn& locate) {
                         return apply_options(object, locate, {}, request);
                       }));
  if (request.model.empty())
    return Diag{code::kBadValue, Loc::unknown(),
                "no model given, expected a path or the name of a graph; see `lathe list zoo`"};
  LATHE_TRY(loaded.backend, choose_backend(request));
  LATHE_TRY(std::string path, find_model(request.model));
  ModelOptions options = model_options(request);
  options.allow_no_weights = true;
  LATHE_TRY(loaded.model, load_model(path, options, locs));
  if (!loaded.model.has_weights() && !loaded.model.random_weights) loaded.model.random_weights = 0;
  return loaded;
}

}  // namespace lathe
