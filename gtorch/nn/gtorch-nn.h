/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-graphed-module.h>
#include <gtorch/nn/gtorch-init.h>
#include <gtorch/nn/gtorch-layer-enums.h>
#include <gtorch/nn/gtorch-layers.h>
#include <gtorch/nn/gtorch-loss.h>
#include <gtorch/nn/gtorch-module-hooks.h>
#include <gtorch/nn/gtorch-module-members.h>
#include <gtorch/nn/gtorch-module-state.h>
#include <gtorch/nn/gtorch-module.h>
#include <gtorch/nn/gtorch-packed-sequence.h>
#include <gtorch/nn/gtorch-parameter.h>
#include <gtorch/nn/gtorch-rnn-base.h>
#include <gtorch/nn/gtorch-sequential.h>
