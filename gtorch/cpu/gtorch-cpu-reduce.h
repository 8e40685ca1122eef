/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#define GTORCH_REDUCE_LOOP(name, suffix, type, init, step, combine, finish)
