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
// Nothing is compiled here: whoever asks does that.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frontend/driver/model.h"
#include "frontend/driver/options.h"
#include "ir/support/result.h"
#include "ir/type/bind.h"
#include "ir/type/size_check.h"

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

  struct Served {
    size_t artifact = 0;
    bool is_new = false;  // made now, in place of what had the number before
  };
  // Who serves a call, which is counted. `make(planned)` compiles what nobody serves yet, and
  // returns what that needs of sizes beyond the policy (Result<std::vector<Guard>>); where symbols
  // cannot stay and `dynamic` is not true it is asked again, for numbers, as always from then on.
  // An error is make's, or says what the model is not for; then no artifact is added.
  template <class Make>
  Result<Served> serve(std::span<const int64_t> sizes, Make&& make) {
    LATHE_TRY(Choice choice, choose(sizes));
    if (!choice.planned) return Served{choice.artifact, false};
    Result<std::vector<Guard>> needed = make(std::as_const(*choice.planned));
    if (!needed.ok() && refuse(*choice.planned, needed.error().message)) {
      choice.planned = plan(sizes);
      needed = make(std::as_const(*choice.planned));
      if (!needed.ok()) refused_symbols_.clear();  // symbols were not to blame
    }
    if (!needed.ok()) return std::move(needed).error();
    return Served{add(*std::move(choice.planned), *needed), true};
  }

  // What is a symbol in an artifact's program, and what it may rely on.
  CompileRequest::Sizes sizes_of(const Artifact& artifact) const;

 private:
  // What sizes must satisfy beyond what the model is for, and the same for a fast check.
  struct Rules {
    std::vector<Guard> guards;
    SizeCheck check;
  };
  struct Hint {
    std::string text;
    std::vector<std::optional<int64_t>> numbers;  // by symbol
    std::vector<Guard> facts;
    Rules rules;
  };
  struct Entry {
    Rules rules;            // an artifact's
    int64_t last_call = 0;  // that it served
  };
  // An artifact by its number, or one to be made.
  struct Choice {
    size_t artifact = 0;
    std::optional<Artifact> planned = {};
  };

  Rules rules_of(const std::vector<std::optional<int64_t>>& numbers,
                 const std::vector<Guard>& facts) const;
  bool hold(const Rules& rules, std::span<const int64_t> sizes) const {
    return rules.check.allows(sizes, scratch_);
  }
  const Guard* broken(const Rules& rules, std::span<const int64_t> sizes) const;
  Status check(std::span<const int64_t> sizes) const;
  Status mark(const std::string& symbol);
  Status add_hint(const std::string& text);
  Result<Choice> choose(std::span<const int64_t> sizes);
  Choice again(size_t artifact);
  size_t add(Artifact planned, const std::vector<Guard>& guards);
  // Whether numbers are tried from now on.
  bool refuse(const Artifact& planned, const std::string& why);
  // The latest that serves these sizes, of a hint's text or of none.
  std::optional<size_t> latest(std::span<const int64_t> sizes, const std::string& hint) const;
  bool has(const std::string& hint) const;
  bool may_stay() const { return dynamic_ != false && refused_symbols_.empty(); }
  Artifact plan(std::span<const int64_t> sizes);
  std::string why_none_serves(std::span<const int64_t> sizes) const;
  std::string names(const std::vector<size_t>& symbols) const;

  std::vector<std::string> symbols_, described_;
  std::vector<ShapeBinding> inputs_;
  std::map<std::string, DimRange> ranges_;  // of every symbol
  std::vector<Guard> guards_;
  std::optional<SizeCheck> allowed_;  // what the model is for
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
  mutable std::vector<int64_t> scratch_;  // of checks
};

}  // namespace lathe
