/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-size.h>
#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_DATA_PARALLEL (gtorch_data_parallel_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchDataParallel, gtorch_data_parallel, GTORCH, DATA_PARALLEL, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchDataParallel *gtorch_data_parallel_new (GTorchModule *module, GTorchDevice **devices,
                                              gsize n_devices, GTorchDevice *output_device,
                                              gint dim, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_data_parallel_call (GTorchModule *module, GTorchTensor **inputs,
                                         gsize n_inputs, GTorchDevice **devices, gsize n_devices,
                                         GTorchDevice *output_device, gint dim,
                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_replicate (GTorchModule *module, GTorchDevice **devices, gsize n_devices,
                             gboolean detach, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_parallel_apply (GTorchModule **modules, gsize n_modules, GTorchTensor **inputs,
                                  gsize n_inputs, GTorchDevice **devices, gsize n_devices,
                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
GTorchModule *gtorch_data_parallel_get_wrapped (GTorchDataParallel *self);
GTORCH_AVAILABLE_IN_0_1
GTorchSize *gtorch_data_parallel_get_device_ids (GTorchDataParallel *self);
GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_data_parallel_get_output_device (GTorchDataParallel *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_data_parallel_get_dim (GTorchDataParallel *self);

G_END_DECLS
