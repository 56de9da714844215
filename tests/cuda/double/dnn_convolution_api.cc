// cuDNN: running convolutions, their algorithms and workspaces.

#include <algorithm>
#include <fmt/format.h>

#include "tests/cuda/double/dnn_convolution.h"
#include "tests/cuda/double/faults.h"
#include "tests/cuda/double/memory.h"

using namespace reprise::test::cuda;

namespace {

std::byte* at(const void* device, const Layout& layout) {
  return storage(device, layout.span());
}

struct Operands {
  const char* name;
  const void* first;  // as convolve() takes them
  const void* second;
  void* result;
  float alpha, beta;
};

const Layout& first_of(const ConvolutionCase& c) {
  return c.direction == Direction::kBackwardData ? c.y : c.x;
}
const Layout& second_of(const ConvolutionCase& c) {
  return c.direction == Direction::kBackwardFilter ? c.y : c.w;
}
const Layout& result_of(const ConvolutionCase& c) {
  return c.direction == Direction::kForward        ? c.y
         : c.direction == Direction::kBackwardData ? c.x
                                                   : c.w;
}

int call_number = 0;  // what makes algorithms that are not deterministic so

cudnnStatus_t run(cudnnHandle_t handle, const ConvolutionCase& c, int number, const Operands& o,
                  const Workspace& workspace) {
  if (!c.fits()) return CUDNN_STATUS_BAD_PARAM;
  if (!c.types_go_together()) return CUDNN_STATUS_NOT_SUPPORTED;
  const std::optional<Algorithm> chosen = algorithm(c, number);
  if (!chosen) return CUDNN_STATUS_NOT_SUPPORTED;
  if (workspace.bytes < chosen->workspace_bytes ||
      (chosen->workspace_bytes > 0 && workspace.begin == nullptr))
    return CUDNN_STATUS_BAD_PARAM;
  const cudaStream_t stream = engine().resolve(handle->stream);
  if (stream == nullptr) {
    fault(fmt::format("{} on a stream that is not there", o.name));
    return CUDNN_STATUS_EXECUTION_FAILED;
  }
  const Algorithm a = *chosen;
  const auto work = [c, o, a] {
    const int rotation = a.deterministic ? 0 : ++call_number;
    const std::vector<float> result =
        convolve(c, first_of(c).gather(at(o.first, first_of(c))),
                 second_of(c).gather(at(o.second, second_of(c))), a.parts, rotation);
    result_of(c).scatter(result, o.alpha, o.beta, at(o.result, result_of(c)));
  };
  const std::vector<Range> touched = {{o.first, first_of(c).span(), false},
                                      {o.second, second_of(c).span(), false},
                                      {o.result, result_of(c).span(), true}};
  const Workspace used{workspace.begin, a.workspace_bytes == 0 ? 0 : workspace.bytes};
  return queue_library_call(stream, o.name, touched, used, work) == cudaSuccess
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_EXECUTION_FAILED;
}

float number_at(const void* scale) {
  return *static_cast<const float*>(scale);
}

template <class Perf>
cudnnStatus_t list(const ConvolutionCase& c, int wanted, int* returned, Perf* results,
                   std::size_t workspace_limit) {
  if (!c.fits() || wanted < 1) return CUDNN_STATUS_BAD_PARAM;
  if (!c.types_go_together()) return CUDNN_STATUS_NOT_SUPPORTED;
  const auto products = c.y.count() * c.w.count() / c.w.size[0];
  const double work = 2e-9 * static_cast<double>(products);
  *returned = 0;
  for (const Algorithm& a : algorithms(c)) {
    if (*returned == wanted) break;
    Perf& result = results[(*returned)++];
    result = {};
    result.algo = static_cast<decltype(result.algo)>(a.number);
    result.status =
        a.workspace_bytes <= workspace_limit ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
    result.time = static_cast<float>(a.relative_time * work + 0.002);
    result.memory = a.workspace_bytes;
    result.determinism = a.deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
    result.mathType = c.convolution.math;
  }
  return CUDNN_STATUS_SUCCESS;
}

// Tries all on the caller's tensors, as the real one does: the result is overwritten.
template <class Perf>
cudnnStatus_t find(cudnnHandle_t handle, const ConvolutionCase& c, const Operands& o, int wanted,
                   int* returned, Perf* results, const Workspace& workspace) {
  const cudnnStatus_t status = list(c, wanted, returned, results, workspace.bytes);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const cudaStream_t stream = engine().resolve(handle->stream);
  if (stream == nullptr || stream->capture) return CUDNN_STATUS_EXECUTION_FAILED;
  std::stable_partition(results, results + *returned,
                        [](const Perf& p) { return p.status == CUDNN_STATUS_SUCCESS; });
  for (int i = 0; i < *returned; ++i)
    if (results[i].status == CUDNN_STATUS_SUCCESS) run(handle, c, results[i].algo, o, workspace);
  engine().wait(stream->tail);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t workspace_size(const ConvolutionCase& c, int number, std::size_t* bytes) {
  if (!c.fits()) return CUDNN_STATUS_BAD_PARAM;
  const std::optional<Algorithm> chosen = algorithm(c, number);
  if (!chosen || !c.types_go_together()) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = chosen->workspace_bytes;
  return CUDNN_STATUS_SUCCESS;
}

ConvolutionCase forward(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                        cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t y) {
  return {Direction::kForward, c->convolution, x->layout, w->layout, y->layout};
}
ConvolutionCase data(cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
                     cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t dx) {
  return {Direction::kBackwardData, c->convolution, dx->layout, w->layout, dy->layout};
}
ConvolutionCase filter(cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
                       cudnnConvolutionDescriptor_t c, cudnnFilterDescriptor_t dw) {
  return {Direction::kBackwardFilter, c->convolution, x->layout, dw->layout, dy->layout};
}

cudnnStatus_t count_of(const char* name, cudnnHandle_t handle, int* count, int value) {
  return dnn_api(name, handle, [&] {
    *count = value;
    return CUDNN_STATUS_SUCCESS;
  });
}

}  // namespace

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      const cudnnTensorDescriptor_t xDesc, const void* x,
                                      const cudnnFilterDescriptor_t wDesc, const void* w,
                                      const cudnnConvolutionDescriptor_t convDesc,
                                      cudnnConvolutionFwdAlgo_t algo, void* workSpace,
                                      std::size_t workSpaceSizeInBytes, const void* beta,
                                      const cudnnTensorDescriptor_t yDesc, void* y) {
  const char* const name = "cudnnConvolutionForward";
  return dnn_api(name, handle, [&] {
    return run(handle, forward(xDesc, wDesc, convDesc, yDesc), algo,
               {name, x, w, y, number_at(alpha), number_at(beta)},
               {workSpace, workSpaceSizeInBytes});
  });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t wDesc, const void* w,
                                           const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                           const cudnnConvolutionDescriptor_t convDesc,
                                           cudnnConvolutionBwdDataAlgo_t algo, void* workSpace,
                                           std::size_t workSpaceSizeInBytes, const void* beta,
                                           const cudnnTensorDescriptor_t dxDesc, void* dx) {
  const char* const name = "cudnnConvolutionBackwardData";
  return dnn_api(name, handle, [&] {
    return run(handle, data(wDesc, dyDesc, convDesc, dxDesc), algo,
               {name, dy, w, dx, number_at(alpha), number_at(beta)},
               {workSpace, workSpaceSizeInBytes});
  });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t xDesc, const void* x,
                                             const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                             const cudnnConvolutionDescriptor_t convDesc,
                                             cudnnConvolutionBwdFilterAlgo_t algo, void* workSpace,
                                             std::size_t workSpaceSizeInBytes, const void* beta,
                                             const cudnnFilterDescriptor_t dwDesc, void* dw) {
  const char* const name = "cudnnConvolutionBackwardFilter";
  return dnn_api(name, handle, [&] {
    return run(handle, filter(xDesc, dyDesc, convDesc, dwDesc), algo,
               {name, x, dy, dw, number_at(alpha), number_at(beta)},
               {workSpace, workSpaceSizeInBytes});
  });
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnFilterDescriptor_t wDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t yDesc,
    cudnnConvolutionFwdAlgo_t algo, std::size_t* sizeInBytes) {
  return dnn_api("cudnnGetConvolutionForwardWorkspaceSize", handle, [&] {
    return workspace_size(forward(xDesc, wDesc, convDesc, yDesc), algo, sizeInBytes);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc,
    cudnnConvolutionBwdDataAlgo_t algo, std::size_t* sizeInBytes) {
  return dnn_api("cudnnGetConvolutionBackwardDataWorkspaceSize", handle, [&] {
    return workspace_size(data(wDesc, dyDesc, convDesc, dxDesc), algo, sizeInBytes);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t gradDesc,
    cudnnConvolutionBwdFilterAlgo_t algo, std::size_t* sizeInBytes) {
  return dnn_api("cudnnGetConvolutionBackwardFilterWorkspaceSize", handle, [&] {
    return workspace_size(filter(xDesc, dyDesc, convDesc, gradDesc), algo, sizeInBytes);
  });
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return count_of("cudnnGetConvolutionForwardAlgorithmMaxCount", handle, count,
                  CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return count_of("cudnnGetConvolutionBackwardDataAlgorithmMaxCount", handle, count,
                  CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return count_of("cudnnGetConvolutionBackwardFilterAlgorithmMaxCount", handle, count,
                  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
    const cudnnFilterDescriptor_t filterDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t destDesc, const int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionFwdAlgoPerf_t* perfResults) {
  return dnn_api("cudnnGetConvolutionForwardAlgorithm_v7", handle, [&] {
    return list(forward(srcDesc, filterDesc, convDesc, destDesc), requestedAlgoCount,
                returnedAlgoCount, perfResults, SIZE_MAX);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc,
    const cudnnTensorDescriptor_t diffDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t gradDesc, const int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionBwdDataAlgoPerf_t* perfResults) {
  return dnn_api("cudnnGetConvolutionBackwardDataAlgorithm_v7", handle, [&] {
    return list(data(filterDesc, diffDesc, convDesc, gradDesc), requestedAlgoCount,
                returnedAlgoCount, perfResults, SIZE_MAX);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
    const cudnnTensorDescriptor_t diffDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnFilterDescriptor_t gradDesc, const int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionBwdFilterAlgoPerf_t* perfResults) {
  return dnn_api("cudnnGetConvolutionBackwardFilterAlgorithm_v7", handle, [&] {
    return list(filter(srcDesc, diffDesc, convDesc, gradDesc), requestedAlgoCount,
                returnedAlgoCount, perfResults, SIZE_MAX);
  });
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void* x,
    const cudnnFilterDescriptor_t wDesc, const void* w, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t yDesc, void* y, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults, void* workSpace,
    std::size_t workSpaceSizeInBytes) {
  const char* const name = "cudnnFindConvolutionForwardAlgorithmEx";
  return dnn_api(name, handle, [&] {
    return find(handle, forward(xDesc, wDesc, convDesc, yDesc), {name, x, w, y, 1, 0},
                requestedAlgoCount, returnedAlgoCount, perfResults,
                {workSpace, workSpaceSizeInBytes});
  });
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const void* w,
    const cudnnTensorDescriptor_t dyDesc, const void* dy,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc, void* dx,
    const int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionBwdDataAlgoPerf_t* perfResults, void* workSpace,
    std::size_t workSpaceSizeInBytes) {
  const char* const name = "cudnnFindConvolutionBackwardDataAlgorithmEx";
  return dnn_api(name, handle, [&] {
    return find(handle, data(wDesc, dyDesc, convDesc, dxDesc), {name, dy, w, dx, 1, 0},
                requestedAlgoCount, returnedAlgoCount, perfResults,
                {workSpace, workSpaceSizeInBytes});
  });
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void* x,
    const cudnnTensorDescriptor_t dyDesc, const void* y,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t dwDesc, void* dw,
    const int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionBwdFilterAlgoPerf_t* perfResults, void* workSpace,
    std::size_t workSpaceSizeInBytes) {
  const char* const name = "cudnnFindConvolutionBackwardFilterAlgorithmEx";
  return dnn_api(name, handle, [&] {
    return find(handle, filter(xDesc, dyDesc, convDesc, dwDesc), {name, x, y, dw, 1, 0},
                requestedAlgoCount, returnedAlgoCount, perfResults,
                {workSpace, workSpaceSizeInBytes});
  });
}
