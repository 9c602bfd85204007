// What the CUDA kernels of the operators ask about devices.
#pragma once

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include <vector>

#include "../core/plan.h"

namespace gpureduce::binding {

inline std::vector<DeviceTraits> traits_of_all_devices() {
    std::vector<DeviceTraits> traits(c10::cuda::device_count());
    for (int device = 0; device < int(traits.size()); ++device) {
        int& sm_count = traits[device].sm_count;
        int& shared_bytes = traits[device].shared_bytes;
        C10_CUDA_CHECK(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device));
        C10_CUDA_CHECK(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    }
    return traits;
}

// Asked once.
inline const DeviceTraits& device_traits(c10::Device device) {
    static std::vector<DeviceTraits> const traits = traits_of_all_devices();
    return traits[device.index()];
}

// c10's guard asks for the device three times, so it is only made where it has something to do.
class CurrentDevice {
  public:
    explicit CurrentDevice(c10::Device device) {
        if (c10::cuda::current_device() != device.index()) guard_.set_device(device);
    }

  private:
    c10::cuda::OptionalCUDAGuard guard_;
};

}  // namespace gpureduce::binding
