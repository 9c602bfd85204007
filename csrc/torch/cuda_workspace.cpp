#include "cuda_workspace.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace gpureduce::binding {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

// --- eager launches: one mailbox a stream -----------------------------------------------------------------------------

struct StreamMailbox {
    c10::DeviceIndex device = -1;
    unsigned long long stream_id = 0;  // never given twice, as a stream's handle may be
    void* memory = nullptr;
};

void* make_mailbox(cudaStream_t stream) {
    void* const memory = allocator::raw_alloc_with_stream(kMaxMailboxBytes, stream);
    C10_CUDA_CHECK(cudaMemsetAsync(memory, 0, kMaxMailboxBytes, stream));
    return memory;
}

// Mailboxes live as long as the process: they are few, and freeing them at exit would race with the driver's shutdown.
// A new stream that got the handle of a destroyed one takes over its mailbox, once all that may still use it has ended.
StreamMailbox find_mailbox(c10::DeviceIndex device, cudaStream_t stream, unsigned long long stream_id) {
    static auto& mutex = *new std::mutex;
    static auto& mailboxes = *new std::map<std::pair<c10::DeviceIndex, cudaStream_t>, StreamMailbox>;
    std::lock_guard const lock(mutex);
    StreamMailbox& found = mailboxes[{device, stream}];
    if (found.memory == nullptr) found = {device, stream_id, make_mailbox(stream)};
    if (found.stream_id != stream_id) {
        c10::cuda::CUDAStreamCaptureModeGuard const other_streams_may_capture(cudaStreamCaptureModeRelaxed);
        C10_CUDA_CHECK(cudaDeviceSynchronize());
        found.stream_id = stream_id;
    }
    return found;
}

void* mailbox_of_stream(c10::DeviceIndex device, cudaStream_t stream) {
    thread_local StreamMailbox last;
    unsigned long long stream_id = 0;
    C10_CUDA_CHECK(cudaStreamGetId(stream, &stream_id));
    if (last.device != device || last.stream_id != stream_id) last = find_mailbox(device, stream, stream_id);
    return last.memory;
}

// --- captured launches: tickets that belong to the graph ----------------------------------------------------------

constexpr int kSmallestClass = 8;  // 256 bytes
constexpr int kSizeClasses = ceil_log2(kMaxMailboxBytes) + 1;
constexpr int64_t kSlabBytes = 2 * kMaxMailboxBytes;

class MailboxPool;

// 2^size_class bytes. The record itself is a link of the free list, so giving a range back allocates nothing.
struct MailboxRange {
    MailboxPool* pool;
    int size_class;
    char* first;
    MailboxRange* next;  // in the free list
};

// The zeroed memory of one device. A range goes back as it was taken, all zero, because a launch empties its mailbox.
class MailboxPool {
  public:
    MailboxRange* take(int64_t bytes) {
        int const size_class = std::max(kSmallestClass, ceil_log2(bytes));
        MailboxRange* const range = take_back(size_class);
        return range ? range : take_unused(size_class);
    }

    // Runs on a thread of the driver, where no CUDA call is allowed: so nothing else is done under this lock.
    void give_back(MailboxRange* range) {
        std::lock_guard const lock(free_mutex_);
        range->next = free_[range->size_class];
        free_[range->size_class] = range;
    }

  private:
    MailboxRange* take_back(int size_class) {
        std::lock_guard const lock(free_mutex_);
        MailboxRange* const range = free_[size_class];
        if (range) free_[size_class] = range->next;
        return range;
    }

    MailboxRange* take_unused(int size_class) {
        int64_t const size = int64_t(1) << size_class;
        std::lock_guard const lock(slab_mutex_);
        if (left_ < size) add_slab();
        auto* const range = new MailboxRange{this, size_class, unused_, nullptr};
        unused_ += size;
        left_ -= size;
        return range;
    }

    // On a stream of its own, and waited for: the graph that needs the memory may be replayed on any stream at once,
    // and the capture that is under way can neither wait for other work nor be waited for.
    void add_slab() {
        c10::cuda::CUDAStreamCaptureModeGuard const other_streams_may_work(cudaStreamCaptureModeRelaxed);
        cudaStream_t stream = nullptr;
        C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        unused_ = static_cast<char*>(allocator::raw_alloc_with_stream(kSlabBytes, stream));
        C10_CUDA_CHECK(cudaMemsetAsync(unused_, 0, kSlabBytes, stream));
        C10_CUDA_CHECK(cudaStreamSynchronize(stream));
        C10_CUDA_CHECK(cudaStreamDestroy(stream));
        left_ = kSlabBytes;
    }

    std::mutex free_mutex_;
    MailboxRange* free_[kSizeClasses] = {};
    std::mutex slab_mutex_;
    char* unused_ = nullptr;
    int64_t left_ = 0;
};

MailboxPool& pool_of(c10::DeviceIndex device) {
    static auto* const pools = new MailboxPool[C10_COMPILE_TIME_MAX_GPUS];
    return pools[device];
}

void give_back(void* range) {
    auto* const mailbox = static_cast<MailboxRange*>(range);
    mailbox->pool->give_back(mailbox);
}

// Takes a mailbox that the graph being captured on `stream` owns: it comes back when the graph and all that was made of
// it, executable graphs and clones, are destroyed and have ended.
void* mailbox_of_graph(int64_t bytes, c10::DeviceIndex device, cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = nullptr;
    C10_CUDA_CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph));
    TORCH_CHECK(status == cudaStreamCaptureStatusActive,
                "gpureduce::sum: the CUDA graph capture of this stream failed");

    MailboxRange* const mailbox = pool_of(device).take(bytes);
    cudaUserObject_t owner = nullptr;
    cudaError_t error = cudaUserObjectCreate(&owner, mailbox, give_back, 1, cudaUserObjectNoDestructorSync);
    if (error != cudaSuccess) give_back(mailbox);
    C10_CUDA_CHECK(error);
    error = cudaGraphRetainUserObject(graph, owner, 1, cudaGraphUserObjectMove);
    if (error != cudaSuccess) C10_CUDA_IGNORE_ERROR(cudaUserObjectRelease(owner, 1));
    C10_CUDA_CHECK(error);
    return mailbox->first;
}

}  // namespace

void* mailbox_for(int64_t bytes, c10::cuda::CUDAStream stream) {
    if (bytes == 0) return nullptr;
    TORCH_INTERNAL_ASSERT(bytes <= kMaxMailboxBytes);
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    C10_CUDA_CHECK(cudaStreamIsCapturing(stream, &capture));
    if (capture == cudaStreamCaptureStatusNone) return mailbox_of_stream(stream.device_index(), stream.stream());
    return mailbox_of_graph(bytes, stream.device_index(), stream.stream());
}

}  // namespace gpureduce::binding
