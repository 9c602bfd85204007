// What hand-written nodes of the autograd graph share.
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

namespace gpureduce::binding {

// Of forward-mode AD: whether a tensor has a tangent, and the tensor without it.
inline bool has_tangent(const at::Tensor& tensor) { return tensor._fw_grad(/*level=*/0).defined(); }
inline at::Tensor primal(const at::Tensor& tensor) {
    return has_tangent(tensor) ? tensor._fw_primal(/*level=*/0) : tensor;
}

// Nodes are counted intrusively since torch 2.13, by std::shared_ptr before.
using OwningNode = decltype(torch::autograd::Edge::function);

template <class Derived, class Pointer = OwningNode>
Pointer owning_node(Derived* node) {
    using torch::autograd::Node;
    if constexpr (std::is_same_v<Pointer, std::shared_ptr<Node>>)
        return Pointer(node, [](Derived* dead) { deleteNode(dead); });  // without recursion, however deep the graph
    else
        return Pointer(std::unique_ptr<Node>(node));
}

// Of a node that is owned already.
template <class Derived, class Pointer = OwningNode>
Pointer owner_of(Derived* node) {
    if constexpr (std::is_same_v<Pointer, std::shared_ptr<torch::autograd::Node>>)
        return node->shared_from_this();
    else
        return Pointer::reclaim_copy(node);
}

}  // namespace gpureduce::binding
