// Decides by history alone: sizes of calls in, numbers of programs out.
#include "frontend/artifacts/dispatcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/support/diag_codes.h"
#include "ir/support/lexer.h"

namespace lathe {
namespace {

constexpr size_t kToldArtifacts = 4;  // of which a reason speaks: the latest

// "s0 (x.size(1))", by the first input that has it.
std::string describe_symbol(const std::string& symbol, const std::vector<ShapeBinding>& inputs) {
  const Dim wanted = Dim::symbol(symbol);
  for (const ShapeBinding& input : inputs)
    for (size_t axis = 0; axis < input.expected.size(); ++axis)
      if (input.expected[axis] == wanted)
        return input.is_number ? fmt::format("{} ({})", symbol, input.name)
                               : fmt::format("{} ({}.size({}))", symbol, input.name, axis);
  return symbol;
}

// Whether each of its sizes is one of these.
bool is_of(const Guard& guard, const std::map<std::string, DimRange>& symbols) {
  std::vector<std::string> names;
  guard.left.collect_symbols(names);
  guard.right.collect_symbols(names);
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return symbols.count(name) != 0; });
}

}  // namespace

bool Artifact::is_symbolic() const {
  return std::any_of(sizes.begin(), sizes.end(), [](const auto& size) { return !size; });
}

Result<Dispatcher> Dispatcher::create(const Model& model, const CompileRequest& request) {
  Dispatcher dispatcher;
  for (const auto& [symbol, size] : model.dims) dispatcher.symbols_.push_back(symbol);
  dispatcher.inputs_ = sized_inputs(model);
  for (const std::string& symbol : dispatcher.symbols_)
    dispatcher.described_.push_back(describe_symbol(symbol, dispatcher.inputs_));
  for (const std::string& symbol : dispatcher.symbols_) {
    const auto range = model.module.dims.find(symbol);
    dispatcher.ranges_[symbol] = range == model.module.dims.end() ? DimRange() : range->second;
  }
  // Those of sizes that a run finds are checked there.
  for (const Guard& guard : model.module.guards)
    if (is_of(guard, dispatcher.ranges_)) dispatcher.guards_.push_back(guard);
  dispatcher.allowed_.emplace(dispatcher.ranges_, dispatcher.guards_);
  const size_t count = dispatcher.symbols_.size();
  dispatcher.dynamic_ = request.dynamic;
  dispatcher.limit_ = static_cast<size_t>(request.recompile_limit);
  dispatcher.is_marked_.resize(count);
  dispatcher.last_planned_.resize(count);
  dispatcher.has_varied_.resize(count);
  for (const std::string& symbol : request.mark_dynamic) LATHE_DO(dispatcher.mark(symbol));
  for (const std::string& hint : request.specialize_on) LATHE_DO(dispatcher.add_hint(hint));
  return dispatcher;
}

Dispatcher::Rules Dispatcher::rules_of(const std::vector<std::optional<int64_t>>& numbers,
                                       const std::vector<Guard>& facts) const {
  std::vector<Guard> guards;
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i]) guards.push_back({Dim::symbol(symbols_[i]), Relation::eq, *numbers[i]});
  guards.insert(guards.end(), facts.begin(), facts.end());
  SizeCheck check(ranges_, guards);
  return {std::move(guards), std::move(check)};
}

// The first that these sizes do not satisfy, for a reason; null when there is none.
const Guard* Dispatcher::broken(const Rules& rules, std::span<const int64_t> sizes) const {
  std::map<std::string, Dim> named;
  for (size_t i = 0; i < sizes.size(); ++i) named[symbols_[i]] = sizes[i];
  for (const Guard& guard : rules.guards)
    if (!check_guards({guard}, named).ok()) return &guard;
  return nullptr;
}

Status Dispatcher::mark(const std::string& symbol) {
  const auto found = std::find(symbols_.begin(), symbols_.end(), symbol);
  if (found == symbols_.end()) return no_such_dim("mark_dynamic: ", symbol, symbols_);
  is_marked_[static_cast<size_t>(found - symbols_.begin())] = true;
  return Ok{};
}

// "s0 == 8; s1 % 4 == 0": numbers for some symbols, facts about others.
Status Dispatcher::add_hint(const std::string& text) {
  std::vector<std::optional<int64_t>> numbers(symbols_.size());
  std::vector<Guard> facts, all;
  Lexer lexer(text, "specialize_on", nullptr);
  do {
    LATHE_TRY(Guard fact, parse_guard(lexer));
    std::vector<std::string> used;
    fact.left.collect_symbols(used);
    fact.right.collect_symbols(used);
    for (const std::string& symbol : used)
      if (std::find(symbols_.begin(), symbols_.end(), symbol) == symbols_.end())
        return no_such_dim(fmt::format("specialize_on: '{}': ", text), symbol, symbols_);
    fact.cause = "a hint";
    fact.pass = "specialize_on";
    all.push_back(fact);
    const auto symbol = std::find_if(symbols_.begin(), symbols_.end(), [&](const auto& name) {
      return fact.left == Dim::symbol(name);
    });
    if (fact.relation == Relation::eq && fact.right.is_const() && symbol != symbols_.end())
      numbers[static_cast<size_t>(symbol - symbols_.begin())] = fact.right.value();
    else
      facts.push_back(std::move(fact));
  } while (lexer.accept(";"));
  if (!lexer.at_end()) return lexer.expected("'; ' and another comparison");
  hints_.push_back({text, std::move(numbers), std::move(facts), rules_of({}, all)});
  return Ok{};
}

Status Dispatcher::check(std::span<const int64_t> sizes) const {
  if (sizes.size() != symbols_.size())
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("the model has {} sizes, got {}", symbols_.size(), sizes.size())};
  if (allowed_->allows(sizes, scratch_)) return Ok{};
  std::map<std::string, int64_t> named;
  for (size_t i = 0; i < sizes.size(); ++i) named[symbols_[i]] = sizes[i];
  LATHE_DO(check_sizes(inputs_, {ranges_, guards_}, named));
  return Diag{code::kTooLarge, Loc::unknown(),
              "a size that the model's guards speak of is too large"};
}

std::optional<size_t> Dispatcher::latest(std::span<const int64_t> sizes,
                                         const std::string& hint) const {
  std::optional<size_t> found;
  for (size_t i = 0; i < artifacts_.size(); ++i)
    if (artifacts_[i].hint == hint &&
        (!found || entries_[i].last_call > entries_[*found].last_call) &&
        hold(entries_[i].rules, sizes))
      found = i;
  return found;
}

bool Dispatcher::has(const std::string& hint) const {
  return std::any_of(artifacts_.begin(), artifacts_.end(),
                     [&](const Artifact& artifact) { return artifact.hint == hint; });
}

Result<Dispatcher::Choice> Dispatcher::choose(std::span<const int64_t> sizes) {
  LATHE_DO(check(sizes));
  ++num_calls_;
  for (const Hint& hint : hints_) {
    if (!hold(hint.rules, sizes)) continue;
    if (const auto found = latest(sizes, hint.text)) return again(*found);
    if (has(hint.text)) continue;  // what it needs beyond the hint is not so here
    Artifact artifact{hint.numbers, hint.facts, hint.text, fmt::format("the hint {}", hint.text)};
    if (!may_stay()) artifact.sizes.assign(sizes.begin(), sizes.end());
    return Choice{0, std::move(artifact)};
  }
  if (const auto found = latest(sizes, "")) return again(*found);
  return Choice{0, plan(sizes)};
}

Dispatcher::Choice Dispatcher::again(size_t artifact) {
  entries_[artifact].last_call = num_calls_;
  ++artifacts_[artifact].calls;
  return {artifact, {}};
}

size_t Dispatcher::add(Artifact planned, const std::vector<Guard>& guards) {
  std::vector<Guard> facts = planned.facts;
  for (const Guard& guard : guards)
    if (is_of(guard, ranges_)) facts.push_back(guard);
  Entry entry{rules_of(planned.sizes, facts), num_calls_};
  planned.calls = 1;
  if (artifacts_.size() < limit_) {
    entries_.reserve(artifacts_.size() + 1);  // both grow, or memory runs out here
    artifacts_.reserve(artifacts_.size() + 1);
    artifacts_.push_back(std::move(planned));
    entries_.push_back(std::move(entry));
    return artifacts_.size() - 1;
  }
  const auto oldest =
      std::min_element(entries_.begin(), entries_.end(),
                       [](const Entry& a, const Entry& b) { return a.last_call < b.last_call; });
  const auto at = static_cast<size_t>(oldest - entries_.begin());
  planned.reason +=
      fmt::format("; it replaces artifact {}, which served longest ago: {} are kept", at, limit_);
  artifacts_[at] = std::move(planned);
  *oldest = std::move(entry);
  return at;
}

std::string Dispatcher::names(const std::vector<size_t>& symbols) const {
  std::vector<std::string> told;
  for (size_t symbol : symbols) told.push_back(described_[symbol]);
  return fmt::format("{}", fmt::join(told, ", "));
}

// The latest programs' first rule that these sizes break.
std::string Dispatcher::why_none_serves(std::span<const int64_t> sizes) const {
  std::vector<size_t> order;
  for (size_t i = 0; i < artifacts_.size(); ++i)
    if (artifacts_[i].hint.empty()) order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return entries_[a].last_call > entries_[b].last_call; });
  const size_t num_told = std::min(order.size(), kToldArtifacts);
  std::vector<std::string> told;
  for (size_t i : std::span(order).first(num_told)) {
    const Guard* failing = broken(entries_[i].rules, sizes);
    if (failing == nullptr) continue;
    std::vector<std::string> used, got;
    failing->left.collect_symbols(used);
    failing->right.collect_symbols(used);
    for (const std::string& symbol : used) {
      const auto at = std::find(symbols_.begin(), symbols_.end(), symbol) - symbols_.begin();
      got.push_back(fmt::format("{} = {}", described_[static_cast<size_t>(at)],
                                sizes[static_cast<size_t>(at)]));
    }
    told.push_back(fmt::format("artifact {} needs {}{}, got {}", i, to_string(*failing),
                               failing->cause.empty() ? "" : " (" + failing->cause + ")",
                               fmt::join(got, ", ")));
  }
  if (order.size() > num_told)
    told.push_back(fmt::format("{} older ones are for other sizes", order.size() - num_told));
  return fmt::format("{}", fmt::join(told, "; "));
}

Artifact Dispatcher::plan(std::span<const int64_t> sizes) {
  std::string reason = why_none_serves(sizes);
  const bool is_first = reason.empty();
  if (is_first) reason = "no program was there";
  std::vector<size_t> varied, stay;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (last_planned_[i] && *last_planned_[i] != sizes[i] && !has_varied_[i]) {
      has_varied_[i] = true;
      varied.push_back(i);
    }
    last_planned_[i] = sizes[i];
  }
  const bool has_general =
      std::any_of(artifacts_.begin(), artifacts_.end(), [](const Artifact& artifact) {
        return artifact.hint.empty() && std::all_of(artifact.sizes.begin(), artifact.sizes.end(),
                                                    [](const auto& size) { return !size; });
      });
  const bool is_full = artifacts_.size() >= limit_;
  Artifact artifact;
  artifact.sizes.assign(sizes.begin(), sizes.end());
  // What serves every size and yet not these needs more of them: numbers will do.
  if (may_stay() && !has_general)
    for (size_t i = 0; i < sizes.size(); ++i)
      if (dynamic_ == true || is_marked_[i] || has_varied_[i] || is_full) {
        artifact.sizes[i].reset();
        stay.push_back(i);
      }
  if (!refused_symbols_.empty() && dynamic_ != false)
    reason += "; sizes are numbers: " + refused_symbols_;
  else if (dynamic_ == true && !stay.empty())
    reason += "; every size stays a symbol: dynamic is true";
  else if (is_full && !stay.empty())
    reason += fmt::format("; every size stays a symbol: {} programs are there", artifacts_.size());
  else if (!varied.empty() && !stay.empty())
    reason += fmt::format("; {} stays a symbol from now on", names(varied));
  else if (!stay.empty())
    reason += fmt::format("; {} stays a symbol", names(stay));
  else
    reason += symbols_.empty() ? "; the model has one size" : "; every size is a number";
  artifact.reason = std::move(reason);
  return artifact;
}

CompileRequest::Sizes Dispatcher::sizes_of(const Artifact& artifact) const {
  CompileRequest::Sizes sizes;
  for (size_t i = 0; i < symbols_.size(); ++i)
    if (!artifact.sizes[i]) sizes.symbols.push_back(symbols_[i]);
  sizes.facts = artifact.facts;
  return sizes;
}

bool Dispatcher::refuse(const Artifact& planned, const std::string& why) {
  if (!planned.is_symbolic() || dynamic_ == true || !refused_symbols_.empty()) return false;
  refused_symbols_ = why;
  return true;
}

}  // namespace lathe
