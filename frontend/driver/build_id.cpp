// The note of the object that this code was loaded from.
#include "frontend/driver/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace lathe {
namespace {

struct Search {
  uintptr_t address;  // of code in the object
  std::string id = {};
};

constexpr size_t padded(size_t size) { return (size + 3) & ~size_t{3}; }

std::string id_in_notes(const char* notes, size_t size) {
  constexpr std::string_view kOwner("GNU", 4);
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const size_t name = padded(note.n_namesz), content = padded(note.n_descsz);
    if (name > size || content > size || sizeof note + name + content > size) break;
    const char* const owner = notes + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && std::string_view(owner, note.n_namesz) == kOwner) {
      std::string id;
      for (size_t i = 0; i < note.n_descsz; ++i)
        id += fmt::format("{:02x}", static_cast<unsigned char>(owner[name + i]));
      return id;
    }
    notes += sizeof note + name + content;
    size -= sizeof note + name + content;
  }
  return "";
}

int visit(dl_phdr_info* object, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  bool is_ours = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    is_ours |=
        part.p_type == PT_LOAD && begin <= search.address && search.address - begin < part.p_memsz;
  }
  if (!is_ours) return 0;
  for (int i = 0; i < object->dlpi_phnum && search.id.empty(); ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type == PT_NOTE)
      search.id = id_in_notes(reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr),
                              part.p_memsz);
  }
  return 1;
}

}  // namespace

std::string build_id() {
  Search search{reinterpret_cast<uintptr_t>(&visit)};
  dl_iterate_phdr(visit, &search);
  return search.id;
}

}  // namespace lathe
