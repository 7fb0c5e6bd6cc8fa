// Which kernels are generated, which are known, and on which threads.
#include "backends/cpu/jit.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "ir/loop/text.h"
#include "ir/support/canonical.h"
#include "ir/support/hash.h"
#include "ir/threads/threads.h"

namespace lathe::cpu {
namespace {

constexpr size_t kMaxCachedBytes = 64 << 20;

// Equal exactly for sources whose objects can stand for each other.
std::string key_of(const KernelSource& source) {
  CanonicalBytes key;
  key.add(static_cast<uint64_t>(source.options.isa));
  key.add(static_cast<uint64_t>(source.options.is_noalias));
  return key.take() + loop::canonical_form(*source.kernel);
}

// Of the one function in an object. Made of what the object is made of, so that objects which other
// processes made can be linked with these; of two equal names linking says so.
std::string symbol_of(const std::string& key) {
  return fmt::format("lathe_{:016x}{:016x}", Hasher().add(key).value(),
                     Hasher().add(1).add(key).value());
}

struct Job {
  std::string key;
  KernelSource source;
  std::string symbol;
  Result<std::string> object = std::string();
};

// Makes the jobs' objects on up to `threads` threads, this one among them.
void make_objects(std::vector<Job>& jobs, int threads) {
  std::atomic<size_t> next{0};
  auto drain = [&] {
    auto maker = ObjectMaker::create();
    for (size_t i; (i = next.fetch_add(1)) < jobs.size();) {
      Job& job = jobs[i];
      job.object =
          maker.ok() ? (*maker)->make(job.source, job.symbol) : Result<std::string>(maker.error());
    }
  };
  Threads others;
  for (int t = 1; t < threads && static_cast<size_t>(t) < jobs.size(); ++t)
    if (!others.start(drain)) break;
  if (!jobs.empty()) drain();
  others.join();
}

}  // namespace

struct ObjectCache::State {
  std::mutex mutex;
  std::unordered_map<std::string, LinkedCode::Object> compiled;  // by key
  size_t bytes = 0;

  std::optional<LinkedCode::Object> find(const std::string& key) {
    std::lock_guard lock(mutex);
    auto found = compiled.find(key);
    return found == compiled.end() ? std::nullopt : std::optional(found->second);
  }
  void add(const std::string& key, LinkedCode::Object entry) {
    std::lock_guard lock(mutex);
    const size_t added = key.size() + entry.bytes->size();
    if (bytes + added > kMaxCachedBytes) {
      compiled.clear();
      bytes = 0;
    }
    // Another thread may have compiled the same: its entry stays, whose bytes are counted.
    if (compiled.try_emplace(key, std::move(entry)).second) bytes += added;
  }
};

ObjectCache::ObjectCache() : state_(std::make_unique<State>()) {}
ObjectCache::~ObjectCache() = default;

Jit::Jit() = default;
Jit::~Jit() = default;

Result<std::unique_ptr<Jit>> Jit::compile(const std::vector<KernelSource>& sources, int threads,
                                          ObjectCache& cache, KernelCode* code) {
  std::vector<std::string> keys;
  std::unordered_map<std::string, LinkedCode::Object> compiled;
  std::vector<Job> jobs;
  for (const KernelSource& source : sources) {
    keys.push_back(key_of(source));
    const std::string& key = keys.back();
    auto [entry, is_new] = compiled.try_emplace(key);
    if (!is_new) continue;
    const auto given = code ? code->find(key) : KernelCode::const_iterator();
    if (auto known = cache.state_->find(key))
      entry->second = *std::move(known);
    else if (code && given != code->end())
      entry->second = {symbol_of(key), given->second};
    else
      jobs.push_back({key, source, symbol_of(key)});
  }
  make_objects(jobs, threads);
  for (Job& job : jobs) {
    if (!job.object.ok()) return std::move(job.object).error();
    compiled[job.key] = {std::move(job.symbol),
                         std::make_shared<const std::string>(*std::move(job.object))};
    cache.state_->add(job.key, compiled[job.key]);
  }

  std::vector<LinkedCode::Object> objects;
  std::unordered_map<std::string_view, size_t> object_of;  // by key
  for (const auto& [key, entry] : compiled) {
    object_of[key] = objects.size();
    objects.push_back(entry);
    if (code) code->try_emplace(key, entry.bytes);
  }
  std::unique_ptr<Jit> result(new Jit());
  LATHE_TRY(result->code_, LinkedCode::link(objects));
  for (const std::string& key : keys)
    result->functions_.push_back(result->code_->functions()[object_of.at(key)]);
  return result;
}

}  // namespace lathe::cpu
