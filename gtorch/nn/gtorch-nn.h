/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-adaptive-log-softmax.h>
#include <gtorch/nn/gtorch-attention.h>
#include <gtorch/nn/gtorch-clip-grad.h>
#include <gtorch/nn/gtorch-conv-transpose.h>
#include <gtorch/nn/gtorch-decoder.h>
#include <gtorch/nn/gtorch-encoder.h>
#include <gtorch/nn/gtorch-fusion.h>
#include <gtorch/nn/gtorch-graphed-module.h>
#include <gtorch/nn/gtorch-init.h>
#include <gtorch/nn/gtorch-layer-enums.h>
#include <gtorch/nn/gtorch-layer-indices.h>
#include <gtorch/nn/gtorch-layers.h>
#include <gtorch/nn/gtorch-loss.h>
#include <gtorch/nn/gtorch-member-model.h>
#include <gtorch/nn/gtorch-module-checkpoint.h>
#include <gtorch/nn/gtorch-module-dict.h>
#include <gtorch/nn/gtorch-module-global-hooks.h>
#include <gtorch/nn/gtorch-module-hooks.h>
#include <gtorch/nn/gtorch-module-list.h>
#include <gtorch/nn/gtorch-module-members.h>
#include <gtorch/nn/gtorch-module-memory-format.h>
#include <gtorch/nn/gtorch-module-state.h>
#include <gtorch/nn/gtorch-module.h>
#include <gtorch/nn/gtorch-multihead-attention.h>
#include <gtorch/nn/gtorch-orthogonal.h>
#include <gtorch/nn/gtorch-packed-sequence.h>
#include <gtorch/nn/gtorch-parameter-dict.h>
#include <gtorch/nn/gtorch-parameter-list.h>
#include <gtorch/nn/gtorch-parameter.h>
#include <gtorch/nn/gtorch-parametrization-list.h>
#include <gtorch/nn/gtorch-parametrize.h>
#include <gtorch/nn/gtorch-pretrained.h>
#include <gtorch/nn/gtorch-prune.h>
#include <gtorch/nn/gtorch-rnn-base.h>
#include <gtorch/nn/gtorch-sequential.h>
#include <gtorch/nn/gtorch-spectral-norm.h>
#include <gtorch/nn/gtorch-transformer-decoder-layer.h>
#include <gtorch/nn/gtorch-transformer-decoder.h>
#include <gtorch/nn/gtorch-transformer-encoder-layer.h>
#include <gtorch/nn/gtorch-transformer-encoder.h>
#include <gtorch/nn/gtorch-transformer.h>
#include <gtorch/nn/gtorch-triplet-margin.h>
#include <gtorch/nn/gtorch-weight-norm.h>
