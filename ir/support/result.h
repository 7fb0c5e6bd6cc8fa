// Result<T>: a value or a Diag. The library never throws, aborts, prints or exits.
#pragma once
#include <utility>
#include <variant>

#include "ir/support/diag.h"

namespace lathe {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Diag diag) : state_(std::in_place_index<1>, std::move(diag)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Only when ok().
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  // Only when !ok().
  Diag& error() & { return *std::get_if<1>(&state_); }
  const Diag& error() const& { return *std::get_if<1>(&state_); }
  Diag&& error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, Diag> state_;
};

struct Ok {};
using Status = Result<Ok>;  // success without a value: return Ok{}

}  // namespace lathe

#define LATHE_JOIN_(a, b) a##b
#define LATHE_JOIN(a, b) LATHE_JOIN_(a, b)

// LATHE_TRY(auto graph, parse(text)); declares `graph`, or returns the Diag from this function.
#define LATHE_TRY(declaration, expression)                   \
  auto LATHE_JOIN(result_, __LINE__) = (expression);         \
  if (!LATHE_JOIN(result_, __LINE__).ok())                   \
    return std::move(LATHE_JOIN(result_, __LINE__)).error(); \
  declaration = *std::move(LATHE_JOIN(result_, __LINE__))

// LATHE_DO(verify(graph)); returns the Diag from this function when there is one.
#define LATHE_DO(expression)                                                                  \
  if (auto LATHE_JOIN(status_, __LINE__) = (expression); !LATHE_JOIN(status_, __LINE__).ok()) \
  return std::move(LATHE_JOIN(status_, __LINE__)).error()

// An invariant of ours, in a function that returns a Result: a failure is our bug, never the
// user's.
#define LATHE_CHECK(condition, message) \
  if (!(condition)) return ::lathe::internal_error(message, __FILE__, __LINE__)
