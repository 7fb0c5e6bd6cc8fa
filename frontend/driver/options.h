// What to compile, and how: the one request of the command line, the C ABI, the page and studies.
// A new option is a field, a row of compile_options() and its use.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/driver/object_reader.h"
#include "ir/support/result.h"
#include "ir/target/numerics.h"
#include "ir/target/target.h"
#include "ir/type/guard.h"
#include "passes/choices/override.h"

namespace lathe {

// "random:SEED", or a file. In inputs and weights alike.
struct DataSource {
  bool is_random = false;
  uint64_t seed = 0;
  std::string file = {};  // an .npz of inputs; of weights always "file": the model's own
  Loc loc = {};
};

struct CompileRequest {
  std::string model = {};  // a path, or the name of a graph of experiments/graphs or of the zoo
  DataSource weights = {.file = "file"};
  std::map<std::string, int64_t> dims = {};  // sizes of symbolic dims; the exporter's otherwise
  // PyTorch's word. Of one program: true: sizes stay symbols; else they are numbers. Of several
  // (frontend/artifacts): false: one for each size; none: numbers first, then what changed stays.
  std::optional<bool> dynamic = {};
  std::vector<std::string> mark_dynamic = {};   // symbols that stay from the first program on
  std::vector<std::string> specialize_on = {};  // "s0 == 8; s1 % 4 == 0": a program of its own
  int64_t recompile_limit = 8;                  // programs that are kept
  std::string target = "cpu";
  std::string isa = {};  // of the target; empty: the best of this machine
  int threads = 0;       // 0: every core
  std::string passes = "default";
  Numerics numerics = Numerics::standard;
  std::string mode = "default";      // torch.compile's word
  bool cache = false;                // programs are kept for other processes, and found
  std::vector<Override> force = {};  // decided so, whatever the passes would do
  // What stays a symbol in one program, where `dynamic` is not the whole answer, and what it may
  // rely on beyond the model's guards. Decided for each program, never by a user.
  struct Sizes {
    std::vector<std::string> symbols;
    std::vector<Guard> facts;
  };
  std::optional<Sizes> sizes = {};
  // By region and routine, what libraries of this machine refused, and why. Found out by building.
  std::map<std::pair<std::string, std::string>, std::string> refused = {};
  // Where each option was given, by key, for errors that are found later.
  std::map<std::string, Loc, std::less<>> places = {};

  Loc place(std::string_view key) const;  // unknown when it was not given
  int num_threads() const;                // at least 1
  bool reduces_overhead() const { return mode == "reduce-overhead"; }
  bool autotunes() const { return mode.starts_with("max-autotune"); }
};

// How an option is written as a flag: the same text, a number or word of JSON, a list with commas,
// or pairs s0=8,s1=4.
enum class FlagForm : uint8_t { text, scalar, list, pairs, pipelines };

struct CompileOption {
  std::string_view key;   // of JSON; --key as a flag
  std::string_view help;  // of the flag
  FlagForm form;
  Status (*read)(const ObjectReader& reader, const json::Member& member, CompileRequest& out);
};
// Sorted by key.
const std::vector<CompileOption>& compile_options();

// Overrides `request` with the members of an object: of all options but those in `others`, which
// the caller has another way for. Unknown and repeated keys and values of the wrong kind are
// errors.
Status apply_options(json::Value object, const LocateFn& locate,
                     const std::vector<std::string_view>& others, CompileRequest& request);
// The same of some options only; other members are the caller's, and null is as good as missing.
Status apply_some_options(json::Value object, const LocateFn& locate,
                          const std::vector<std::string_view>& keys, CompileRequest& request);

// Reads one option: the member's key names it.
Status read_option(const ObjectReader& reader, const json::Member& member, CompileRequest& out);

// Readers that the lists of a study share with the options.
Status read_source(const ObjectReader& reader, const json::Member& member, DataSource& out);
Status read_dims(const ObjectReader& reader, const json::Member& member,
                 std::map<std::string, int64_t>& out);
Result<int> read_threads(const ObjectReader& reader, std::string_view key, json::Value value);
// "cpu", "cuda", "wasm": the targets that programs are made for.
std::vector<std::string> target_words();

// An error without a place when the target cannot run so; `has_graphs` as Target says.
// "max-autotune" is for each, and means reduce-overhead too where that is.
Status check_mode(const std::string& mode, const std::string& target, bool has_graphs);

}  // namespace lathe
