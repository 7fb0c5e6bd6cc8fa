// Tensors of NumPy and PyTorch, read and made without asking Python for attributes.
#pragma once

#include <Python.h>

#include <cstdint>

#include "frontend/python/call/memory.h"

namespace lathe::python {

// DLPack as PyTorch offers it: its major version, 1, fixes the layout.
struct DlDevice {
  int32_t type;
  int32_t id;

  bool operator==(const DlDevice&) const = default;
};
constexpr int32_t kDlCpu = 1;
constexpr int32_t kDlCuda = 2;

struct DlType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;

  bool operator==(const DlType&) const = default;
};

struct DlTensor {
  void* data;
  DlDevice device;
  int32_t rank;
  DlType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements
  uint64_t byte_offset;

  void* address() const { return static_cast<char*>(data) + byte_offset; }
};

struct DlExchange {
  using SetError = void (*)(void* context, const char* kind, const char* message);

  uint32_t major;
  uint32_t minor;
  void* older;
  int (*allocate)(DlTensor* prototype, void** managed, void* context, SetError set_error);
  int (*managed_of)(void* object, void** managed);
  int (*object_of)(void* managed, void** object);
  int (*read)(void* object, DlTensor* tensor);  // valid as long as the object is; may be null
  int (*current_stream)(int32_t device_type, int32_t device_id, void** stream);
};

// What Python has told of NumPy and PyTorch; null until then.
struct Frameworks {
  PyObject* array_type = nullptr;
  PyObject* new_array = nullptr;
  PyObject* tensor_type = nullptr;
  PyObject* parameter_type = nullptr;
  PyObject* is_negated = nullptr;  // Tensor.is_neg
  const DlExchange* exchange = nullptr;
};
extern Frameworks frameworks;

// An argument: a tensor of NumPy or PyTorch that is described, or anything else.
struct Argument {
  enum class Kind { other, array, tensor };

  Kind kind = Kind::other;
  PyObject* object = nullptr;  // the caller's reference
  void* data = nullptr;
  int dtype = -1;  // of lathe_dtype; -1: none of them
  int rank = 0;
  const int64_t* shape = nullptr;
  const int64_t* strides = nullptr;
  int64_t stride_unit = 1;  // of elements that are neighbours
  DlDevice device = {kDlCpu, 0};
  bool is_writable = true;

  Argument() = default;
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;
  ~Argument();
  // Subclasses are left to Python: they may mean more than their memory says.
  void read(PyObject* from);

 private:
  void read_array();
  void read_tensor();

  Py_buffer buffer_ = {};  // of an array
};

// How an output is made.
struct Output {
  int dtype = 0;
  Items<int64_t> shape;
  Items<int64_t> strides;
  Ref array_arguments;  // of Frameworks::new_array
};

// New memory for an output: PyTorch's on the device of `like`, or an array where that is null. Null
// with Python's error when there is none.
Ref make(const Output& output, const Argument* like, void*& data);

// The caller's stream on the device of `like`; null: the run is waited for. False with an error.
bool find_stream(const Argument* like, void*& stream);

}  // namespace lathe::python
