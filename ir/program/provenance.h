// Where the buffers come from that init makes of a program's weights, to compare those of several
// programs of one module.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/program/program.h"

namespace lathe {

class Provenances {
 public:
  // By buffer, a number for each persistent one, -1 for others. Buffers with equal numbers, also of
  // different programs, are made by equal kernels of equal sources: where weights of one name have
  // the same bytes, so have these. What a library makes is equal to nothing.
  std::vector<int64_t> of(const Program& program);

 private:
  int64_t number_of(std::string words) {
    return numbers_.emplace(std::move(words), static_cast<int64_t>(numbers_.size())).first->second;
  }
  // Of a launch of init.
  struct Source {
    const Launch& launch;
    int64_t kernel;                       // the number of its code, where it runs one
    const std::vector<int64_t>& buffers;  // what each comes from before it
  };
  // What the launch makes of a buffer that it writes.
  std::string words_of(const Source& source, BufferId written) const;

  std::unordered_map<std::string, int64_t> numbers_;
};

}  // namespace lathe
