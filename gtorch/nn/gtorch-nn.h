/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-adaptive-avg-pool2d.h>
#include <gtorch/nn/gtorch-avg-pool2d.h>
#include <gtorch/nn/gtorch-batch-norm1d.h>
#include <gtorch/nn/gtorch-batch-norm2d.h>
#include <gtorch/nn/gtorch-bce-with-logits-loss.h>
#include <gtorch/nn/gtorch-conv2d.h>
#include <gtorch/nn/gtorch-cross-entropy-loss.h>
#include <gtorch/nn/gtorch-dropout.h>
#include <gtorch/nn/gtorch-embedding.h>
#include <gtorch/nn/gtorch-flatten.h>
#include <gtorch/nn/gtorch-gelu.h>
#include <gtorch/nn/gtorch-graphed-module.h>
#include <gtorch/nn/gtorch-identity.h>
#include <gtorch/nn/gtorch-init.h>
#include <gtorch/nn/gtorch-l1-loss.h>
#include <gtorch/nn/gtorch-layer-norm.h>
#include <gtorch/nn/gtorch-leaky-relu.h>
#include <gtorch/nn/gtorch-linear.h>
#include <gtorch/nn/gtorch-log-softmax.h>
#include <gtorch/nn/gtorch-loss.h>
#include <gtorch/nn/gtorch-max-pool2d.h>
#include <gtorch/nn/gtorch-module-hooks.h>
#include <gtorch/nn/gtorch-module-members.h>
#include <gtorch/nn/gtorch-module-state.h>
#include <gtorch/nn/gtorch-module.h>
#include <gtorch/nn/gtorch-mse-loss.h>
#include <gtorch/nn/gtorch-nll-loss.h>
#include <gtorch/nn/gtorch-parameter.h>
#include <gtorch/nn/gtorch-relu.h>
#include <gtorch/nn/gtorch-sequential.h>
#include <gtorch/nn/gtorch-sigmoid.h>
#include <gtorch/nn/gtorch-silu.h>
#include <gtorch/nn/gtorch-softmax.h>
#include <gtorch/nn/gtorch-tanh.h>
