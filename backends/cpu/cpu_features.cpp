// Detection by CPUID and XGETBV: a set counts only when the operating system saves its registers.
#include "backends/cpu/cpu_features.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/diag_codes.h"

namespace lathe::cpu {
namespace {

constexpr Isa kAllIsas[] = {Isa::avx512_bf16, Isa::avx512, Isa::avx2};

// __builtin_cpu_supports reads CPUID and XCR0 once; the level names are those of the x86-64 psABI.
bool host_has(Isa isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2");
  if (isa == Isa::avx2) return avx2;
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512cd");
  if (isa == Isa::avx512) return avx512;
  return avx512 && __builtin_cpu_supports("avx512bf16");
#else
  (void)isa;
  return false;
#endif
}

// Intel's cores take two cycles for a dot of pairs, in which they do four multiply-adds: half the
// rate of f32 (measured on Emerald Rapids). AMD's do as many dots as multiply-adds.
bool is_good_at(Isa isa) {
#if defined(__x86_64__)
  return isa != Isa::avx512_bf16 || __builtin_cpu_is("amd");
#else
  (void)isa;
  return false;
#endif
}

template <class Isas>
std::vector<std::string> names(const Isas& isas) {
  std::vector<std::string> list;
  for (Isa isa : isas) list.emplace_back(isa_name(isa));
  return list;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_bf16:
      return "avx512_bf16";
  }
  return "";
}

std::vector<Isa> host_isas() {
  std::vector<Isa> isas;
  for (Isa isa : kAllIsas)
    if (host_has(isa)) isas.push_back(isa);
  std::stable_partition(isas.begin(), isas.end(), is_good_at);
  return isas;
}

Result<Isa> parse_isa(std::string_view name) {
  for (Isa isa : kAllIsas)
    if (isa_name(isa) == name) return isa;
  std::string hint = nearest(name, names(kAllIsas));
  return Diag{
      .code = code::kBadValue,
      .loc = Loc::unknown(),
      .message = fmt::format("unknown instruction set '{}', expected one of {}{}", name,
                             fmt::join(names(kAllIsas), ", "),
                             hint.empty() ? "" : fmt::format("; did you mean '{}'?", hint))};
}

Result<Isa> select_isa(std::string_view name) {
  std::vector<Isa> here = host_isas();
  if (here.empty())
    return Diag{.code = code::kUnavailable,
                .loc = Loc::unknown(),
                .message = "the cpu target needs an x86-64 processor with AVX2, FMA and F16C"};
  if (name.empty()) return here.front();
  LATHE_TRY(Isa isa, parse_isa(name));
  for (Isa available : here)
    if (available == isa) return isa;
  return Diag{.code = code::kUnavailable,
              .loc = Loc::unknown(),
              .message = fmt::format("this machine lacks the instruction set '{}', it has {}", name,
                                     fmt::join(names(here), ", "))};
}

}  // namespace lathe::cpu
