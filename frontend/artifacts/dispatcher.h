// Which program serves a call: PyTorch's policies for dynamic shapes over one captured graph.
//
// A program (an artifact) is compiled for some sizes: each symbol is a number in it, or stays a
// symbol. What `dynamic` says, in PyTorch's words:
//   True   every symbol stays one from the first call on
//   False  every symbol is a number, and new sizes are a new program
//   None   numbers first; a symbol that comes with another number stays one from then on
// unless `mark_dynamic` names a symbol, which then is never a number but in a hint's program.
// `specialize_on` gives sizes programs of their own, made when they first come. Unlike PyTorch,
// sizes 0 and 1 are as good as others: the ranges of the file say whether the graph holds for them.
//
// Nothing is compiled here: whoever asks does that, and says what the program needs beyond what the
// policy decided, or that it cannot be.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/artifacts/guard_tape.h"
#include "frontend/driver/model.h"
#include "frontend/driver/options.h"
#include "ir/support/result.h"
#include "ir/type/bind.h"

namespace lathe {

struct Artifact {
  std::vector<std::optional<int64_t>> sizes;  // by symbol; none: it stays one
  std::vector<Guard> facts = {};              // of a hint that says more than numbers
  std::string hint = {};                      // its text; empty: of none
  std::string reason = {};                    // why it is compiled: never empty
  int64_t calls = 0;                          // that it served

  bool is_symbolic() const;  // in some size
};

class Dispatcher {
 public:
  // kBadValue: a policy that names no symbol of the model, or a hint that is no comparison.
  static Result<Dispatcher> create(const Model& model, const CompileRequest& request);

  // In the order of Model::dims, as are all sizes here.
  const std::vector<std::string>& symbols() const { return symbols_; }
  // By number. One that was dropped gives its place to the next.
  const std::vector<Artifact>& artifacts() const { return artifacts_; }

  // Who serves a call: an artifact by its number, or one that the caller compiles and adds.
  struct Choice {
    size_t artifact = 0;
    std::optional<Artifact> planned = {};
  };
  // Counts the call. The error says what the model is not for.
  Result<Choice> choose(std::span<const int64_t> sizes);

  // A planned one that was compiled, with what its program needs of sizes: the policy's, the file's
  // and more. Returns its number; where the limit is reached, that of what it takes the place of.
  size_t add(Artifact planned, const std::vector<Guard>& guards);
  // A planned one that cannot be compiled. True: numbers are tried instead of symbols from now on,
  // for this reason, and choose() has another answer.
  bool refuse(const Artifact& planned, const std::string& why);

  // What is a symbol in an artifact's program, and what it may rely on.
  CompileRequest::Sizes sizes_of(const Artifact& artifact) const;

  // How a symbol is called for a user: "s0 (x.size(1))".
  const std::string& describe(size_t symbol) const { return described_[symbol]; }

 private:
  struct Hint {
    std::string text;
    std::vector<std::optional<int64_t>> numbers;  // by symbol
    std::vector<Guard> facts;
    GuardTape rules;
  };
  // An artifact's rules, and when it last served.
  struct Entry {
    GuardTape rules;
    int64_t last_call = 0;
  };

  GuardTape rules_of(const std::vector<std::optional<int64_t>>& numbers,
                     const std::vector<Guard>& facts) const;
  Status check(std::span<const int64_t> sizes) const;
  Status mark(const std::string& symbol);
  Status add_hint(const std::string& text);
  Choice serve(size_t artifact);
  // The latest that serves these sizes, of a hint's text or of none.
  std::optional<size_t> latest(std::span<const int64_t> sizes, const std::string& hint) const;
  bool has(const std::string& hint) const;
  bool may_stay() const { return dynamic_ != false && refused_symbols_.empty(); }
  Artifact plan(std::span<const int64_t> sizes);
  std::string why_none_serves(std::span<const int64_t> sizes) const;
  std::string names(const std::vector<size_t>& symbols) const;

  std::vector<std::string> symbols_, described_;
  std::vector<ShapeBinding> inputs_;
  std::map<std::string, DimRange> ranges_;
  std::vector<Guard> guards_;
  std::optional<GuardTape> model_rules_;
  std::optional<bool> dynamic_;
  size_t limit_ = 1;
  std::vector<bool> is_marked_;                       // by symbol, as what follows
  std::vector<std::optional<int64_t>> last_planned_;  // its size when a program was last planned
  std::vector<bool> has_varied_;
  std::string refused_symbols_;  // why none can stay; empty: they can
  std::vector<Hint> hints_;
  std::vector<Artifact> artifacts_;
  std::vector<Entry> entries_;  // like artifacts_
  int64_t num_calls_ = 0;
};

}  // namespace lathe
