// Reads the shared flags with the experiment config's readers.
#include "frontend/cli/model_flags.h"

#include "experiments/runner/flags.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/files.h"
#include "frontend/driver/machine.h"
#include "ir/support/diag_codes.h"

namespace lathe {

void ModelFlags::add_to(CLI::App& command) {
  command.add_option("model,--model", model,
                     "a path (.pt2, .json, .json.gz, .lathe) or a graph's name");
  command.add_option("--weights", weights, "file, or random:SEED");
  command.add_option("--dims", dims, "sizes of symbolic dims, such as s0=8");
  command.add_option("--target", target, "cpu, cuda or wasm");
  command.add_option("--isa", isa,
                     "avx2, avx512, sm_90, simd128, relaxed; the best there is unless given");
  command.add_option("--threads", threads, "every core unless given")->check(CLI::Range(1, 1024));
  command.add_option("--numerics", numerics, "default, or strict: the same bits on cpu and wasm");
  command.add_option("--passes", passes, "pipeline text; `lathe list passes` shows the words");
}

Result<Loaded> load(const ModelFlags& flags, const std::string& command_line, LocTable& locs) {
  if (flags.model.empty())
    return Diag{code::kBadValue, Loc::unknown(),
                "no model given, expected a path or the name of a graph; see `lathe list zoo`"};
  ExperimentConfig config;
  std::vector<Flag> words = {{"weights", flags.weights}, {"numerics", flags.numerics}};
  if (!flags.dims.empty()) words.push_back({"dims", flags.dims});
  LATHE_DO(apply_flags(words, command_line, locs, config));
  Loaded loaded;
  LATHE_TRY(loaded.backend, make_backend(flags.target, flags.isa));
  LATHE_DO(check_numerics(config.numerics, flags.target, loaded.backend->target().never_strict));
  loaded.options.passes = flags.passes;
  loaded.options.numerics = config.numerics;
  loaded.options.threads = flags.threads > 0 ? flags.threads : this_machine().cores;
  LATHE_TRY(std::string path, find_model(flags.model));
  ModelOptions options;
  options.dims = config.dims;
  if (config.weights.is_random) options.random_weights = config.weights.seed;
  options.allow_no_weights = true;
  LATHE_TRY(loaded.model, load_model(path, options, locs));
  if (!loaded.model.has_weights() && !loaded.model.random_weights) loaded.model.random_weights = 0;
  return loaded;
}

}  // namespace lathe
