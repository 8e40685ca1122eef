/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch-plot/gtorch-plot-axes.h>
#include <gtorch-plot/gtorch-plot-figure.h>
#include <gtorch-plot/gtorch-plot-functions.h>
#include <gtorch-plot/gtorch-plot-histogram.h>
#include <gtorch-plot/gtorch-plot-image.h>
#include <gtorch-plot/gtorch-plot-item.h>
#include <gtorch-plot/gtorch-plot-line.h>
#include <gtorch-plot/gtorch-plot-types.h>
