// Meaning of NVIDIA device failures and what to do about them: the end of the error message.
#pragma once

#include <driver_types.h>

#include <string_view>

namespace kintsugi::device {

// "" if there is nothing to add. All saved checkpoints stay valid: a run continues with --resume.
inline std::string_view advice_for(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
      return "the card lost bits (`nvidia-smi -q -d ECC,PAGE_RETIREMENT` and Xid lines of `dmesg` say where): go on "
             "with "
             "--resume on another card, and have this one reset or replaced";
    case cudaErrorUnknown:
    case cudaErrorNoDevice:
    case cudaErrorSystemNotReady:
    case cudaErrorDeviceUninitialized:
    case cudaErrorExternalDevice:
      return "the card does not answer any more, as when it fell off the bus (Xid 79 in `dmesg`): the machine needs to "
             "be "
             "started anew; go on with --resume, here or elsewhere";
    case cudaErrorDevicesUnavailable:
      return "another process has the card for itself, or it is in an exclusive mode: `nvidia-smi -q -d COMPUTE,PIDS` "
             "says which";
    case cudaErrorMemoryAllocation:
      return "another process may hold its memory (`nvidia-smi`); a smaller train.micro_batch or parallel.recompute "
             "needs less";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorContained:
      return "Xid lines of `dmesg` say whether it is the card; go on with --resume, and if it fails at the same step "
             "again, it is a mistake of this program";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidKernelImage:
      return "this build has no code for this card: build with its generation in KINTSUGI_CUDA_ARCHITECTURES";
    default:
      return "";
  }
}

// The oldest supported compute capability: the first with bf16 tensor cores.
inline constexpr int kOldestMajor = 8;

}  // namespace kintsugi::device
