/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/stream/gtorch-stream-private.h>
#include <gtorch/tensor/gtorch-tensor-private.h>
#include <gtorch/gtorch.h>

#include "sanitizer.h"

/* GTORCH_TEST_DEVICE names the device that a program of tests runs on. Before main () it becomes the default
 * device and the current one, so that tensors made without naming a device are there; where it is missing
 * the program ends, skipping all. Nothing happens if the variable is not set: that is the CPU.
 *
 * What is here works on tensors of every device, and so must tests that look into memory. */

GTorchDevice *test_device (void);
/* Is the test, which is about the CPU alone, to end here? Skips it then. */
gboolean test_is_elsewhere (const gchar *why);
/* Can the device record graphs? Skips the test if not. */
gboolean test_can_capture (void);
/* Did the call fail? What GPUs find out later, wrong indices say, they are waited for. Drops the result. */
gboolean test_fails (GTorchTensor *result, GError **error);

/* The same elements in the same layout, on test_device () or on the host; new references. */
GTorchImpl *impl_to_test_device (GTorchImpl *impl);
GTorchImpl *impl_to_host (GTorchImpl *impl);
/* The element that comes i-th in row-major order. */
gdouble test_element (GTorchTensor *tensor, gint64 i);
/* All elements in row-major order, as bytes of the tensor's dtype; free them. */
gpointer test_dup_elements (GTorchTensor *tensor, gsize *n_bytes);
/* What is printed, without the words that say where it is. */
gchar *test_to_string (GTorchTensor *tensor);

/* The stream calls func, and goes on when that returns. */
void test_enqueue (GTorchStream *stream, void (*func) (gpointer data), gpointer data);
