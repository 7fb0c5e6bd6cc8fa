// Code generation by LLVM's X86 target and linking by ORC. Each kernel is one module and one
// object: small register allocations, and objects that can be kept.
//
// Generation runs LLVM's code generation passes only. Optimisation passes over the IR cost more
// time than generation itself and gain nothing on what the emitter writes.
#include "backends/cpu/jit.h"

#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <malloc.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>

#include "ir/loop/text.h"
#include "ir/support/canonical.h"
#include "ir/support/diag_codes.h"

namespace lathe::cpu {
namespace {

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";
constexpr size_t kMaxCachedBytes = 64 << 20;

Diag jit_error(std::string_view what, llvm::Error error) {
  return internal_error(fmt::format("{}: {}", what, llvm::toString(std::move(error))), __FILE__,
                        __LINE__);
}

Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    // Loop strength reduction takes a third of the time, and has nothing to do: the emitter shares
    // pointers and leaves constants to displacements. Only a command line option turns it off.
    auto& options = llvm::cl::getRegisteredOptions();
    if (auto found = options.find("disable-lsr"); found != options.end())
      found->second->addOccurrence(0, "disable-lsr", "true");
  });
  std::string message;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kTriple, message);
  if (!target) return internal_error(message, __FILE__, __LINE__);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // separate mul and add stay separate
  // The CPU is an attribute of each function.
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(kTriple, "x86-64", "", options, llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, true));
}

std::unique_ptr<llvm::Module> make_module(llvm::LLVMContext& context,
                                          const llvm::TargetMachine& machine) {
  auto module = std::make_unique<llvm::Module>("lathe", context);
  module->setTargetTriple(kTriple);
  module->setDataLayout(machine.createDataLayout());
  return module;
}

Result<std::string> write_code(llvm::Module& module, llvm::TargetMachine& machine,
                               llvm::CodeGenFileType form) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  LATHE_CHECK(!machine.addPassesToEmitFile(passes, stream, nullptr, form, true),
              "LLVM's X86 target cannot write this kind of file");
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

Result<std::string> compile_object(const KernelSource& source, const std::string& symbol,
                                   llvm::TargetMachine& machine) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = make_module(context, machine);
  LATHE_DO(emit_kernel(*module, *source.kernel, symbol, source.options));
  return write_code(*module, machine, llvm::CodeGenFileType::ObjectFile);
}

// Equal exactly for sources whose objects can stand for each other.
std::string key_of(const KernelSource& source) {
  CanonicalBytes key;
  key.add(static_cast<uint64_t>(source.options.isa));
  key.add(static_cast<uint64_t>(source.options.is_noalias));
  return key.take() + loop::canonical_form(*source.kernel);
}

// The object of a kernel and its function in there: no other object has that symbol.
struct Compiled {
  std::string symbol;
  std::shared_ptr<const std::string> object;
};

struct Job {
  std::string key;
  KernelSource source;
  std::string symbol;
  Result<std::string> object = std::string();
};

// Compiles the jobs on up to `threads` threads, this one among them. Each has a target machine,
// whose set-up costs as much as a small kernel.
void compile_objects(std::vector<Job>& jobs, int threads) {
  std::atomic<size_t> next{0};
  auto drain = [&] {
    auto machine = make_target_machine();
    for (size_t i; (i = next.fetch_add(1)) < jobs.size();) {
      Job& job = jobs[i];
      job.object = machine.ok() ? compile_object(job.source, job.symbol, **machine)
                                : Result<std::string>(machine.error());
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads && static_cast<size_t>(t) < jobs.size(); ++t)
    others.emplace_back(drain);
  if (!jobs.empty()) drain();
  for (std::thread& other : others) other.join();
}

}  // namespace

Result<std::string> generate_code(const std::vector<KernelSource>& sources, CodeForm form) {
  LATHE_TRY(std::unique_ptr<llvm::TargetMachine> machine, make_target_machine());
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = make_module(context, *machine);
  std::set<std::string> used;
  for (const KernelSource& source : sources) {
    std::string symbol = source.kernel->name;
    for (int n = 2; !used.insert(symbol).second; ++n)
      symbol = fmt::format("{}_{}", source.kernel->name, n);
    LATHE_DO(emit_kernel(*module, *source.kernel, symbol, source.options));
  }
  if (form == CodeForm::llvm_ir) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream, nullptr);
    return text;
  }
  return write_code(*module, *machine,
                    form == CodeForm::object ? llvm::CodeGenFileType::ObjectFile
                                             : llvm::CodeGenFileType::AssemblyFile);
}

struct ObjectCache::State {
  std::mutex mutex;
  std::unordered_map<std::string, Compiled> compiled;  // by key
  size_t bytes = 0;
  uint64_t num_symbols = 0;

  std::optional<Compiled> find(const std::string& key) {
    std::lock_guard lock(mutex);
    auto found = compiled.find(key);
    return found == compiled.end() ? std::nullopt : std::optional(found->second);
  }
  std::string new_symbol() {
    std::lock_guard lock(mutex);
    return fmt::format("lathe_{}", num_symbols++);
  }
  void add(const std::string& key, Compiled entry) {
    std::lock_guard lock(mutex);
    const size_t added = key.size() + entry.object->size();
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

struct Jit::State {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

Jit::Jit() : state_(std::make_unique<State>()) {}
Jit::~Jit() = default;

Result<std::unique_ptr<Jit>> Jit::compile(const std::vector<KernelSource>& sources, int threads,
                                          ObjectCache& cache) {
  std::vector<std::string> keys;
  std::unordered_map<std::string, Compiled> compiled;
  std::vector<Job> jobs;
  for (const KernelSource& source : sources) {
    keys.push_back(key_of(source));
    auto [entry, is_new] = compiled.try_emplace(keys.back());
    if (!is_new) continue;
    if (auto known = cache.state_->find(keys.back()))
      entry->second = *std::move(known);
    else
      jobs.push_back({keys.back(), source, cache.state_->new_symbol()});
  }
  compile_objects(jobs, threads);
  for (Job& job : jobs) {
    if (!job.object.ok()) return std::move(job.object).error();
    Compiled entry{std::move(job.symbol),
                   std::make_shared<const std::string>(*std::move(job.object))};
    compiled[job.key] = entry;
    cache.state_->add(job.key, std::move(entry));
  }
  // What code generation freed goes back to the system before weights are packed beside it.
  if (!jobs.empty()) malloc_trim(0);

  LATHE_TRY(std::unique_ptr<llvm::TargetMachine> machine, make_target_machine());
  std::unique_ptr<Jit> result(new Jit());
  auto jit = llvm::orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(
                     llvm::orc::JITTargetMachineBuilder(machine->getTargetTriple()))
                 .create();
  if (!jit) return jit_error("cannot create a JIT", jit.takeError());
  result->state_->jit = std::move(*jit);
  llvm::orc::LLJIT& linker = *result->state_->jit;
  for (const auto& [key, entry] : compiled)
    if (llvm::Error error =
            linker.addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(*entry.object, entry.symbol)))
      return jit_error("cannot link kernels", std::move(error));
  for (const std::string& key : keys) {
    auto address = linker.lookup(compiled.at(key).symbol);
    if (!address) return jit_error("cannot link kernels", address.takeError());
    result->functions_.push_back(address->toPtr<KernelFunction>());
  }
  return result;
}

}  // namespace lathe::cpu
