// References and arrays that need neither exceptions nor a garbage collector.
#pragma once

#include <Python.h>

#include <memory>
#include <new>
#include <utility>

namespace lathe::python {

// Owns a reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* object) : object_(object) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }
  static Ref to(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// As many as are asked for; empty when memory is out, which `ok` says.
template <class T>
class Items {
 public:
  Items() = default;
  explicit Items(Py_ssize_t size) : size_(size), items_(new(std::nothrow) T[size_t(size)]()) {}
  bool ok() const { return items_ != nullptr; }
  Py_ssize_t size() const { return size_; }
  T& operator[](Py_ssize_t i) { return items_[size_t(i)]; }
  const T& operator[](Py_ssize_t i) const { return items_[size_t(i)]; }
  T* begin() { return items_.get(); }
  T* end() { return items_.get() + size_; }
  const T* begin() const { return items_.get(); }
  const T* end() const { return items_.get() + size_; }

 private:
  Py_ssize_t size_ = 0;
  std::unique_ptr<T[]> items_;
};

// As many, of one call: where they are few they stand on the stack.
template <class T>
class Scratch {
 public:
  explicit Scratch(Py_ssize_t size)
      : size_(size), many_(size > kFew ? Items<T>(size) : Items<T>()) {}
  bool ok() const { return size_ <= kFew || many_.ok(); }
  Py_ssize_t size() const { return size_; }
  T& operator[](Py_ssize_t i) { return begin()[i]; }
  T* begin() { return size_ > kFew ? many_.begin() : few_; }
  T* end() { return begin() + size_; }

 private:
  static constexpr Py_ssize_t kFew = 8;

  T few_[kFew] = {};
  Py_ssize_t size_;
  Items<T> many_;
};

}  // namespace lathe::python
