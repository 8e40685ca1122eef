/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/stream/gtorch-stream-private.h>
#include <gtorch/tensor/gtorch-tensor-private.h>
#include <gtorch/gtorch.h>

#include "sanitizer.h"

/* GTORCH_TEST_DEVICE names the device of a test program. It becomes the default and current device before
 * main (), so that tensors are created on it by default; if it is missing, the program ends and skips all
 * tests. Without the variable the device is the CPU.
 *
 * The functions here work on tensors of every device, and so must tests that read memory. */

GTorchDevice *test_device (void);
/* Skips the test and returns TRUE if it is for the CPU only and the device is another. */
gboolean test_is_elsewhere (const gchar *why);
/* Returns TRUE if the CPU's loops compute for the device in the thread that calls, as they do for the CPU and
 * for the plain device of tests/backend. */
gboolean test_computes_on_host (void);
/* Returns TRUE if the device can capture graphs; otherwise skips the test. */
gboolean test_can_capture (void);
/* Returns TRUE if the call failed. Waits for errors that a GPU detects asynchronously. Drops the result. */
gboolean test_fails (GTorchTensor *result, GError **error);

/* Returns the same elements in the same layout, on test_device () or on the host; new references. */
GTorchImpl *impl_to_test_device (GTorchImpl *impl);
GTorchImpl *impl_to_host (GTorchImpl *impl);
/* Returns the i-th element in row-major order. */
gdouble test_element (GTorchTensor *tensor, gint64 i);
/* Returns all elements in row-major order, as bytes of the tensor's dtype; free them. */
gpointer test_dup_elements (GTorchTensor *tensor, gsize *n_bytes);
/* Returns the text of the tensor, without the name of the device. */
gchar *test_to_string (GTorchTensor *tensor);

/* Enqueues a call of func; later work of the stream waits until it returns. */
void test_enqueue (GTorchStream *stream, void (*func) (gpointer data), gpointer data);
