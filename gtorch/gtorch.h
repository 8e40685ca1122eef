/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/autograd/gtorch-function-context.h>
#include <gtorch/autograd/gtorch-function.h>
#include <gtorch/autograd/gtorch-grad-mode.h>
#include <gtorch/autograd/gtorch-gradcheck.h>
#include <gtorch/autograd/gtorch-tensor-autograd.h>
#include <gtorch/cuda/gtorch-cuda-graph.h>
#include <gtorch/cuda/gtorch-host-allocator.h>
#include <gtorch/gtorch-allocator-history.h>
#include <gtorch/gtorch-allocator.h>
#include <gtorch/gtorch-build-info.h>
#include <gtorch/gtorch-device-info.h>
#include <gtorch/gtorch-device-manager.h>
#include <gtorch/gtorch-device-monitor.h>
#include <gtorch/gtorch-device.h>
#include <gtorch/gtorch-dtype.h>
#include <gtorch/gtorch-enums.h>
#include <gtorch/gtorch-error.h>
#include <gtorch/gtorch-event.h>
#include <gtorch/gtorch-fft-plan-cache.h>
#include <gtorch/gtorch-generator.h>
#include <gtorch/gtorch-guard.h>
#include <gtorch/gtorch-memory-pool.h>
#include <gtorch/gtorch-scope.h>
#include <gtorch/gtorch-shape.h>
#include <gtorch/gtorch-stream.h>
#include <gtorch/gtorch-tensor-async.h>
#include <gtorch/gtorch-tensor-bytes.h>
#include <gtorch/gtorch-tensor-create.h>
#include <gtorch/gtorch-tensor-dlpack.h>
#include <gtorch/gtorch-tensor-index.h>
#include <gtorch/gtorch-tensor-ops.h>
#include <gtorch/gtorch-tensor-print.h>
#include <gtorch/gtorch-tensor.h>
#include <gtorch/gtorch-timer.h>
#include <gtorch/gtorch-types.h>
#include <gtorch/gtorch-version-macros.h>
#include <gtorch/io/gtorch-safetensors.h>
#include <gtorch/nn/gtorch-nn.h>
#include <gtorch/optim/gtorch-adam.h>
#include <gtorch/optim/gtorch-optimizer.h>
#include <gtorch/optim/gtorch-param-group.h>
#include <gtorch/optim/gtorch-sgd.h>
