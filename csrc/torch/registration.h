// Registration with torch's dispatcher when the library is loaded.
#pragma once

#include <c10/core/DispatchKey.h>
#include <torch/library.h>

#include <optional>

namespace gpureduce::binding {

// Calls `add` with a torch::Library for the namespace gpureduce, as TORCH_LIBRARY_FRAGMENT (no key) and
// TORCH_LIBRARY_IMPL do; but does nothing when another copy of this library, loaded from another path, has registered
// already. The macros would throw in that case, and an exception that leaves dlopen ends the process.
class Registration {
  public:
    Registration(std::optional<c10::DispatchKey> key, void (*add)(torch::Library&));

  private:
    std::optional<torch::Library> library_;
};

}  // namespace gpureduce::binding
