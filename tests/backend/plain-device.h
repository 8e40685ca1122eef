/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-backend-private.h>

/* The backend of the device "plain:0". */
extern GTorchBackend plain_backend;
void plain_backend_add (void);
