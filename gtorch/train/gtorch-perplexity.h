/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/train/gtorch-metric.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_PERPLEXITY (gtorch_perplexity_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchPerplexity, gtorch_perplexity, GTORCH, PERPLEXITY, GTorchMetric)

GTORCH_AVAILABLE_IN_0_1
GTorchPerplexity *gtorch_perplexity_new (void) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
